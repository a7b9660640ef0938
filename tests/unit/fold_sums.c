/* SPDX-License-Identifier: MIT. fold_sums.c: sums, as they grow and when they are final: counted once,
 * where they belong. */
#include "durations.h"
#include "fold_shop.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

#include "fold_job.h" /* last: its globals */

static struct kit_lane sums;

static void begin(void)
{
	setup();
	sums = (struct kit_lane){.lane = 2};
	start(1, 10);
}

/* Of the job's clock, which is in ns. */
static struct rec_sum sum_of(uint64_t opened, uint64_t ns, uint32_t n)
{
	const uint32_t b = hist_bucket(ns);
	struct rec_sum r = {.opened = opened,
		.last = opened,
		.time = ns * n,
		.min = ns,
		.max = ns,
		.first = b - b % SUM_BUCKETS};

	r.count[b % SUM_BUCKETS] = n;
	return r;
}

static void add(struct rec_sum *r, uint64_t ns, uint32_t n)
{
	r->count[hist_bucket(ns) - r->first] += n;
	r->time += ns * n;
	r->min = ns < r->min ? ns : r->min;
	r->max = ns > r->max ? ns : r->max;
}

static void stands(struct rec_sum *r, bool final)
{
	lane_put(&sums, REC_SUM, 0, P_A, r, sizeof(*r));
	if (final)
		tape_lane(&t, job.ring, 1000, &sums);
	else
		tape_sums(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
}

/* Of P_A, the only one. */
static void counts(uint32_t segment, uint64_t count, uint64_t ns)
{
	const struct tree *tree = &f->session[0]->part[0]->tree;
	const struct cell *c = NULL;
	struct hist_counts h;
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < tree->n_cells; i++)
		c = tree_at(tree, i)->segment == segment ? tree_at(tree, i) : c;
	ck_assert_ptr_nonnull(c);
	ck_assert_uint_eq(c->count, count);
	ck_assert_uint_eq(c->sum_ns, ns);
	durations_get(c, &h);
	for (i = 0; i < h.n; i++)
		n += h.count[h.first + i];
	ck_assert_uint_eq(n, count);
	ck_assert(h.first <= hist_bucket(c->min_ns));
	ck_assert(h.first + h.n > hist_bucket(c->max_ns));
}

START_TEST(grows)
{
	struct rec_sum r = sum_of(100, 50, 3);

	stands(&r, false);
	counts(0, 3, 150);
	stands(&r, false); /* the same once more */
	add(&r, 40, 5);
	stands(&r, false);
	counts(0, 8, 350);
	ck_assert_uint_eq(f->process[0]->n_sums, 1);
	add(&r, 60, 1000);
	stands(&r, true);
	counts(0, 1008, 60350);
	ck_assert_uint_eq(f->process[0]->n_sums, 0);
	ck_assert_uint_eq(f->process[0]->events, 1008);
	r = sum_of(200, 3000, 2); /* the next one of that path, never seen open */
	stands(&r, true);
	counts(0, 1010, 66350);
	ck_assert_uint_eq(f->process[0]->bad, 0);
}
END_TEST

/* By the clock at which it was opened, also what came later. */
START_TEST(cut)
{
	struct rec_sum before = sum_of(5, 3, 7), in = sum_of(100, 3, 2), after = sum_of(200, 3, 4);

	stands(&before, true); /* the session began at 10 */
	stands(&in, false);
	verb(VERB_PHASE, 1, 150);
	add(&in, 3, 1);
	stands(&in, true);
	stands(&after, true);
	counts(0, 3, 9);
	verb(VERB_FINALIZE, 1, 250);
	add(&after, 3, 1);
	stands(&after, true);
	after = sum_of(260, 3, 9);
	stands(&after, true);
	counts(1, 9, 27);
	ck_assert_uint_eq(f->process[0]->events, 28);
}
END_TEST

