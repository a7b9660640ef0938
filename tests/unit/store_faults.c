/* SPDX-License-Identifier: MIT. store_faults.c: files that are not ours, newer, damaged, in use, on
 * the wrong file system; no space; a daemon killed at any instant. */
#include "store_help.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <sqlite3.h>

#include "schema.h"
#include "store_int.h"

static struct err refused(int want)
{
	struct store *s = NULL;
	struct err e = {0};
	int r = store_open(test_db, &test_loop, &s, &e);

	ck_assert_msg(r == want, "got %d (%s), want %d", r, e.text, want);
	ck_assert_int_eq(e.code, want);
	ck_assert_ptr_null(s);
	return e;
}

static void raw(const char *sql)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(test_db, &db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *text, size_t n)
{
	FILE *f = fopen(test_db, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(text, 1, n, f), n);
	(void)fclose(f);
}

START_TEST(newer)
{
	struct err e;

	store_close(test_open());
	raw("PRAGMA user_version=99");
	e = refused(-EPROTO);
	ck_assert_ptr_nonnull(strstr(e.text, "newer protond"));
	ck_assert_ptr_nonnull(strstr(e.text, test_db));
	ck_assert_ptr_nonnull(strstr(e.text, "mv "));
	raw("PRAGMA user_version=2"); /* it was left as it was */
	store_close(test_open());
}
END_TEST

START_TEST(not_ours)
{
	char big[4096];
	struct stat st;

	memset(big, 'x', sizeof(big));
	write_file("hello\n", 6);
	(void)refused(-EBADF);
	write_file(big, sizeof(big));
	(void)refused(-EBADF);
	ck_assert_int_eq(stat(test_db, &st), 0);
	ck_assert_int_eq(st.st_size, sizeof(big));
	(void)unlink(test_db);
	raw("CREATE TABLE theirs(x)");
	ck_assert_ptr_nonnull(strstr(refused(-EBADF).text, "another program"));
	(void)unlink(test_db);
	raw("PRAGMA application_id=1234; CREATE TABLE theirs(x)");
	(void)refused(-EBADF);
	(void)unlink(test_db);
	raw("PRAGMA user_version=2");
	(void)refused(-EBADF);
	(void)unlink(test_db);
	ck_assert_int_eq(mkdir(test_db, 0700), 0);
	(void)refused(-EISDIR);
	ck_assert_int_eq(rmdir(test_db), 0);
	ck_assert_int_eq(mkfifo(test_db, 0600), 0);
	(void)refused(-EBADF);
}
END_TEST

START_TEST(no_directory)
{
	struct err e;
	char keep[sizeof(test_db)];

	memcpy(keep, test_db, sizeof(keep));
	(void)snprintf(test_db, sizeof(test_db), "%s/no/such.db", test_dir);
	e = refused(-ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "mkdir -p"));
	memcpy(test_db, keep, sizeof(keep));
}
END_TEST

/* A database begun and not finished is made anew: nothing was in it. */
START_TEST(empty_file)
{
	write_file("", 0);
	store_close(test_open());
}
END_TEST

START_TEST(two_stores)
{
	struct store *s = test_open();
	struct err e = refused(-EBUSY);
	struct batch b = {0};

	ck_assert_ptr_nonnull(strstr(e.text, "another protond"));
	test_whole(&b, 1, 1, 1, 3); /* the first one does not mind */
	test_store(s, &b);
	store_close(s);
	store_close(test_open());
}
END_TEST

