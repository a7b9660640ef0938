/* SPDX-License-Identifier: MIT. daemon_drained.c: who waits for what jobs wrote is told in the order
 * of asking, users in turn, as many in a tick as a slice of time is for. */
#include "quick.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "conn.h"
#include "drained.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "loop.h"

static struct protond p;
static uint64_t now_ns, costs_ns;
static uint32_t told, ended;
static bool again;

/* Time passes where somebody is told. */
uint64_t mono_ns(void)
{
	return now_ns;
}

int64_t real_ns(void)
{
	return 0;
}

static void setup(void)
{
	char dir[] = "/dev/shm/protond-drained-XXXXXX";
	struct err e = {0};

	ck_assert_ptr_nonnull(mkdtemp(dir));
	p = (struct protond){.turn.stopping = true}; /* nobody but the test calls for a tick */
	protond_bind(&p);
	p.d.runtime_fd = open(dir, O_RDONLY | O_DIRECTORY);
	ck_assert_msg(journal_open(p.d.runtime_fd, &p.d.journal, &e) == 0, "%s", e.text);
	(void)unlinkat(p.d.runtime_fd, "journal.1", 0);
	(void)rmdir(dir);
	ck_assert_int_eq(fold_new(NULL, &p.d.fold), 0);
	now_ns = costs_ns = told = ended = 0;
	again = false;
}

static void teardown(void)
{
	fold_free(p.d.fold);
	journal_close(p.d.journal);
	(void)close(p.d.runtime_fd);
}

static void on_drained(void *arg, bool ends)
{
	ck_assert_ptr_eq(arg, (void *)(uintptr_t)(told + 1)); /* whoever asked first */
	told++;
	ended += ends;
	now_ns += costs_ns;
	if (again && told < 20)
		ck_assert_int_eq(daemon_when_drained(
					 &p.d, -1, 100, on_drained, (void *)(uintptr_t)(told + 9)),
			0);
}

static void nine_ask(void)
{
	uint32_t i;

	for (i = 1; i <= 9; i++)
		ck_assert_int_eq(
			daemon_when_drained(&p.d, -1, 100, on_drained, (void *)(uintptr_t)i), 0);
	ck_assert_uint_eq(told, 0);
}

START_TEST(a_tick_tells_as_many_as_a_slice_is_for)
{
	nine_ask();
	costs_ns = 400000;
	drained_check(&p);
	ck_assert_uint_eq(told, 3); /* the third went over a millisecond */
	costs_ns = 50000000;
	drained_check(&p);
	ck_assert_uint_eq(told, 4); /* at least one */
	costs_ns = 0;
	drained_check(&p);
	ck_assert_uint_eq(told, 9);
	ck_assert_uint_eq(ended, 0);
	ck_assert_ptr_null(p.drained);
}
END_TEST

START_TEST(whoever_asks_again_is_behind_those_that_wait)
{
	nine_ask();
	again = true;
	costs_ns = 400000;
	while (p.drained != NULL)
		drained_check(&p);
	ck_assert_uint_eq(told, 28);
}
END_TEST

static void on_drained_of(void *arg, bool ends)
{
	ck_assert(!ends);
	told++;
	*(uint32_t *)arg = told;
	now_ns += costs_ns;
}

/* The hundred of one user, whose answers take long, and then one of each of two others. */
START_TEST(whoever_asks_much_is_told_in_turn)
{
	uint32_t when[102] = {0}, i;

	for (i = 0; i < 102; i++)
		ck_assert_int_eq(
			daemon_when_drained(&p.d, i < 100 ? 1 : i, 100, on_drained_of, &when[i]),
			0);
	costs_ns = 50000000;
	for (i = 0; i < 3; i++)
		drained_check(&p);
	ck_assert_uint_eq(when[0], 1);
	ck_assert_uint_eq(when[100], 2);
	ck_assert_uint_eq(when[101], 3);
	while (p.drained != NULL)
		drained_check(&p);
	for (i = 1; i < 100; i++)
		ck_assert_uint_eq(when[i], 3 + i);
}
END_TEST

/* The journal has no room for its process yet: who asks about that very ring waits, for what he wrote
 * there comes with it; who asks about all does not. _i: what ends it, the room or the time. */
START_TEST(a_ring_that_is_no_process_yet)
{
	struct ring r = {.all = &p.rings, .uuid = {1}, .state = RING_LIVE, .looked_ns = UINT64_MAX};
	uint32_t one = 0, all = 0;

	p.rings.first = &r;
	ck_assert_int_eq(when_drained(&p, r.uuid, 2000, on_drained_of, &one), 0);
	ck_assert_int_eq(daemon_when_drained(&p.d, -1, 1, on_drained_of, &all), 0);
	drained_check(&p);
	ck_assert_uint_eq(all, 1);
	ck_assert_uint_eq(one, 0);
	r.adopted = _i == 0;
	now_ns = _i == 0 ? 1999 : 2000;
	drained_check(&p);
	ck_assert_uint_eq(one, 2);
	p.rings.first = NULL;
}
END_TEST

/* Others connect without end: who asks about all waits for those at the door for a part of his time. */
START_TEST(a_crowd_at_the_door)
{
	struct intake in = {.clearing = true}; /* more than can be heard */
	struct ring r = {.all = &p.rings, .uuid = {1}, .state = RING_LIVE, .adopted = true};
	uint32_t one = 0, all = 0;

	p.d.intake = &in;
	p.rings.first = &r;
	now_ns = 1;
	ck_assert_int_eq(when_drained(&p, r.uuid, 100000000, on_drained_of, &one), 0);
	ck_assert_int_eq(daemon_when_drained(&p.d, -1, 100, on_drained_of, &all), 0);
	now_ns = 12500000;
	drained_check(&p);
	ck_assert_uint_eq(all, 0);
	now_ns = 12500001;
	drained_check(&p);
	ck_assert_uint_eq(all, 1);
	ck_assert_uint_eq(one, 0); /* what he wrote may come with one at the door */
	in.clear_ns = 1;
	drained_check(&p);
	ck_assert_uint_eq(one, 2);
	p.rings.first = NULL;
	p.d.intake = NULL;
}
END_TEST

START_TEST(the_end_tells_those_that_ask_meanwhile)
{
	nine_ask();
	again = true;
	drained_end(&p);
	ck_assert_uint_eq(told, 28);
	ck_assert_uint_eq(ended, 28);
	ck_assert_ptr_null(p.drained);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_drained");
	TCase *t = tcase_create("drained");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, a_tick_tells_as_many_as_a_slice_is_for);
	tcase_add_test(t, whoever_asks_again_is_behind_those_that_wait);
	tcase_add_test(t, whoever_asks_much_is_told_in_turn);
	tcase_add_loop_test(t, a_ring_that_is_no_process_yet, 0, 2);
	tcase_add_test(t, a_crowd_at_the_door);
	tcase_add_test(t, the_end_tells_those_that_ask_meanwhile);
	return s;
}
