/* SPDX-License-Identifier: MIT. store_sinks.c: a second sink that is slow, fails or hangs holds
 * nobody up, its memory is bounded, and it says what it lost. A caller that breaks the contract of
 * the store ends at once. */
#include "store_help.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "sink.h"
#include "store_int.h"

/* A sink that takes a batch each time somebody lets it, and notes what it got. */
struct slow {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint32_t may, got, opened, closed; /* may: so many more put()s end; UINT32_MAX: all */
	uint64_t lost, last_journal;
	uint32_t entered; /* calls of put() that began */
	int r;            /* what put() says */
	int open_r;
};

#define SLOW                                                                           \
	{                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

static int slow_open(void *arg, struct err *e)
{
	struct slow *s = arg;
	int r;

	(void)pthread_mutex_lock(&s->lock);
	r = s->open_r;
	s->opened += r == 0;
	(void)pthread_mutex_unlock(&s->lock);
	return r == 0 ? 0 : err_set(e, r, "nobody listens");
}

static int slow_put(void *arg, const struct batch *b, uint64_t lost, struct err *e)
{
	struct slow *s = arg;
	int r;

	(void)pthread_mutex_lock(&s->lock);
	s->entered++;
	(void)pthread_cond_broadcast(&s->changed);
	while (s->may == 0)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	if (s->may != UINT32_MAX)
		s->may--;
	r = s->r;
	s->got += r == 0;
	s->lost += r == 0 ? lost : 0;
	s->last_journal = b->journal;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
	return r == 0 ? 0 : err_set(e, r, "the other end is full");
}

static void slow_close(void *arg)
{
	struct slow *s = arg;

	(void)pthread_mutex_lock(&s->lock);
	s->closed++;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

static void slow_let(struct slow *s, uint32_t may, int r)
{
	(void)pthread_mutex_lock(&s->lock);
	s->may = may;
	s->r = r;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

static void slow_wait(struct slow *s, const uint32_t *what, uint32_t n)
{
	(void)pthread_mutex_lock(&s->lock);
	while (*what < n)
		(void)pthread_cond_wait(&s->changed, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
}

static struct said {
	uint32_t calls;
	struct sink_state last;
} said;

static void on_say(void *arg, const struct sink_state *s)
{
	ck_assert_ptr_eq(arg, &said);
	said.calls++;
	said.last = *s;
}

static struct sinks *sinks_of(struct store *s, struct slow *slow, uint32_t batches, uint64_t bytes)
{
	const struct sink sink = {.name = "slow",
		.open = slow_open,
		.put = slow_put,
		.close = slow_close,
		.arg = slow,
		.max_batches = batches,
		.max_bytes = bytes};
	struct sinks *ret;
	struct err e;

	said = (struct said){0};
	ck_assert_int_eq(sinks_open(s, &sink, 1, on_say, &said, &ret, &e), 0);
	return ret;
}

/* One more batch, stored. */
static void put(struct sinks *s, uint64_t journal, uint32_t cells)
{
	struct batch b = {0};
	struct told t = {0};

	test_whole(&b, 1, 1, 1, cells + 1);
	b.journal = journal;
	sinks_put(s, &b, test_told, &t);
	ck_assert_uint_eq(b.cell.n, 0);
	while (t.calls == 0)
		(void)uv_run(&test_loop, UV_RUN_ONCE);
	ck_assert_msg(t.r == 0 && t.err.code == 0, "%s", t.err.text);
}

static struct sink_state state(struct sinks *s)
{
	struct sink_state st[4];

	ck_assert_uint_eq(sinks_state(s, st, 4), 2);
	ck_assert_str_eq(st[0].name, "sqlite");
	ck_assert(st[0].must_have && !st[1].must_have);
	ck_assert_str_eq(st[1].name, "slow");
	return st[1];
}

static double now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* It hangs: the store gets all, the queue stays bounded, the gap is said once. Then it goes on, and
 * is told how many never came. */
START_TEST(hangs)
{
	static struct slow slow = SLOW;
	struct store *s = test_open();
	struct sinks *sinks = sinks_of(s, &slow, 4, 0);
	struct sink_state st;
	struct batch got;
	uint64_t i;

	put(sinks, 1, 20);
	slow_wait(&slow, &slow.entered, 1); /* it hangs now; else it would go on once more */
	for (i = 2; i <= 50; i++) {
		put(sinks, i, 20);
		ck_assert_uint_le(state(sinks).queued, 4);
	}
	got = test_load(s);
	ck_assert_uint_eq(got.journal, 50);
	batch_free(&got);
	st = state(sinks);
	ck_assert_uint_eq(said.calls, 1);
	ck_assert_uint_eq(st.gaps, 1);
	ck_assert(st.in_gap);
	ck_assert_int_eq(st.last.code, -ENOBUFS);
	ck_assert(st.lost == 45 || st.lost == 46); /* 4 wait; one may be in put() */
	slow_let(&slow, UINT32_MAX, 0);
	slow_wait(&slow, &slow.got, 50 - (uint32_t)st.lost);
	put(sinks, 51, 20);
	slow_wait(&slow, &slow.got, 51 - (uint32_t)st.lost);
	ck_assert_uint_eq(slow.lost, st.lost);
	ck_assert_uint_eq(slow.last_journal, 51);
	ck_assert(!state(sinks).in_gap);
	ck_assert_uint_eq(said.calls, 1);
	ck_assert_uint_eq(sinks_close(sinks, 10000), 0);
	ck_assert_uint_eq(slow.opened, 1);
	ck_assert_uint_eq(slow.closed, 1);
	store_close(s);
}
END_TEST

START_TEST(bytes_are_bounded)
{
	static struct slow slow = SLOW;
	struct store *s = test_open();
	struct sinks *sinks = sinks_of(s, &slow, 1000, 1 << 20);
	uint64_t i;

	for (i = 1; i <= 60; i++) {
		put(sinks, i, 500);
		ck_assert_uint_le(state(sinks).queued_bytes, 1 << 20);
	}
	ck_assert_uint_gt(state(sinks).queued, 2);
	ck_assert_uint_gt(state(sinks).lost, 30);
	ck_assert_uint_eq(said.calls, 1);
	slow_let(&slow, UINT32_MAX, 0);
	ck_assert_uint_eq(sinks_close(sinks, 10000), 0);
	store_close(s);
}
END_TEST

/* What waits is counted, so nothing is in flight when it is looked at. */
static void settle_put(struct sinks *sinks, uint64_t n)
{
	struct timespec pause = {.tv_nsec = 1000000};

	while (state(sinks).put + state(sinks).lost < n)
		(void)nanosleep(&pause, NULL);
}

START_TEST(fails)
{
	static struct slow slow = SLOW;
	struct store *s = test_open();
	struct sinks *sinks = sinks_of(s, &slow, 4, 0);
	uint64_t i;

	slow.open_r = -ECONNREFUSED;
	slow_let(&slow, UINT32_MAX, -ENOSPC);
	for (i = 1; i <= 10; i++) {
		if (i == 6) {
			ck_assert_int_eq(state(sinks).last.code, -ECONNREFUSED);
			(void)pthread_mutex_lock(&slow.lock);
			slow.open_r = 0;
			(void)pthread_mutex_unlock(&slow.lock);
		}
		put(sinks, i, 5);
		settle_put(sinks, i);
	}
	ck_assert_uint_eq(state(sinks).lost, 10);
	ck_assert_uint_eq(state(sinks).gaps, 1);
	ck_assert_int_eq(state(sinks).last.code, -ENOSPC);
	ck_assert_str_eq(state(sinks).last.text, "the other end is full");
	ck_assert_uint_eq(said.calls, 1);
	slow_let(&slow, UINT32_MAX, 0);
	put(sinks, 11, 5);
	settle_put(sinks, 11);
	ck_assert_uint_eq(state(sinks).put, 1);
	ck_assert(!state(sinks).in_gap);
	ck_assert_uint_eq(slow.lost, 10);
	ck_assert_uint_eq(sinks_close(sinks, 10000), 0);
	store_close(s);
}
END_TEST

/* Closing waits for what is queued, so long and no longer. */
START_TEST(close_is_bounded)
{
	static struct slow slow = SLOW;
	struct store *s = test_open();
	struct sinks *sinks = sinks_of(s, &slow, 8, 0);
	double begin;
	uint64_t i;

	for (i = 1; i <= 6; i++)
		put(sinks, i, 5);
	begin = now_s();
	ck_assert_uint_eq(sinks_close(sinks, 200), 1);
	ck_assert(now_s() - begin >= 0.15 && now_s() - begin < 5);
	store_close(s);
	slow_let(&slow, UINT32_MAX, 0); /* the one that was left behind ends by itself */
	slow_wait(&slow, &slow.closed, 1);
	ck_assert_uint_le(slow.got, 1);
}
END_TEST

static double commits_s(struct slow *slow, uint32_t n)
{
	struct store *s = test_open();
	struct sinks *sinks;
	struct err e;
	double begin;
	uint64_t i;

	if (slow != NULL)
		sinks = sinks_of(s, slow, 4, 0);
	else
		ck_assert_int_eq(sinks_open(s, NULL, 0, NULL, NULL, &sinks, &e), 0);
	put(sinks, 1, 2000);
	begin = now_s();
	for (i = 2; i < n; i++)
		put(sinks, i, 2000);
	begin = now_s() - begin;
	if (slow != NULL) { /* all are stored, and it has not come back from its first */
		ck_assert_uint_eq(slow->got, 0);
		slow_let(slow, UINT32_MAX, 0);
	}
	(void)sinks_close(sinks, 10000);
	store_close(s);
	(void)uv_run(&test_loop, UV_RUN_DEFAULT);
	return begin;
}

START_TEST(full_speed)
{
	static struct slow slow[3] = {SLOW, SLOW, SLOW};
	double without = 1e9, with = 1e9, t;
	int i;

	for (i = 0; i < 3; i++) { /* the best of each, in turns: others use this machine */
		t = commits_s(NULL, 60);
		without = t < without ? t : without;
		t = commits_s(&slow[i], 60);
		with = t < with ? t : with;
	}
	(void)printf(
		"store_sinks: 58 commits of 2 000 cells: %.1f ms, beside a sink that hangs %.1f "
		"ms\n",
		without * 1e3, with * 1e3);
}
END_TEST

/* --- the contract: each of these ends the program (SIGABRT) --- */

/* A broken caller cleans up nothing: the directory is its parent's. */
static void broken_dir(void)
{
	const struct rlimit none = {0, 0};

	(void)setrlimit(RLIMIT_CORE, &none);
	test_make_dir();
}

static void broken_dir_end(void)
{
	test_remove(test_dir);
}

static void broken_loop(void)
{
	ck_assert_int_eq(uv_loop_init(&test_loop), 0);
}

static struct store *theirs;

static void *submit_there(void *arg)
{
	store_submit(theirs, arg, NULL, NULL);
	return NULL;
}

START_TEST(other_thread)
{
	struct batch b = {0};
	pthread_t t;

	theirs = test_open();
	(void)pthread_create(&t, NULL, submit_there, &b);
	(void)pthread_join(t, NULL);
}
END_TEST

static void submit_again(void *arg, int r, const struct err *e)
{
	struct batch b = {0};

	(void)r;
	(void)e;
	store_submit(arg, &b, NULL, NULL);
}

START_TEST(after_close)
{
	struct store *s = test_open();
	struct batch b = {0};

	test_whole(&b, 1, 1, 1, 3);
	store_submit(s, &b, submit_again, s);
	store_close(s);
}
END_TEST

START_TEST(not_a_store)
{
	static uint64_t junk[512];
	struct batch b = {0};

	store_submit((struct store *)junk, &b, NULL, NULL);
}
END_TEST

START_TEST(written_after_hand_over)
{
	struct batch b = {0};
	const struct batch *shared;

	test_whole(&b, 1, 1, 1, 3);
	shared = batch_share(&b);
	(void)batch_cell((struct batch *)(uintptr_t)shared);
}
END_TEST

START_TEST(freed_by_a_reader)
{
	struct batch b = {0};
	const struct batch *shared;

	test_whole(&b, 1, 1, 1, 3);
	shared = batch_share(&b);
	batch_free((struct batch *)(uintptr_t)shared);
}
END_TEST

static int keep_db(struct sqlite3 *db, void *arg, struct err *e)
{
	(void)e;
	*(struct sqlite3 **)arg = db;
	return 0;
}

/* The worker's own, from the loop's thread: what deletes nodes makes it forget them. */
START_TEST(database_of_the_worker)
{
	struct store *s = test_open();
	struct sqlite3 *db = NULL;

	(void)test_call(s, keep_db, &db);
	(void)sqlite3_exec(db, "SELECT protond_leave()", NULL, NULL, NULL);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("store_sinks");
	TCase *c = tcase_create("sinks"), *broken = tcase_create("contract");

	tcase_add_checked_fixture(c, test_setup, test_teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, hangs);
	tcase_add_test(c, bytes_are_bounded);
	tcase_add_test(c, fails);
	tcase_add_test(c, close_is_bounded);
	tcase_add_test(c, full_speed);
	tcase_add_unchecked_fixture(broken, broken_dir, broken_dir_end);
	tcase_add_checked_fixture(broken, broken_loop, NULL);
	tcase_add_test_raise_signal(broken, other_thread, SIGABRT);
	tcase_add_test_raise_signal(broken, after_close, SIGABRT);
	tcase_add_test_raise_signal(broken, not_a_store, SIGABRT);
	tcase_add_test_raise_signal(broken, written_after_hand_over, SIGABRT);
	tcase_add_test_raise_signal(broken, freed_by_a_reader, SIGABRT);
	tcase_add_test_raise_signal(broken, database_of_the_worker, SIGABRT);
	suite_add_tcase(s, c);
	suite_add_tcase(s, broken);
	return s;
}
