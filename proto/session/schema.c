/* SPDX-License-Identifier: MIT. schema.c: SQL of the tables from their lists of columns, and what a
 * database of another version lacks. */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "text.h"

#define C(name, kind, a, sql) {#name, #kind, sql},
#define X(t, key, options)    static const struct schema_column columns_##t[] = {COLUMNS_##t(C)};
TABLES(X)
#undef X
#undef C

#define COUNT(a) (uint32_t)(sizeof(a) / sizeof(*(a)))

const struct schema_table schema_tables[TABLE_MAX] = {
#define X(t, key, options) {#t, key, options, columns_##t, COUNT(columns_##t)},
	TABLES(X)
#undef X
};

/* store_uuid, next_process, next_session, journal, sweep and more: docs/store.md */
static const struct schema_column columns_meta[] = {
	{"key", "", "TEXT PRIMARY KEY"}, {"value", "", "ANY"}};
static const struct schema_table meta = {
	"meta", "", "STRICT, WITHOUT ROWID", columns_meta, COUNT(columns_meta)};

/* --- SQL --- */

static void create_text(struct text *s, const struct schema_table *t)
{
	uint32_t i;

	text_fmt(s, "CREATE TABLE %s(", t->name);
	for (i = 0; i < t->n_columns; i++)
		text_fmt(s, "%s%s %s", i == 0 ? "" : ", ", t->column[i].name, t->column[i].sql);
	if (t->key[0] != '\0')
		text_fmt(s, ", PRIMARY KEY(%s)", t->key);
	text_fmt(s, ") %s;", t->options);
}

void schema_text(struct text *t, uint32_t version)
{
	uint32_t i;

	create_text(t, &meta);
	for (i = 0; i < TABLE_MAX; i++)
		if ((i != TABLE_trace && i != TABLE_reading && i != TABLE_step &&
			    i != TABLE_memory) ||
			version > 1)
			create_text(t, &schema_tables[i]);
}

/* In brackets: an unknown name in quotes would be a text. */
void schema_names(struct text *t, enum table_id table)
{
	const struct schema_table *from = &schema_tables[table];
	uint32_t i;

	for (i = 0; i < from->n_columns; i++)
		text_fmt(t, "%s[%s]", i == 0 ? "" : ",", from->column[i].name);
}

void schema_select(struct text *t, enum table_id table)
{
	const struct schema_table *from = &schema_tables[table];
	uint32_t i;

	for (i = 0; i < from->n_columns; i++) {
		const char *kind = from->column[i].kind;

		text_fmt(t,
			strcmp(kind, "CHUNK") == 0     ? "%scoalesce(length([%s]),0)"
			: strcmp(kind, "SUMMARY") == 0 ? "%s0 AS [%s]"
						       : "%s[%s]",
			i == 0 ? "" : ",", from->column[i].name);
	}
}

/* --- what a database lacks --- */

