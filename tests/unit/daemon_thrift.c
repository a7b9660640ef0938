/* SPDX-License-Identifier: MIT. daemon_thrift.c: when the daemon takes too much. */
#include "quick.h"
#include "thrift.h"

#define SECOND 1000000000ull

static struct thrift t;
static uint64_t now, cpu;

static bool second(uint64_t percent)
{
	now += SECOND;
	cpu += percent * (SECOND / 100);
	(void)thrift_look(&t, now, cpu, 25);
	return t.over;
}

START_TEST(too_much_and_enough)
{
	cpu = 1000 * SECOND; /* before the first look */
	ck_assert(!second(0));
	ck_assert(!second(25));
	ck_assert(second(26));
	for (int i = 0; i < 9; i++)
		ck_assert(second(1));
	ck_assert(second(13)); /* not yet little */
	for (int i = 0; i < 9; i++)
		ck_assert(second(12));
	ck_assert(!second(12));
	ck_assert(!second(25));
}
END_TEST

START_TEST(always)
{
	ck_assert(thrift_look(&t, SECOND, 0, 0));
	ck_assert(t.over);
	ck_assert(!thrift_look(&t, 100 * SECOND, 0, 0));
	ck_assert(t.over);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("thrift");
	TCase *c = tcase_create("thrift");

	tcase_add_test(c, too_much_and_enough);
	tcase_add_test(c, always);
	suite_add_tcase(s, c);
	return s;
}
