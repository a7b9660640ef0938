/* SPDX-License-Identifier: MIT. recover.c: what can be read of a damaged database, as a database of
 * today's schema.
 *
 * The file's own schema says two things only, and both are checked: on which page a table begins,
 * and in which order it has its columns. Where that is lost, it is as in a new database. A page
 * that nothing leads to any more, because the page above it is lost, is known by its rows: each is
 * of the one table that such a row fits. */
#include "recover.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "btree.h"
#include "schema.h"
#include "text.h"

#define NO_COLUMN UINT8_MAX

struct target {
	const struct schema_table *t;
	struct recovered_table *found;
	uint32_t root;                    /* 0: not known */
	uint8_t column[BTREE_FIELDS_MAX]; /* of each field of a record */
	uint32_t n_fields;
	bool has_rowid, has_hole;
	bool is_guess;   /* root and column */
	int64_t session; /* of the last row, where that is the first of its key */
	sqlite3_stmt *insert;
};

struct job {
	struct btree *from;
	sqlite3 *to;
	sqlite3_stmt *hole;
	struct target target[TABLE_MAX];
	struct target *walked;
	struct err *e;
};

static int db_fail(struct job *j)
{
	return err_set(j->e, sqlite3_errcode(j->to) == SQLITE_FULL ? -ENOSPC : -EIO,
		"the copy cannot be written: %s", schema_errmsg(j->to));
}

static int execute(struct job *j, const char *sql)
{
	return sqlite3_exec(j->to, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_fail(j);
}

static int prepare(struct job *j, struct text *take, sqlite3_stmt **ret)
{
	char *sql;
	size_t n;
	int r;

	if (text_take(take, &sql, &n) < 0)
		return err_set(j->e, -ENOMEM, "out of memory");
	r = sqlite3_prepare_v2(j->to, sql, -1, ret, NULL) == SQLITE_OK ? 0 : db_fail(j);
	free(sql);
	return r;
}

/* --- columns */

static bool is_key(const struct schema_column *c)
{
	return strncmp(c->sql, "INTEGER PRIMARY KEY", strlen("INTEGER PRIMARY KEY")) == 0;
}

static bool may_lack(const struct schema_column *c)
{
	return strstr(c->sql, "NOT NULL") == NULL;
}

static uint8_t find_column(const struct schema_table *t, const char *name, size_t n)
{
	uint32_t i;

	for (i = 0; i < t->n_columns; i++)
		if (strlen(t->column[i].name) == n && memcmp(t->column[i].name, name, n) == 0)
			return (uint8_t)i;
	return NO_COLUMN;
}

static void add_field(struct target *t, uint8_t column)
{
	if (column != NO_COLUMN && memchr(t->column, column, t->n_fields) != NULL)
		return; /* of the key, so it stands before the others */
	if (t->n_fields < BTREE_FIELDS_MAX)
		t->column[t->n_fields++] = column;
}

static const char word_letters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

/* A record without a rowid begins with its key. */
static void add_key(struct target *t)
{
	const char *s = t->has_rowid ? "" : t->t->key;
	size_t n;

	for (t->n_fields = 0; *s != '\0'; s += n) {
		s += strcspn(s, word_letters);
		n = strspn(s, word_letters);
		if (n > 0)
			add_field(t, find_column(t->t, s, n));
	}
}

/* As SQLite writes it: "CREATE TABLE t(a INTEGER, b TEXT, PRIMARY KEY(a))". */
static void take_columns(struct target *t, const char *sql)
{
	uint32_t depth;
	size_t n;

	add_key(t);
	for (sql = strchr(sql, '('); sql != NULL && *sql != '\0' && *sql != ')';) {
		sql++;
		sql += strspn(sql, " \n\t\"[");
		n = strspn(sql, word_letters);
		if (n == strlen("PRIMARY") && memcmp(sql, "PRIMARY", n) == 0)
			break;
		add_field(t, find_column(t->t, sql, n));
		for (depth = 0; *sql != '\0' && (depth > 0 || (*sql != ',' && *sql != ')')); sql++)
			depth += *sql == '(' ? 1 : *sql == ')' ? UINT32_MAX : 0;
	}
}

static void todays_columns(struct target *t)
{
	uint32_t i;

	add_key(t);
	for (i = 0; i < t->t->n_columns; i++)
		add_field(t, (uint8_t)i);
}

/* --- the file's schema: type, name, tbl_name, rootpage, sql */

static bool is_text(const struct field *f, const char *text)
{
	return f->type == FIELD_TEXT && f->n == strlen(text) && memcmp(f->p, text, f->n) == 0;
}

static int schema_row(void *arg, struct record *r)
{
	struct job *j = arg;
	const struct field *f = r->field;
	char *sql;
	uint32_t i;

	if (r->n != 5 || !is_text(&f[0], "table") || f[3].type != FIELD_I64 ||
		f[4].type != FIELD_TEXT || f[3].i < 2 || f[3].i > UINT32_MAX)
		return 0;
	for (i = 0; i < TABLE_MAX && !is_text(&f[1], schema_tables[i].name); i++)
		;
	if (i == TABLE_MAX || j->target[i].root != 0)
		return 0;
	sql = strndup((const char *)f[4].p, f[4].n);
	if (sql == NULL)
		return err_set(j->e, -ENOMEM, "out of memory");
	j->target[i].root = (uint32_t)f[3].i;
	take_columns(&j->target[i], sql);
	free(sql);
	return 0;
}

/* --- rows */

static bool fits_column(const struct schema_column *c, const struct field *f)
{
	static const struct {
		const char *word;
		enum field_type type;
	} types[] = {{"INTEGER", FIELD_I64}, {"TEXT", FIELD_TEXT}, {"BLOB", FIELD_BLOB}};
	size_t i;

	if (f->type == FIELD_NULL || is_key(c))
		return f->type == FIELD_NULL && (is_key(c) || may_lack(c));
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strncmp(c->sql, types[i].word, strlen(types[i].word)) == 0)
			return f->type == types[i].type;
	return true; /* ANY */
}

