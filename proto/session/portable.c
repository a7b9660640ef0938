/* SPDX-License-Identifier: MIT. portable.c: one session as a database of its own, with the same
 * schema and the same row ids. */
#include "portable.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema.h"
#include "summariser.h"
#include "text.h"
#include "trace_time.h"

/* clang-format off */
/* Rows of a portable file, in this order; ?1 is the session. */
#define PORTABLE_TABLES(X)                                                                                   \
	X(session, "FROM session WHERE id=?1")                                                              \
	X(member,  "FROM member WHERE session=?1")                                                          \
	X(process, "FROM process WHERE id IN (SELECT process FROM member WHERE session=?1)")                \
	X(device,  "FROM device WHERE process IN (SELECT process FROM member WHERE session=?1)")            \
	X(active,  "FROM active WHERE session=?1")                                                          \
	X(segment, "FROM segment WHERE session=?1")                                                         \
	X(cell,    "FROM cell WHERE session=?1")                                                            \
	X(metric,  "FROM metric WHERE session=?1")                                                          \
	X(config,  "FROM config WHERE session=?1")                                                          \
	X(busy,    "FROM busy WHERE session=?1")                                                            \
	X(trace,   "FROM trace WHERE session=?1 ORDER BY rowid")                                            \
	X(reading, "FROM reading WHERE session=?1")                                                         \
	X(step,    "FROM step WHERE session=?1")                                                            \
	X(memory,  "FROM memory WHERE session=?1")                                                            \
	X(loss,    "FROM loss WHERE session=?1 OR (session=0 AND process IN "                               \
	           "(SELECT process FROM member WHERE session=?1))")                                        \
	X(note,    "FROM note WHERE session=?1 OR (session=0 AND process IN "                               \
	           "(SELECT process FROM member WHERE session=?1))")                                        \
	X(anchor,  TRACE_TIME_ANCHORS)                                                                     \
	X(node,    "FROM node WHERE id IN (WITH RECURSIVE need(id) AS (SELECT node FROM cell WHERE session=?1 " \
	           "UNION SELECT node FROM metric WHERE session=?1 "                                        \
	           "UNION SELECT node FROM config WHERE session=?1 "                                        \
	           "UNION SELECT node.parent FROM node JOIN need ON node.id=need.id "                       \
	           "WHERE node.parent<>0) SELECT id FROM need)")
/* clang-format on */

static int prepare(sqlite3 *db, struct text *take, sqlite3_stmt **ret)
{
	char *sql;
	int rc;

	if (text_take(take, &sql, &(size_t){0}) < 0)
		return SQLITE_NOMEM;
	rc = sqlite3_prepare_v2(db, sql, -1, ret, NULL);
	free(sql);
	return rc;
}

