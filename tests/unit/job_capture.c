/* SPDX-License-Identifier: MIT. job_capture.c: numbers that a program gives while it captures a CUDA
 * graph: they are kept for the graph's runs, and each run brings them. */
#include "job_engine.h"

#include "capture.h"

static uint32_t A, M, N;

static void ready(void)
{
	A = t_new("a");
	M = t_new("m");
	N = t_new("n");
	t_open(NULL, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static void i64(uint32_t name, int64_t value)
{
	t_e->metric(t_thread(), name, METRIC_I64, (uint64_t)value);
}

/* What came since the last look, as text: "m=5@a c7", and "lost 3". */
static char said[4096];

static void say(void *unused, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_captured *r = (const void *)rec;
	const struct rec_metric *m = (const void *)rec;
	const struct rec_lost *l = (const void *)rec;
	const size_t used = strlen(said);

	(void)unused;
	(void)lane;
	if (REC_TYPE(*rec) == REC_CAPTURED)
		(void)snprintf(said + used, sizeof(said) - used, "%s=%d@%s c%u;",
			view_name(v, r->name), (int)r->value, view_where(v, REC_ID(*rec)),
			r->correlation);
	if (REC_TYPE(*rec) == REC_METRIC)
		(void)snprintf(said + used, sizeof(said) - used, "%s=%d@%s now;",
			view_name(v, m->name), (int)m->value, view_where(v, REC_ID(*rec)));
	if (REC_TYPE(*rec) == REC_LOST)
		(void)snprintf(said + used, sizeof(said) - used, "lost %d %d;", (int)REC_ID(*rec),
			(int)l->count);
}

static const char *news(void)
{
	said[0] = '\0';
	(void)view_walk(&t_v, say, NULL);
	return said;
}

/* One run of a node that has `given`. */
static const char *run(uint32_t given, uint32_t correlation)
{
	ck_assert(worker_in(1000));
	agent_given_put(given, correlation, 3, 1000);
	agent_given_tell();
	worker_out();
	return news();
}

START_TEST(each_run_brings_what_was_given)
{
	uint32_t given, later;

	ready();
	ck_assert_uint_eq(t_e->capturing(t_thread()), 0);
	i64(M, 1);
	ck_assert_str_eq(news(), "m=1@ now;");
	agent_capture_began();
	ck_assert_uint_eq(t_e->capturing(t_thread()), 1);
	ck_assert_uint_eq(agent_capture_given(), 0); /* a node before anything is given */
	t_enter(A);
	i64(M, 5);
	i64(N, -6);
	t_exit();
	given = agent_capture_given();
	ck_assert_uint_ne(given, 0);
	ck_assert_uint_eq(agent_capture_given(), 0); /* it is one node's */
	i64(M, 7);
	later = agent_capture_given();
	ck_assert_uint_eq(agent_capture_ended(true), 0);
	ck_assert_str_eq(news(), "");
	ck_assert_str_eq(run(given, 7), "m=5@a c7;n=-6@a c7;");
	ck_assert_str_eq(run(later, 7), "m=7@[] c7;");
	ck_assert_str_eq(run(given, 8), "m=5@a c8;n=-6@a c8;");
	i64(M, 2);
	ck_assert_str_eq(news(), "m=2@ now;"); /* it is over */
	agent_given_hold(given);
	agent_given_drop(given);
	ck_assert_str_eq(run(given, 9), "m=5@a c9;n=-6@a c9;");
	agent_given_drop(given);
	agent_given_drop(later);
}
END_TEST

START_TEST(what_is_left_at_the_end)
{
	uint32_t given;

	ready();
	agent_capture_began();
	i64(M, 1);
	given = agent_capture_given();
	i64(N, 2); /* no node after it: the last one's too */
	ck_assert_uint_eq(agent_capture_ended(true), 0);
	ck_assert_str_eq(run(given, 7), "m=1@[] c7;n=2@[] c7;");
	agent_capture_began();
	agent_capture_began(); /* on another stream */
	i64(M, 3);
	ck_assert_uint_eq(agent_capture_ended(false), 0);
	given = agent_capture_ended(true); /* the backend knows a node, or none */
	ck_assert_str_eq(run(given, 8), "m=3@[] c8;");
	agent_given_lost(given);
	ck_assert_str_eq(run(0, 9), "lost 17 1;");
}
END_TEST

static void begin_and_give(void)
{
	agent_capture_began();
	i64(M, 4);
}

START_TEST(a_capture_that_another_thread_ended)
{
	ready();
	t_run(begin_and_give); /* and it is gone */
	i64(M, 1);
	ck_assert_str_eq(news(), "m=1@ now;");
	ck_assert_uint_eq(agent_capture_ended(true), 0);
	ck_assert_str_eq(run(0, 1), "lost 17 1;");
	ck_assert_uint_eq(atomic_load(&core.captures), 0);
	agent_capture_began();
	i64(M, 2);
	agent_capture_forget(); /* nobody watches graphs any more */
	i64(M, 3);
	ck_assert_str_eq(news(), "m=3@ now;");
	ck_assert_uint_eq(agent_capture_ended(true), 0);
}
END_TEST

START_TEST(room_is_bounded)
{
	uint32_t given, i;

	ready();
	agent_capture_began();
	for (i = 0; i < (1u << 16) + 5; i++)
		i64(M, 1);
	given = agent_capture_given();
	ck_assert_str_eq(run(0, 1), "lost 17 5;");
	agent_given_drop(given);
	i64(M, 2); /* the end of the capture holds it still */
	ck_assert_uint_eq(agent_capture_given(), 0);
	ck_assert_str_eq(run(0, 1), "lost 17 1;");
	ck_assert_uint_eq(agent_capture_ended(true), 0);
	agent_capture_began();
	i64(M, 3);
	given = agent_capture_given();
	ck_assert_str_eq(run(given, 2), "m=3@[] c2;");
}
END_TEST

START_TEST(sessions_that_were_inactive)
{
	const struct session_options o = {0};
	const struct ring_path *p;
	struct pd_thread *t;
	uint32_t given[4], i;
	static const struct {
		uint32_t verb, session;
		const char *names;
	} steps[4] = {{SESSION_DEACTIVATE, 0, "0"}, {SESSION_DEACTIVATE, SESSION_ALL, "0,1"},
		{SESSION_ACTIVATE, 0, "1"}, {SESSION_FINALIZE, 1, ""}};

	ready();
	t = t_thread();
	ck_assert_int_eq(t_e->session(t, SESSION_START, 0, A, &o), 0);
	ck_assert_int_eq(t_e->session(t, SESSION_START, 1, A, &o), 0);
	agent_capture_began();
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(t_e->session(t, steps[i].verb, steps[i].session, 0, NULL), 0);
		i64(M, 1);
		given[i] = agent_capture_given();
		p = view_path(&t_v, agent_where_captured());
		ck_assert_str_eq(view_name(&t_v, p->name), steps[i].names);
		ck_assert_uint_eq(p->kind, PATH_KIND_EXCEPT); /* at the root always */
	}
	(void)agent_capture_ended(true);
	(void)news();
	ck_assert_str_eq(run(given[3], 7), "m=1@[] c7;");
	view_check_tables(&t_v);
}
END_TEST

/* --- what the GPU writes ------------------------------------------------------------------------ */

struct on_ring {
	uint64_t *count;
	struct {
		_Atomic uint64_t tag, value;
	} * entry;
	uint64_t entries;
};

static struct on_ring ring_of(uint32_t device)
{
	uint64_t bytes;
	uint8_t *p = t_e->captured_ring(device, &bytes);

	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_eq(t_e->captured_ring(device, &bytes), p);
	return (struct on_ring){
		(void *)p, (void *)(p + 64), (bytes - 64) / sizeof(*(struct on_ring){0}.entry)};
}

/* As the kernel does. */
static void gpu_writes(struct on_ring *r, uint32_t number, uint64_t value)
{
	const uint64_t place = __atomic_fetch_add(r->count, 1, __ATOMIC_SEQ_CST);

	r->entry[place % r->entries].tag = 0;
	r->entry[place % r->entries].value = value;
	r->entry[place % r->entries].tag = (uint64_t)number << 32 | (uint32_t)place;
}

static uint32_t give(uint32_t name, uint32_t device, uint32_t number)
{
	ck_assert_uint_eq(
		t_e->captured(t_thread(), name, METRIC_I64, (uint64_t)device << 32 | number), 1);
	return agent_capture_given();
}

START_TEST(runs_read_what_the_gpu_wrote)
{
	struct on_ring r, other;
	uint32_t a, b, c;

	ready();
	ck_assert_uint_eq(t_e->captured(t_thread(), M, METRIC_I64, 1), 0); /* nothing is captured */
	r = ring_of(0);
	other = ring_of(15);
	ck_assert_ptr_null(t_e->captured_ring(16, &(uint64_t){0}));
	agent_capture_began();
	a = give(M, 0, 1);
	b = give(N, 0, 2);
	c = give(N, 15, 2);
	(void)agent_capture_ended(true);
	gpu_writes(&r, 1, 10);
	gpu_writes(&other, 2, 70);
	gpu_writes(&r, 2, 20);
	gpu_writes(&r, 1, 11);
	gpu_writes(&r, 2, 21);
	ck_assert_str_eq(run(b, 7), "n=20@[] c7;"); /* in any order; of one number, in its own */
	ck_assert_str_eq(run(b, 8), "n=21@[] c8;");
	ck_assert_str_eq(run(a, 7), "m=10@[] c7;");
	ck_assert_str_eq(run(a, 8), "m=11@[] c8;");
	ck_assert_str_eq(run(c, 9), "n=70@[] c9;");
	ck_assert_str_eq(run(a, 9), "lost 17 1;"); /* a run that wrote nothing */
	gpu_writes(&r, 1, 12);
	ck_assert_str_eq(run(a, 10), "m=12@[] c10;");
}
END_TEST

START_TEST(what_the_gpu_wrote_over_is_counted)
{
	struct on_ring r;
	uint32_t a;
	uint64_t i;

	ready();
	r = ring_of(0);
	agent_capture_began();
	a = give(M, 0, 1);
	(void)agent_capture_ended(true);
	for (i = 0; i < 3 * r.entries / 2; i++) /* nobody looks meanwhile */
		gpu_writes(&r, 1, i);
	ck_assert_str_eq(run(a, 1), ((void)snprintf(said, sizeof(said), "m=%u@[] c1;lost 17 %u;",
					     (unsigned)(r.entries / 2), (unsigned)(r.entries / 2)),
					    strdup(said)));
	agent_capture_forget();
	agent_capture_began();
	a = give(N, 0, 2);
	(void)agent_capture_ended(true);
	for (i = 0; i < r.entries / 2; i++) /* of a graph that runs on though nobody watches it */
		gpu_writes(&r, 1, i);
	gpu_writes(&r, 2, 77);
	ck_assert_str_eq(run(a, 2), "n=77@[] c2;");
}
END_TEST

static void all(TCase *c)
{
	tcase_add_test(c, each_run_brings_what_was_given);
	tcase_add_test(c, what_is_left_at_the_end);
	tcase_add_test(c, a_capture_that_another_thread_ended);
	tcase_add_test(c, room_is_bounded);
	tcase_add_test(c, sessions_that_were_inactive);
	tcase_add_test(c, runs_read_what_the_gpu_wrote);
	tcase_add_test(c, what_the_gpu_wrote_over_is_counted);
}

Suite *suite(void)
{
	static void (*const tests[])(TCase *) = {all, NULL};

	return t_suite("job_capture", tests);
}
