/* SPDX-License-Identifier: MIT. store_portable.c: one session as a database file of its own, the
 * same schema and the same row ids, made in memory. Worker thread. */
#include <stdio.h>
#include <string.h>

#include "schema.h"
#include "store_int.h"
#include "text.h"

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

struct portable {
	enum table_id table;
	const char *from;
};

/* "SELECT names FROM …" and "INSERT INTO table(names) VALUES(?,?)": by name, for tables that were
 * mended have their columns in another order. */
static int prepare_copy(const struct copy *c, const struct portable *p, sqlite3_stmt **ret_select,
	sqlite3_stmt **ret_insert)
{
	struct text select = {0}, insert = {0};
	int i, rc;

	text_str(&select, "SELECT ");
	schema_names(&select, p->table);
	text_fmt(&select, " %s", p->from);
	rc = store_prepare_text(c->from, &select, ret_select);
	text_fmt(&insert, "INSERT INTO %s(", schema_tables[p->table].name);
	schema_names(&insert, p->table);
	text_str(&insert, ") VALUES(?");
	for (i = 1; rc == SQLITE_OK && i < sqlite3_column_count(*ret_select); i++)
		text_str(&insert, ",?");
	text_char(&insert, ')');
	if (rc == SQLITE_OK)
		return store_prepare_text(c->to, &insert, ret_insert);
	text_fini(&insert);
	return rc;
}

static int copy_table(const struct copy *c, const struct portable *p, struct err *e)
{
	sqlite3_stmt *select = NULL, *insert = NULL;
	int rc = prepare_copy(c, p, &select, &insert);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(select, 1, c->session);
	if (rc == SQLITE_OK)
		rc = copy_rows(select, insert);
	if (rc != SQLITE_OK)
		(void)err_set(e, store_errno(c->from, rc),
			"cannot write the portable file (table %s): %s; %s",
			schema_tables[p->table].name, sqlite3_errmsg(c->from),
			sqlite3_errmsg(c->to));
	(void)sqlite3_finalize(select);
	(void)sqlite3_finalize(insert);
	return rc == SQLITE_OK ? 0 : store_errno(c->from, rc);
}

static int copy_uuid(const struct copy *c, struct err *e)
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
	return rc == SQLITE_OK ? 0 : store_fail(c->from, rc, e);
}

static int copy_all(const struct copy *c, struct err *e)
{
	static const struct portable tables[] = {
#define X(table, from) {TABLE_##table, from},
		STORE_PORTABLE(X)
#undef X
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
		if (c->timeline || tables[i].table != TABLE_trace)
			r = copy_table(c, &tables[i], e);
	return r == 0 ? copy_uuid(c, e) : r;
}

/* The tokens by which `run` finds its session are nobody's business elsewhere. */
#define BEFORE_SERIALIZE                                               \
	"UPDATE process SET token=NULL;UPDATE session SET token=NULL;" \
	"INSERT INTO meta(key,value) VALUES('portable',1);COMMIT"

static int fill(const struct copy *c, struct err *e)
{
	char text[128];
	bool fresh;
	int r, rc;

	(void)snprintf(text, sizeof(text),
		"PRAGMA secure_delete=ON;PRAGMA application_id=%d;PRAGMA user_version=%d;BEGIN",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	r = store_exec(c->to, text, e);
	rc = r == 0 ? schema_mend(c->to, false, &fresh) : SQLITE_OK;
	if (rc != SQLITE_OK)
		r = store_fail(c->to, rc, e);
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
