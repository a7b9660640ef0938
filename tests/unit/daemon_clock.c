/* SPDX-License-Identifier: MIT. daemon_clock.c: anchors of clocks that a test moves. */
#include "quick.h"
#include <stdlib.h>

#include "ring.h"
#include "ring_clock.h"

/* Every read takes `step` ns; at read number `late` an interrupt takes 50 µs more. */
static uint64_t now, step, late, reads;

static uint64_t tick_ns(void)
{
	now += step;
	if (++reads == late)
		now += 50000;
	return now;
}

static uint64_t fake_clock(void)
{
	return tick_ns() * 3; /* 3 GHz */
}

static int64_t fake_real(void)
{
	return (int64_t)tick_ns() + 1000000000000;
}

static const struct clock_source fake = {fake_clock, tick_ns, fake_real};

static void check(const struct j_anchor *a)
{
	const int64_t clock_off = (int64_t)(a->clock / 3) - (int64_t)a->monotonic_ns;
	const int64_t real_off = (int64_t)a->realtime_ns - 1000000000000 - (int64_t)a->monotonic_ns;

	ck_assert_int_le(llabs(clock_off), (long long)a->error_ns);
	ck_assert_int_le(llabs(real_off), (long long)a->error_ns);
}

START_TEST(test_tightest)
{
	struct j_anchor a;

	now = 1000;
	step = 20;
	late = 2 + (uint64_t)_i * 4; /* in bracket number _i */
	reads = 0;
	clock_anchor(&fake, RING_CLOCK_TSC, &a);
	ck_assert_uint_eq(a.error_ns, 30); /* half of three steps: not the interrupted one */
	ck_assert_uint_eq(a.ring_clock, RING_CLOCK_TSC);
	check(&a);
	ck_assert_uint_eq(reads, 80);
}
END_TEST

START_TEST(test_real_clocks)
{
	struct j_anchor a, b;

	clock_anchor(&clock_mono, RING_CLOCK_MONOTONIC, &a);
	ck_assert_uint_le(a.error_ns, 10000000);
	ck_assert_uint_ge(a.clock + a.error_ns, a.monotonic_ns);
	ck_assert_uint_le(a.clock, a.monotonic_ns + a.error_ns);
	clock_anchor(&clock_tsc, RING_CLOCK_TSC, &b);
	ck_assert_uint_ge(b.monotonic_ns, a.monotonic_ns);
	ck_assert_uint_gt(b.clock, 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_clock");
	TCase *t = tcase_create("clock");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, test_tightest, 0, 20);
	tcase_add_test(t, test_real_clocks);
	return s;
}