static int copy_rows(sqlite3_stmt *select, sqlite3_stmt *insert)
{
	const int columns = sqlite3_column_count(select);
	int i, rc = SQLITE_OK;

	while (rc == SQLITE_OK && (rc = sqlite3_step(select)) == SQLITE_ROW) {
		for (i = 0; i < columns; i++)
			(void)sqlite3_bind_value(insert, i + 1, sqlite3_column_value(select, i));
		rc = sqlite3_step(insert) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
		(void)sqlite3_reset(insert);
	}
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

struct copy {
	sqlite3 *from, *to;
	int64_t session;
	bool timeline;
};

struct rows_of {
	enum table_id table;
	const char *from;
};

/* "SELECT names FROM …" and "INSERT INTO table(names) VALUES(?,?)": by name, for tables that were
 * mended have their columns in another order. */
static int prepare_copy(const struct copy *c, const struct rows_of *p, sqlite3_stmt **ret_select,
	sqlite3_stmt **ret_insert)
{
	struct text select = {0}, insert = {0};
	int i, rc;

	text_str(&select, "SELECT ");
	schema_names(&select, p->table);
	text_fmt(&select, " %s", p->from);
	rc = prepare(c->from, &select, ret_select);
	text_fmt(&insert, "INSERT INTO %s(", schema_tables[p->table].name);
	schema_names(&insert, p->table);
	text_str(&insert, ") VALUES(?");
	for (i = 1; rc == SQLITE_OK && i < sqlite3_column_count(*ret_select); i++)
		text_str(&insert, ",?");
	text_char(&insert, ')');
	if (rc == SQLITE_OK)
		return prepare(c->to, &insert, ret_insert);
	text_fini(&insert);
	return rc;
}

static int copy_table(const struct copy *c, const struct rows_of *p, struct err *e)
{
	sqlite3_stmt *select = NULL, *insert = NULL;
	int rc = prepare_copy(c, p, &select, &insert);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(select, 1, c->session);
	if (rc == SQLITE_OK)
		rc = copy_rows(select, insert);
	if (rc != SQLITE_OK)
		(void)err_set(e, -EIO, "cannot write the portable file (table %s): %s; %s",
			schema_tables[p->table].name, sqlite3_errmsg(c->from),
			schema_errmsg(c->to));
	(void)sqlite3_finalize(select);
	(void)sqlite3_finalize(insert);
	return rc;
}

static int copy_uuid(const struct copy *c)
{
	sqlite3_stmt *select = NULL, *insert = NULL;
	int rc = sqlite3_prepare_v2(
		c->from, "SELECT key,value FROM meta WHERE key='store_uuid'", -1, &select, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(
			c->to, "INSERT INTO meta(key,value) VALUES(?,?)", -1, &insert, NULL);
	if (rc == SQLITE_OK)
		rc = copy_rows(select, insert);
	(void)sqlite3_finalize(select);
	(void)sqlite3_finalize(insert);
	return rc;
}

static int copy_all(const struct copy *c, struct err *e)
{
	static const struct rows_of tables[] = {
#define X(table, from) {TABLE_##table, from},
		PORTABLE_TABLES(X)
#undef X
	};
	sqlite3_stmt *q = NULL;
	size_t i;
	int rc = sqlite3_prepare_v2(c->from, "SELECT 1 FROM session WHERE id=?1", -1, &q, NULL);

	if (rc != SQLITE_OK)
		return rc;
	(void)sqlite3_bind_int64(q, 1, c->session);
	rc = sqlite3_step(q);
	(void)sqlite3_finalize(q);
	if (rc == SQLITE_DONE)
		(void)err_set(e, -ENOENT, "no session %lld", (long long)c->session);
	if (rc != SQLITE_ROW)
		return rc;
	rc = SQLITE_OK;
	for (i = 0; rc == SQLITE_OK && i < sizeof(tables) / sizeof(*tables); i++)
		if (c->timeline || tables[i].table != TABLE_trace)
			rc = copy_table(c, &tables[i], e);
	return rc == SQLITE_OK ? copy_uuid(c) : rc;
}

/* Chunks of an older program's get what a newer one's have. */
static int summarise(sqlite3 *to)
{
	struct summariser s = {.db = NULL};
	int64_t at = 0;
	int rc;

	do
		rc = summariser_next(&s, to, &at);
	while (rc == SQLITE_ROW);
	summariser_fini(&s);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The tokens by which `run` finds its session are nobody's business elsewhere. */
#define AT_LAST                                                        \
	"UPDATE process SET token=NULL;UPDATE session SET token=NULL;" \
	"INSERT INTO meta(key,value) VALUES('portable',1);COMMIT"

int portable_fill(sqlite3 *from, int64_t id, bool timeline, sqlite3 *to, struct err *e)
{
	const struct copy c = {.from = from, .to = to, .session = id, .timeline = timeline};
	char text[128];
	bool fresh;
	int rc;

	e->code = 0;
	(void)snprintf(text, sizeof(text),
		"PRAGMA secure_delete=ON;PRAGMA application_id=%d;PRAGMA user_version=%d;BEGIN",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	rc = sqlite3_exec(to, text, NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = schema_mend(to, false, &fresh);
	if (rc == SQLITE_OK)
		rc = copy_all(&c, e);
	if (rc == SQLITE_OK)
		rc = summarise(to);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(to, AT_LAST, NULL, NULL, NULL);
	return rc;
}
