/* SPDX-License-Identifier: MIT. store_db.c: the database file: found, locked, checked, mended,
 * and its failures in words. The opener's thread, then the worker's; never two at once.
 *
 * The lock is a flock() on the database file itself. SQLite's own locks are fcntl() locks, which
 * fall when a process closes any descriptor of the file: so ours is opened before SQLite's and
 * closed after.
 */
#include "store_int.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "schema.h"
#include "text.h"

static const char *const sql_text[SQL_MAX] = {
#define X(name, text) [SQL_##name] = text,
	STORE_SQL(X)
#undef X
};

/* --- failures in words --- */

/* What the system said of the database file or, more often, of its WAL. */
static int last_errno(sqlite3 *db, int of_which)
{
	sqlite3_file *f = NULL;
	int os = 0;

	if (db == NULL || sqlite3_file_control(db, "main", of_which, &f) != SQLITE_OK ||
		f == NULL || f->pMethods == NULL)
		return 0;
	return f->pMethods->xFileControl(f, SQLITE_FCNTL_LAST_ERRNO, &os) == SQLITE_OK ? os : 0;
}

static int io_errno(sqlite3 *db)
{
	const int os[] = {sqlite3_system_errno(db), last_errno(db, SQLITE_FCNTL_JOURNAL_POINTER),
		last_errno(db, SQLITE_FCNTL_FILE_POINTER)};
	size_t i;

	for (i = 0; i < sizeof(os) / sizeof(*os); i++) {
		if (os[i] == ENOSPC || os[i] == EDQUOT || os[i] == EFBIG)
			return -ENOSPC;
		if (os[i] == EROFS)
			return -EROFS;
	}
	return -EIO;
}

int store_errno(sqlite3 *db, int rc)
{
	static const struct {
		int rc, code;
	} map[] = {
		{SQLITE_FULL, -ENOSPC},
		{SQLITE_READONLY, -EROFS},
		{SQLITE_BUSY, -EBUSY},
		{SQLITE_LOCKED, -EBUSY},
		{SQLITE_CORRUPT, -EUCLEAN},
		{SQLITE_NOTADB, -EUCLEAN},
		{SQLITE_NOMEM, -ENOMEM},
		{SQLITE_PERM, -EACCES},
		{SQLITE_AUTH, -EACCES},
		{SQLITE_TOOBIG, -E2BIG},
		{SQLITE_CONSTRAINT, -EBADMSG},
		{SQLITE_MISMATCH, -EBADMSG},
		{SQLITE_RANGE, -EBADMSG},
		{SQLITE_INTERRUPT, -EINTR},
	};
	size_t i;

	rc &= 0xff;
	if (rc == SQLITE_IOERR || rc == SQLITE_CANTOPEN)
		return io_errno(db);
	for (i = 0; i < sizeof(map) / sizeof(*map); i++)
		if (map[i].rc == rc)
			return map[i].code;
	return -EIO;
}

int store_fail(sqlite3 *db, int rc, struct err *e)
{
	const char *path =
		db == NULL ? NULL : sqlite3_db_filename(db, "main"); /* NULL: no memory */
	const int code = store_errno(db, rc);

	if (path == NULL || *path == '\0')
		path = "the database";
	if (code == -EUCLEAN)
		return err_set(e, code,
			"%s is damaged (%s): stop protond, move it away with `mv %s %s.damaged` "
			"(and its "
			"-wal and -shm files likewise), start again; `protonview recover "
			"%s.damaged` "
			"copies what can be read",
			path, sqlite3_errmsg(db), path, path, path);
	if (code == -ENOSPC)
		return err_set(e, code,
			"no space for the database: make room on its disk (some; then `protonctl "
			"prune --older-than 7d` makes more); nothing is lost while the journal has "
			"room; it is %s (%s)",
			path, sqlite3_errmsg(db));
	if (code == -EROFS)
		return err_set(e, code,
			"%s is read-only (%s): let protond write there; nothing is lost while the "
			"journal has room",
			path, sqlite3_errmsg(db));
	if (code == -EBUSY)
		return err_set(e, code, "%s is locked by another program (%s): close it", path,
			sqlite3_errmsg(db));
	return err_set(e, code, "%s: %s", path, sqlite3_errmsg(db));
}

int store_exec(sqlite3 *db, const char *sql, struct err *e)
{
	const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_fail(db, rc, e);
}

/* --- the file --- */

