/* SPDX-License-Identifier: MIT. daemon_drain_turns.c: how much is taken at once, what comes ahead, and who waits until all is
 * taken. */
#include "drain_world.h"

/* --- budget --- */

/* Twenty full lanes are more than one tick may take, in a window that is finished in later ticks; a
 * START at the very end of the last lane still comes before what the others recorded. */
START_TEST(test_budget)
{
	uint64_t total = 0, got = 0;
	uint32_t lane, ticks = 0, i;
	bool more = true, first = true;
	int64_t n;

	for (lane = 0; lane < FAKE_LANES; lane++) {
		while (fake_lane(&f, lane)->tail + 24 + 64 <= f.h.lane_bytes)
			fake_scope(&f, lane, 2, 1, 2);
		if (lane == FAKE_LANES - 1)
			fake_session(&f, lane, SESSION_START, 0, 2, 50);
		total += fake_lane(&f, lane)->tail;
	}
	while (more) {
		memset(p.drain.arena, 0xff, DRAIN_BYTES); /* what other rings left there */
		n = drain(&more);
		ck_assert_int_ge(n, 0);
		ck_assert_int_le(n, DRAIN_BYTES + READER_PIECE);
		got += (uint64_t)n;
		ticks++;
		for (i = 0; i < n_seen && first; i++) {
			if (seen[i].type != J_LANE)
				continue;
			ck_assert_uint_eq(seen[i].lane, FAKE_LANES - 1);
			first = seen[i].sessions == 0;
		}
		ck_assert_uint_lt(ticks, 1000);
	}
	ck_assert_uint_eq(got, total);
	ck_assert(!first);
	ck_assert_uint_gt(ticks, 5);
}
END_TEST

/* At the end all that is there comes, in as many pieces, while there is time. */
START_TEST(test_whole)
{
	const struct seen *s[4];
	uint32_t lane;

	for (lane = 0; lane < FAKE_LANES; lane++) {
		while (fake_lane(&f, lane)->tail + 24 <= f.h.lane_bytes)
			fake_scope(&f, lane, 2, 1, 2);
	}
	p.drain.behind = true;
	ck_assert_uint_eq(drained_whole(&p, mono_ns()), 1);
	ck_assert_uint_eq(ring->whole_ns, 0);
	ck_assert_uint_eq(drained_whole(&p, UINT64_MAX), 0);
	for (lane = 0; lane < FAKE_LANES; lane++)
		ck_assert_uint_eq(ring->reader.lane[lane].head, fake_lane(&f, lane)->tail);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
}
END_TEST

/* A graph whose records came first is counted a piece at a time: it goes on though nothing comes,
 * and ends. */
