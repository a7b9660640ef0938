/* SPDX-License-Identifier: MIT. store_portable.c: one session as a database file of its own, the
 * same schema and the same row ids, made in memory. Worker thread. */
#include <stdio.h>
#include <string.h>

#include "schema.h"
#include "store_int.h"

#define COLUMNS_MAX 64

/* "INSERT INTO t VALUES(?,?,?)" for the columns of a SELECT *. */
static int insert_like(sqlite3 *to, const char *table, int columns, sqlite3_stmt **ret)
{
	char sql[64 + 2 * COLUMNS_MAX];
	int i, n;

	if (columns > COLUMNS_MAX)
		return SQLITE_INTERNAL;
	n = snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?", table);
	for (i = 1; i < columns; i++)
		n += snprintf(sql + n, sizeof(sql) - (size_t)n, ",?");
	(void)snprintf(sql + n, sizeof(sql) - (size_t)n, ")");
	return sqlite3_prepare_v2(to, sql, -1, ret, NULL);
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

static int copy_table(const struct copy *c, const char *table, const char *sql, struct err *e)
{
	sqlite3_stmt *select = NULL, *insert = NULL;
	int rc = sqlite3_prepare_v2(c->from, sql, -1, &select, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(select, 1, c->session);
	if (rc == SQLITE_OK)
		rc = insert_like(c->to, table, sqlite3_column_count(select), &insert);
	if (rc == SQLITE_OK)
		rc = copy_rows(select, insert);
	if (rc != SQLITE_OK)
		(void)err_set(e, store_errno(c->from, rc),
			"cannot write the portable file (table %s): %s; %s", table,
			sqlite3_errmsg(c->from), sqlite3_errmsg(c->to));
	(void)sqlite3_finalize(select);
	(void)sqlite3_finalize(insert);
	return rc == SQLITE_OK ? 0 : store_errno(c->from, rc);
}

static int copy_all(const struct copy *c, struct err *e)
{
	static const struct {
		const char *table, *sql;
	} tables[] = {
#define X(table, sql) {#table, sql},
		STORE_PORTABLE(X)
#undef X
			{"meta", "SELECT * FROM meta WHERE key='store_uuid' AND ?1=?1"},
	};
	sqlite3_stmt *q = NULL;
	bool found;
	size_t i;
	int r = 0;

	if (sqlite3_prepare_v2(c->from, "SELECT 1 FROM session WHERE id=?1", -1, &q, NULL) !=
		SQLITE_OK)
		return store_fail(c->from, SQLITE_ERROR, e);
	(void)sqlite3_bind_int64(q, 1, c->session);
	found = sqlite3_step(q) == SQLITE_ROW;
	(void)sqlite3_finalize(q);
	if (!found)
		return err_set(e, -ENOENT, "no session %lld", (long long)c->session);
	for (i = 0; r == 0 && i < sizeof(tables) / sizeof(*tables); i++)
		if (c->timeline || strcmp(tables[i].table, "trace") != 0)
			r = copy_table(c, tables[i].table, tables[i].sql, e);
	return r;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
static const char schema[] = SCHEMA;
#pragma GCC diagnostic pop

/* The tokens by which `run` finds its session are nobody's business elsewhere. */
#define BEFORE_SERIALIZE                                               \
	"UPDATE process SET token=NULL;UPDATE session SET token=NULL;" \
	"INSERT INTO meta(key,value) VALUES('portable',1);COMMIT"

static int fill(const struct copy *c, struct err *e)
{
	char text[128];
	int r;

	(void)snprintf(text, sizeof(text),
		"PRAGMA secure_delete=ON;PRAGMA application_id=%d;PRAGMA user_version=%d;BEGIN",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	r = store_exec(c->to, text, e);
	if (r == 0)
		r = store_exec(c->to, schema, e);
	if (r == 0)
		r = copy_all(c, e);
	if (r == 0)
		r = store_exec(c->to, BEFORE_SERIALIZE, e);
	return r;
}

int store_portable(sqlite3 *db, int64_t id, bool timeline, unsigned char **ret, int64_t *ret_bytes,
	struct err *e)
{
	struct copy c = {.from = db, .session = id, .timeline = timeline};
	sqlite3_int64 bytes = 0;
	unsigned char *image = NULL;
	int r, rc = sqlite3_open_v2(":memory:", &c.to,
		       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);

	r = rc == SQLITE_OK ? 0 : store_fail(c.to, rc, e);
	if (r == 0)
		r = store_exec(db, "BEGIN", e); /* all tables of one instant */
	if (r == 0) {
		r = fill(&c, e);
		(void)store_exec(db, "COMMIT", NULL);
	}
	if (r == 0) {
		image = sqlite3_serialize(c.to, "main", &bytes, 0);
		if (image == NULL)
			r = err_set(e, -ENOMEM, "out of memory for the portable file");
	}
	(void)sqlite3_close_v2(c.to);
	if (r < 0)
		return r;
	*ret = image;
	*ret_bytes = bytes;
	return 0;
}