static bool fits(const struct target *t, const struct record *r)
{
	uint32_t i;

	if (t->has_rowid != r->has_rowid || r->n > t->n_fields)
		return false;
	for (i = 0; i < t->n_fields; i++)
		if (t->column[i] != NO_COLUMN &&
			(i < r->n ? !fits_column(&t->t->column[t->column[i]], &r->field[i])
				  : !may_lack(&t->t->column[t->column[i]])))
			return false;
	return true;
}

static void bind_field(sqlite3_stmt *q, int i, const struct field *f)
{
	switch (f->type) {
	case FIELD_I64:
		(void)sqlite3_bind_int64(q, i, f->i);
		break;
	case FIELD_F64:
		(void)sqlite3_bind_double(q, i, f->f);
		break;
	case FIELD_TEXT:
		(void)sqlite3_bind_text64(
			q, i, (const char *)f->p, f->n, SQLITE_STATIC, SQLITE_UTF8);
		break;
	case FIELD_BLOB:
		(void)sqlite3_bind_blob64(q, i, f->p, f->n, SQLITE_STATIC);
		break;
	case FIELD_NULL:
	default:
		break;
	}
}

/* 1: it is in the copy, 0: it is not wanted there, or it is there already. */
static int put_row(struct job *j, struct target *t, const struct record *r)
{
	uint32_t i;
	int rc;

	(void)sqlite3_clear_bindings(t->insert);
	(void)sqlite3_bind_int64(
		t->insert, (int)t->t->n_columns + 1, r->rowid); /* if it has a place */
	for (i = 0; i < r->n && i < t->n_fields; i++) {
		if (t->column[i] == NO_COLUMN)
			continue;
		bind_field(t->insert, t->column[i] + 1, &r->field[i]);
		if (t->has_rowid && is_key(&t->t->column[t->column[i]]))
			(void)sqlite3_bind_int64(t->insert, t->column[i] + 1, r->rowid);
	}
	rc = sqlite3_step(t->insert);
	(void)sqlite3_reset(t->insert);
	if (rc != SQLITE_DONE && rc != SQLITE_CONSTRAINT && rc != SQLITE_MISMATCH &&
		rc != SQLITE_TOOBIG)
		return db_fail(j);
	rc = rc == SQLITE_DONE && sqlite3_changes(j->to) > 0;
	t->found->rows += (uint32_t)rc;
	return rc;
}

