/* SPDX-License-Identifier: MIT. pick.c: a database opened for reading, and which session is meant.
 */
#include "pick.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guess.h"
#include "human.h"
#include "input.h"
#include "profile.h"
#include "schema.h"
#include "selector.h"

#define BUSY_MS    2000
#define FLAW_BYTES 160

/* clang-format off */
#define TEXT(value) " substr(" value ",1,16384)" /* as profile_text() cuts it */
/* Of the best class that there is one of, the ?3rd before the newest; ?1 a pid, ?2 a tag. */
#define SELECTED(where)                                                                            \
	"SELECT s.id FROM session s WHERE " where " AND " SCHEMA_SESSION_CLASS " ="                \
	" (SELECT min(" SCHEMA_SESSION_CLASS ") FROM session s WHERE " where ")"                   \
	" ORDER BY s.id DESC LIMIT 1 OFFSET ?3"
#define ROW                                                                                        \
		"SELECT s.id, s.created_ns, s.active_ns, lower(hex(substr(s.uuid,1,16))),"         \
		TEXT("s.name") ",CASE s.recovered WHEN 1 THEN 'recovered' WHEN 2 THEN"             \
		" 'incomplete' ELSE" TEXT("s.state") " END," TEXT("s.source") ","                  \
		TEXT(SCHEMA_SESSION_COMMAND) ", s.launches, s.matched,"                            \
		" (SELECT count(*) FROM member m WHERE m.session = s.id),"                         \
		" (SELECT max(begin_ns) FROM active a WHERE a.session = s.id AND end_ns IS NULL)," \
		" (SELECT p.boot_id FROM member m JOIN process p ON p.id = m.process"              \
		" WHERE m.session = s.id ORDER BY p.id LIMIT 1),"                                  \
		" s.uid, s.finalized_ns," TEXT("s.tags") "," TEXT("s.note") ","                    \
		SCHEMA_SESSION_EMPTY " FROM session s "
#define STATEMENTS(X)                                                                              \
	X(BY_ID,   "SELECT id FROM session WHERE id = ?1")                                         \
	X(BY_NAME, "SELECT id FROM session WHERE name = ?1 ORDER BY id DESC LIMIT 1")              \
	X(BY_UUID, "SELECT id FROM session WHERE lower(hex(substr(uuid,1,16))) LIKE ?1 || '%' LIMIT 2") \
	X(LAST,    SELECTED("1"))                                                                  \
	X(AUTO,    SELECTED("s.source = 'auto'"))                                                  \
	X(JOB,     SELECTED(SCHEMA_SESSION_HAS_PID("?1")))                                         \
	X(TAG,     SELECTED(SCHEMA_SESSION_HAS_TAG("?2")))                                         \
	X(NAMES,   "SELECT " TEXT("name") " FROM session ORDER BY id DESC LIMIT 1000")             \
	X(ONLY,    "SELECT id FROM session LIMIT 2")                                               \
	X(EACH,    ROW "ORDER BY s.id DESC")                                                       \
	X(ONE,     ROW "WHERE s.id = ?1")
/* clang-format on */

enum {
#define X(name, sql) SQL_##name,
	STATEMENTS(X)
#undef X
};
static const char *const statements[] = {
#define X(name, sql) sql,
	STATEMENTS(X)
#undef X
};

/* --- opening */

int pick_refused(struct sqlite3 *db, int r, struct err *e)
{
	const char *path = sqlite3_db_filename(db, "main");
	const struct err why = *e;
	char word[512];

	if (r != -EBADMSG || path == NULL || *path == '\0' ||
		(strstr(why.text, sqlite3_errstr(SQLITE_CORRUPT)) == NULL &&
			strstr(why.text, sqlite3_errstr(SQLITE_NOTADB)) == NULL &&
			strstr(why.text, "is damaged") == NULL))
		return r;
	return err_set(e, r, "%.300s; `protonview recover %s` copies what can be read", why.text,
		word_quoted(word, sizeof(word), path));
}

static int number(sqlite3 *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *st;
	int r = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	if (r == SQLITE_OK)
		r = sqlite3_step(st);
	if (r == SQLITE_ROW)
		*ret = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return r == SQLITE_ROW ? 0 : r;
}

/* Columns that are expressions, of virtual tables too. */
#define COMPUTED                                                              \
	"SELECT count(*) FROM sqlite_schema s, pragma_table_xinfo(s.name) x " \
	"WHERE s.type = 'table' AND x.hidden <> 0"

/* The file may come from anywhere: nothing in its schema is run, nothing is believed. A view in the
 * place of a table would be a program, which need not end. */
