/* SPDX-License-Identifier: MIT. daemon_usage.c: what /proc says of a thread. */
#include "quick.h"
#include <stdlib.h>
#include <unistd.h>

#include "thread_usage.h"

static const struct {
	const char *schedstat, *stat;
	bool good;
} files[] = {
	{"1000 20 3\n", "7 (a) S 1 1 1 0 -1 4194304 500 11 4 12 1 2\n", true},
	{"1000 20 3\n", "7 (of) any ) S 9 9) R 1 1 1 0 -1 4194304 500 11 4 12\n", true},
	{"1000 20 3\n", "7 (a) S 1 1 1 0 -1 4194304 500 11\n", false}, /* cut */
	{"1000 20 3\n", "7 a S 1 1 1 0 -1 4194304 500 11 4 12\n", false},
	{"1000\n", "7 (a) S 1 1 1 0 -1 4194304 500 11 4 12\n", false},
	{"", "", false},
};

START_TEST(files_of_a_thread)
{
	struct thread_usage u;

	ck_assert_int_eq(
		thread_usage_parse(files[_i].schedstat, files[_i].stat, &u), files[_i].good);
	if (!files[_i].good)
		return;
	ck_assert(u.cpu_ns == 1000 && u.run_queue_ns == 20);
	ck_assert(u.minor_faults == 500 && u.major_faults == 4);
}
END_TEST

START_TEST(a_thread_that_runs_and_one_that_is_not_there)
{
	const uint32_t pid = (uint32_t)getpid();
	struct thread_usage before, now;
	volatile char *page = malloc(64 << 12);
	uint32_t i;

	ck_assert(thread_usage_read(pid, pid, &before));
	for (i = 0; i < 64; i++)
		page[i << 12] = 1;
	do { /* the kernel adds it up now and then */
		ck_assert(thread_usage_read(pid, pid, &now));
	} while (now.cpu_ns == before.cpu_ns);
	ck_assert_uint_gt(now.cpu_ns, before.cpu_ns);
	ck_assert_uint_ge(now.minor_faults, before.minor_faults);
	ck_assert(now.minor_faults > 0 && !thread_usage_read(pid, 1, &now));
	free((void *)(uintptr_t)page);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("usage");
	TCase *c = tcase_create("usage");

	tcase_add_loop_test(c, files_of_a_thread, 0, (int)(sizeof(files) / sizeof(*files)));
	tcase_add_test(c, a_thread_that_runs_and_one_that_is_not_there);
	suite_add_tcase(s, c);
	return s;
}
