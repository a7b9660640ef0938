/* SPDX-License-Identifier: MIT. job_sums.c: tests of sums: that all of a full lane's events are in
 * them, once, and what cuts them. */
#include "job_engine.h"
#include "lane.h"
#include "sums.h"

static uint32_t A, B, NUMBER;

static const struct engine_open small = {.n_lanes = 4, .lane_bytes = RING_LANE_BYTES_MIN};

static struct ring_ctl *control(void)
{
	return (struct ring_ctl *)((uintptr_t)t_v.ctl - offsetof(struct ring_ctl, lane));
}

static void ready(const struct engine_open *o)
{
	A = t_new("a");
	B = t_new("b");
	NUMBER = t_new("number");
	t_abi = RING_ABI;
	t_open(o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static void pairs(uint32_t name, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		t_enter(name);
		t_exit();
	}
}

/* What sums say: of scopes, of metrics; by how many records. */
struct sums {
	uint64_t scopes, metrics, time, surplus;
	uint64_t number; /* modulo 2^64 */
	uint32_t n_sums, n_totals;
	uint64_t opened; /* the earliest */
};

static void sum_add(struct sums *x, const uint64_t *rec)
{
	const struct rec_sum *s = (const void *)rec;
	const struct rec_total *t = (const void *)rec;
	uint64_t n = 0;

	if (REC_TYPE(*rec) == REC_SUM) {
		for (uint32_t i = 0; i < SUM_BUCKETS; i++)
			n += s->count[i];
		ck_assert(s->min <= s->max && s->max <= s->time && s->time <= s->max * n);
		ck_assert_uint_eq(s->first % SUM_BUCKETS, 0);
		ck_assert_uint_lt(s->first, HIST_BUCKETS);
		ck_assert_uint_ge(s->last, s->opened);
		x->scopes += n;
		x->time += s->time;
		x->n_sums++;
		x->opened = x->opened == 0 || s->opened < x->opened ? s->opened : x->opened;
	} else if (REC_TYPE(*rec) == REC_TOTAL) {
		n = t->count;
		x->metrics += n;
		x->number += t->sum;
		x->n_totals++;
	}
	if ((REC_FLAGS(*rec) & SUM_SURPLUS) != 0)
		x->surplus += n;
}

static void final_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	(void)v;
	(void)lane;
	sum_add(arg, rec);
}

/* Those that are still open. */
static struct sums open_sums(void)
{
	const uint64_t cap = t_v.h->lane_bytes;
	struct sums x = {0};

	for (uint32_t i = 0; i < t_v.h->n_lanes; i++) {
		const struct ring_lane *l = view_lane(&t_v, i);
		const unsigned char *data = t_v.p + t_v.at.data + i * cap;
		uint64_t at = l->tail;

		while (at < l->sums) {
			const uint64_t *rec = (const void *)(data + at % cap);

			ck_assert_uint_eq(REC_LAP(*rec), at / cap % 256);
			if (REC_TYPE(*rec) != REC_PAD)
				sum_add(&x, rec);
			at += REC_BYTES(*rec) != 0 ? REC_BYTES(*rec) : REC_ID(*rec);
		}
		ck_assert(at == l->tail || at == l->sums);
		ck_assert_uint_eq(l->redo.pos, 0);
	}
	return x;
}

/* All that there is: records, final sums, open ones. */
static struct sums balance(uint64_t attempted)
{
	static struct sums final;
	struct sums open;

	(void)view_walk(&t_v, final_fn, &final);
	open = open_sums();
	ck_assert_uint_eq(t_v.n[REC_SCOPE] + final.scopes + open.scopes, attempted);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	view_check_tables(&t_v);
	open.surplus += final.surplus;
	return open;
}

static void visit(void)
{
	control()->sums += 1ull << 32;
}

START_TEST(nothing_is_dropped)
{
	struct sums open;

	ready(&small);
	pairs(A, 100000);
	open = balance(100000);
	ck_assert_uint_gt(open.scopes, 90000);
	ck_assert_uint_le(open.n_sums, 28);
	pairs(A, 100000); /* sums go on, whatever was drained */
	ck_assert_uint_gt(open_sums().scopes, 190000);
	(void)balance(200000);
}
END_TEST

START_TEST(a_daemon_without_sums)
{
	ready(&small);
	control()->abi = RING_ABI_MAJOR | RING_ABI_ASKS;
	pairs(A, 20000);
	ck_assert_uint_gt(view_dropped(&t_v), 0);
	ck_assert_uint_eq(open_sums().scopes, 0);
	control()->abi = RING_ABI;
	pairs(A, 200);
	ck_assert_uint_gt(open_sums().scopes, 0);
	control()->abi = RING_ABI_MAJOR | RING_ABI_ASKS; /* an older one took over */
	control()->sums++;
	(void)view_walk(&t_v, NULL, NULL);
	pairs(A, 10);
	ck_assert_uint_eq(open_sums().scopes, 0);
}
END_TEST