/* Before anything is created: where would the file be? */
static int check_directory(const char *path, struct err *e)
{
	char copy[PATH_MAX];
	struct statfs fs;
	const char *dir;

	if (strlen(path) >= sizeof(copy))
		return err_set(
			e, -ENAMETOOLONG, "the path of the database is too long: %.80s...", path);
	memcpy(copy, path, strlen(path) + 1);
	dir = dirname(copy);
	if (statfs(dir, &fs) < 0)
		return err_set(e, neg_errno(), "%s: %s; make it with `mkdir -p -m 700 %s`", dir,
			strerror(errno), dir);
	if (schema_fs_is_remote(fs.f_type))
		return err_set(e, -EREMOTE,
			"%s is on a network or FUSE file system (type 0x%lx), where SQLite's WAL "
			"breaks: "
			"choose a path on a local disk with PROTOND_DB",
			dir, (unsigned long)(uint32_t)fs.f_type);
	return 0;
}

static int open_words(const char *path, int code, struct err *e)
{
	return err_set(e, code,
		"cannot open %s for writing: %s; let protond write there, or choose another path "
		"with PROTOND_DB",
		path, strerror(-code));
}

/* Opens or makes the file, 0600, and holds it against a second daemon. */
static int open_locked(const char *path, int *ret_fd, struct err *e)
{
	struct stat st;
	struct statfs fs;
	int r = 0, fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return open_words(path, neg_errno(), e);
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		r = open_words(path, neg_errno(), e);
	else if (!S_ISREG(st.st_mode))
		r = err_set(
			e, -EBADF, "%s is not a file: choose another path with PROTOND_DB", path);
	else if (schema_fs_is_remote(fs.f_type)) /* a link may lead elsewhere */
		r = err_set(e, -EREMOTE, "%s is on a network or FUSE file system", path);
	else if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		r = err_set(e, errno == EWOULDBLOCK ? -EBUSY : neg_errno(),
			"%s is in use by another protond: stop that one, or choose another path "
			"with "
			"PROTOND_DB",
			path);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* A file that is not empty says what it is in its first 100 bytes. */
static int check_header(int fd, const char *path, struct err *e)
{
	static const uint8_t none[100];
	uint8_t h[100] = {0};
	const ssize_t n = pread(fd, h, sizeof(h), 0);
	uint32_t id;

	/* Zeroes: the power went while it was made, and SQLite's journal beside it undoes that. */
	if (n == 0 || (n == (ssize_t)sizeof(h) && memcmp(h, none, sizeof(h)) == 0))
		return 0;
	id = (uint32_t)h[68] << 24 | (uint32_t)h[69] << 16 | (uint32_t)h[70] << 8 | h[71];
	if (n == (ssize_t)sizeof(h) && memcmp(h, "SQLite format 3", 16) == 0 &&
		(id == 0 || id == SCHEMA_APPLICATION_ID))
		return 0;
	if (id == SCHEMA_APPLICATION_ID)
		return err_set(e, -EUCLEAN,
			"%s is damaged (its first bytes are not SQLite's): move it away with `mv "
			"%s "
			"%s.damaged` and start again",
			path, path, path);
	return err_set(e, -EBADF,
		"%s is not a database of protond, and was left alone: choose another path with "
		"PROTOND_DB, or move it away with `mv %s %s.other`",
		path, path, path);
}

/* --- the schema --- */

static int query_int(sqlite3 *db, const char *sql, int64_t *ret, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(q, 0);
	(void)sqlite3_finalize(q);
	return rc == SQLITE_ROW ? 0 : store_fail(db, rc, e);
}

static int check_version(sqlite3 *db, const char *path, int64_t *ret_version, struct err *e)
{
	int64_t id, version, tables;
	int r = query_int(db, "PRAGMA application_id", &id, e);

	if (r == 0)
		r = query_int(db, "PRAGMA user_version", &version, e);
	if (r == 0)
		r = query_int(db, "SELECT count(*) FROM sqlite_schema", &tables, e);
	if (r < 0)
		return r;
	if (id == 0 && (tables > 0 || version != 0))
		return err_set(e, -EBADF,
			"%s is a database of another program, and was left alone: choose another "
			"path "
			"with PROTOND_DB",
			path);
	if (version > SCHEMA_VERSION)
		return err_set(e, -EPROTO,
			"%s was made by a newer protond (schema %lld, this one knows up to %d): "
			"run the "
			"newer protond, or move the file away with `mv %s %s.newer`",
			path, (long long)version, SCHEMA_VERSION, path, path);
	*ret_version = version;
	return 0;
}

static int set_uuid(sqlite3 *db, struct err *e)
{
	sqlite3_stmt *q = NULL;
	uint8_t uuid[16];
	int rc;

	if (getrandom(uuid, sizeof(uuid), 0) != (ssize_t)sizeof(uuid))
		return err_set(e, -EIO, "no random bytes");
	rc = sqlite3_prepare_v2(
		db, "INSERT INTO meta(key,value) VALUES('store_uuid',?1)", -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_blob(q, 1, uuid, sizeof(uuid), SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : store_fail(db, rc, e);
}

/* Makes what a fresh or an older database lacks, in one transaction. Versions up to this one differ
 * by nothing else; a step that is more (rows that change) goes between BEGIN and COMMIT. */
static int mend(sqlite3 *db, int64_t version, struct err *e)
{
	char commit[96];
	bool lacks;
	int r, rc = schema_mend(db, true, &lacks);

	if (rc != SQLITE_OK)
		return store_fail(db, rc, e);
	if (!lacks && version == SCHEMA_VERSION)
		return 0;
	(void)snprintf(commit, sizeof(commit),
		"PRAGMA application_id=%d;PRAGMA user_version=%d;COMMIT", SCHEMA_APPLICATION_ID,
		SCHEMA_VERSION);
	r = store_exec(db, "BEGIN IMMEDIATE", e);
	rc = r == 0 ? schema_mend(db, false, &lacks) : SQLITE_OK;
	if (rc != SQLITE_OK)
		r = store_fail(db, rc, e);
	if (r == 0 && version == 0)
		r = set_uuid(db, e);
	if (r == 0)
		r = store_exec(db, commit, e);
	if (r < 0)
		(void)store_exec(db, "ROLLBACK", NULL);
	return r;
}

static int set_wal(sqlite3 *db, const char *path, struct err *e)
{
	sqlite3_stmt *q = NULL;
	const char *mode = NULL;
	int r = 0, rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode=WAL", -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc != SQLITE_ROW)
		r = store_fail(db, rc, e);
	else
		mode = (const char *)sqlite3_column_text(q, 0);
	if (r == 0 && (mode == NULL || strcmp(mode, "wal") != 0))
		r = err_set(e, -EREMOTE, "the file system of %s does not carry SQLite's WAL", path);
	(void)sqlite3_finalize(q);
	return r;
}

/* --- statements --- */

int store_prepare_text(sqlite3 *db, struct text *take, sqlite3_stmt **ret)
{
	char *sql;
	size_t n;
	int rc;

	if (text_take(take, &sql, &n) < 0)
		return SQLITE_NOMEM;
	rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	free(sql);
	return rc;
}

struct upsert {
	const char *by, *where; /* NULL: none, the row is replaced */
};

static void put_text(struct text *t, enum table_id table, const struct upsert *up)
{
	const struct schema_table *to = &schema_tables[table];
	uint32_t i;

	text_fmt(t, "INSERT %sINTO %s(", up->by == NULL ? "OR REPLACE " : "", to->name);
	schema_names(t, table);
	text_str(t, ") VALUES(?");
	for (i = 1; i < to->n_columns; i++)
		text_str(t, ",?");
	text_char(t, ')');
	if (up->by == NULL)
		return;
	text_fmt(t, " ON CONFLICT(%s) DO UPDATE SET ", up->by);
	for (i = 1; i < to->n_columns; i++)
		text_fmt(t, "%s[%s]=excluded.[%s]", i == 1 ? "" : ",", to->column[i].name,
			to->column[i].name);
	text_str(t, up->where);
}

static int prepare_table(struct store_db *d, enum table_id t)
{
	static const struct upsert upserts[TABLE_MAX] = {
#define X(t, by, where) [TABLE_##t] = {by, where},
		STORE_UPSERTS(X)
#undef X
	};
	static const char *const loads[TABLE_MAX] = {
#define X(t, from) [TABLE_##t] = (from),
		STORE_LOADS(X)
#undef X
	};
	struct text put = {0}, load = {0};
	int rc, late;

	put_text(&put, t, &upserts[t]);
	rc = store_prepare_text(d->db, &put, &d->put[t]);
	text_str(&load, "SELECT ");
	schema_select(&load, t);
	text_fmt(&load, " %s", loads[t]);
	late = store_prepare_text(d->db, &load, &d->load[t]);
	return rc != SQLITE_OK ? rc : late;
}

int store_prepare(struct store_db *d)
{
	int i, rc, first = SQLITE_OK;

	for (i = 0; i < SQL_MAX + TABLE_MAX; i++) {
		rc = i < SQL_MAX ? sqlite3_prepare_v3(d->db, sql_text[i], -1,
					   SQLITE_PREPARE_PERSISTENT, &d->q[i], NULL)
				 : prepare_table(d, (enum table_id)(i - SQL_MAX));
		first = first == SQLITE_OK ? rc : first;
	}
	return first;
}

/* --- open, close --- */

/* Before the first table exists, or it has no effect: pages of deleted sessions go back to the
 * disk. */
#define PRAGMAS_FIRST "PRAGMA auto_vacuum=INCREMENTAL"
/* secure_delete, which Debian's SQLite is built with, writes every page of a deleted timeline. */
#define PRAGMAS                                                                         \
	"PRAGMA synchronous=NORMAL;PRAGMA temp_store=MEMORY;PRAGMA trusted_schema=OFF;" \
	"PRAGMA wal_autocheckpoint=4000;PRAGMA journal_size_limit=67108864;PRAGMA "     \
	"cache_size=-4096;PRAGMA secure_delete=OFF"

static bool has_wal(const char *path)
{
	char wal[PATH_MAX];
	struct stat st;

	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	return stat(wal, &st) == 0 && st.st_size > 0;
}

static int set_up(struct store_db *d, struct err *e)
{
	int64_t version = 0;
	int r, rc = SQLITE_OK;

	(void)sqlite3_busy_timeout(d->db, 5000);
	(void)sqlite3_extended_result_codes(d->db, 1);
	(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_wal(d->path), NULL);
	r = check_version(d->db, d->path, &version, e);
	if (r == 0) /* else what is in its WAL is not ours to move */
		(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	if (r == 0 && version == 0)
		r = store_exec(d->db, PRAGMAS_FIRST, e);
	if (r == 0)
		r = set_wal(d->db, d->path, e);
	if (r == 0)
		r = store_exec(d->db, PRAGMAS, e);
	if (r == 0)
		r = mend(d->db, version, e);
	if (r == 0)
		rc = store_prepare(d);
	if (rc != SQLITE_OK)
		r = store_fail(d->db, rc, e);
	if (r == -EIO && sqlite3_system_errno(d->db) == ENODEV)
		r = err_set(e, -EREMOTE,
			"the file system of %s does not map files, which SQLite's WAL needs",
			d->path);
	return r;
}

int store_meta_int(struct store_db *d, const char *key, int64_t *ret)
{
	sqlite3_stmt *q = d->q[SQL_META_GET];
	int r = -ENOENT;

	(void)sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
	if (sqlite3_step(q) == SQLITE_ROW && sqlite3_column_type(q, 0) == SQLITE_INTEGER) {
		*ret = sqlite3_column_int64(q, 0);
		r = 0;
	}
	(void)sqlite3_reset(q);
	return r;
}

/* SQL: protond_leave(). */
static void sql_leave(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct store_db *d = store_db_from(sqlite3_user_data(c));

	(void)n;
	(void)v;
	d->leave.due = d->leave.sweep = d->leave.give_back = true;
}

int store_db_open(const char *path, struct store_db *ret, struct err *e)
{
	struct store_db *d = ret;
	int rc, r = check_directory(path, e);

	*d = (struct store_db){.magic = STORE_DB_MAGIC, .owner = pthread_self(), .lock_fd = -1};
	if (r == 0)
		r = open_locked(path, &d->lock_fd, e);
	if (r == 0)
		r = check_header(d->lock_fd, path, e);
	if (r < 0)
		goto fail;
	d->path = strdup(path);
	if (d->path == NULL) {
		r = err_set(e, -ENOMEM, "out of memory");
		goto fail;
	}
	rc = sqlite3_open_v2(path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_function(d->db, "protond_leave", 0,
			SQLITE_UTF8 | SQLITE_DIRECTONLY, d, sql_leave, NULL, NULL);
	r = rc == SQLITE_OK ? set_up(d, e) : store_fail(d->db, rc, e);
	if (r == 0) {
		store_leave_open(d);
		return 0;
	}
fail:
	store_db_close(d);
	return r;
}

void store_db_close(struct store_db *d)
{
	int keep = 1;
	uint32_t i;

	MUST(d->wal == NULL);
	for (i = 0; i < SQL_MAX; i++)
		(void)sqlite3_finalize(d->q[i]);
	for (i = 0; i < TABLE_MAX; i++) {
		(void)sqlite3_finalize(d->put[i]);
		(void)sqlite3_finalize(d->load[i]);
	}
	summariser_fini(&d->summariser);
	if (d->db != NULL)
		(void)sqlite3_db_config(d->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, -1, &keep);
	if (keep == 0)
		(void)sqlite3_wal_checkpoint_v2(
			d->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	(void)sqlite3_close_v2(d->db);
	if (d->lock_fd >= 0)
		(void)close(d->lock_fd);
	store_sweep_stop(d);
	free(d->cache.slot);
	free(d->path);
	*d = (struct store_db){.lock_fd = -1};
}
