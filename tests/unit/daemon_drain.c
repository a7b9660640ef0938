/* SPDX-License-Identifier: MIT. daemon_drain.c: what is taken from rings, and in which order; and lanes that lie. */
#include "drain_world.h"

/* --- what comes, and in which order --- */

START_TEST(test_tables_before_lanes)
{
	const struct seen *t[4], *l[4];
	bool more;

	fake_scope(&f, 0, 3, 10, 20);
	ck_assert_int_eq(drain(&more), 24);
	ck_assert(!more);
	ck_assert_uint_eq(pick(J_TABLE, t, 4), 2);
	ck_assert_uint_eq(t[0]->which, TABLE_NAMES); /* a path names a name */
	ck_assert_uint_eq(t[0]->n, 4);
	ck_assert_uint_eq(t[1]->which, TABLE_PATHS);
	ck_assert_uint_eq(pick(J_LANE, l, 4), 1);
	ck_assert(l[0] > t[1]);
	/* Once only: nothing new, nothing written. */
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_uint_eq(n_seen, 0);
	(void)fake_path(&f, 3, fake_name(&f, "late"));
	fake_scope(&f, 0, 4, 30, 40);
	ck_assert_int_eq(drain(&more), 24);
	ck_assert_uint_eq(pick(J_TABLE, t, 4), 2);
	ck_assert_uint_eq(t[0]->n, 1);
	ck_assert_uint_eq(pick(J_LANE, l, 4), 1);
	ck_assert_uint_eq(l[0]->from, 24);
}
END_TEST

/* A thread starts a session, then another one, lower in the table, records: the start comes first.
 */
START_TEST(test_session_first)
{
	const struct seen *l[8];
	uint32_t i;
	bool more;

	for (i = 0; i < 10; i++)
		fake_scope(&f, 0, 2, 100 + i, 200 + i);
	fake_scope(&f, 7, 2, 1, 2);
	fake_session(&f, 7, SESSION_START, 0, 2, 50);
	fake_scope(&f, 7, 3, 60, 70);
	ck_assert_int_eq(drain(&more), 10 * 24 + 24 + 64 + 24);
	ck_assert_uint_eq(pick(J_LANE, l, 8), 3);
	ck_assert_uint_eq(l[0]->lane, 7);
	ck_assert_uint_eq(l[0]->bytes, 24 + 64);
	ck_assert_uint_eq(l[0]->sessions, 1);
	ck_assert_uint_eq(l[1]->lane, 0);
	ck_assert_uint_eq(l[2]->lane, 7);
	ck_assert_uint_eq(l[2]->from, 88);
	ck_assert(p.entries.saw_session);
}
END_TEST

/* The tick that takes a session's record says so, not one before it that found the record: the loop
 * looks at the sessions once. */
START_TEST(test_session_said_when_taken)
{
	const struct seen *l[8];
	uint32_t i, n, taken = 0;
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	fake_scope(&f, 0, 2, 3, 4);
	fake_session(&f, 0, SESSION_START, 0, 2, 50);
	fake_scope(&f, 1, 2, 60, 70);
	fake_session(&f, 1, SESSION_FINALIZE, 0, 2, 80);
	p.drain.ns = 0; /* one step a tick */
	do {
		p.entries.saw_session = false;
		ck_assert_int_ge(drain(&more), 0);
		n = pick(J_LANE, l, 8);
		for (i = 0; i < n; i++) {
			taken += l[i]->sessions;
			ck_assert(l[i]->sessions == 0 || p.entries.saw_session);
		}
	} while (more);
	ck_assert_uint_eq(taken, 2);
}
END_TEST

struct piece {
	uint32_t lane, bytes;
};

/* In that order; small: one step a tick. */
static void taken_as(const struct piece *want, size_t n, bool small)
{
	const struct seen *l[8];
	bool more;

	if (small)
		p.drain.ns = 0;
	do {
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	} while (more);
	look();
	ck_assert_uint_eq(pick(J_LANE, l, 8), n);
	for (size_t i = 0; i < n; i++) {
		ck_assert_uint_eq(l[i]->lane, want[i].lane);
		ck_assert_uint_eq(l[i]->bytes, want[i].bytes);
	}
}