/* A reader in the middle of a statement, and a viewer that opens and closes, hold nobody up. */
START_TEST(readers)
{
	struct store *s = test_open();
	struct batch b = {0};
	sqlite3 *db;
	sqlite3_stmt *q;

	test_whole(&b, 1, 1, 1, 100);
	test_store(s, &b);
	ck_assert_int_eq(sqlite3_open_v2(test_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT * FROM cell", -1, &q, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	raw("SELECT count(*) FROM cell");
	test_whole(&b, 1, 1, 50, 200);
	test_store(s, &b);
	(void)sqlite3_finalize(q);
	(void)sqlite3_close(db);
	store_close(s);
}
END_TEST

START_TEST(network_file_systems)
{
	ck_assert(schema_fs_is_remote(0x6969));
	ck_assert(schema_fs_is_remote(0x65735546));
	ck_assert(schema_fs_is_remote((long)0xff534d42));
	ck_assert(schema_fs_is_remote((int)0xff534d42)); /* as a 32-bit field may give it */
	ck_assert(schema_fs_is_remote(0x0bd00bd0));
	ck_assert(schema_fs_is_remote(0x47504653));
	ck_assert(!schema_fs_is_remote(0x01021994)); /* tmpfs */
	ck_assert(!schema_fs_is_remote(0xef53));     /* ext */
	ck_assert(!schema_fs_is_remote(0x58465342)); /* xfs */
	ck_assert(!schema_fs_is_remote(0x9123683e)); /* btrfs */
	ck_assert(!schema_fs_is_remote(0x794c7630)); /* overlay */
}
END_TEST

/* Any page damaged: words with the remedy from whoever meets it first, and an orderly end. */
START_TEST(damaged_pages)
{
	struct batch b = {0}, got;
	struct store *s;
	struct err e;
	struct told t;
	struct stat st;
	char junk[4096], page[4096];
	uint32_t found = 0;
	int fd, r;
	off_t at;

	s = test_open();
	test_whole(&b, 1, 1, 1, 400);
	test_store(s, &b);
	store_close(s);
	fd = open(test_db, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(fstat(fd, &st), 0);
	memset(junk, 0xd5, sizeof(junk));
	for (at = 0; at < st.st_size; at += (off_t)sizeof(page)) {
		ck_assert_int_eq(pread(fd, page, sizeof(page), at), sizeof(page));
		ck_assert_int_eq(
			pwrite(fd, junk, sizeof(junk) - 100, at + 100), sizeof(junk) - 100);
		e = (struct err){0};
		s = NULL;
		got = (struct batch){0};
		r = store_open(test_db, &test_loop, &s, &e);
		if (r == 0)
			r = store_load(s, &got, &e);
		batch_free(&got);
		if (r == 0) {
			test_whole(&b, 2, 1, 300, 600);
			t = test_submit(s, &b);
			r = t.r;
			e = t.err;
		}
		if (r < 0 && r != -EBADMSG) {
			found++;
			ck_assert_msg(r == -EUCLEAN, "page at %ld: %d %s", (long)at, r, e.text);
			ck_assert_ptr_nonnull(strstr(e.text, "mv "));
			ck_assert_ptr_nonnull(strstr(e.text, test_db));
		}
		store_close(s);
		(void)uv_run(&test_loop, UV_RUN_DEFAULT);
		ck_assert_int_eq(pwrite(fd, page, sizeof(page), at), sizeof(page));
		ck_assert_int_eq(ftruncate(fd, st.st_size), 0);
	}
	ck_assert_uint_gt(found, 3);
	(void)close(fd);
}
END_TEST

START_TEST(damaged_header)
{
	int fd;

	store_close(test_open());
	fd = open(test_db, O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, "garbage", 7, 0), 7);
	(void)close(fd);
	ck_assert_ptr_nonnull(strstr(refused(-EUCLEAN).text, "mv "));
}
END_TEST

static void limit_files(rlim_t bytes)
{
	struct rlimit l;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &l), 0);
	l.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static int nothing(struct sqlite3 *db, void *arg, struct err *e)
{
	(void)db;
	(void)e;
	++*(int *)arg;
	return 0;
}

/* Two ways to a full disk: a file size limit, which anybody can set, and a small tmpfs in a mount
 * namespace of this test's own, which needs a privilege. */
static bool full_tmpfs;

static void make_full(void)
{
	char path[120];
	char junk[4096] = {0};
	int fd;

	if (!full_tmpfs) {
		limit_files(700000); /* Check's own files stay below */
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/filler", test_dir);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	while (write(fd, junk, sizeof(junk)) > 0)
		;
	(void)close(fd);
}

static void make_room(void)
{
	char path[120];

	(void)snprintf(path, sizeof(path), "%s/filler", test_dir);
	(void)unlink(path);
	limit_files(RLIM_INFINITY);
}

static void fill_up(struct store *s, int64_t *id)
{
	struct batch b = {0};
	struct told t = {0};
	uint32_t failed = 0;

	make_full();
	for (*id = 1; *id <= 40 && failed < 5; ++*id) {
		test_whole(&b, *id, 1, (uint32_t)*id * 1000, (uint32_t)*id * 1000 + 500);
		b.journal = (uint64_t)*id;
		t = test_submit(s, &b);
		failed += t.r < 0;
		ck_assert_msg(t.r == 0 || t.r == -ENOSPC, "%d %s", t.r, t.err.text);
	}
	ck_assert_uint_eq(failed, 5);
	ck_assert_ptr_nonnull(strstr(t.err.text, "no space"));
	ck_assert_uint_ge(store_queued(s), 1);
}

/* Batches are kept, calls still run, and when there is room again all is there, in order. */
static void no_space_in(void)
{
	struct store *s = test_open();
	struct batch got;
	int64_t id;
	int calls = 0;

	fill_up(s, &id);
	ck_assert_int_eq(test_call(s, nothing, &calls).r, 0);
	ck_assert_int_eq(calls, 1);
	got = test_load(s);
	ck_assert_uint_lt(got.journal, (uint64_t)id - 1); /* what failed is not half there */
	ck_assert_uint_eq(got.session.n, got.journal);
	ck_assert_uint_eq(got.cell.n, 500 * got.session.n);
	batch_free(&got);

	make_room();
	(void)test_call(s, nothing, &calls); /* what is kept goes first */
	ck_assert_uint_eq(store_queued(s), 0);
	got = test_load(s);
	ck_assert_uint_eq(got.journal, (uint64_t)id - 1);
	ck_assert_int_eq(got.session.n, id - 1);
	ck_assert_int_eq(got.cell.n, 500 * (id - 1));
	ck_assert_int_eq(got.node.n, 1 + 500 * (id - 1)); /* none of a transaction rolled back */
	batch_free(&got);
	store_close(s);
}

START_TEST(no_space)
{
	no_space_in();
}
END_TEST

START_TEST(no_space_tmpfs)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", test_dir, "tmpfs", 0, "size=1m,mode=700") < 0) {
		(void)printf(
			"store_faults: no privilege for a tmpfs of 1 MiB: file size limit only\n");
		return;
	}
	full_tmpfs = true;
	no_space_in();
	(void)umount2(test_dir, MNT_DETACH);
}
END_TEST

