/* SPDX-License-Identifier: MIT. chrome.h: a session's timeline as Chrome's trace events (JSON), as
 * Perfetto, chrome://tracing and Triton Proton's users read it; docs/trace.md says what is where.
 *
 * One chunk is in memory at a time, so a long timeline costs no more than a short one.
 */
#ifndef PROTOND_EXPORT_CHROME_H
#define PROTOND_EXPORT_CHROME_H

#include <stdint.h>
#include <stdio.h>

#include "err.h"
#include "profile.h"

/* Session `id` of an open store, written to `to` (which the caller opens, flushes and closes).
 * Words in e: -ENOENT no such session, -ENODATA it kept no timeline, -EBADMSG a damaged chunk,
 * -ENOSPC and other failures to write, -ENOMEM. *ret_gone: events that had left over a ceiling
 * before; may be NULL. */
int chrome_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	uint64_t *ret_gone, struct err *e);

#endif
