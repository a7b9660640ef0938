/* SPDX-License-Identifier: MIT. summariser.c: summaries for chunks that are being stored, or are there
 * without. */
#include "summariser.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "session_terms.h"
#include "summary.h"

#define NAMES_MAX 65536u /* nodes that are remembered */
/* process.clock 1: the TSC */
#define PROCESS                                                                                    \
	"SELECT (max(clock)-min(clock))*1.0/(max(monotonic_ns)-min(monotonic_ns)),"                \
	" (SELECT source FROM process WHERE id=?1) FROM"                                           \
	" (SELECT clock, monotonic_ns FROM anchor WHERE ring_clock=1 ORDER BY clock DESC LIMIT 2)" \
	" WHERE (SELECT clock FROM process WHERE id=?1)=1"

#define WITHOUT                                                                      \
	"SELECT rowid, process, bytes FROM trace WHERE rowid>?1 AND summary IS NULL" \
	" AND bytes IS NOT NULL AND events>=?2 ORDER BY rowid LIMIT 1"

static bool open(struct summariser *s, struct sqlite3 *db)
{
	static const struct profile_select all;
	struct profile *texts;
	struct err e = {0};

	if (s->names.n > NAMES_MAX)
		summariser_fini(s);
	if (s->db != NULL)
		return true;
	texts = profile_new();
	if (texts == NULL || trace_names_open(&s->names, db, texts, &all, &e) < 0 ||
		sqlite3_prepare_v2(db, PROCESS, -1, &s->process, NULL) != SQLITE_OK) {
		s->names.texts = texts;
		summariser_fini(s);
		return false;
	}
	s->db = db;
	return true;
}

/* Ticks of the process's ring clock in a nanosecond, by the last two anchors. Says where the process
 * comes from. */
static double ticks_of(struct summariser *s, int64_t process)
{
	double ticks = 1;

	(void)sqlite3_bind_int64(s->process, 1, process);
	if (sqlite3_step(s->process) == SQLITE_ROW) {
		if (sqlite3_column_double(s->process, 0) > 0)
			ticks = sqlite3_column_double(s->process, 0);
		trace_names_from(&s->names, (const char *)sqlite3_column_text(s->process, 1));
	}
	(void)sqlite3_reset(s->process);
	return ticks;
}

static uint16_t *depths_of(struct summariser *s, const struct trace_chunk *c)
{
	uint16_t *depth = calloc((size_t)c->n[TRACE_N_NODES] + 1, sizeof(*depth));
	struct err e = {0};
	uint32_t i, at;

	for (i = 0; depth != NULL && i < c->n[TRACE_N_NODES]; i++) {
		if (trace_names_find(&s->names, c->node[i], &at, &e) < 0) {
			free(depth);
			return NULL;
		}
		depth[i] = trace_names_depth(&s->names, at);
	}
	return depth;
}

void *summariser_make(struct summariser *s, struct sqlite3 *db, int64_t process, const void *chunk,
	uint32_t n, uint32_t *ret_n)
{
	struct trace_chunk c;
	struct err e = {0};
	uint16_t *depth;
	void *bytes = NULL;
	double ticks;

	*ret_n = 0;
	if (!open(s, db) || trace_chunk_read(chunk, n, &c, &e) < 0)
		return NULL;
	ticks = ticks_of(s, process);
	depth = depths_of(s, &c);
	if (depth != NULL && s->names.n_unknown == 0)
		(void)summary_of(&c, depth, ticks, n, &bytes, ret_n);
	free(depth);
	trace_chunk_fini(&c);
	if (s->names.n_unknown > 0) /* they may be described later */
		summariser_fini(s);
	return bytes;
}

static int put_summary(struct sqlite3 *db, int64_t row, void *bytes, uint32_t n)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, "UPDATE trace SET summary=?2 WHERE rowid=?1", -1, &q, NULL);

	(void)sqlite3_bind_int64(q, 1, row);
	(void)(bytes != NULL ? sqlite3_bind_blob(q, 2, bytes, (int)n, SQLITE_STATIC)
			     : sqlite3_bind_zeroblob(q, 2, 0));
	rc = rc == SQLITE_OK ? sqlite3_step(q) : rc;
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int summariser_next(struct summariser *s, struct sqlite3 *db, int64_t *at)
{
	sqlite3_stmt *q = NULL;
	void *bytes = NULL;
	uint32_t n = 0;
	int rc = sqlite3_prepare_v2(db, WITHOUT, -1, &q, NULL);

	(void)sqlite3_bind_int64(q, 1, *at);
	(void)sqlite3_bind_int64(q, 2, SUMMARY_EVENTS_MIN);
	rc = rc == SQLITE_OK ? sqlite3_step(q) : rc;
	if (rc == SQLITE_ROW) {
		*at = sqlite3_column_int64(q, 0);
		bytes = summariser_make(s, db, sqlite3_column_int64(q, 1),
			sqlite3_column_blob(q, 2), (uint32_t)sqlite3_column_bytes(q, 2), &n);
		(void)sqlite3_finalize(q);
		rc = put_summary(db, *at, bytes, n);
		free(bytes);
		return rc == SQLITE_OK ? SQLITE_ROW : rc;
	}
	(void)sqlite3_finalize(q);
	return rc;
}

void summariser_fini(struct summariser *s)
{
	struct profile *texts = s->names.texts;

	trace_names_fini(&s->names);
	(void)sqlite3_finalize(s->process);
	profile_free(texts);
	*s = (struct summariser){.db = NULL};
}
