/* SPDX-License-Identifier: MIT. source.c: where a profile comes from: files, databases, a daemon.
 */
#include "source.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "human.h"
#include "input.h"
#include "paths.h"
#include "pick.h"
#include "rpc.h"
#include "sessions.h"

#define FILE_MAX   ((size_t)1 << 30)
#define PATH_BYTES 4096
#define MAGIC      "SQLite format 3"
#define NEXT       "name a file or a session, or give what comes out of it as standard input, `-`"

/* --- files */

static int read_all(int fd, const char *what, char **ret, size_t *ret_bytes, struct err *e)
{
	size_t n = 0, cap = (size_t)1 << 16;
	char *buf = NULL, *more;
	struct stat st;
	ssize_t some;

	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		if ((size_t)st.st_size > FILE_MAX)
			return err_set(e, -EFBIG,
				"%s is over 1 GiB; open the session itself instead (`protonview "
				"sessions` lists them)",
				what);
		cap = (size_t)st.st_size + 1;
	}
	for (;;) {
		if (buf == NULL || n == cap) {
			cap = buf == NULL ? cap : cap * 2;
			more = n > FILE_MAX ? NULL : realloc(buf, cap);
			if (more == NULL) {
				free(buf);
				return n > FILE_MAX ? err_set(e, -EFBIG,
							      "%s is over 1 GiB; open the session "
							      "itself instead (`protonview "
							      "sessions` lists them)",
							      what)
						    : err_set(e, -ENOMEM, "out of memory");
			}
			buf = more;
		}
		some = read(fd, buf + n, cap - n);
		if (some == 0)
			break;
		if (some < 0 && errno != EINTR) {
			free(buf);
			return err_set(e, -errno, "%s: %s", what, strerror(errno));
		}
		n += some > 0 ? (size_t)some : 0;
	}
	*ret = buf;
	*ret_bytes = n;
	return 0;
}

static bool is_database(const char *bytes, size_t n)
{
	return n >= sizeof(MAGIC) && memcmp(bytes, MAGIC, sizeof(MAGIC)) == 0;
}

static int say_row(void *said, const struct pick_row *row)
{
	session_say(said, row);
	return 0;
}

/* A session of an open database, which is closed here: the one that `ref` says; NULL: the only one.
 * said: as the user said it. */
static int load(sqlite3 *db, const char *ref, const char *said, const struct source_options *o,
	struct source *ret, struct err *e)
{
	char words[160];
	int64_t id = 0;
	int r;

	snprintf(words, sizeof(words), "%s", said);
	r = ref == NULL ? pick_only(db, &id, e) : pick_session(db, ref, &id, e);
	if (r == 0)
		r = pick_one(db, id, say_row, words, e);
	if (r == 0 && o->prepare != NULL)
		r = o->prepare(o->prepare_arg, db, id, e);
	if (r == 0) {
		r = o->timeline != NULL ? o->timeline(o->arg, db, id, &o->select, &ret->left, e)
					: profile_load(db, id, &o->select, &ret->p, e);
		r = pick_refused(db, r, e);
	}
	if (r == 0 && o->keep)
		ret->db = db;
	else
		(void)sqlite3_close(db);
	return r;
}

/* What it may be in place of ours, and who reads that. */
static const char *looks_like(const char *bytes, size_t n)
{
	size_t i;

	if (n > 2 && memcmp(bytes, "\x1f\x8b", 2) == 0)
		return "; it is gzipped: `gunzip` it, or, a trace of another profiler, "
		       "`protonview import FILE`";
	for (i = 0; i < n && strchr(" \t\r\n", bytes[i]) != NULL; i++)
		;
	if (i < n && (bytes[i] == '{' || bytes[i] == '['))
		return "; `protonview import FILE` reads traces of other profilers";
	return "";
}

static int load_bytes(const char *what, const char *bytes, size_t n, const struct source_options *o,
	struct source *ret, struct err *e)
{
	struct err why = {0};
	sqlite3 *db;
	int r;

	if (is_database(bytes, n)) {
		r = pick_open_image(bytes, n, &db, e);
		return r < 0 ? r : load(db, NULL, "", o, ret, e);
	}
	if (n == 0)
		return err_set(e, -EBADMSG,
			"%s is empty: what wrote it did not finish; write it again", what);
	if (o->timeline != NULL)
		return err_set(e, -ENODATA, "%s is not a protond database, so it has no timeline%s",
			what, looks_like(bytes, n));
	r = export_read(bytes, n, &ret->p, &why);
	if (r < 0)
		return err_set(e, r, "%s: %s%s", what, why.text, looks_like(bytes, n));
	if (o->select.process == NULL && !o->select.one_phase)
		return 0;
	profile_free(ret->p);
	ret->p = NULL;
	return err_set(e, -EINVAL,
		"%s is a .hatchet file, in which processes and phases are merged; --process and "
		"--phase need a session (`protonview export` takes them)",
		what);
}