/* A number that falls, buckets that are none, a path that is none: counted as bad, and no more. */
START_TEST(lies)
{
	struct rec_sum r = sum_of(100, 50, 3), less = sum_of(100, 50, 2);
	struct rec_total total = {.opened = 100, .count = 1, .name = N_INC};

	stands(&r, false);
	stands(&less, false);
	less = r;
	less.time--;
	stands(&less, false);
	less = r;
	less.first = 1;
	stands(&less, false);
	less.first = HIST_BUCKETS;
	stands(&less, false);
	less = r;
	less.time = UINT64_MAX;
	stands(&less, false);
	less = r;
	less.min = less.max + 1;
	stands(&less, false);
	lane_put(&sums, REC_SUM, 0, 99, &r, sizeof(r));
	tape_sums(&t, job.ring, 1000, &sums);
	lane_put(&sums, REC_SUM, 0, PATH_ROOT, &r, sizeof(r));
	tape_sums(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
	ck_assert_uint_eq(f->process[0]->bad, 8);
	lane_put(&sums, REC_TOTAL, METRIC_I64, P_A, &total, sizeof(total)); /* where the other is */
	tape_sums(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
	counts(0, 3, 150);
	stands(&r, true);
	counts(0, 3, 150);
}
END_TEST

static void total_is(struct rec_total *r, uint8_t type, bool final)
{
	const uint32_t path = r->name == N_EXC ? P_AB : P_A;

	lane_put(&sums, REC_TOTAL, type, path, r, sizeof(*r));
	if (final)
		tape_lane(&t, job.ring, 1000, &sums);
	else
		tape_sums(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
}

static struct metric metric_of(uint32_t at)
{
	const struct tree *tree = &f->session[0]->part[0]->tree;

	ck_assert_uint_gt(tree->n_metrics, at);
	return tree->metric[at];
}

static uint64_t bits_of(double v)
{
	uint64_t b;

	memcpy(&b, &v, sizeof(b));
	return b;
}

START_TEST(totals)
{
	struct rec_total r = {.opened = 100, .count = 2, .sum = (uint64_t)-30, .name = N_INC};

	total_is(&r, METRIC_I64, false);
	ck_assert_int_eq((int64_t)metric_of(0).bits, -30);
	r.count = 5;
	r.sum = 12;
	total_is(&r, METRIC_I64, false);
	total_is(&r, METRIC_I64, true);
	ck_assert_int_eq((int64_t)metric_of(0).bits, 12);
	ck_assert_uint_eq(metric_of(0).count, 5);
	r = (struct rec_total){.opened = 100, .count = 1, .sum = bits_of(1.5), .name = N_EXC};
	total_is(&r, METRIC_F64, false);
	r.sum = bits_of(4);
	r.count++;
	total_is(&r, METRIC_F64, true);
	ck_assert_uint_eq(metric_of(1).bits, bits_of(4));
	r = (struct rec_total){.opened = 100, .count = 9, .sum = 99, .latest = 7, .name = N_PTY};
	total_is(&r, METRIC_I64, true);
	ck_assert_uint_eq(metric_of(2).bits, 7);
	ck_assert_uint_eq(metric_of(2).count, 9);
	r = (struct rec_total){.opened = 100, .count = 2, .latest = N_B, .name = N_PTY};
	total_is(&r, METRIC_STR, true);
	ck_assert_str_eq(metric_of(2).text, "b");
	ck_assert_uint_eq(f->process[0]->bad, 0);
}
END_TEST

/* Calls, of a session that has them; nothing is below a call. */
START_TEST(of_calls)
{
	static const struct ring_path below[] = {
		{P_A, N_KERN, PATH_KIND_CALL, 2, 0}, {9, N_B, PATH_KIND_SCOPE, 3, 0}};
	struct rec_sum r = sum_of(100, 50, 3), bad = r;
	const struct row_cell *c;
	struct batch b;

	tape_paths(&t, job.ring, 9, 2, below);
	tape_verb(&t, VERB_START, 2, 10)->switches = SWITCH_API;
	fold_take(f, &t);
	lane_put(&sums, REC_SUM, 0, 9, &r, sizeof(r));
	lane_put(&sums, REC_SUM, 0, 10, &bad, sizeof(bad));
	tape_lane(&t, job.ring, 1000, &sums);
	fold_take(f, &t);
	b = collect();
	c = cell_at(&b, 2, 0, CLASS_API, "ROOT/a/kern");
	ck_assert(c != NULL && c->count == 3 && c->sum_ns == 150);
	ck_assert_uint_eq(b.cell.n, 1);           /* session 1 has none of it */
	ck_assert_uint_eq(f->process[0]->bad, 2); /* the path, and what stands on it */
	batch_free(&b);
}
END_TEST

/* What is open survives a restart as far as it was counted. */
START_TEST(restored)
{
	struct rec_sum r = sum_of(100, 50, 3);
	struct shop shop = {0};
	struct batch b;

	stands(&r, false);
	b = collect();
	shop_put(&shop, &b);
	fold_free(f);
	f = fold_of(NULL);
	b = shop_load(&shop, true);
	ck_assert_int_eq(fold_restore(f, &b), 0);
	batch_free(&b);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	fold_take(f, &t);
	ck_assert_uint_eq(f->process[0]->n_sums, 1);
	stands(&r, false);
	add(&r, 50, 1);
	stands(&r, true);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1);
	ck_assert_uint_eq(b.cell.row[0].count, 4);
	ck_assert_uint_eq(b.cell.row[0].sum_ns, 200);
	batch_free(&b);
	shop_free(&shop);
}
END_TEST

/* Without room to remember them, they count when they are final. */
START_TEST(no_room)
{
	const struct fold_limits none = {.bytes = 1};
	struct rec_sum r = sum_of(100, 50, 3);

	start_small(&none);
	stands(&r, false);
	ck_assert_uint_eq(f->process[0]->n_sums, 0);
	ck_assert_uint_eq(f->process[0]->events, 0);
	stands(&r, true);
	ck_assert_uint_eq(f->process[0]->events, 3);
}
END_TEST

/* Whatever came before: one duration, some side by side, or none. */
START_TEST(beside_records)
{
	struct rec_sum r = sum_of(100, 50, 300);

	put_scope(&lane, P_A, 20, 1020);
	put_scope(&lane, P_A, 20, 1020);
	tape_lane(&t, job.ring, 2000, &lane);
	fold_take(f, &t);
	stands(&r, true);
	counts(0, 302, 17000);
	put_scope(&lane, P_A, 20, 21);
	put_scope(&lane, P_A, 20, 900020);
	tape_lane(&t, job.ring, 900000, &lane);
	fold_take(f, &t);
	counts(0, 304, 917001);
	r = sum_of(100, 70, 70000);
	add(&r, 55, 1);
	stands(&r, true);
	counts(0, 70305, 917001 + 4900055);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("sums");
	TCase *c = tcase_create("sums");

	tcase_add_checked_fixture(c, begin, teardown);
	tcase_add_test(c, grows);
	tcase_add_test(c, cut);
	tcase_add_test(c, lies);
	tcase_add_test(c, totals);
	tcase_add_test(c, restored);
	tcase_add_test(c, of_calls);
	tcase_add_test(c, no_room);
	tcase_add_test(c, beside_records);
	suite_add_tcase(s, c);
	return s;
}
