/* SPDX-License-Identifier: MIT. profile_scan.c: many rows of a store, by its pages or by SQLite. */
#include "profile_scan.h"

#include <stdlib.h>
#include <string.h>

#include "schema.h"
#include "text.h"

/* Not where a view of this connection stands before it: of an older database, or with the names of an XLA dump. */
#define TABLE                                                                \
	"SELECT x.name, x.cid, x.pk, s.rootpage FROM main.sqlite_schema s, " \
	"pragma_table_info(s.name, 'main') x"                                \
	" WHERE s.type = 'table' AND s.name = ?1"                            \
	" AND s.name NOT IN (SELECT name FROM temp.sqlite_schema)"

struct scan {
	struct load *l;
	struct btree *pages; /* NULL: SQLite reads */
	sqlite3_stmt *st;    /* of these, */
	const struct scan_columns *st_of;
	enum scan_where where;
	/* The scan that goes on. */
	uint32_t n, n_keys; /* n: columns up to the last that is wanted */
	bool by_id, lacks;
	int64_t low[2], high[2];
	scan_fn *fn;
	void *arg;
	int r;
};

int scan_open(struct load *l, bool pages, struct scan **ret)
{
	struct scan *s = calloc(1, sizeof(*s));
	int r = s == NULL ? -ENOMEM : pages ? btree_of(l->db, &s->pages) : -EAGAIN;

	if (r < 0 && r != -EAGAIN) {
		free(s);
		return err_set(l->e, r, "out of memory");
	}
	s->l = l;
	*ret = s;
	return 0;
}

void scan_close(struct scan *s)
{
	if (s == NULL)
		return;
	(void)sqlite3_finalize(s->st);
	(void)sqlite3_create_function(
		s->l->db, "take", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, NULL, NULL, NULL);
	btree_close(s->pages);
	free(s);
}

/* --- by SQLite */

static struct field field_of(sqlite3_value *v)
{
	struct field f = {.type = FIELD_NULL};

	switch (sqlite3_value_type(v)) {
	case SQLITE_INTEGER:
		return (struct field){.type = FIELD_I64, .i = sqlite3_value_int64(v)};
	case SQLITE_FLOAT:
		return (struct field){.type = FIELD_F64, .f = sqlite3_value_double(v)};
	case SQLITE_TEXT:
		f = (struct field){.type = FIELD_TEXT, .p = sqlite3_value_text(v)};
		break;
	case SQLITE_BLOB:
		f = (struct field){.type = FIELD_BLOB, .p = sqlite3_value_blob(v)};
		break;
	default:
		return f;
	}
	f.n = (uint32_t)sqlite3_value_bytes(v);
	return f;
}

/* Rows are not stepped to one by one: the statement has one aggregate, of ours, which is called with each of them. 100 000
 * cells take 19 ms this way, and 25 ms with sqlite3_column_int64(). */
static void take(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct scan *s = sqlite3_user_data(c);
	struct field field[BTREE_FIELDS_MAX];
	int i;

	for (i = 0; i < n && i < BTREE_FIELDS_MAX; i++)
		field[i] = field_of(v[i]);
	s->r = s->fn(s->arg, field);
	if (s->r < 0)
		sqlite3_result_error(c, "", 0); /* ends the statement; the words are in l->e */
}

static void take_end(sqlite3_context *c)
{
	sqlite3_result_null(c);
}

static char *sql_of(const struct scan_columns *c, enum scan_where where)
{
	static const char *const wheres[] = {[SCAN_SESSION] = "session = ?1",
		[SCAN_PROCESS] = "session = ?1 AND process = ?2",
		[SCAN_ID] = "id BETWEEN ?1 AND ?2"};
	const struct schema_table *of = &schema_tables[c->table];
	struct text t = {0};
	char *sql = NULL;
	uint32_t i;
	size_t n;

	for (i = 0; c->want >> i != 0; i++)
		text_fmt(&t, (c->want >> i & 1) != 0 ? "%s[%s]" : "%sNULL",
			i == 0 ? "SELECT take(" : ",", of->column[i].name);
	text_fmt(&t, ") FROM [%s] WHERE %s", of->name, wheres[where]);
	return text_take(&t, &sql, &n) < 0 ? NULL : sql;
}