START_TEST(test_joining)
{
	const struct rec_launch launch = {
		.hdr = REC_HDR(sizeof(launch), REC_LAUNCH, 0, LAUNCH_GRAPH, 2), .correlation = 7};
	const struct rec_kernel kernel = {
		.hdr = REC_HDR(sizeof(kernel), REC_KERNEL, 0, GPU_FLAG_GRAPH, 0),
		.start = 1,
		.end = 2,
		.correlation = 7};
	const struct seen *s[8];
	uint32_t i;
	bool more;

	for (i = 0; i < 20000; i++) {
		fake_put(&f, 1, &kernel, sizeof(kernel));
		if (i % 1000 == 999)
			ck_assert_int_gt(drain(&more), 0);
	}
	fake_put(&f, 0, &launch, sizeof(launch));
	ck_assert_int_gt(drain(&more), 0);
	ck_assert(fold_is_joining(p.d.fold, f.h.uuid));
	for (i = 0; fold_is_joining(p.d.fold, f.h.uuid); i++) {
		ck_assert_uint_lt(i, 10);
		more = false;
		ck_assert_int_eq(drain(&more), 0);
		ck_assert(more);
		ck_assert_uint_eq(pick(J_COUNTS, s, 8), 1);
	}
	ck_assert_uint_ge(i, 2);
	ck_assert_int_eq(drain(&more), 0);
	ck_assert(!more);
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* --- GPU work, ahead --- */

#define GPU_LANE 4u

static void put_launch(uint32_t k)
{
	const struct rec_launch r = {
		.hdr = REC_HDR(sizeof(r), REC_LAUNCH, 0, 0, 2), .clock = 1, .correlation = k + 1};

	fake_put(&f, k % 4, &r, sizeof(r));
}

static void put_kernel(uint32_t k)
{
	const struct rec_kernel r = {.hdr = REC_HDR(sizeof(r), REC_KERNEL, 0, 0, 0),
		.start = 1,
		.end = 2,
		.correlation = k + 1};

	fake_put(&f, GPU_LANE, &r, sizeof(r));
}

static uint32_t taken_of(uint32_t lane, uint32_t bytes)
{
	return (uint32_t)(ring->reader.lane[lane].head / bytes);
}

/* Four threads left 120 000 launches, and the agent's lane is full of their kernels, of which more come as there is
 * room: in one window all of them come, and no more than some are in flight at any time. */
START_TEST(test_gpu_work_comes_ahead)
{
	enum { N = 120000, FLIGHT = 30000 };
	uint32_t k = 0, i, launches, kernels = 0, early = 0;
	bool more = true;

	fake_scope(&f, 0, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	p.drain.ns = 0;     /* one step a tick */
	more = true;
	for (i = 0; i < N; i++)
		put_launch(i);
	while (more) {
		while (k < N &&
			fake_lane(&f, GPU_LANE)->tail + 128 - ring->reader.lane[GPU_LANE].head <=
				f.h.lane_bytes)
			put_kernel(k++);
		ck_assert_int_ge(drain_ring(ring, &more), 0);
		for (launches = i = 0; i < 4; i++)
			launches += taken_of(i, sizeof(struct rec_launch));
		kernels = taken_of(GPU_LANE, sizeof(struct rec_kernel));
		early = fold_early(p.d.fold, f.h.uuid) > early ? fold_early(p.d.fold, f.h.uuid)
							       : early;
		ck_assert_uint_lt(launches, kernels + FLIGHT);
	}
	ck_assert_uint_gt(kernels, N - FLIGHT);
	ck_assert_uint_lt(early, FLIGHT);
}
END_TEST

/* It goes no further than to a record of another kind, which comes with its window. */
START_TEST(test_gpu_work_waits_behind_others)
{
	const struct rec_lost other = {
		.hdr = REC_HDR(sizeof(other), REC_LOST, 0, 0, LOST_GPU_DROPPED)};
	bool more = true;
	uint32_t i;

	fake_scope(&f, 0, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	p.drain.ns = 0;     /* one step a tick */
	for (i = 0; i < 8000; i++)
		put_launch(i);
	put_kernel(0);
	(void)drain_ring(ring, &more);
	put_kernel(1);
	fake_put(&f, GPU_LANE, &other, sizeof(other));
	put_kernel(2);
	while (more)
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	ck_assert_uint_eq(taken_of(GPU_LANE, sizeof(struct rec_kernel)), 2);
	do {
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	} while (more);
	ck_assert_uint_eq(ring->reader.lane[GPU_LANE].head, fake_lane(&f, GPU_LANE)->tail);
	look();
}
END_TEST

/* --- NOW, COUNTS --- */

START_TEST(test_now_and_counts)
{
	const struct seen *s[4];
	struct ring_lane *l = fake_lane(&f, 0);
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	ck_assert_int_eq(drain(&more), 24);
	(void)fake_path(&f, 3, fake_name(&f, "open"));
	l->now.frame[0].path = 4;
	l->now.depth = 1;
	ck_assert_int_eq(drain_now_block(ring), 0);
	look();
	ck_assert_uint_eq(pick(J_TABLE, s, 4), 2); /* the words of what is open come before it */
	ck_assert_uint_eq(pick(J_NOW, s, 4), 1);
	ck_assert_int_eq(drain_counts(ring), 0);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
	ck_assert_int_eq(drain_counts(ring), 0); /* nothing changed */
	look();
	ck_assert_uint_eq(n_seen, 0);
	l->drop_full = 5;
	ck_assert_int_eq(drain_counts(ring), 0);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
}
END_TEST

static uint32_t nows(void)
{
	const struct seen *s[4];

	look();
	return pick(J_NOW, s, 4);
}

/* What threads are in is said again only when it changed, or when the fold may have another idea of
 * it since; and that they are in nothing is said, too. */
START_TEST(test_now_unchanged)
{
	struct ring_lane *l = fake_lane(&f, 0);
	bool more;

	l->generation = 1;
	l->state = LANE_LIVE;
	l->now.frame[0].path = 2;
	l->now.depth = 1;
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 1);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 0);
	fake_scope(&f, 0, 2, 0, 2); /* it is left, and entered again */
	ck_assert_int_eq(drain(&more), 24);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 1);
	l->now.depth = 0;
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 1);
	ck_assert_int_eq(drain_now_block(ring), 0);
	ck_assert_uint_eq(nows(), 0);
}
END_TEST

/* --- who waits --- */

static uint32_t called;

static void on_drained(void *arg, bool ends)
{
	(void)arg;
	(void)ends;
	called++;
}