static int check(sqlite3 *db, const char *what, struct err *e)
{
	int64_t application = 0, version = 0, computed = 0, tables = 0;
	int r;

	(void)sqlite3_busy_timeout(db, BUSY_MS);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	(void)sqlite3_exec(db,
		"PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -2048",
		NULL, NULL, NULL);
	r = number(db, "PRAGMA application_id", &application);
	if (r == 0)
		r = number(db, "PRAGMA user_version", &version);
	if (r == 0)
		r = number(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (r == SQLITE_CANTOPEN || sqlite3_extended_errcode(db) == SQLITE_READONLY_DIRECTORY)
		return -EAGAIN; /* a WAL needs files beside it that cannot be made here */
	if (r != 0)
		return err_set(e, -EBADMSG, "%s cannot be read: %s", what, sqlite3_errmsg(db));
	if (application == 0 && version == 0 && tables == 0) /* protond would begin it anew */
		return err_set(e, -ENOENT,
			"%s is empty: nothing has been recorded in it yet; a copy needs its -wal, "
			"too",
			what);
	if (application != SCHEMA_APPLICATION_ID)
		return err_set(e, -EBADMSG,
			"%s is not a protond database; an export of nsys is read by `protonview "
			"import FILE`",
			what);
	if (version > SCHEMA_VERSION)
		return err_set(e, -EBADMSG,
			"%s was made by a newer protond (schema %lld, this program knows %d); use "
			"that version's protonview",
			what, (long long)version, SCHEMA_VERSION);
	r = number(db, COMPUTED, &computed);
	if (r != 0)
		return err_set(e, -EBADMSG, "%s cannot be read: %s", what, sqlite3_errmsg(db));
	if (computed > 0)
		return err_set(e, -EBADMSG,
			"%s is refused: it has computed columns, which protond never makes", what);
	if (schema_shade(db) != SQLITE_OK) /* columns that came later have their defaults */
		return err_set(e, -EBADMSG, "%s cannot be read: %s", what, sqlite3_errmsg(db));
	return 0;
}

/* Percent-encodes what has a meaning in a URI. */
static char *immutable_uri(const char *path)
{
	char *uri = malloc(strlen(path) * 3 + 32), *to;

	if (uri == NULL)
		return NULL;
	memcpy(uri, "file:", 5);
	to = uri + 5;
	for (; *path != '\0'; path++) {
		if (*path == '%' || *path == '?' || *path == '#')
			to += snprintf(to, 4, "%%%02X", (unsigned)(unsigned char)*path);
		else
			*to++ = *path;
	}
	memcpy(to, "?immutable=1", sizeof("?immutable=1"));
	return uri;
}

static int open_as(const char *path, bool immutable, sqlite3 **ret, struct err *e)
{
	char *uri = immutable ? immutable_uri(path) : NULL;
	sqlite3 *db = NULL;
	int r;

	if (immutable && uri == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	r = sqlite3_open_v2(immutable ? uri : path, &db,
		SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | (immutable ? SQLITE_OPEN_URI : 0),
		NULL);
	free(uri);
	if (r != SQLITE_OK)
		r = err_set(e, -EBADMSG, "%s cannot be opened: %s", path, sqlite3_errmsg(db));
	else
		r = pick_refused(db, check(db, path, e), e);
	if (r < 0)
		(void)sqlite3_close(db);
	else
		*ret = db;
	return r;
}

/* SQLite would wait at a pipe, also at one that somebody made beside the database. */
static int check_files(const char *path, struct err *e)
{
	static const char *const beside[] = {"-wal", "-journal"};
	char name[4096 + 16];
	struct err why;
	size_t i;
	int r = input_check(path, "name a database with --db or PROTOND_DB", e);

	if (r == 0 && access(path, R_OK) < 0)
		r = err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
	for (i = 0; i < sizeof(beside) / sizeof(*beside) && r == 0; i++) {
		(void)snprintf(name, sizeof(name), "%s%s", path, beside[i]);
		if (input_check(name, "remove it", &why) == -EBADMSG) /* else it comes and goes */
			r = err_set(e, -EBADMSG, "%s", why.text);
	}
	return r;
}

int pick_open(const char *path, struct sqlite3 **ret, bool *ret_partial, struct err *e)
{
	char wal[4096 + 8];
	struct stat st;
	int r = check_files(path, e);

	if (r < 0)
		return r;
	*ret_partial = false;
	r = open_as(path, false, ret, e);
	if (r != -EAGAIN)
		return r;
	snprintf(wal, sizeof(wal), "%s-wal", path);
	*ret_partial = stat(wal, &st) == 0 && st.st_size > 0;
	r = open_as(path, true, ret, e);
	return r == -EAGAIN ? err_set(e, -EBADMSG, "%s cannot be opened", path) : r;
}

int pick_open_image(const void *image, size_t bytes, struct sqlite3 **ret, struct err *e)
{
	unsigned char *copy = sqlite3_malloc64(bytes > 0 ? bytes : 1);
	sqlite3 *db = NULL;
	int r;

	if (copy == NULL)
		return err_set(e, -ENOMEM, "out of memory");
	memcpy(copy, image, bytes);
	if (bytes >= 100 && copy[18] == 2 && copy[19] == 2)
		copy[18] = copy[19] =
			1; /* says WAL, which memory cannot have; the pages are the same */
	r = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (r != SQLITE_OK)
		sqlite3_free(copy);
	else /* frees the copy, also when it fails */
		r = sqlite3_deserialize(db, "main", copy, (sqlite3_int64)bytes,
			(sqlite3_int64)bytes,
			SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
	if (r != SQLITE_OK)
		r = err_set(e, -EBADMSG, "the session file cannot be read: %s", sqlite3_errmsg(db));
	else
		r = check(db, "the session file", e);
	if (r == -EAGAIN || r == -ENOENT)
		r = err_set(e, -EBADMSG, "the session file cannot be read");
	if (r < 0)
		(void)sqlite3_close(db);
	else
		*ret = db;
	return r;
}

static int first_flaw(void *ret, int n, char **text, char **column)
{
	const char *line = text[0] == NULL ? "" : text[0], *second = strchr(line, '\n');

	(void)n;
	(void)column;
	snprintf(ret, FLAW_BYTES, "%s", second != NULL ? second + 1 : line);
	return 0;
}

int pick_check(struct sqlite3 *db, const char *what, struct err *e)
{
	char flaw[FLAW_BYTES] = "ok";
	int r = sqlite3_exec(db, "PRAGMA quick_check(1)", first_flaw, flaw, NULL);

	if (r == SQLITE_INTERRUPT || (r == SQLITE_OK && strcmp(flaw, "ok") == 0))
		return 0;
	r = err_set(
		e, -EBADMSG, "%s is damaged: %s", what, r == SQLITE_OK ? flaw : sqlite3_errmsg(db));
	return pick_refused(db, r, e);
}

/* --- which session */

static int cannot_read(sqlite3 *db, struct err *e)
{
	return pick_refused(
		db, err_set(e, -EBADMSG, "the database cannot be read: %s", sqlite3_errmsg(db)), e);
}

/* The first id of a statement, which is finalized; *ret_more: there is a second. r: of what was done
 * with it before. */
static int take_id(
	sqlite3 *db, sqlite3_stmt *st, int r, int64_t *ret_id, bool *ret_more, struct err *e)
{
	if (r == SQLITE_OK)
		r = sqlite3_step(st);
	if (r == SQLITE_ROW) {
		*ret_id = sqlite3_column_int64(st, 0);
		*ret_more = sqlite3_step(st) == SQLITE_ROW;
	}
	(void)sqlite3_finalize(st);
	if (r == SQLITE_ROW)
		return 0;
	if (r == SQLITE_DONE)
		return -ENOENT;
	return cannot_read(db, e);
}

static int first_id(sqlite3 *db, int which, const char *text, int64_t number, int64_t *ret_id,
	bool *ret_more, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(db, statements[which], -1, &st, NULL);

	if (r == SQLITE_OK && sqlite3_bind_parameter_count(st) > 0)
		r = text != NULL ? sqlite3_bind_text(st, 1, text, -1, SQLITE_STATIC)
				 : sqlite3_bind_int64(st, 1, number);
	return take_id(db, st, r, ret_id, ret_more, e);
}

static int by_selector(sqlite3 *db, const char *ref, int64_t *ret_id, struct err *e)
{
	static const int sql[] = {[SELECT_LAST] = SQL_LAST,
		[SELECT_AUTO] = SQL_AUTO,
		[SELECT_JOB] = SQL_JOB,
		[SELECT_TAG] = SQL_TAG};
	sqlite3_stmt *st = NULL;
	struct selector s;
	bool more;
	int r;

	if (selector_parse(ref, &s) < 0)
		return err_set(e, -EINVAL, "'%s' is not a session; " SELECTOR_WORDS, ref);
	r = sqlite3_prepare_v2(db, statements[sql[s.kind]], -1, &st, NULL);
	if (r == SQLITE_OK) { /* SQLITE_RANGE: it does not ask for that */
		(void)sqlite3_bind_int64(st, 1, s.pid);
		(void)sqlite3_bind_text(st, 2, s.tag, -1, SQLITE_STATIC);
		(void)sqlite3_bind_int64(st, 3, s.back);
	}
	return take_id(db, st, r, ret_id, &more, e);
}

static bool is_number(const char *s)
{
	return strlen(s) < 18 && *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

/* Lower case, dashes left out, as uuids are printed; false: it cannot be one. */
static bool uuid_prefix(const char *ref, char buf[40])
{
	size_t n = 0;

	for (; *ref != '\0'; ref++) {
		if (*ref == '-')
			continue;
		if (!isxdigit((unsigned char)*ref) || n == 32)
			return false;
		buf[n++] = (char)tolower((unsigned char)*ref);
	}
	buf[n] = '\0';
	return n >= 4;
}

static int find(sqlite3 *db, const char *ref, int64_t *ret_id, struct err *e)
{
	char uuid[40];
	bool more = false;
	int64_t id = 0;
	int r = -ENOENT;

	if (is_number(ref))
		r = first_id(db, SQL_BY_ID, NULL, strtoll(ref, NULL, 10), ret_id, &more, e);
	if (r == -ENOENT)
		r = first_id(db, SQL_BY_NAME, ref, 0, ret_id, &more, e);
	if (r != -ENOENT || !uuid_prefix(ref, uuid))
		return r;
	more = false;
	r = first_id(db, SQL_BY_UUID, uuid, 0, &id, &more, e);
	if (r == 0 && more)
		return err_set(e, -EINVAL,
			"more than one session's uuid begins with '%s'; give more of it", ref);
	if (r == 0)
		*ret_id = id;
	return r;
}

static const char *column(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return s == NULL ? "" : s;
}

static void guess_session(sqlite3 *db, struct guess *g)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, statements[SQL_NAMES], -1, &st, NULL) == SQLITE_OK)
		while (sqlite3_step(st) == SQLITE_ROW)
			guess_try(g, column(st, 0));
	(void)sqlite3_finalize(st);
}

int pick_session(struct sqlite3 *db, const char *ref, int64_t *ret_id, struct err *e)
{
	struct guess g = {.word = ref};
	int r = *ref == '@' ? by_selector(db, ref, ret_id, e) : find(db, ref, ret_id, e);

	if (r != -ENOENT)
		return r;
	guess_session(db, &g);
	return err_set(
		e, r, "no session '%s' (`protonview sessions` lists them)%s", ref, g.question);
}

int pick_only(struct sqlite3 *db, int64_t *ret_id, struct err *e)
{
	bool more = false;
	int r = first_id(db, SQL_ONLY, NULL, 0, ret_id, &more, e);

	if (r == -ENOENT)
		return err_set(e, r, "there is no session in the file");
	if (r == 0 && more)
		return err_set(e, -EINVAL,
			"the file holds many sessions; open one with --db FILE SESSION");
	return r;
}

/* The closed intervals, and the open one up to now; -1: it began in another boot. */
static int64_t active_ns(sqlite3_stmt *st)
{
	const int64_t closed = sqlite3_column_int64(st, 2), begin = sqlite3_column_int64(st, 11);
	uint64_t now = 0;

	if (sqlite3_column_type(st, 11) == SQLITE_NULL)
		return closed;
	if (sqlite3_column_bytes(st, 12) == 16)
		now = profile_now(sqlite3_column_blob(st, 12));
	return begin > 0 && now > (uint64_t)begin && now < INT64_MAX / 2 && closed >= 0 &&
			       closed < INT64_MAX / 2
		       ? closed + (int64_t)now - begin
		       : -1;
}

static int each(sqlite3 *db, int which, int64_t id, pick_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(db, statements[which], -1, &st, NULL), stop = 0;

	if (r == SQLITE_OK && which == SQL_ONE)
		r = sqlite3_bind_int64(st, 1, id);
	while (r == SQLITE_OK || r == SQLITE_ROW) {
		r = sqlite3_step(st);
		if (r != SQLITE_ROW)
			break;
		stop = fn(arg, &(struct pick_row){.id = sqlite3_column_int64(st, 0),
				       .created_ns = sqlite3_column_int64(st, 1),
				       .active_ns = active_ns(st),
				       .uuid = column(st, 3),
				       .name = column(st, 4),
				       .state = column(st, 5),
				       .source = column(st, 6),
				       .command = column(st, 7),
				       .launches = sqlite3_column_int64(st, 8),
				       .matched = sqlite3_column_int64(st, 9),
				       .processes = sqlite3_column_int64(st, 10),
				       .uid = (uint32_t)sqlite3_column_int64(st, 13),
				       .ended_ns = sqlite3_column_int64(st, 14),
				       .tags = column(st, 15),
				       .note = column(st, 16),
				       .empty = sqlite3_column_int(st, 17) != 0});
		if (stop < 0)
			break;
	}
	(void)sqlite3_finalize(st);
	return r != SQLITE_DONE && stop == 0 ? cannot_read(db, e) : stop;
}

int pick_each(struct sqlite3 *db, pick_fn *fn, void *arg, struct err *e)
{
	return each(db, SQL_EACH, 0, fn, arg, e);
}

int pick_one(struct sqlite3 *db, int64_t id, pick_fn *fn, void *arg, struct err *e)
{
	return each(db, SQL_ONE, id, fn, arg, e);
}