#define X(t, key, options) \
	_Static_assert(sizeof(columns_##t) <= 64 * sizeof(*columns_##t), "one bit a column");
TABLES(X)
#undef X
#undef X

/* Bit i: it has column i. None at all: there is no such table. */
static int columns_there(sqlite3 *db, const struct schema_table *t, uint64_t *ret)
{
	sqlite3_stmt *q = NULL;
	const char *name;
	uint64_t there = 0;
	uint32_t i;
	int rc = sqlite3_prepare_v2(
		db, "SELECT name FROM pragma_table_info(?1,'main')", -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(q, 1, t->name, -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(q)) == SQLITE_ROW) {
		name = (const char *)sqlite3_column_text(q, 0);
		for (i = 0; name != NULL && i < t->n_columns; i++)
			if (strcmp(t->column[i].name, name) == 0)
				there |= 1ull << i;
		rc = SQLITE_OK;
	}
	(void)sqlite3_finalize(q);
	if (rc != SQLITE_DONE)
		return rc;
	*ret = there;
	return SQLITE_OK;
}

static int run_text(sqlite3 *db, struct text *t)
{
	char *sql = NULL;
	size_t n;
	int rc = text_take(t, &sql, &n) < 0 ? SQLITE_NOMEM : SQLITE_OK;

	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	free(sql);
	return rc;
}

int schema_mend_table(sqlite3 *db, const struct schema_table *t, bool look, bool *ret_lacks)
{
	const uint64_t all = UINT64_MAX >> (64 - t->n_columns);
	struct text sql = {0};
	uint64_t there;
	uint32_t i;
	int rc = columns_there(db, t, &there);

	if (rc != SQLITE_OK || there == all)
		return rc;
	*ret_lacks = true;
	if (look)
		return SQLITE_OK;
	if (there == 0)
		create_text(&sql, t);
	for (i = 0; there != 0 && i < t->n_columns; i++)
		if ((there >> i & 1) == 0)
			text_fmt(&sql, "ALTER TABLE %s ADD COLUMN %s %s;", t->name,
				t->column[i].name, t->column[i].sql);
	return run_text(db, &sql);
}

int schema_mend(sqlite3 *db, bool look, bool *ret_lacks)
{
	uint32_t i;
	int rc;

	*ret_lacks = false;
	rc = schema_mend_table(db, &meta, look, ret_lacks);
	for (i = 0; rc == SQLITE_OK && i < TABLE_MAX; i++)
		rc = schema_mend_table(db, &schema_tables[i], look, ret_lacks);
	return rc;
}

/* What a row without the column has; NULL: it cannot lack it. */
static const char *default_of(const struct schema_column *c)
{
	const char *at = strstr(c->sql, "DEFAULT ");

	if (at != NULL)
		return at + strlen("DEFAULT ");
	return strstr(c->sql, "NOT NULL") == NULL ? "NULL" : NULL;
}

int schema_shade_table(sqlite3 *db, const struct schema_table *t)
{
	const uint64_t all = UINT64_MAX >> (64 - t->n_columns);
	struct text sql = {0};
	uint64_t there;
	uint32_t i;
	int rc = columns_there(db, t, &there);

	if (rc != SQLITE_OK || there == all || there == 0)
		return rc;
	text_fmt(&sql, "PRAGMA temp_store=MEMORY;CREATE TEMP VIEW [%s] AS SELECT *", t->name);
	for (i = 0; i < t->n_columns; i++)
		if ((there >> i & 1) == 0 && default_of(&t->column[i]) != NULL)
			text_fmt(&sql, ",%s AS [%s]", default_of(&t->column[i]), t->column[i].name);
	text_fmt(&sql, " FROM main.[%s]", t->name);
	return run_text(db, &sql);
}

int schema_shade(sqlite3 *db)
{
	uint32_t i;
	int rc = SQLITE_OK;

	for (i = 0; rc == SQLITE_OK && i < TABLE_MAX; i++)
		rc = schema_shade_table(db, &schema_tables[i]);
	return rc;
}

/* --- where a database can be --- */

/* WAL needs shared memory and locks that hold between processes: file systems that live on another
 * machine or in another process do not give them. */
bool schema_fs_is_remote(long magic)
{
	static const uint32_t remote[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x65735546, /* FUSE: sshfs, gluster and their like */
		0x0bd00bd0, /* Lustre */
		0x47504653, /* GPFS */
		0x00c36400, /* Ceph */
		0x5346414f, /* AFS */
		0x6b414653, /* kAFS */
		0x73757245, /* Coda */
		0x19830326, /* BeeGFS */
		0xaad7aaea, /* PanFS */
		0x01021997, /* 9p */
		0x01161970, /* GFS2 */
		0x7461636f, /* OCFS2 */
		0x564c,     /* NCP */
		0x20030528, /* OrangeFS */
	};
	size_t i;

	for (i = 0; i < sizeof(remote) / sizeof(*remote); i++)
		if ((uint32_t)magic == remote[i])
			return true;
	return false;
}

/* What the system said stays with the file: SQLite's error may be one that followed. */
const char *schema_errmsg(sqlite3 *db)
{
	int os = 0;

	(void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &os);
	return os > 0 ? strerror(os) : sqlite3_errmsg(db);
}
