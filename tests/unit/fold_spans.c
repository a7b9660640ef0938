/* SPDX-License-Identifier: MIT. fold_spans.c: when sessions were active, over boots and beyond the
 * ceilings. */
#include "fold_shop.h"
#include "process.h"
#include "session.h"
#include "state.h"

#include "fold_job.h" /* last: its globals */

#define DAY   (86400 * SECOND)
#define ENTRY 16000u /* bytes of a lane in one entry */

static void flush(void)
{
	if (lane.n > 0)
		drain(&lane, 20 * SECOND);
}

static void put_verb(uint8_t verb, uint32_t number, uint64_t clock)
{
	put_session(&lane, verb, number, clock, verb == SESSION_START ? N_JOB : 0);
	if (lane.n > ENTRY)
		flush();
}

/* What the store has, in a new fold. */
static void restart(struct shop *s)
{
	struct batch b = collect();

	shop_put(s, &b);
	b = shop_load(s, true);
	fold_free(f);
	f = fold_of(NULL);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
}

/* A job that comes `ns` after a boot. */
static struct kit_process job_after_boot(uint8_t n, uint64_t ns)
{
	struct kit_process p = kit_process(n);

	p.created_ns = p.created_clock = ns;
	tape_process(&t, &p);
	tape_names(&t, p.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, p.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	fold_take(f, &t);
	return p;
}

static void boot_anchor(uint64_t ns)
{
	tape_anchor(&t, RING_CLOCK_MONOTONIC, ns, ns, ns + REAL_AHEAD + 11 * DAY);
	fold_take(f, &t);
}

/* What the store gets, after a kernel of 500 ns, of a process's GPU time; 0: nothing new. */
static uint64_t busy_after(const uint8_t ring[16], uint32_t correlation, uint64_t ns)
{
	struct kit_lane l = {.lane = correlation}; /* not that of the scopes */
	struct batch b;
	uint64_t busy;

	put_launch(&l, P_A, ns, correlation, 0);
	put_kernel(&l, N_KERN, ns + 11 * DAY, 500, correlation, 0);
	tape_lane(&t, ring, ns + SECOND, &l);
	fold_take(f, &t);
	b = collect();
	busy = b.busy.n > 0 ? b.busy.row[0].busy_ns : 0;
	batch_free(&b);
	return busy;
}

START_TEST(a_standing_session_outlives_a_boot)
{
	struct shop s = {0};
	struct kit_process later, again;
	struct fold_session x;
	uint8_t uuid[16];
	struct kit_lane l = {0};
	struct batch b;

	start(1, 10 * DAY);
	restart(&s);
	boot_anchor(50 * SECOND);
	tape_end(&t, job.ring, 55 * SECOND, END_LOST, -1);
	later = job_after_boot(2, 60 * SECOND);
	for (uint64_t i = 0; i < 1000; i++)
		put_scope(&l, P_A, 70 * SECOND + i, 70 * SECOND + i + 1);
	tape_lane(&t, later.ring, 80 * SECOND, &l);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1);
	ck_assert_uint_eq(b.cell.row[0].count, 1000);
	ck_assert_uint_eq(b.active.n, 2);
	shop_put(&s, &b);
	ck_assert_uint_eq(busy_after(later.ring, 1, 85 * SECOND), 500);
	restart(&s); /* and not at a boot */
	again = job_after_boot(3, 90 * SECOND);
	ck_assert_uint_eq(busy_after(again.ring, 2, 95 * SECOND), 500);
	(void)tape_verb(&t, VERB_DEACTIVATE, 1, 100 * SECOND);
	(void)tape_verb(&t, VERB_ACTIVATE, 1, 110 * SECOND);
	fold_take(f, &t);
	ck_assert_uint_eq(busy_after(again.ring, 3, 115 * SECOND), 1000);
	ck_assert_uint_eq(busy_after(again.ring, 1, 105 * SECOND), 0);
	(void)tape_verb(&t, VERB_DEACTIVATE, 1, 120 * SECOND);
	fold_take(f, &t);
	memset(uuid, 1, sizeof(uuid));
	ck_assert(fold_get_session(f, uuid, &x));
	ck_assert_uint_eq(x.active_ns, 1 + 60 * SECOND); /* and 50 to 100, 110 to 120 */
	shop_free(&s);
}
END_TEST

