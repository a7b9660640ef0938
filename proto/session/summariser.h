/* SPDX-License-Identifier: MIT. summariser.h: summaries for chunks that are being stored: whoever puts a row
 * into `trace` asks it for what goes into trace.summary. One connection, one thread. */
#ifndef PROTOND_SESSION_SUMMARISER_H
#define PROTOND_SESSION_SUMMARISER_H

#include <stdint.h>

#include "trace_names.h"

struct summariser { /* zero-initialise; summariser_fini() before the connection closes */
	struct sqlite3 *db;
	struct trace_names names;
	struct sqlite3_stmt *process;
};

/* malloc()ed; NULL: it gets none. The database must have the chunk's nodes and its process. Nothing
 * depends on a summary but speed: whatever goes wrong, there is none. */
void *summariser_make(struct summariser *s, struct sqlite3 *db, int64_t process, const void *chunk,
	uint32_t n, uint32_t *ret_n);
/* The first chunk behind *at, a rowid, that has no summary and is large enough for one gets it, or an
 * empty one where there is none to be had: it is not looked at again. SQLITE_ROW, and *at is its
 * rowid; SQLITE_DONE: there is no more; SQLITE_…. */
int summariser_next(struct summariser *s, struct sqlite3 *db, int64_t *at);
void summariser_fini(struct summariser *s);

#endif