/* Less than half a lane since the last visit, and it is records again. */
START_TEST(records_again)
{
	uint64_t records;

	ready(&small);
	pairs(A, 100000);
	(void)balance(100000);
	visit();
	pairs(A, 1);
	ck_assert_uint_gt(open_sums().scopes, 0); /* it was pressed */
	pairs(A, 1000);
	visit();
	(void)balance(101001);
	records = t_v.n[REC_SCOPE];
	pairs(A, 1000);
	ck_assert_uint_eq(open_sums().scopes, 0);
	(void)balance(102001);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], records + 1000);
}
END_TEST

/* The daemon asks for sums: from the end of a quarter on, and as long as it does. */
START_TEST(wanted)
{
	ready(&small);
	control()->want = WANT_ALL | WANT_SUMS;
	pairs(A, 600);
	ck_assert_uint_eq(open_sums().scopes, 0);
	pairs(A, 400);
	ck_assert_uint_gt(open_sums().scopes, 200);
	visit();
	pairs(A, 10);
	visit();
	pairs(A, 10);
	ck_assert_uint_gt(open_sums().scopes, 200);
	control()->want = WANT_ALL;
	visit();
	pairs(A, 1);
	ck_assert_uint_eq(open_sums().scopes, 0);
	(void)balance(1021);
}
END_TEST

/* A session of the job's own, and one of others', close what is open. */
START_TEST(cuts)
{
	const struct session_options o = {.data = SESSION_TREE};
	uint64_t before;
	struct sums open;

	ready(&small);
	pairs(A, 100000);
	t_enter(B);
	(void)balance(100000);
	before = agent_clock();
	ck_assert_int_eq(t_e->session(t_thread(), SESSION_START, 1, A, &o), 0);
	ck_assert_uint_gt(open_sums().scopes, 0);
	pairs(A, 3);
	open = balance(100003);
	ck_assert_uint_eq(open.scopes, 2); /* the first began before its thread knew */
	ck_assert_uint_gt(open.opened, before);
	control()->sums++;
	before = agent_clock();
	pairs(A, 5);
	open = balance(100008);
	ck_assert_uint_eq(open.scopes, 4);
	ck_assert_uint_gt(open.opened, before);
	before = t_v.n[REC_SCOPE];
	t_exit(); /* of B: on both sides, and a record */
	(void)balance(100009);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], before + 1);
}
END_TEST

static void measured(uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++)
		t_e->metric(t_thread(), NUMBER, METRIC_I64, i);
}

static uint64_t recorded, recorded_sum;

static void metric_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	final_fn(arg, v, lane, rec);
	if (REC_TYPE(*rec) != REC_METRIC)
		return;
	recorded++;
	recorded_sum += ((const struct rec_metric *)(const void *)rec)->value;
}

START_TEST(numbers)
{
	const uint64_t n = 100000;
	struct sums final = {0}, open;

	ready(&small);
	t_enter(A);
	measured(n);
	(void)view_walk(&t_v, metric_fn, &final);
	open = open_sums();
	ck_assert_uint_eq(recorded + final.metrics + open.metrics, n);
	ck_assert_uint_eq(recorded_sum + final.number + open.number, n * (n + 1) / 2);
	ck_assert_uint_eq(open.n_totals, 1);
	/* what has no sum in 64 bits begins another */
	for (int i = 0; i < 3; i++)
		t_e->metric(t_thread(), NUMBER, METRIC_I64, INT64_MAX);
	ck_assert_uint_eq(open_sums().n_totals, 4);
	ck_assert_uint_eq(open_sums().metrics, open.metrics + 3);
}
END_TEST

static uint32_t many_names[3000];

static void wide(uint32_t n, uint32_t rounds)
{
	for (uint32_t k = 0; k < rounds; k++)
		for (uint32_t i = 0; i < n; i++)
			pairs(many_names[i], 1);
}

/* More paths than a lane has room for: nothing is lost, and (other) has what found none. */
START_TEST(many_paths)
{
	struct sums open;
	char text[16];

	ready(&small);
	for (uint32_t i = 0; i < 3000; i++) {
		(void)snprintf(text, sizeof(text), "x%u", i);
		many_names[i] = t_new(text);
	}
	wide(30, 2000);
	open = balance(60000);
	ck_assert_uint_eq(open.surplus, 0);
	for (uint64_t i = 1; i <= 100; i++) {
		wide(3000, 3);
		open = balance(60000 + 9000 * i);
	}
	ck_assert_uint_gt(open.surplus, 1000);
}
END_TEST

