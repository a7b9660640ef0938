/* SPDX-License-Identifier: MIT. fold_bursts.c: a timeline says what was summed: one burst for all sums of a
 * lane's owner, in each chunk and phase, none counted twice, and none lost with a restart. */
#include "chunks.h"
#include "fold_shop.h"
#include "hist.h"
#include "part.h"
#include "process.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "trace.h"

#include "fold_job.h" /* last: its globals */

static struct kit_lane sums;

static void begin(void)
{
	struct j_verb *v;

	setup();
	sums = (struct kit_lane){.lane = 2};
	v = tape_verb(&t, VERB_START, 1, 10);
	v->data = SESSION_TRACE;
	fold_take(f, &t);
}

/* Of the job's clock, which is in ns: n events of 50 ns. */
static struct rec_sum sum_of(uint64_t opened, uint64_t last, uint32_t n)
{
	const uint32_t b = hist_bucket(50);
	struct rec_sum r = {.opened = opened,
		.last = last,
		.time = 50 * (uint64_t)n,
		.min = 50,
		.max = 50,
		.first = b - b % SUM_BUCKETS};

	r.count[b % SUM_BUCKETS] = n;
	return r;
}

static void grow(struct rec_sum *r, uint64_t last, uint32_t n)
{
	r->count[hist_bucket(50) % SUM_BUCKETS] += n;
	r->time += 50 * (uint64_t)n;
	r->last = last;
}

static void put_sum(struct rec_sum *r, uint32_t path)
{
	lane_put(&sums, REC_SUM, 0, path, r, sizeof(*r));
}

