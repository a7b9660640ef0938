/* SPDX-License-Identifier: MIT. pick.h: a database opened for reading, and which session is meant.
 */
#ifndef PROTOND_VIEWER_PICK_H
#define PROTOND_VIEWER_PICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct sqlite3;

/* Read-only; checks that it is protond's and not newer than this program. *ret_partial: a writer's
 * last changes cannot be seen from here. -ENOENT, -EACCES, -EBADMSG not ours, -EPROTO newer. */
int pick_open(const char *path, struct sqlite3 **ret, bool *ret_partial, struct err *e);
/* The same from memory, which is copied. */
int pick_open_image(const void *image, size_t bytes, struct sqlite3 **ret, struct err *e);
/* Reads it all, for what damage opening it does not meet; a progress handler that ends it finds
 * none. -EBADMSG. */
int pick_check(struct sqlite3 *db, const char *what, struct err *e);
/* Returns r, of reading it; where that is -EBADMSG because the file is damaged, the words go on with
 * what to do. */
int pick_refused(struct sqlite3 *db, int r, struct err *e);

/* name, id, uuid prefix (4 hex digits or more), a selector (selector.h). -ENOENT, -EINVAL (an
 * ambiguous prefix). */
int pick_session(struct sqlite3 *db, const char *ref, int64_t *ret_id, struct err *e);
/* Of a portable file: the one session in it. */
int pick_only(struct sqlite3 *db, int64_t *ret_id, struct err *e);

struct pick_row {
	int64_t id, created_ns, processes, launches, matched;
	int64_t active_ns; /* until now, of one that is live; -1: not known */
	int64_t ended_ns;  /* 0: not over */
	uint32_t uid;
	bool empty; /* over, with nothing in it */
	/* Valid during the call; any bytes. tags: with spaces between them. */
	const char *uuid, *name, *state, *source, *command, *tags, *note;
};
typedef int pick_fn(void *arg, const struct pick_row *row);
int pick_each(struct sqlite3 *db, pick_fn *fn, void *arg, struct err *e); /* newest first */
int pick_one(struct sqlite3 *db, int64_t id, pick_fn *fn, void *arg, struct err *e);

#endif
