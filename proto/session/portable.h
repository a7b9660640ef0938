/* SPDX-License-Identifier: MIT. portable.h: one session as a database of its own: what is handed to
 * other users and to other machines. */
#ifndef PROTOND_SESSION_PORTABLE_H
#define PROTOND_SESSION_PORTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct sqlite3;

/* Session `id` of `from` into the empty database `to`, with its timeline or without, in a
 * transaction there; the caller has one in `from`, so that all tables are of one instant. Returns
 * what SQLite does, SQLITE_OK; e->code is not 0 where there are words for it: -ENOENT no such
 * session (SQLITE_DONE), -EIO. */
int portable_fill(
	struct sqlite3 *from, int64_t id, bool timeline, struct sqlite3 *to, struct err *e);

#endif