START_TEST(what_waits_leaves_after_a_boot)
{
	struct shop s = {0};
	struct kit_process later;
	struct kit_lane l = {0};
	struct batch b;

	tape_anchor(&t, RING_CLOCK_MONOTONIC, 10 * DAY, 10 * DAY, 10 * DAY + REAL_AHEAD);
	fold_take(f, &t);
	restart(&s);
	boot_anchor(50 * SECOND);
	later = job_after_boot(2, 60 * SECOND);
	start(5, 61 * SECOND);
	for (uint32_t i = 0; i < 100; i++)
		put_launch(&l, P_A, 62 * SECOND, 1 + i, 0);
	put_delivered(&l, 63 * SECOND, 0);
	tape_lane(&t, later.ring, 63 * SECOND, &l);
	for (uint64_t i = 64; i < 90; i++)
		boot_anchor(i * SECOND);
	b = collect();
	ck_assert_uint_eq(b.loss.n, 1);
	ck_assert_uint_eq(b.loss.row[0].count, 100);
	batch_free(&b);
	shop_free(&s);
}
END_TEST

/* Beyond SPANS_MAX the last row goes on: time counts once, with a restart or without. */
START_TEST(time_of_many_activations)
{
	uint64_t active[2], c;
	struct fold_session x;
	struct shop s = {0};
	uint8_t uuid[16];

	memset(uuid, 1, sizeof(uuid));
	for (int again = 0; again < 2; again++) {
		if (again) {
			teardown();
			setup();
		}
		start(1, c = SECOND);
		for (uint32_t i = 0; i < SPANS_MAX + 4; i++) {
			(void)tape_verb(&t, VERB_DEACTIVATE, 1, c += 10);
			(void)tape_verb(&t, VERB_ACTIVATE, 1, c += 1000);
		}
		fold_take(f, &t);
		if (again)
			restart(&s);
		verb(VERB_DEACTIVATE, 1, c + 10);
		ck_assert(fold_get_session(f, uuid, &x));
		active[again] = x.active_ns;
	}
	ck_assert_uint_eq(active[0], active[1]);
	shop_free(&s);
}
END_TEST

/* The job is in as many sessions as one can be: what it starts itself would have nobody in it. */
START_TEST(a_session_without_a_member_is_refused)
{
	uint8_t uuid[16];
	struct fold_session x;
	struct j_verb *automatic;
	struct batch b;

	for (uint32_t i = 0; i < PARTS_MAX; i++)
		start((uint8_t)(100 + i), SECOND + i);
	automatic = tape_verb(&t, VERB_START, 9, 2 * SECOND);
	automatic->match = MATCH_RING;
	memcpy(automatic->ring, job.ring, 16);
	ck_assert_int_eq(fold_apply(f, t.entry[0]), -EMFILE);
	ck_assert(!fold_get_session(f, automatic->session, &x));
	tape_free(&t);
	put_verb(SESSION_START, 0, 2 * SECOND);
	flush();
	ck_assert(!fold_job_session(f, job.ring, 0, uuid));
	b = collect();
	ck_assert_uint_gt(b.loss.n, 0);
	ck_assert_int_eq(b.loss.row[0].cause, LOST_BAD);
	batch_free(&b);
}
END_TEST

/* Of all its sessions, more than there may be of one: they weigh on it, leave in pieces, and a
 * kernel of long ago does not go through all of them. */
START_TEST(spans_of_a_job_have_a_ceiling)
{
	struct rec_kernel old = {.start = 1, .end = 2, .epoch = 1, .config = UINT32_MAX};
	uint64_t c = 1000, rows = 0;
	struct batch b;

	for (uint32_t i = 0; i < 32; i++)
		put_verb(SESSION_START, i, c);
	for (uint32_t i = 0; i < SPANS_MAX; i++) {
		put_verb(SESSION_DEACTIVATE, SESSION_ALL, c += 2);
		put_verb(SESSION_ACTIVATE, SESSION_ALL, c += 2);
		put_verb(SESSION_PHASE, SESSION_ALL, c += 2);
	}
	flush();
	process_weigh(f->process[0]);
	ck_assert_uint_le(f->process[0]->held[WEIGHT_REST], f->limit.bytes);
	ck_assert_uint_ge(fold_fresh(f), 2 * (SPANS_MAX - 1000) * sizeof(struct row_segment));
	b = collect();
	rows = b.active.n + b.segment.n;
	ck_assert_uint_le(rows, 2 * SPANS_MAX + 64);
	ck_assert_uint_gt(rows, SPANS_LEAST);
	batch_free(&b);
	for (uint32_t i = 0; i < 100; i++) {
		old.correlation = 1 + i;
		put_launch(&lane, P_A, c + 1, 1 + i, 0);
		lane_put(&lane, REC_KERNEL, 0, N_KERN, &old, sizeof(old));
	}
	flush();
	b = collect();
	ck_assert_uint_ge(b.cell.n, 32);
	batch_free(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_spans");
	TCase *c = tcase_create("spans");

	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_standing_session_outlives_a_boot);
	tcase_add_test(c, what_waits_leaves_after_a_boot);
	tcase_add_test(c, time_of_many_activations);
	tcase_add_test(c, a_session_without_a_member_is_refused);
	tcase_add_test(c, spans_of_a_job_have_a_ceiling);
	suite_add_tcase(s, c);
	return s;
}