/* One thread starts what another ends, and they take turns: in the order in which they did so,
 * whatever their lanes are, also where the arena has none of it. */
START_TEST(test_sessions_in_order)
{
	static const struct piece want[] = {
		{7, 24 + 64}, {2, 24 + 64}, {7, 64}, {5, 64 + 24 + 64}, {2, 24 + 64}, {2, 24}};
	bool more = false;

	for (uint32_t lane = 0; lane < 8; lane++)
		fake_scope(&f, lane, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	fake_scope(&f, 2, 2, 1, 2);
	fake_session(&f, 2, SESSION_FINALIZE, 0, 2, 60);
	fake_scope(&f, 2, 2, 81, 82);
	fake_session(&f, 2, SESSION_FINALIZE, 1, 2, 90);
	fake_scope(&f, 2, 2, 91, 92);
	fake_session(&f, 5, SESSION_ACTIVATE, 1, 2, 75);
	fake_scope(&f, 5, 2, 76, 77);
	fake_session(&f, 5, SESSION_PHASE, 1, 2, 80);
	fake_scope(&f, 7, 2, 1, 2);
	fake_session(&f, 7, SESSION_START, 0, 2, 50);
	fake_session(&f, 7, SESSION_START, 1, 2, 70);
	taken_as(want, sizeof(want) / sizeof(want[0]), _i == 1);
}
END_TEST

/* A thread that goes from lane 5 to 2 to 7 and back to 5. */
START_TEST(test_a_burst_in_order)
{
	static const struct piece want[] = {{5, 48}, {2, 72}, {7, 48}, {2, 24}, {5, 24}};
	bool more = false;

	for (uint32_t lane = 0; lane < 8; lane++)
		fake_scope(&f, lane, 2, 1, 2);
	(void)drain(&more); /* the tables, too, which no tick without time would take */
	fake_scope(&f, 5, 2, 1, 2);
	fake_goes_on(&f, 5, 10);
	fake_scope(&f, 5, 2, 31, 32);
	fake_scope(&f, 2, 2, 11, 12);
	fake_scope(&f, 2, 2, 13, 14);
	fake_goes_on(&f, 2, 20);
	fake_scope(&f, 2, 2, 15, 16); /* another thread, that came here since */
	fake_scope(&f, 7, 2, 21, 22);
	fake_goes_on(&f, 7, 30);
	taken_as(want, sizeof(want) / sizeof(want[0]), _i == 1);
}
END_TEST

static void thread_goes_on(uint32_t lane, uint32_t tid, uint64_t clock)
{
	const struct rec_thread r = {.hdr = REC_HDR(sizeof(r), REC_THREAD, 0, THREAD_GOES_ON, 0),
		.clock = clock,
		.tid = tid};

	fake_put(&f, lane, &r, sizeof(r));
}

/* Threads 1 and 2 left lanes 0 and 1 full, and thread 1 lane 2, too. What is before their marks comes by turns, but for
 * lane 2, which comes behind lane 0; where the window has a SESSION, one lane after the other. */
START_TEST(test_threads_take_turns)
{
	const struct seen *l[32];
	const bool session = _i == 1;
	uint32_t i, n, turns = 0, last0 = 0, first2 = UINT32_MAX;
	bool more = false;

	for (uint32_t lane = 0; lane < 8; lane++)
		fake_scope(&f, lane, 2, 1, 2);
	(void)drain(&more);
	for (i = 0; i < 2000; i++) {
		fake_scope(&f, 0, 2, 1, 2);
		fake_scope(&f, 1, 2, 1, 2);
		fake_scope(&f, 2, 2, 1, 2);
	}
	thread_goes_on(0, 1, 20);
	thread_goes_on(1, 2, 30);
	thread_goes_on(2, 1, 40);
	if (session)
		fake_session(&f, 3, SESSION_START, 0, 2, 50);
	do {
		ck_assert_int_ge(drain_ring(ring, &more), 0);
	} while (more);
	look();
	n = pick(J_LANE, l, 32);
	for (i = 0; i < n; i++) {
		turns += i > 0 && l[i]->lane != l[i - 1]->lane;
		last0 = l[i]->lane == 0 ? i : last0;
		first2 = l[i]->lane == 2 && first2 == UINT32_MAX ? i : first2;
	}
	ck_assert_uint_lt(last0, first2);
	if (session)
		ck_assert_uint_eq(turns, 3);
	else
		ck_assert_uint_ge(turns, 5);
}
END_TEST

/* What comes before a mark that was made after the first look may be in a lane that was looked at
 * before. */
START_TEST(test_a_later_mark_waits)
{
	const struct seen *l[4];
	bool more = false;

	fake_scope(&f, 2, 2, 1, 2);
	fake_scope(&f, 5, 2, 3, 4);
	fake_goes_on(&f, 5, UINT64_MAX);
	ck_assert_int_ge(drain(&more), 0);
	ck_assert_uint_eq(pick(J_LANE, l, 4), 2);
	ck_assert_uint_eq(l[0]->lane, 2);
}
END_TEST

static void now_at(uint32_t lane, uint32_t state, uint32_t tid, uint32_t moves, uint32_t depth)
{
	struct ring_lane *l = fake_lane(&f, lane);

	fake_scope(&f, lane, 2, 1, 2);
	l->state = state;
	l->tid = tid;
	l->moves = moves;
	l->now.depth = depth;
	for (uint32_t i = 0; i < depth; i++)
		l->now.frame[i].path = 2;
}

/* However it was killed on its way, a thread is in one lane: the one that it came to last. */
START_TEST(test_now_of_a_burst)
{
	bool more;

	now_at(0, LANE_LIVE, 70, 1, 1); /* killed before it left this one for 2 */
	now_at(1, LANE_LEFT, 70, 0, 3);
	now_at(2, LANE_LIVE, 70, 2, 2);
	now_at(3, LANE_LEFT, 71, 4, 1); /* the daemon saw lane 4 before it was taken */
	now_at(4, LANE_LEFT, 71, 3, 3);
	now_at(5, LANE_EXITED, 72, 0, 3);
	now_at(6, LANE_LIVE, 73, 0, 1); /* one that never moved */
	ck_assert_int_ge(drain(&more), 0);
	ck_assert_int_eq(drain_now_block(ring), 0);
	look();
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_uint_eq(seen[0].type, J_NOW);
	ck_assert_uint_eq(seen[0].n, 4);
}
END_TEST

/* Many laps, never a byte twice and never one missing. */
START_TEST(test_laps)
{
	struct seen *s;
	uint64_t at = 0, wrote = 0;
	uint32_t i, k;
	bool more;

	for (k = 0; k < 300; k++) {
		for (i = 0; i < 1 + k * 37 % 1300; i++) {
			fake_scope(&f, 1, 2 + i % 2, wrote, wrote + 1);
			wrote++;
		}
		do { /* a tick has 2 ms, which a busy machine may use up */
			ck_assert_int_ge(drain(&more), 0);
			for (s = seen; s < seen + n_seen; s++) {
				if (s->type != J_LANE)
					continue;
				ck_assert_uint_eq(s->from, at);
				at += s->bytes;
			}
		} while (more);
		ck_assert_uint_eq(at, fake_lane(&f, 1)->tail);
		ck_assert_uint_eq(ring->reader.lane[1].head, at);
	}
	ck_assert_uint_gt(at / FAKE_BYTES, 20);
}
END_TEST

/* --- lanes that lie --- */

/* A good part, then a record that breaks a law: the good part comes, the lane gets its tries, is
 * then given up and counted, and its neighbour never notices. */
START_TEST(test_quarantine)
{
	const struct seen *l[8];
	bool more;
	uint64_t bad = 0;
	uint32_t i;

	fake_scope(&f, 0, 2, 1, 2);
	fake_scope(&f, 0, 2, 3, 4);
	memcpy(fake_at(&f, 0, 24), &bad, 8);
	fake_scope(&f, 1, 2, 1, 2);
	ck_assert_int_eq(drain(&more), 48);
	ck_assert_uint_eq(ring->reader.lane[0].head, 24);
	for (i = 0; i < READER_BAD_TICKS; i++) {
		ck_assert(!ring->reader.lane[0].quarantined);
		fake_scope(&f, 1, 2, 1, 2);
		ck_assert_int_eq(drain(&more), 24);
	}
	ck_assert(ring->reader.lane[0].quarantined);
	ck_assert_uint_eq(pick(J_LANE, l, 8), 2);
	ck_assert_uint_eq(l[0]->lane, 0);
	ck_assert_uint_eq(l[0]->losses, 1);
	ck_assert_uint_eq(l[0]->from, 24);
	fake_scope(&f, 0, 2, 5, 6);
	ck_assert_int_eq(drain(&more), 0); /* for ever */
	ck_assert_uint_eq(n_seen, 0);
}
END_TEST

/* A former daemon took the lane up to `gone`, and its journal lost that from `head` on. What the ring
 * still has is taken; once the job wrote over it, the lane goes on behind it. */
START_TEST(test_gone)
{
	const uint32_t lap = f.h.lane_bytes, n = lap / 24 / 2;
	struct reader_lane *l = &ring->reader.lane[0];
	const struct seen *s[8];
	uint32_t i;
	bool more;

	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, 1, 2);
	l->gone = 24ull * (n - 1);
	ck_assert_int_eq(drain(&more), 24 * n);
	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, 1, 2);
	l->gone = fake_lane(&f, 0)->tail;
	for (i = 0; i < n + n / 2; i++)
		fake_scope(&f, 0, 2, 3, 4);
	for (i = 0; i < 2 && drain(&more) == 0; i++) {
		ck_assert_uint_eq(pick(J_LANE, s, 8), 1);
		ck_assert_uint_eq(s[0]->from, l->gone);
		ck_assert_uint_eq(s[0]->bytes, 0);
	}
	ck_assert_uint_eq(i, 1);
	ck_assert_uint_eq(l->head, fake_lane(&f, 0)->tail);
	ck_assert(!l->quarantined);
}
END_TEST

