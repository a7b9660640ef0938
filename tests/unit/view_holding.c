/* SPDX-License-Identifier: MIT. view_holding.c: how what is held grows, on curves that are known. */
#include "quick.h"
#include <math.h>
#include <stdlib.h>

#include "gpu_terms.h"
#include "holding.h"

#define STEPS 60u
#define MS    1000000ull

static struct held_account account;
static struct holding_step step[STEPS];
static struct holders h = {.account = {&account}, .n_accounts = 1};
static const struct holding x = {.h = &h, .step = step, .n_steps = STEPS};

/* Each step is a ms long; at its middle it holds more, at its end `grow` more than before it, and off is about it. */
static void make(uint64_t grow, uint64_t off)
{
	uint32_t i;

	account = (struct held_account){.kind = HELD_DEVICE};
	for (i = 0; i < STEPS; i++) {
		step[i] = (struct holding_step){.begin_ns = (i + 1) * MS,
			.end_ns = (i + 2) * MS - 1,
			.first = i + 1,
			.n = 1,
			.allocated = 1000.0 * i};
		account.live = 5000000;
		held_point_add(&account, step[i].begin_ns + MS / 2);
		account.live = 1000 + grow * (i + 1) + (i % 2 == 0 ? off : 0);
		held_point_add(&account, step[i].end_ns - 10);
	}
}

static const struct {
	uint64_t grow, off;
	uint32_t first, last, all, steps;
	bool grows;
} cases[] = {
	{4096, 0, 0, 0, STEPS, STEPS - HOLDING_WARM_UP, true},
	{4096, 0, 11, 30, 20, 20, true},
	{0, 0, 0, 0, STEPS, STEPS - HOLDING_WARM_UP, false},
	{0, 9000, 0, 0, STEPS, STEPS - HOLDING_WARM_UP, false},
	{4096, 0, 59, 0, 2, 2, false},
};

START_TEST(growth_is_a_line)
{
	struct holding_growth g;
	const double grow = (double)cases[_i].grow;

	make(cases[_i].grow, cases[_i].off);
	holding_growth(&x, &account, cases[_i].first, cases[_i].last, &g);
	ck_assert_uint_eq(g.all, cases[_i].all);
	ck_assert_uint_eq(g.steps, cases[_i].steps);
	ck_assert(g.g.grows == cases[_i].grows);
	if (g.steps < HOLDING_LEAST) {
		ck_assert(g.slope == 0 && g.error == 0);
		return;
	}
	if (cases[_i].off == 0) {
		ck_assert_double_eq_tol(g.slope, grow, 1e-6);
		ck_assert_double_eq_tol(g.error, 0, 1e-6);
	} else {
		ck_assert_double_le(fabs(g.slope), 3 * g.error);
		ck_assert_double_gt(g.error, 0);
	}
	ck_assert_uint_eq(g.most, 5000000);
}
END_TEST

START_TEST(what_torch_told)
{
	struct holding_growth g;
	uint32_t i;

	make(0, 0);
	ck_assert(holding_torch_growth(&x, 0, 0, &g));
	ck_assert_double_eq_tol(g.slope, 1000, 1e-6);
	for (i = 0; i < STEPS; i++)
		step[i].allocated = -1;
	ck_assert(!holding_torch_growth(&x, 0, 0, &g));
}
END_TEST

START_TEST(at_an_instant)
{
	make(100, 0);
	ck_assert_uint_eq(holding_at(&account, 0), 0);
	ck_assert_uint_eq(holding_at(&account, step[3].begin_ns + MS / 2), 5000000);
	ck_assert_uint_eq(holding_at(&account, step[3].end_ns), 1400);
	ck_assert_uint_eq(holding_at(&account, UINT64_MAX), 1000 + 100 * STEPS);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_holding");
	TCase *c = tcase_create("growth");

	tcase_add_loop_test(c, growth_is_a_line, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(c, what_torch_told);
	tcase_add_test(c, at_an_instant);
	suite_add_tcase(s, c);
	return s;
}