static int open_file(
	const char *path, const struct source_options *o, struct source *ret, struct err *e)
{
	bool is_stdin = strcmp(path, "-") == 0;
	char head[sizeof(MAGIC)], *bytes;
	int fd = is_stdin ? STDIN_FILENO : input_open(path, NEXT, e), r;
	sqlite3 *db;
	size_t n;

	if (fd < 0)
		return fd;
	if (!is_stdin && pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
		is_database(head, sizeof(head))) {
		(void)close(fd);
		r = pick_open(path, &db, &ret->partial, e);
		return r < 0 ? r : load(db, NULL, "", o, ret, e);
	}
	r = read_all(fd, is_stdin ? "standard input" : path, &bytes, &n, e);
	if (!is_stdin)
		(void)close(fd);
	if (r < 0)
		return r;
	r = load_bytes(is_stdin ? "standard input" : path, bytes, n, o, ret, e);
	free(bytes);
	return r;
}

/* --- databases */

/* One file, also under two names. */
static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	if (strcmp(a, b) == 0)
		return true;
	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* $PROTOND_DB; else the first of the usual places that has a database, a private daemon's or the
 * service's, else the first of them. Anybody can put a file in the second: it must be ours. */
void source_usual_db(char *buf, size_t n)
{
	struct stat st;
	uint32_t i;

	for (i = 0; paths_db(i, buf, n) == 0; i++) {
		if (stat(buf, &st) == 0 && S_ISREG(st.st_mode) && access(buf, R_OK) == 0 &&
			(i != 1 || st.st_uid == geteuid()))
			return;
	}
	if (paths_db(0, buf, n) < 0)
		*buf = '\0';
}

/* Whether the user said which database: that wins over a running daemon's. */
static bool is_named(void)
{
	const char *set = getenv("PROTOND_DB");

	return set != NULL && *set != '\0';
}

bool source_is_elsewhere(const char *daemons)
{
	char named[PATH_BYTES];

	return is_named() && paths_db(0, named, sizeof(named)) == 0 &&
	       !is_same_file(named, daemons);
}

void source_say_unusual(const char *path)
{
	static _Atomic bool said; /* a page asks on two threads */
	char usual[PATH_BYTES];
	uint32_t i;

	for (i = 0; paths_db(i, usual, sizeof(usual)) == 0; i++)
		if (is_same_file(path, usual))
			return;
	if (!said)
		text_say("sessions are read from %s, the running protond's database", path);
	said = true;
}

/* What is read in place of the daemon's database, or of the first place where there is no daemon. */
static void say_other(const char *read, const char *daemons)
{
	static _Atomic bool said; /* a page asks on two threads */
	char first[PATH_BYTES];

	if (*daemons == '\0' ? paths_db(0, first, sizeof(first)) < 0 || strcmp(read, first) == 0
			     : is_same_file(read, daemons))
		return;
	if (!said && *daemons == '\0')
		text_say("%s is read; there is no database at %s", read, first);
	else if (!said && is_named())
		text_say("PROTOND_DB is read, %s; the running protond's database is %s", read,
			daemons);
	else if (!said)
		text_say("%s is read, not the running protond's database %s", read, daemons);
	said = true;
}

static int open_default(sqlite3 **ret, bool *ret_partial, struct err *e)
{
	char path[PATH_BYTES];

	source_usual_db(path, sizeof(path));
	if (*path == '\0')
		return err_set(e, -ENAMETOOLONG,
			"the database's name is too long: set PROTOND_DB to a shorter one");
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return err_set(e, -ENOENT,
			"nothing has been recorded yet: there is no database at %s; `protonctl run "
			"-- CMD` records a run",
			path);
	return pick_open(path, ret, ret_partial, e);
}