/* Closed while there is no space: an orderly end; the journal has what the store has not. */
START_TEST(closed_without_space)
{
	struct store *s = test_open();
	struct batch b = {0}, got;

	limit_files(700000);
	test_whole(&b, 1, 1, 1, 20000);
	b.journal = 9;
	ck_assert_int_eq(test_submit(s, &b).r, -ENOSPC);
	store_close(s);
	limit_files(RLIM_INFINITY);
	s = test_open();
	got = test_load(s);
	ck_assert_uint_eq(got.journal + got.session.n + got.cell.n + got.node.n, 0);
	batch_free(&got);
	store_close(s);
}
END_TEST

#define KILL_CELLS 300u

static void killed_writer(uint32_t seed, _Atomic uint64_t *stored)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
	struct itimerspec when = {0};
	struct batch b = {0};
	struct store *s;
	struct err e;
	struct told t;
	uint64_t k;
	timer_t timer;
	uv_loop_t loop;
	uint32_t i;

	if (uv_loop_init(&loop) < 0 || timer_create(CLOCK_MONOTONIC, &ev, &timer) < 0)
		_exit(2);
	when.it_value.tv_nsec = 200000 + (long)(seed * 2654435761u % 60000000u);
	if (seed != 0) /* 0: the parent ends it */
		(void)timer_settime(timer, 0, &when, NULL);
	if (store_open(test_db, &loop, &s, &e) < 0)
		_exit(3);
	for (k = *stored + 1;; k++) {
		test_whole(&b, 1, 1, 1, KILL_CELLS);
		for (i = 0; i < b.cell.n; i++)
			b.cell.row[i].count = k;
		b.journal = k;
		t = (struct told){0};
		store_submit(s, &b, test_told, &t);
		while (t.calls == 0)
			(void)uv_run(&loop, UV_RUN_ONCE);
		if (t.r < 0)
			_exit(4);
		*stored = k;
	}
}

static bool has_ended(pid_t pid)
{
	siginfo_t who = {0};

	return waitid(P_PID, (id_t)pid, &who, WEXITED | WNOHANG | WNOWAIT) < 0 || who.si_pid != 0;
}

/* The rows and the position are of one transaction, whatever the instant. */
START_TEST(killed)
{
	_Atomic uint64_t *stored = mmap(
		NULL, sizeof(*stored), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct batch got;
	struct store *s;
	uint32_t round, i;
	int status;
	pid_t pid;

	ck_assert_ptr_ne(stored, MAP_FAILED);
	for (round = 0; round < 40; round++) {
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			killed_writer(round, stored);
		if (round == 0) { /* the others may all die before their first, on a busy machine */
			while (*stored < 6 && !has_ended(pid))
				(void)sched_yield();
			(void)kill(pid, SIGKILL);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%d", status);
		s = test_open();
		got = test_load(s);
		ck_assert_uint_ge(got.journal, *stored);
		ck_assert_uint_le(got.journal, *stored + 1);
		ck_assert_uint_eq(got.cell.n, got.journal == 0 ? 0 : KILL_CELLS - 1);
		for (i = 0; i < got.cell.n; i++)
			ck_assert_uint_eq(got.cell.row[i].count, got.journal);
		*stored = got.journal;
		batch_free(&got);
		store_close(s);
		(void)uv_run(&test_loop, UV_RUN_DEFAULT);
	}
	(void)printf("store_faults: 40 kills, %d transactions\n", (int)*stored);
	ck_assert_uint_gt(*stored, 5);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("store_faults");
	TCase *c = tcase_create("faults");

	tcase_add_checked_fixture(c, test_setup, test_teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, newer);
	tcase_add_test(c, not_ours);
	tcase_add_test(c, no_directory);
	tcase_add_test(c, empty_file);
	tcase_add_test(c, two_stores);
	tcase_add_test(c, readers);
	tcase_add_test(c, network_file_systems);
	tcase_add_test(c, damaged_pages);
	tcase_add_test(c, damaged_header);
	tcase_add_test(c, no_space);
	tcase_add_test(c, no_space_tmpfs);
	tcase_add_test(c, closed_without_space);
	tcase_add_test(c, killed);
	suite_add_tcase(s, c);
	return s;
}