/* It may be half written over where it can still be read. */
START_TEST(test_nearly_gone)
{
	const uint32_t n = f.h.lane_bytes / 24;
	struct reader_lane *l = &ring->reader.lane[0];
	bool more;
	uint32_t i;

	for (i = 0; i < n; i++)
		fake_scope(&f, 0, 2, 1, 2);
	l->gone = 24ull * (n - 1);
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_uint_eq(l->head, l->gone);
	ck_assert_int_eq(drain(&more), 24);
}
END_TEST

START_TEST(test_bad_tail)
{
	bool more;
	uint32_t i;

	fake_scope(&f, 0, 2, 1, 2);
	ck_assert_int_eq(drain(&more), 24);
	fake_lane(&f, 0)->tail = UINT64_MAX - 7;
	for (i = 0; i < READER_BAD_TICKS; i++)
		ck_assert_int_eq(drain(&more), 0);
	ck_assert(ring->reader.lane[0].quarantined);
	ck_assert_uint_eq(ring->reader.lane[0].head, 24);
}
END_TEST

/* It heals within its tries: nothing is lost. */
START_TEST(test_heals)
{
	bool more;

	fake_scope(&f, 0, 2, 1, 2);
	fake_lane(&f, 0)->tail = 20;
	ck_assert_int_eq(drain(&more), 0);
	ck_assert_int_eq(drain(&more), 0);
	fake_lane(&f, 0)->tail = 24;
	ck_assert_int_eq(drain(&more), 24);
	ck_assert_int_eq(ring->reader.lane[0].bad, 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_drain");
	TCase *t = tcase_create("drain");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_tables_before_lanes);
	tcase_add_test(t, test_session_first);
	tcase_add_test(t, test_session_said_when_taken);
	tcase_add_loop_test(t, test_sessions_in_order, 0, 2);
	tcase_add_loop_test(t, test_a_burst_in_order, 0, 2);
	tcase_add_test(t, test_a_later_mark_waits);
	tcase_add_test(t, test_now_of_a_burst);
	tcase_add_test(t, test_laps);
	tcase_add_test(t, test_quarantine);
	tcase_add_test(t, test_gone);
	tcase_add_test(t, test_nearly_gone);
	tcase_add_test(t, test_bad_tail);
	tcase_add_test(t, test_heals);
	t = tcase_create("large");
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup_large, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_threads_take_turns, 0, 2);
	return s;
}
