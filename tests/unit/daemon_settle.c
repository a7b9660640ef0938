/* SPDX-License-Identifier: MIT. daemon_settle.c: who waits for jobs is told once, whatever the
 * telling sets off. */
#include "quick.h"

#include "conn.h"
#include "settle.h"

static struct daemon d;
static struct intake in;
static struct conn job;
static struct settlers all;
static uint32_t told, later, more;
static bool ends;

static void setup(void)
{
	d = (struct daemon){.intake = &in};
	ck_assert_int_eq(uv_loop_init(&d.loop), 0);
	job = (struct conn){.attached = true, .pings = 1};
	in = (struct intake){.conns = &job};
	all = (struct settlers){.d = &d};
	told = later = more = 0;
	ends = false;
}

static void teardown(void)
{
	ck_assert_ptr_null(all.first);
	(void)uv_run(&d.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&d.loop), 0);
}

static void on_later(void *arg, int r, const struct err *e)
{
	(void)e;
	ck_assert_int_eq(r, *(const int *)arg);
	later++;
}

static void on_told(void *arg, int r, const struct err *e)
{
	(void)e;
	ck_assert_int_eq(r, *(const int *)arg);
	told++;
	if (more > 0 && more-- > 0)
		settle_wait(&all, &(struct settle_who){0}, 60000, on_later, arg);
	if (ends)
		settle_end(&all);
}

static void wait_three(const int *expected)
{
	uint32_t i;

	for (i = 0; i < 3; i++)
		settle_wait(
			&all, &(struct settle_who){0}, 60000, on_told, (void *)(uintptr_t)expected);
	ck_assert_uint_eq(told, 0);
}

START_TEST(whoever_is_told_waits_again)
{
	static const int fine = 0;

	wait_three(&fine);
	more = 3;
	job.pongs = 1;
	in.conns = NULL; /* it hung up */
	settle_check(&all);
	ck_assert_uint_eq(told, 3);
	ck_assert_uint_eq(later, 3);
}
END_TEST

START_TEST(whoever_is_told_ends_all)
{
	static const int fine = 0;

	wait_three(&fine);
	ends = true;
	in.conns = NULL;
	settle_check(&all);
	ck_assert_uint_eq(told, 3);
}
END_TEST

START_TEST(the_end_tells_those_that_come_meanwhile)
{
	static const int cancelled = -ECANCELED;

	wait_three(&cancelled);
	more = 3;
	settle_end(&all);
	ck_assert_uint_eq(told, 3);
	ck_assert_uint_eq(later, 3);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_settle");
	TCase *t = tcase_create("settle");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, whoever_is_told_waits_again);
	tcase_add_test(t, whoever_is_told_ends_all);
	tcase_add_test(t, the_end_tells_those_that_come_meanwhile);
	return s;
}