/* A launch has room where a scope has none. */
START_TEST(launches)
{
	ready(&small);
	pairs(A, 100000);
	for (uint32_t i = 0; i < 200; i++) {
		ck_assert(agent_launch(0, i + 1, 0, 1, 0, 0));
		pairs(A, 3);
		if (i % 20 == 19)
			(void)balance(100000 + 3 * (i + 1));
	}

	ck_assert_uint_eq(t_v.n[REC_LAUNCH], 200);
}
END_TEST

/* Those that are usual are summed, below their scope; each is somewhere. */
START_TEST(calls)
{
	const struct rec_call other = {.begin = 1, .end = 2};
	struct sums final = {0}, open;
	const uint32_t n = 100000;

	ready(&small);
	t_enter(A);
	for (uint32_t i = 0; i < n; i++)
		if (!agent_called(i, agent_name("cudaCall", 8), 1, agent_clock()))
			ck_assert(agent_call(&other));
	(void)view_walk(&t_v, final_fn, &final);
	open = open_sums();
	ck_assert_uint_eq(t_v.n[REC_CALL] + t_v.n[REC_CALLED] + final.scopes + open.scopes, n);
	ck_assert_uint_gt(final.scopes + open.scopes, 90000);
	ck_assert_uint_lt(t_v.n[REC_CALL], 20);
	ck_assert_uint_eq(final.surplus + open.surplus, 0);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 0);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
	view_check_tables(&t_v);
}
END_TEST

static void thousands(void)
{
	t_enter(B);
	pairs(A, 30000);
	t_exit();
}

/* The lane of sums is closed and given back with the thread; others take it. */
START_TEST(threads_end)
{
	ready(&small);
	for (uint64_t i = 1; i <= 20; i++) {
		t_run(thousands);
		ck_assert_uint_eq(open_sums().scopes, 0);
		(void)balance(i * 30001);
	}
}
END_TEST

#define CROWD 6u

static pthread_barrier_t crowd;

static void of_a_crowd(void)
{
	pairs(B, 1); /* each has a lane before any is full */
	(void)pthread_barrier_wait(&crowd);
	pairs(A, 30000);
	(void)pthread_barrier_wait(&crowd);
}

/* More threads than a quarter of the lanes: the bursts of some leave each of them a lane for its sums. */
START_TEST(a_lane_for_the_sums_of_each)
{
	const struct engine_open o = {.n_lanes = 16, .lane_bytes = RING_LANE_BYTES_MIN};
	void (*fn)(void) = of_a_crowd;
	pthread_t th[CROWD];
	void *p;

	memcpy(&p, &fn, sizeof(p));
	ready(&o);
	ck_assert_int_eq(pthread_barrier_init(&crowd, NULL, CROWD), 0);
	for (uint32_t i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_create(&th[i], NULL, t_run_main, p), 0);
	for (uint32_t i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_join(th[i], NULL), 0);
	(void)balance(CROWD * 30001ull);
	(void)pthread_barrier_destroy(&crowd);
}
END_TEST

/* A handler that jumps away in the middle: what stands in the redo word is done. */
START_TEST(redo)
{
	struct lane *l, *s;
	struct rec_sum *r;
	struct sums open;

	ready(&small);
	pairs(A, 100000);
	l = t_thread()->engine;
	s = l->sums;
	ck_assert_ptr_nonnull(s);
	r = (void *)(s->data + (s->tail & s->mask));
	ck_assert_uint_eq(REC_TYPE(r->hdr), REC_SUM);
	s->shared->redo.count = 7ull << 32 | (r->count[7] + 1);
	s->shared->redo.sum = r->time + 10;
	s->shared->redo.value = 10;
	s->shared->redo.last = r->last;
	s->shared->redo.pos = s->tail + 1;
	r->count[7]++;                                /* half of it was done */
	t_thread()->busy = guard_mark() - (1u << 20); /* by a frame that is gone */
	pairs(A, 1);
	ck_assert_uint_eq(s->shared->redo.pos, 0);
	open = balance(100000 + 1 + 1);
	ck_assert_uint_eq(open.scopes, 1);
}
END_TEST

static void t_all(TCase *c)
{
	tcase_add_test(c, nothing_is_dropped);
	tcase_add_test(c, a_daemon_without_sums);
	tcase_add_test(c, records_again);
	tcase_add_test(c, wanted);
	tcase_add_test(c, cuts);
	tcase_add_test(c, numbers);
	tcase_add_test(c, many_paths);
	tcase_add_test(c, launches);
	tcase_add_test(c, calls);
	tcase_add_test(c, threads_end);
	tcase_add_test(c, a_lane_for_the_sums_of_each);
	tcase_add_test(c, redo);
}

Suite *suite(void)
{
	static void (*const tests[])(TCase *) = {t_all, NULL};

	return t_suite("job_sums", tests);
}
