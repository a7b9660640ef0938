/* SPDX-License-Identifier: MIT. view_growth.c: what a leak is, and what is none: made curves, and thousands resampled from clean
 * ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "growth.h"
#include "quick.h"

Suite *suite(void);

#define MB 1e6
#define N  400u

static uint64_t seed = 1;

static double chance(void) /* [0, 1) */
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) / 9007199254740992.0;
}

/* --- clean curves, as trainings have them: bytes in tensors at the end of a step */

static double flat(uint32_t i)
{
	(void)i;
	return 8000 * MB + chance() * 0.001 * MB;
}

static double noisy(uint32_t i)
{
	(void)i;
	return 8000 * MB + chance() * 300 * MB;
}

static double lengths(uint32_t i) /* batches of few lengths */
{
	(void)i;
	return 6000 * MB + floor(chance() * 5) * 128 * MB;
}

static double sawtooth(uint32_t
		i) /* a cache that is emptied; one that is not within the steps there are looks like a leak */
{
	return 4000 * MB + (i % 12) * 10 * MB + chance() * MB;
}

static double validated(uint32_t i) /* and more memory while validating */
{
	return 5000 * MB + (i % 50 < 5 ? 700 : 0) * MB + chance() * 2 * MB;
}

static double filled(uint32_t i) /* a cache that fills up */
{
	return 3000 * MB + 900 * MB * (1 - exp(-(double)i / 6)) + chance() * MB;
}

static double stepped(uint32_t i) /* an optimizer's state, later a second model */
{
	return 2000 * MB + (i > 3 ? 800 : 0) * MB + (i > 90 ? 500 : 0) * MB + chance() * MB;
}

static double highest(uint32_t i) /* buffers as long as the longest line so far */
{
	static double most;

	most = i == 0 ? 0 : most;
	most = fmax(most, pow(chance(), 4));
	return 1000 * MB + most * 400 * MB;
}

typedef double curve_fn(uint32_t i);
static curve_fn *const clean[] = {
	flat, noisy, lengths, sawtooth, validated, filled, stepped, highest};
#define CLEAN (sizeof(clean) / sizeof(*clean))

/* Runs of a curve, one behind the other, as a moving block bootstrap takes them: what hangs together stays so. Steps that a
 * curve has once, as it fills up, keep their place. */
static void resample(const double *from, uint32_t steps, double *to, uint32_t n, uint32_t block)
{
	uint32_t i, at = 0;

	for (i = 0; i < n; i++, at++) {
		if (i % block == 0)
			at = (uint32_t)(chance() * (steps - block));
		to[i] = from[at];
	}
}

START_TEST(ten_thousand_clean_ones)
{
	static double curve[N], y[N];
	uint32_t i, k, n, alarms = 0, known = 0;
	struct growth g;

	seed = 20261126;
	for (i = 0; i < 10000; i++) {
		curve_fn *fn = clean[i % CLEAN];

		for (k = 0; k < N; k++)
			curve[k] = fn(k);
		n = 20 + (uint32_t)(chance() * (N - 20));
		if (i / CLEAN % 2 == 0)
			memcpy(y, curve, n * sizeof(*y)); /* as it was, up to some step */
		else
			resample(curve, N, y, n, 1 + (uint32_t)(chance() * 40));
		g = growth_of(y, n);
		known += g.known;
		alarms += g.grows;
	}
	ck_assert_uint_eq(known, 10000);
	ck_assert_uint_eq(alarms, 0);
}
END_TEST

/* --- what torch had allocated behind each of 40 steps, in the recordings of tests/recorded in which it varies at all */

#define STEPS 40u

/* fault-jitter: batches of ten lengths. */
static double recorded_lengths(uint32_t i)
{
	static const double more[] = {
		0, 955904, 1594880, 5632, 44032, 27648, 11264, 49152, 32768, 16384};

	return 3895307776 + (i == 1 ? 300544 : more[i % 10]);
}

/* fault-rank: what the first steps allocate. */
static double recorded_rank(uint32_t i)
{
	return i == 0 ? 419700224 : 421273088;
}

static double recorded_late_rank(uint32_t i)
{
	return i == 0 ? 423271936 : i == 1 ? 425295360 : 424246784;
}

/* fault-comm: a gradient of 2.4 GB more in some of the first steps. */
static double recorded_table(uint32_t i)
{
	return i >= 1 && i < 5 ? 14665344512 : 12232492544;
}

START_TEST(ten_thousand_of_recorded_ones)
{
	static curve_fn *const recorded[] = {
		recorded_lengths, recorded_rank, recorded_late_rank, recorded_table};
	double curve[STEPS], y[N];
	uint32_t i, k, n, alarms = 0;

	seed = 28;
	for (i = 0; i < 10000; i++) {
		for (k = 0; k < STEPS; k++)
			curve[k] = recorded[i % 4](k);
		n = 20 + (uint32_t)(chance() * (N - 20));
		resample(curve, STEPS, y, n, 1 + (uint32_t)(chance() * STEPS));
		alarms += growth_of(y, n).grows;
		alarms += i < 4 && growth_of(curve, STEPS).grows; /* as they were */
	}
	ck_assert_uint_eq(alarms, 0);
}
END_TEST

/* A megabyte a step on top of what varies less is told at step 20, and always. */
START_TEST(a_megabyte_a_step)
{
	static double y[N];
	uint32_t i, round, missed = 0;
	struct growth g = {0};

	seed = 7;
	for (round = 0; round < 1000; round++) {
		for (i = 0; i < 20; i++)
			y[i] = 8000 * MB + i * MB + (i > 2 ? 800 * MB : 0) + chance() * 0.4 * MB;
		g = growth_of(y, 20);
		missed += !g.grows;
		ck_assert(
			!g.grows || (g.low <= MB && g.high >= MB) || fabs(g.slope - MB) < 0.1 * MB);
	}
	ck_assert_uint_eq(missed, 0);
	ck_assert(!growth_of(y, 19).known);
	for (i = 0; i < N; i++) /* and later, in what varies more */
		y[i] = 8000 * MB + i * MB + chance() * 20 * MB;
	g = growth_of(y, N);
	ck_assert(g.grows && g.low < MB && g.high > MB);
	ck_assert(fabs(g.slope - MB) < 0.05 * MB);
	ck_assert(g.last > g.first);
}
END_TEST

START_TEST(what_is_not_known)
{
	double y[64];
	uint32_t i;

	for (i = 0; i < 64; i++)
		y[i] = i % 2 == 0 ? (double)NAN : i * MB; /* each second step was measured */
	ck_assert(growth_of(y, 64).grows);
	ck_assert(fabs(growth_of(y, 64).slope - MB) < 1);
	ck_assert(!growth_of(y, 0).known);
	for (i = 0; i < 64; i++)
		y[i] = (double)NAN;
	ck_assert(!growth_of(y, 64).known);
	for (i = 0; i < 64; i++)
		y[i] = 64 * MB - i * MB; /* falls */
	ck_assert(growth_of(y, 64).known && !growth_of(y, 64).grows);
	for (i = 0; i < 64; i++)
		y[i] = i == 9 ? INFINITY : 0;
	ck_assert(!growth_of(y, 64).grows);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_growth");
	TCase *t = tcase_create("growth");

	tcase_add_test(t, ten_thousand_clean_ones);
	tcase_add_test(t, ten_thousand_of_recorded_ones);
	tcase_add_test(t, a_megabyte_a_step);
	tcase_add_test(t, what_is_not_known);
	suite_add_tcase(s, t);
	return s;
}