static int prepare(struct scan *s, const struct scan_columns *c, enum scan_where where)
{
	char *sql = sql_of(c, where);
	int r;

	(void)sqlite3_finalize(s->st);
	s->st = NULL;
	if (sql == NULL)
		return err_set(s->l->e, -ENOMEM, "out of memory");
	r = sqlite3_create_function(s->l->db, "take", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, s, NULL,
		    take, take_end) == SQLITE_OK &&
			    sqlite3_prepare_v2(s->l->db, sql, -1, &s->st, NULL) == SQLITE_OK
		    ? 0
		    : load_db_error(s->l);
	free(sql);
	s->st_of = c;
	s->where = where;
	return r;
}

static int by_sqlite(struct scan *s, const struct scan_columns *c, enum scan_where where)
{
	int r = s->st != NULL && s->st_of == c && s->where == where ? 0 : prepare(s, c, where);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(s->st, 1, s->low[0]);
	if (where != SCAN_SESSION)
		(void)sqlite3_bind_int64(s->st, 2, where == SCAN_ID ? s->high[0] : s->low[1]);
	r = sqlite3_step(s->st);
	if (s->r == 0 && r != SQLITE_ROW)
		s->r = load_db_error(s->l);
	(void)sqlite3_reset(s->st);
	return s->r;
}

/* --- by pages */

static int side(void *arg, const struct record *r)
{
	const struct scan *s = arg;
	uint32_t k;
	int64_t v;

	for (k = 0; k < s->n_keys; k++) {
		v = s->by_id ? r->rowid : k < r->n ? field_i64(&r->field[k]) : 0;
		if (v < s->low[k] || v > s->high[k])
			return v < s->low[k] ? -1 : 1;
	}
	return 0;
}

static int row(void *arg, struct record *r)
{
	struct scan *s = arg;

	if (r->has_rowid != s->by_id) {
		s->lacks = true;
		return -EAGAIN;
	}
	while (r->n < s->n)
		r->field[r->n++] = (struct field){.type = FIELD_NULL};
	if (s->by_id)
		r->field[0] = (struct field){.type = FIELD_I64, .i = r->rowid};
	return s->fn(s->arg, r->field);
}

static void lack(void *arg, bool page)
{
	struct scan *s = arg;

	(void)page;
	s->lacks = true;
}

/* Whether a column of the file is ours, and stands in a record where it should: without row ids those of the key come
 * first, as they do in our schema. */
static bool is_ours(const struct scan *s, const struct schema_table *t, sqlite3_stmt *st)
{
	const char *name = (const char *)sqlite3_column_text(st, 0);
	const uint32_t at = (uint32_t)sqlite3_column_int(st, 1),
		       key = (uint32_t)sqlite3_column_int(st, 2);

	return at < t->n_columns && name != NULL && strcmp(name, t->column[at].name) == 0 &&
	       (key == at + 1 || (key == 0 && at >= s->n_keys));
}

/* The table's first page; 0: SQLite must read it. */
static uint32_t find_table(struct scan *s, const struct scan_columns *c)
{
	const struct schema_table *t = &schema_tables[c->table];
	uint32_t root = 0, n;
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(s->l->db, TABLE, -1, &st, NULL) != SQLITE_OK)
		return 0;
	(void)sqlite3_bind_text(st, 1, t->name, -1, SQLITE_STATIC);
	for (n = 0; sqlite3_step(st) == SQLITE_ROW && (n >= s->n || is_ours(s, t, st)); n++)
		root = (uint32_t)sqlite3_column_int64(st, 3);
	(void)sqlite3_finalize(st);
	return n >= s->n ? root : 0;
}

int scan_rows(struct scan *s, const struct scan_columns *c, enum scan_where where, int64_t low,
	int64_t high, scan_fn *fn, void *arg)
{
	const struct btree_visit v = {.want = c->want | 3,
		.row = row,
		.lack = lack,
		.side = side,
		.arg = s}; /* 3: the key */
	uint32_t root;
	int r;

	s->by_id = where == SCAN_ID;
	s->n_keys = where == SCAN_PROCESS ? 2 : 1;
	s->low[0] = low;
	s->low[1] = s->high[1] = high;
	s->high[0] = s->by_id ? high : low;
	s->fn = fn;
	s->arg = arg;
	s->r = 0;
	s->n = 64 - (uint32_t)__builtin_clzll(c->want);
	root = s->pages != NULL && (!s->by_id || low < high) ? find_table(s, c) : 0;
	if (root == 0)
		return by_sqlite(s, c, where);
	r = btree_walk(s->pages, root, &v);
	return s->lacks && r == 0 ? -EAGAIN : r;
}