static void ask(int64_t uid)
{
	called = 0;
	p.turn.stopping = true; /* there is no loop to hurry */
	ck_assert_int_eq(daemon_when_drained(&p.d, uid, 3600 * 1000, on_drained, NULL), 0);
}

/* Nobody waits for another user's jobs, nor has them looked through. */
START_TEST(test_asks_for_own)
{
	ask((int64_t)ring->uid + 1);
	ck_assert_uint_eq(ring->note_ns, 0);
	drained_check(&p);
	ck_assert_uint_eq(called, 1);
}
END_TEST

START_TEST(test_asks)
{
	const struct seen *s[4];
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	ask(_i == 0 ? -1 : (int64_t)ring->uid);
	ck_assert(ring->note_ns != 0 && ring->asked_ns != 0); /* one tick brings both */
	drained_check(&p);
	ck_assert_int_eq(drain(&more), 24);
	drained_check(&p);
	ck_assert_uint_eq(called, 0);
	ck_assert(drain_notes(&p.rings));
	drained_check(&p);
	ck_assert_uint_eq(called, 1);
	look();
	ck_assert_uint_eq(pick(J_COUNTS, s, 4), 1);
	ck_assert(drain_notes(&p.rings)); /* nobody waits any more */
	look();
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* A tick takes as much as its time is for, and another user's ring before the next of the same,
 * though that one took all the time. */
START_TEST(test_notes_in_turn)
{
	struct ring other[3];
	const uint64_t now = mono_ns();
	uint32_t i;

	ck_assert_int_eq(drain_now_block(ring), 0); /* the tables are read */
	for (i = 0; i < 3; i++) {
		other[i] = *ring;
		other[i].uid = 4711 + i / 2; /* 4711, 4711, 4712 */
		other[i].now_sum = other[i].noted_ns = 0;
		other[i].next = i < 2 ? &other[i + 1] : NULL;
		ck_assert(!drain_is_noted(&other[i], now + i));
	}
	ring->next = other;
	p.drain.ns = 0;
	ck_assert(!drain_notes(&p.rings));
	ck_assert(other[0].noted_ns != 0 && other[1].noted_ns == 0 && other[2].noted_ns != 0);
	ck_assert(drain_notes(&p.rings));
	ck_assert(other[1].noted_ns != 0 && ring->noted_ns == 0);
	ring->next = NULL;
}
END_TEST

/* The journal's disk is full: nothing is taken, nothing is lost, later all of it comes. */
START_TEST(test_journal_stuck)
{
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	p.entries.stuck = true;
	ck_assert_int_eq(drain_ring(ring, &more), -ENOSPC);
	ck_assert_uint_eq(ring->reader.lane[0].head, 0);
	p.entries.stuck = false;
	ck_assert_int_eq(drain_ring(ring, &more), 24);
	ck_assert_uint_eq(ring->reader.lane[0].head, 24);
}
END_TEST

/* What a caller waits for is there with the window that began after it asked, and not before. */
START_TEST(test_past)
{
	const uint64_t asked = mono_ns();
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	ck_assert(!drain_is_past(ring, asked));
	ck_assert_int_eq(drain_ring(ring, &more), 24);
	ck_assert(drain_is_past(ring, asked));
	ck_assert(!drain_is_past(ring, mono_ns()));
	ring->unreadable = true;
	ck_assert(drain_is_past(ring, mono_ns()));
}
END_TEST

/* While the store is behind, no ring is taken from faster than at a rate; the rest comes later. */
START_TEST(test_behind)
{
	const uint32_t n = 20000;
	int64_t taken;
	uint32_t i;
	bool more;

	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, i, i + 1);
	p.drain.behind = true;
	ring->taken_ns = mono_ns();
	taken = drain_ring(ring, &more);
	ck_assert_int_lt(taken, n * 24);
	ck_assert(more);
	p.drain.behind = false;
	taken += drain_ring(ring, &more);
	ck_assert_int_eq(taken, n * 24);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_drain_turns");
	TCase *t = tcase_create("drain");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_now_and_counts);
	tcase_add_test(t, test_now_unchanged);
	tcase_add_test(t, test_asks_for_own);
	tcase_add_loop_test(t, test_asks, 0, 2);
	tcase_add_test(t, test_notes_in_turn);
	tcase_add_test(t, test_journal_stuck);
	tcase_add_test(t, test_past);
	t = tcase_create("large");
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup_large, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_budget);
	tcase_add_test(t, test_whole);
	tcase_add_test(t, test_joining);
	tcase_add_test(t, test_gpu_work_comes_ahead);
	tcase_add_test(t, test_gpu_work_waits_behind_others);
	tcase_add_test(t, test_behind);
	return s;
}