static void stand(void)
{
	tape_sums(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
}

static void put_owner(uint32_t tid, uint32_t generation)
{
	struct rec_thread r = {.clock = 1, .tid = tid, .generation = generation};

	lane_put(&sums, REC_THREAD, THREAD_SUMS, NAME_NONE, &r, sizeof(r));
}

static struct trace_chunk chunk_of(const struct batch *b, uint32_t at)
{
	struct trace_chunk c;
	struct err e;

	ck_assert_uint_gt(b->trace.n, at);
	ck_assert_int_eq(trace_chunk_read(b->trace.row[at].bytes, b->trace.row[at].n, &c, &e), 0);
	return c;
}

static void is_burst(
	const struct trace_chunk *c, uint32_t at, struct trace_burst want, uint32_t tid)
{
	const struct trace_burst *b = &c->burst[at];

	ck_assert_uint_gt(c->n_bursts, at);
	ck_assert_uint_eq(b->begin, want.begin);
	ck_assert_uint_eq(b->end, want.end);
	ck_assert_uint_eq(b->n, want.n);
	ck_assert_uint_eq(b->segment, want.segment);
	ck_assert_uint_eq(c->thread[b->thread].tid, tid);
}

/* The chunk is as the store has it, after the only collect or each of them. */
static void has_one(uint64_t from, uint64_t to, uint64_t n)
{
	struct batch b = collect();
	struct trace_chunk c = chunk_of(&b, 0);

	ck_assert_uint_eq(b.trace.n, 1);
	ck_assert_uint_eq(b.trace.row[0].events, 0);
	ck_assert_uint_eq(c.n_bursts, 1);
	is_burst(&c, 0, (struct trace_burst){.begin = from, .end = to, .n = n}, 77);
	ck_assert_uint_eq(f->session[0]->part[0]->counted[NOTE_SUMMED], n);
	trace_chunk_fini(&c);
	batch_free(&b);
}

/* Two paths and a number, seen as they grow, and final. */
START_TEST(one_of_a_lane)
{
	struct rec_sum a = sum_of(100, 180, 3), b = sum_of(90, 150, 5);
	struct rec_total total = {.opened = 120, .last = 170, .count = 2, .name = N_INC};
	struct batch none;

	put_sum(&a, P_A);
	put_sum(&b, P_AB);
	lane_put(&sums, REC_TOTAL, METRIC_I64, P_A, &total, sizeof(total));
	stand();
	has_one(90, 180, 10);
	put_sum(&a, P_A); /* nothing more came */
	stand();
	none = collect();
	ck_assert_uint_eq(none.trace.n, 0);
	batch_free(&none);
	grow(&a, 300, 4);
	put_sum(&a, P_A);
	grow(&b, 320, 1);
	put_sum(&b, P_AB);
	total.count++;
	lane_put(&sums, REC_TOTAL, METRIC_I64, P_A, &total, sizeof(total));
	tape_lane(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
	has_one(90, 320, 16);
	tape_end(&t, job.ring, 2000, END_KILLED, 9);
	fold_take(f, &t);
	has_one(90, 320, 16); /* closed with the process */
}
END_TEST

/* Another phase, and another owner of the lane. */
START_TEST(cut)
{
	struct rec_sum a = sum_of(5, 8, 9), b = sum_of(100, 140, 3), c = sum_of(200, 240, 4),
		       d = sum_of(300, 310, 1);
	struct trace_chunk k;
	struct batch got;

	put_sum(&a, P_A); /* the session began at 10 */
	put_sum(&b, P_A);
	tape_lane(&t, job.ring, 145, &sums);
	fold_take(f, &t);
	verb(VERB_PHASE, 1, 150);
	put_sum(&c, P_A);
	put_owner(88, 2);
	put_sum(&d, P_A);
	tape_lane(&t, job.ring, 400, &sums);
	fold_take(f, &t);
	got = collect();
	k = chunk_of(&got, 0);
	ck_assert_uint_eq(k.n_bursts, 3);
	is_burst(&k, 0, (struct trace_burst){100, 140, 3, 0, 0}, 77);
	is_burst(&k, 1, (struct trace_burst){200, 240, 4, 0, 1}, 77);
	is_burst(&k, 2, (struct trace_burst){300, 310, 1, 0, 1}, 88);
	trace_chunk_fini(&k);
	batch_free(&got);
}
END_TEST

/* What a live reader found half there, and what a hostile job says. */
START_TEST(last_is_not_believed)
{
	static const uint64_t said[] = {0, 99, UINT64_MAX, (uint64_t)INT64_MAX + 1};
	struct rec_sum a = sum_of(100, said[_i], 3);

	put_sum(&a, P_A);
	stand();
	has_one(100, 100, 3);
	grow(&a, 200, 1);
	put_sum(&a, P_A);
	stand();
	has_one(100, 200, 4);
	ck_assert_uint_eq(f->process[0]->bad, 0);
}
END_TEST

/* A chunk is full of them: the next one begins, and every event is in one of the two. */
START_TEST(ceiling)
{
	enum { MORE = TRACE_BURSTS_MAX + 7 };
	struct trace_chunk c;
	struct batch b;
	uint64_t n = 0;
	uint32_t i, k;

	for (i = 0; i < MORE; i++) {
		struct rec_sum a = sum_of(1000 + i * 100, 1050 + i * 100, 2);

		put_owner(100 + i % 3, i + 2);
		put_sum(&a, P_A);
		tape_lane(&t, job.ring, 2000 + i * 100, &sums);
		fold_take(f, &t);
	}
	b = collect();
	ck_assert_uint_eq(b.trace.n, 2);
	for (i = 0; i < 2; i++) {
		c = chunk_of(&b, i);
		ck_assert_uint_eq(c.n_bursts, i == 0 ? TRACE_BURSTS_MAX : 7);
		for (k = 0; k < c.n_bursts; k++)
			n += c.burst[k].n;
		trace_chunk_fini(&c);
	}
	ck_assert_uint_eq(n, 2 * MORE);
	ck_assert_uint_eq(f->session[0]->part[0]->counted[NOTE_SUMMED], n);
	batch_free(&b);
}
END_TEST

/* Without a timeline there are none, and nothing is noted. */
START_TEST(without_a_timeline)
{
	struct rec_sum a = sum_of(100, 180, 3);
	struct batch b;

	start(2, 10);
	put_sum(&a, P_A);
	stand();
	b = collect();
	ck_assert_uint_eq(b.trace.n, 1);
	ck_assert_int_eq(b.trace.row[0].session, 1);
	ck_assert_uint_eq(f->session[1]->part[0]->counted[NOTE_SUMMED], 0);
	batch_free(&b);
}
END_TEST

/* What was stored stays in its chunk; the next one has what came since then. */
START_TEST(restored)
{
	struct rec_sum a = sum_of(100, 180, 3);
	struct shop shop = {0};
	struct trace_chunk c;
	struct batch b;

	put_sum(&a, P_A);
	stand();
	b = collect();
	shop_put(&shop, &b);
	fold_free(f);
	f = fold_of(NULL);
	b = shop_load(&shop, true);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	put_sum(&a, P_A);
	stand();
	b = collect();
	ck_assert_uint_eq(b.trace.n, 0);
	batch_free(&b);
	grow(&a, 260, 2);
	put_sum(&a, P_A);
	tape_lane(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
	b = collect();
	c = chunk_of(&b, 0);
	ck_assert_uint_eq(b.trace.row[0].number, 1);
	is_burst(&c, 0, (struct trace_burst){180, 260, 2, 0, 0}, 77);
	ck_assert_uint_eq(f->session[0]->part[0]->counted[NOTE_SUMMED], 5);
	trace_chunk_fini(&c);
	batch_free(&b);
	shop_free(&shop);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("bursts");
	TCase *c = tcase_create("bursts");

	tcase_add_checked_fixture(c, begin, teardown);
	tcase_add_test(c, one_of_a_lane);
	tcase_add_test(c, cut);
	tcase_add_loop_test(c, last_is_not_believed, 0, 4);
	tcase_add_test(c, ceiling);
	tcase_add_test(c, without_a_timeline);
	tcase_add_test(c, restored);
	suite_add_tcase(s, c);
	return s;
}