/* What the daemon gave: its database, or one session as a file. */
static int load_synced(const char *path, int memfd, int64_t id, const char *said,
	const struct source_options *o, struct source *ret, struct err *e)
{
	char ref[24], *bytes;
	sqlite3 *db;
	size_t n;
	int r;

	if (memfd < 0) {
		r = pick_open(path, &db, &ret->partial, e);
		if (r < 0)
			return r;
		snprintf(ref, sizeof(ref), "%lld", (long long)id);
		return load(db, ref, said, o, ret, e);
	}
	(void)lseek(memfd, 0, SEEK_SET);
	r = read_all(memfd, "the daemon's answer", &bytes, &n, e);
	(void)close(memfd);
	if (r < 0)
		return r;
	r = pick_open_image(bytes, n, &db, e);
	free(bytes);
	return r < 0 ? r : load(db, NULL, said, o, ret, e);
}

/* p is NULL for a timeline, which says itself how far it reaches. */
static bool is_live(const struct profile *p)
{
	return p != NULL && !profile_is_over(&p->head);
}

/* The daemon first, so that a running session is up to date; the database alone when there is none,
 * or when it knows no such session. */
static int open_session(
	const char *ref, const struct source_options *o, struct source *ret, struct err *e)
{
	char path[PATH_BYTES] = "", usual[PATH_BYTES];
	struct err daemon = {0};
	int64_t id = 0;
	int memfd = -1, synced, r;
	sqlite3 *db;

	synced = rpc_sync(ref, o->timeline != NULL, path, sizeof(path), &memfd, &id, &daemon);
	source_usual_db(usual, sizeof(usual));
	if (synced == 0 && !source_is_elsewhere(path)) {
		if (memfd < 0)
			source_say_unusual(path);
		r = load_synced(path, memfd, id, ref, o, ret, e);
		if (r != -EACCES && r != -ENOENT)
			return r;
	} else if (memfd >= 0) {
		(void)close(memfd); /* of a database that PROTOND_DB does not name */
	}
	r = open_default(&db, &ret->partial, e);
	if (r < 0 && synced == -ENOENT)
		return err_set(e, synced, "%s", daemon.text); /* it is the daemon that knows */
	if (r == 0)
		r = load(db, ref, ref, o, ret, e);
	if (r == 0)
		say_other(usual, path);
	if (r < 0 && (synced == -EINVAL || synced == -ENOTUNIQ))
		return err_set(e, -EINVAL, "%s", daemon.text); /* it is the word that is wrong */
	if (r < 0 && synced < 0 && synced != -ENOTCONN && synced != -ENOENT)
		return err_set(e, -ENOTCONN, "%s", daemon.text);
	if (synced == -ETIMEDOUT || (synced == -ENOTCONN && r == 0 && is_live(ret->p)))
		ret->away = daemon;
	return r;
}

bool source_is_file(const char *ref)
{
	return strcmp(ref, "-") == 0 || (*ref != '@' && access(ref, F_OK) == 0);
}

int source_open(const char *ref, const struct source_options *o, struct source *ret, struct err *e)
{
	struct err other;
	sqlite3 *db;
	int r;

	*ret = (struct source){0};
	if (o->db != NULL) {
		r = pick_open(o->db, &db, &ret->partial, e);
		return r < 0 ? r : load(db, ref, ref, o, ret, e);
	}
	if (!o->session && source_is_file(ref)) {
		r = open_file(ref, o, ret, e);
		/* The file is a program that a session is named after. */
		return r != -EBADMSG || strchr(ref, '/') != NULL ||
				       open_session(ref, o, ret, &other) < 0
			       ? r
			       : 0;
	}
	if (*ref != '@' && (strchr(ref, '/') != NULL || strstr(ref, ".hatchet") != NULL))
		return err_set(e, -ENOENT, "%s: no such file", ref);
	return open_session(ref, o, ret, e);
}

int source_open_db(const char *db, struct sqlite3 **ret, struct source *ret_how, struct err *e)
{
	char path[PATH_BYTES], usual[PATH_BYTES];
	struct err daemon = {0};
	int64_t id;
	int memfd = -1, r;

	*ret_how = (struct source){0};
	if (db != NULL)
		return pick_open(db, ret, &ret_how->partial, e);
	r = rpc_sync(NULL, false, path, sizeof(path), &memfd, &id, &daemon);
	if (r == -ETIMEDOUT)
		ret_how->away = daemon;
	if (memfd >= 0)
		(void)close(memfd); /* one session, where all are wanted */
	else if (r == 0 && !is_named()) {
		source_say_unusual(path);
		return pick_open(path, ret, &ret_how->partial, e);
	}
	source_usual_db(usual, sizeof(usual));
	r = open_default(ret, &ret_how->partial, e);
	if (r == 0)
		say_other(usual, path);
	return r;
}
