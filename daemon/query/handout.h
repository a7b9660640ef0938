/* SPDX-License-Identifier: MIT. handout.h: one session as a file that is handed out: portable, for
 * whoever may not open the database, or text of a foreign format. */
#ifndef PROTOND_QUERY_HANDOUT_H
#define PROTOND_QUERY_HANDOUT_H

#include "ask.h"
#include "export.h"
#include "find.h"

/* fd: of a sealed memfd, lent to the asker; done() has to close it. */
typedef void portable_fn(void *arg, const struct refusal *no, int fd, uint64_t bytes);
/* As the database has it: query_store() first. timeline: with it. */
void query_portable(struct daemon *d, const struct asker *a, const struct session_ref *s,
	bool timeline, portable_fn *done, void *arg);
/* Whether the asker cannot open the database and needs this. */
bool query_needs_portable(const struct asker *a);

/* x->fd likewise. Waits until what its jobs wrote before is stored. */
typedef void query_export_fn(void *arg, const struct refusal *no, const struct export_result *x);
void query_export(struct daemon *d, const struct asker *a, const struct session_ref *s,
	const char *format, query_export_fn *done, void *arg);

#endif