/* Rows that lack stand between two keys, and so in the sessions from the one to the other. */
static void close_hole(struct job *j, struct target *t, int64_t until)
{
	if (!t->has_hole)
		return;
	t->has_hole = false;
	(void)sqlite3_bind_text(j->hole, 1, t->t->name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(j->hole, 2, t->session);
	(void)sqlite3_bind_int64(j->hole, 3, until);
	(void)sqlite3_step(j->hole);
	(void)sqlite3_reset(j->hole);
}

static bool is_by_session(const struct target *t)
{
	return !t->has_rowid && strncmp(t->t->key, "session,", strlen("session,")) == 0;
}

static void lack(void *arg, bool page)
{
	struct job *j = arg;
	struct target *t = j->walked;

	if (t == NULL)
		return; /* the schema's: what is not found there is said below */
	t->found->pages += page;
	t->found->broken += !page;
	t->has_hole = is_by_session(t);
}

static int orphan_row(void *arg, struct record *r)
{
	struct job *j = arg;
	struct target *t = NULL;
	uint32_t i;
	int put;

	for (i = 0; i < TABLE_MAX; i++) {
		if (!fits(&j->target[i], r))
			continue;
		if (t != NULL)
			return 0; /* it could be of two */
		t = &j->target[i];
	}
	put = t != NULL && !t->found->left_out ? put_row(j, t, r) : 0;
	return put < 0 ? put : 0;
}

static int table_row(void *arg, struct record *r)
{
	struct job *j = arg;
	struct target *t = j->walked;
	int put;

	if (t->is_guess && !fits(t, r)) {
		t->found->gone = true;
		return orphan_row(arg, r);
	}
	put = put_row(j, t, r);
	if (put == 0)
		lack(j, false);
	else if (put > 0 && is_by_session(t) && r->field[0].type == FIELD_I64) {
		close_hole(j, t, r->field[0].i);
		t->session = r->field[0].i;
	}
	return put < 0 ? put : 0;
}

/* --- the copy */

/* All columns, and the rowid where it is none of them: trace's says which came first. */
static int prepare_insert(struct job *j, struct target *t, enum table_id id)
{
	const bool rowid = t->has_rowid && !is_key(&t->t->column[0]);
	struct text sql = {0};
	uint32_t i;

	text_fmt(&sql, "INSERT OR IGNORE INTO main.[%s](", t->t->name);
	schema_names(&sql, id);
	text_fmt(&sql, "%s) VALUES(?1", rowid ? ",rowid" : "");
	for (i = 1; i < t->t->n_columns + rowid; i++)
		text_fmt(&sql, ",?%u", i + 1);
	text_char(&sql, ')');
	return prepare(j, &sql, &t->insert);
}

static int begin(struct job *j, struct recover *r)
{
	struct text hole = {0};
	char pragmas[192];
	bool fresh;
	uint32_t i;
	int code;

	snprintf(pragmas, sizeof(pragmas),
		"PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF;PRAGMA temp_store=MEMORY;"
		"PRAGMA auto_vacuum=INCREMENTAL;PRAGMA application_id=%d;PRAGMA "
		"user_version=%d;BEGIN",
		SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	code = execute(j, pragmas);
	if (code == 0 && schema_mend(j->to, false, &fresh) != SQLITE_OK)
		code = db_fail(j);
	if (code == 0)
		code = execute(j, "INSERT INTO meta(key,value) VALUES('store_uuid',randomblob(16));"
				  "CREATE TEMP TABLE hole(name,first,last)");
	text_str(&hole, "INSERT INTO temp.hole VALUES(?1,?2,?3)");
	if (code == 0)
		code = prepare(j, &hole, &j->hole);
	text_fini(&hole);
	for (i = 0; i < TABLE_MAX && code == 0; i++) {
		r->table[i] =
			(struct recovered_table){.left_out = i == TABLE_lane || i == TABLE_pending};
		j->target[i] = (struct target){.t = &schema_tables[i],
			.found = &r->table[i],
			.has_rowid = strstr(schema_tables[i].options, "WITHOUT ROWID") == NULL,
			.session = INT64_MIN};
		code = prepare_insert(j, &j->target[i], (enum table_id)i);
	}
	return code;
}

/* Tables are made in one order, and in a new database their first pages stand in it. */
static int guess_roots(struct job *j)
{
	struct text sql = {0};
	sqlite3_stmt *q = NULL;
	uint32_t i;
	int r;

	text_str(&sql, "SELECT rootpage FROM main.sqlite_schema WHERE type='table' AND name=?1");
	r = prepare(j, &sql, &q);
	for (i = 0; r == 0 && i < TABLE_MAX; i++) {
		struct target *t = &j->target[i];

		if (t->root != 0 || btree_user_version(j->from) <= (i == TABLE_trace))
			continue;
		(void)sqlite3_bind_text(q, 1, t->t->name, -1, SQLITE_STATIC);
		if (sqlite3_step(q) == SQLITE_ROW)
			t->root = (uint32_t)sqlite3_column_int64(q, 0);
		(void)sqlite3_reset(q);
		t->is_guess = true;
		todays_columns(t);
	}
	(void)sqlite3_finalize(q);
	return r;
}

static int copy_tables(struct job *j, bool guessed)
{
	const struct btree_visit v = {.want = UINT64_MAX, .row = table_row, .lack = lack, .arg = j};
	uint32_t i;
	int r = 0;

	for (i = 0; i < TABLE_MAX && r == 0; i++) {
		struct target *t = &j->target[i];

		if (t->root == 0 || t->is_guess != guessed || t->found->left_out)
			continue;
		j->walked = t;
		r = btree_walk(j->from, t->root, &v);
		t->has_hole |= t->found->gone && is_by_session(t);
		close_hole(j, t, INT64_MAX);
	}
	j->walked = NULL;
	return r;
}

static int copy_rows(struct job *j)
{
	struct btree_visit v = {.want = UINT64_MAX, .row = schema_row, .lack = lack, .arg = j};
	uint32_t at = 1;
	int r = btree_walk(j->from, 1, &v);

	if (r == 0)
		r = guess_roots(j);
	if (r == 0)
		r = copy_tables(j, false);
	if (r == 0)
		r = copy_tables(j, true);
	v.row = orphan_row;
	for (; r == 0 && btree_orphan(j->from, &at); at++)
		r = btree_walk(j->from, at, &v);
	return r;
}

/* --- what the rows lack of each other */

/* clang-format off */
#define LACK "INSERT INTO lack(session,what) SELECT "
#define ENDS(t)                                                                                    \
	"UPDATE " t " SET end_ns=max(begin_ns,"                                                    \
	"coalesce((SELECT max(last_ns) FROM busy b WHERE b.session=" t ".session),0),"             \
	"coalesce((SELECT max(end_ns) FROM trace c WHERE c.session=" t ".session),0)) "            \
	"WHERE end_ns IS NULL"
#define STEPS(X)                                                                                   \
	/* rows that others refer to; parent 0 is ROOT's */                                        \
	X("CREATE TEMP TABLE lost AS SELECT node id FROM cell UNION SELECT node FROM metric "      \
	  "UNION SELECT node FROM config UNION SELECT parent FROM node EXCEPT SELECT id FROM node")\
	X("DELETE FROM lost WHERE id=0")                                                           \
	X("INSERT INTO node(id,hash,parent,kind,name) "                                            \
	  "SELECT id,randomblob(16),0,(SELECT coalesce(min(kind),0) FROM node),'(unknown)' FROM lost") \
	X("CREATE TEMP TABLE lack(session,what)")                                                  \
	X(LACK "DISTINCT session,'its name and settings' FROM (SELECT session FROM cell UNION "    \
	  "SELECT session FROM metric UNION SELECT session FROM trace) "                           \
	  "WHERE session NOT IN (SELECT id FROM session)")                                         \
	X("INSERT OR IGNORE INTO session(id,uuid,name,uid,source,backend,mode,hook,data,context,"  \
	  "cpu,state,match,pid,command,gpu,created_ns,active_ns,launches,matched,daemon_ns) "      \
	  "SELECT session,randomblob(16),'session '||session,0,'control','','','none','both',"     \
	  "'shadow','on','finalized','all',0,'','none',0,0,0,0,0 FROM lack")                       \
	/* what each session lacks */                                                              \
	X(LACK "id,'its end: it was recording' FROM session WHERE state NOT IN ('finalized','interrupted')")             \
	X(LACK "DISTINCT s.id,'rows of '||h.name FROM session s JOIN hole h "                      \
	  "ON s.id BETWEEN h.first AND h.last")                                                    \
	X(LACK "session,count(*)||' of its processes' FROM member "                                \
	  "WHERE process NOT IN (SELECT id FROM process) GROUP BY session")                        \
	X(LACK "session,count(*)||' of its devices' FROM busy b WHERE NOT EXISTS (SELECT 1 "       \
	  "FROM device d WHERE d.process=b.process AND d.device=b.device) GROUP BY session")       \
	X(LACK "id,n||' names of its tree' FROM (SELECT s.id,(WITH RECURSIVE need(node) AS ("      \
	  "SELECT node FROM cell WHERE session=s.id UNION SELECT node FROM metric WHERE session=s.id " \
	  "UNION SELECT n.parent FROM node n JOIN need ON n.id=need.node WHERE n.parent<>0) "      \
	  "SELECT count(*) FROM need WHERE node IN (SELECT id FROM lost)) n FROM session s) WHERE n>0") \
	X(LACK "session,sum(n)||' chunks of its timeline' FROM (SELECT session,"                   \
	  "max(number)-min(number)+1-count(*) n FROM trace GROUP BY session,process) "             \
	  "GROUP BY session HAVING sum(n)>0")                                                      \
	X("DELETE FROM lack WHERE session NOT IN (SELECT id FROM session)")                        \
	/* a recording that nobody goes on with */                                                 \
	X("UPDATE session SET state='finalized' WHERE state NOT IN ('finalized','interrupted')")                         \
	X(ENDS("active"))                                                                          \
	X(ENDS("segment"))                                                                         \
	X("UPDATE session SET recovered=1+EXISTS(SELECT 1 FROM lack WHERE session=id)")            \
	X("INSERT INTO note(session,process,number,ns,text) SELECT id,0,"                          \
	  "(SELECT coalesce(max(number),0)+1 FROM note WHERE session=id AND process=0),0,"         \
	  "substr('recovered from a damaged database'||coalesce('; it lacks '||"                   \
	  "(SELECT group_concat(what,', ') FROM lack WHERE session=id),', and whole'),1,255) FROM session") \
	X("COMMIT")
/* clang-format on */

/* Rows of a timeline are in no order of sessions: each may lack some that is at its end. */
static int lack_ends(struct job *j, const struct recover *r)
{
	const struct recovered_table *t = &r->table[TABLE_trace];

	return t->pages + t->broken == 0 && !t->gone
		       ? 0
		       : execute(j, LACK "id,'perhaps the end of its timeline' FROM session "
					 "WHERE data IN ('trace','both')");
}

static int tell_sessions(struct job *j, const struct recover *r)
{
	struct text sql = {0};
	sqlite3_stmt *q = NULL;
	int code, rc;

	text_str(&sql, "SELECT id,name,(SELECT group_concat(what,', ') FROM lack WHERE session=id) "
		       "FROM session ORDER BY id");
	code = prepare(j, &sql, &q);
	while (code == 0 && (rc = sqlite3_step(q)) != SQLITE_DONE) {
		if (rc == SQLITE_ROW)
			r->session(r->arg, sqlite3_column_int64(q, 0),
				(const char *)sqlite3_column_text(q, 1),
				(const char *)sqlite3_column_text(q, 2));
		else
			code = db_fail(j);
	}
	(void)sqlite3_finalize(q);
	return code;
}

static int finish(struct job *j, const struct recover *r)
{
	static const char *const steps[] = {
#define X(sql) sql,
		STEPS(X)
#undef X
	};
	size_t i;
	int code = 0;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]) && code == 0; i++) {
		if (strncmp(steps[i], "DELETE FROM lack", strlen("DELETE FROM lack")) == 0)
			code = lack_ends(j, r);
		if (code == 0)
			code = execute(j, steps[i]);
	}
	return code == 0 ? tell_sessions(j, r) : code;
}

static int check(const struct job *j, const char *path)
{
	if (btree_application(j->from) != SCHEMA_APPLICATION_ID)
		return err_set(j->e, -EBADMSG, "%s is not a protond database", path);
	if (btree_user_version(j->from) > SCHEMA_VERSION)
		return err_set(j->e, -EBADMSG,
			"%s was made by a newer protond (schema %u, this program knows %d); use "
			"that "
			"version's protonview",
			path, btree_user_version(j->from), SCHEMA_VERSION);
	return 0;
}

int recover(const char *from, struct sqlite3 *to, struct recover *r, struct err *e)
{
	struct job *j = calloc(1, sizeof(*j));
	uint32_t i;
	int code;

	if (j == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	j->to = to;
	j->e = e;
	code = btree_open(from, &j->from, e);
	if (code == 0)
		code = check(j, from);
	if (code == 0)
		code = begin(j, r);
	if (code == 0)
		code = copy_rows(j);
	if (code == 0)
		code = finish(j, r);
	for (i = 0; i < TABLE_MAX; i++)
		(void)sqlite3_finalize(j->target[i].insert);
	(void)sqlite3_finalize(j->hole);
	btree_close(j->from);
	free(j);
	return code;
}
