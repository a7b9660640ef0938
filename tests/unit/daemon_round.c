/* SPDX-License-Identifier: MIT. daemon_round.c: whose ring is drained next. A ring that is drained
 * takes a while of a clock that only that moves. */
#include "quick.h"

#include "round.h"

#define TICK  10000u
#define RINGS 300u

static struct round o;
static uint64_t now;
static struct {
	uint32_t uid, turns;
	uint64_t taken, costs;
} ring[RINGS];

static void begin(void)
{
	o = (struct round){0};
	now = 1;
	memset(ring, 0, sizeof(ring));
}

static void end(void)
{
	round_fini(&o);
}

/* Of n rings, the first of them at `first`. True: some are left. */
static bool tick(uint32_t n, uint32_t first)
{
	uint32_t i;

	round_begin(&o, TICK);
	for (i = first; i < first + n; i++) {
		const uint32_t at = i % n;

		if (!round_may(&o, ring[at].uid, ring[at].taken))
			continue;
		ring[at].taken = ++now;
		ring[at].turns++;
		now += ring[at].costs;
		round_took(&o, ring[at].uid, ring[at].costs);
	}
	return round_end(&o, ++now);
}

static uint32_t turns_of(uint32_t uid, uint32_t *ret_least)
{
	uint32_t i, sum = 0;

	*ret_least = UINT32_MAX;
	for (i = 0; i < RINGS; i++) {
		if (ring[i].uid != uid || ring[i].costs == 0)
			continue;
		sum += ring[i].turns;
		*ret_least = ring[i].turns < *ret_least ? ring[i].turns : *ret_least;
	}
	return sum;
}

START_TEST(test_cheap_rings_have_a_turn_in_each_tick)
{
	uint32_t i, least;

	for (i = 0; i < RINGS; i++) {
		ring[i].uid = i % 3;
		ring[i].costs = 1;
	}
	for (i = 0; i < 10; i++)
		ck_assert(!tick(RINGS, i));
	ck_assert_uint_eq(turns_of(0, &least), 1000);
	ck_assert_uint_eq(least, 10);
}
END_TEST

/* 299 rings of one user, of which each takes a fifth of a tick, and one of another, last of all. */
START_TEST(test_a_user_with_many_does_not_keep_one_waiting)
{
	uint64_t since;
	uint32_t i, least;

	for (i = 0; i < RINGS; i++)
		ring[i].costs = TICK / 5;
	ring[RINGS - 1].uid = 1;
	for (i = 0; i < 120; i++) {
		since = now;
		(void)tick(RINGS, i);
		ck_assert_uint_eq(ring[RINGS - 1].turns, i + 1);
		ck_assert_uint_le(now - since, TICK + 2 * TICK / 5 + RINGS);
	}
	/* And his rings are taken in turn: each once before any of them twice. */
	ck_assert_uint_ge(turns_of(0, &least), 3 * 120);
	ck_assert_uint_eq(least, 1);
}
END_TEST

/* One user: a tick is his, and what is left goes first in the next. */
START_TEST(test_one_user_has_all_of_a_tick)
{
	uint32_t i, least;

	for (i = 0; i < 50; i++)
		ring[i].costs = TICK / 5;
	for (i = 0; i < 9; i++)
		ck_assert(tick(50, 0));
	ck_assert_uint_eq(turns_of(0, &least), 45);
	ck_assert(!tick(50, 0));
	turns_of(0, &least);
	ck_assert_uint_eq(least, 1);
	ck_assert_uint_eq(ring[0].turns, 1);
	ck_assert(tick(50, 0));
	ck_assert_uint_eq(ring[0].turns, 2);
}
END_TEST

/* Two that take all they can have half each, and others' small change does not make it a third. */
START_TEST(test_parts)
{
	uint32_t i, least;

	for (i = 0; i < 200; i++) {
		ring[i].uid = i % 2;
		ring[i].costs = TICK / 10;
	}
	ring[200].uid = 2;
	ring[200].costs = 1;
	(void)tick(201, 0);
	for (i = 1; i < 11; i++)
		(void)tick(201, i);
	ck_assert_uint_eq(o.part_ns, TICK / 2);
	ck_assert_uint_eq(turns_of(0, &least), 10 + 10 * 5);
	ck_assert_uint_eq(turns_of(1, &least), 10 + 10 * 5);
	ck_assert_uint_eq(ring[200].turns, 11);
}
END_TEST

START_TEST(test_who_has_no_rings_is_forgotten)
{
	ring[0].uid = 7;
	(void)tick(1, 0);
	ck_assert_uint_eq(o.n, 1);
	ring[0].uid = 8;
	(void)tick(1, 0);
	ck_assert_uint_eq(o.n, 1);
	ck_assert_uint_eq(o.user[0].uid, 8);
	(void)tick(0, 0);
	ck_assert_uint_eq(o.n, 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_round");
	TCase *t = tcase_create("round");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, test_cheap_rings_have_a_turn_in_each_tick);
	tcase_add_test(t, test_a_user_with_many_does_not_keep_one_waiting);
	tcase_add_test(t, test_one_user_has_all_of_a_tick);
	tcase_add_test(t, test_parts);
	tcase_add_test(t, test_who_has_no_rings_is_forgotten);
	return s;
}
