/* SPDX-License-Identifier: MIT. job_scope.c: tests of where scopes, states, ops, contexts and
 * threads stand. */
#include "job_engine.h"

#include <setjmp.h>
#include <signal.h>

static uint32_t A, B, C, S1, S2, OP;

static void setup(void)
{
	A = t_new("a");
	B = t_new("b");
	C = t_new("c");
	S1 = t_new("s1");
	S2 = t_new("s2");
	OP = t_new("op");
}

static void ready(void)
{
	setup();
	t_open(NULL, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static void expect(struct seen *s)
{
	struct seen *all = s;
	struct {
		const char *path;
		uint64_t count;
	} want[16];
	unsigned n = 0;

	for (; s->path != NULL; s++, n++) {
		want[n].path = s->path;
		want[n].count = s->count;
		s->count = 0;
	}
	(void)view_walk(&t_v, seen_fn, all);
	for (unsigned i = 0; i < n; i++)
		ck_assert_msg(all[i].count == want[i].count, "%s: %lu scopes, not %lu",
			want[i].path, (unsigned long)all[i].count, (unsigned long)want[i].count);
	view_check_tables(&t_v);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}

START_TEST(nested_and_unbalanced)
{
	struct seen s[] = {{"a", 1, 0}, {"a/b", 2, 0}, {"c", 1, 0}, {"b", 0, 0}, {NULL, 0, 0}};

	ready();
	t_exit(); /* nothing open */
	t_enter(A);
	t_enter(B);
	t_exit();
	t_enter(B);
	t_exit();
	t_exit();
	t_exit();
	t_enter(C);
	t_exit();
	expect(s);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 4);
	ck_assert_uint_eq(s[0].flags, 1);
}
END_TEST

START_TEST(began_before)
{
	struct seen s[] = {{"a", 1, 0}, {"a/b", 1, 0}, {NULL, 0, 0}};

	setup();
	t_open(NULL, true);
	t_enter(A);
	t_enter(B);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	t_exit();
	t_exit();
	expect(s);
	ck_assert_uint_eq(s[0].flags, 1u << SCOPE_BEGAN_BEFORE);
	ck_assert_uint_eq(s[1].flags, 1u << SCOPE_BEGAN_BEFORE);
}
END_TEST

START_TEST(left_after_the_end)
{
	struct seen s[] = {{"a", 0, 0}, {"a/b", 1, 0}, {"c", 1, 0}, {NULL, 0, 0}};

	ready();
	t_enter(A);
	t_enter(B);
	t_exit();
	ck_assert_int_eq(t_e->want(0), 0);
	t_exit();
	t_enter(C); /* unseen */
	t_exit();
	t_enter(C);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	t_exit();
	expect(s);
}
END_TEST

START_TEST(unwound)
{
	struct seen s[] = {{"a", 1, 0}, {"a/b", 1, 0}, {"a/b/c", 1, 0}, {NULL, 0, 0}};
	jmp_buf out;

	ready();
	t_enter(A);
	if (setjmp(out) == 0) {
		t_enter(B);
		t_enter(C);
		longjmp(out, 1);
	}
	t_e->scope_unwind(t_thread(), 1);
	t_e->scope_unwind(t_thread(), 5);
	ck_assert_uint_eq(t_thread()->depth, 1);
	t_exit();
	expect(s);
	ck_assert_uint_eq(s[0].flags, 1);
	ck_assert_uint_eq(s[1].flags, 1u << SCOPE_UNWOUND);
}
END_TEST

static void leaves_open(void)
{
	t_enter(C);
	t_enter(B);
}

START_TEST(thread_ends_with_scopes_open)
{
	struct seen s[] = {{"a/c", 1, 0}, {"a/c/b", 1, 0}, {"a", 0, 0}, {NULL, 0, 0}};

	ready();
	t_enter(A);
	t_run(leaves_open);
	expect(s);
	ck_assert_uint_eq(s[0].flags, 1u << SCOPE_UNWOUND);
}
END_TEST

static void one_c(void)
{
	t_enter(C);
	t_exit();
}

START_TEST(follows_main)
{
	struct seen s[] = {{"a/c", 1, 0}, {"a/b/c", 1, 0}, {"c", 1, 0}, {NULL, 0, 0}};

	ready();
	t_enter(A);
	t_run(one_c);
	t_enter(B);
	t_run(one_c);
	t_exit();
	t_exit();
	t_run(one_c);
	expect(s);
}
END_TEST

START_TEST(follows_main_that_has_not_moved)
{
	struct seen s[] = {{"a/b/c", 1, 0}, {NULL, 0, 0}};

	setup();
	t_open(NULL, true);
	t_enter(A);
	t_enter(B);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	t_run(one_c);
	expect(s);
}
END_TEST

static pthread_barrier_t turn;

static void two_turns(void)
{
	one_c(); /* while main is nowhere */
	(void)pthread_barrier_wait(&turn);
	(void)pthread_barrier_wait(&turn);
	one_c();
	(void)pthread_barrier_wait(&turn);
	(void)pthread_barrier_wait(&turn);
	one_c();
}

static void inherit(int copy)
{
	struct seen s[] = {{"c", copy ? 3 : 1, 0}, {"a/c", copy ? 0 : 1, 0},
		{"b/c", copy ? 0 : 1, 0}, {NULL, 0, 0}};
	const struct engine_open o = {.inherit_copy = copy};
	pthread_t th;
	void (*fn)(void) = two_turns;
	void *p;

	setup();
	t_open(&o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	(void)pthread_barrier_init(&turn, NULL, 2);
	memcpy(&p, &fn, sizeof(p));
	ck_assert_int_eq(pthread_create(&th, NULL, t_run_main, p), 0);
	(void)pthread_barrier_wait(&turn);
	t_enter(A);
	(void)pthread_barrier_wait(&turn);
	(void)pthread_barrier_wait(&turn);
	t_exit();
	t_enter(B);
	(void)pthread_barrier_wait(&turn);
	ck_assert_int_eq(pthread_join(th, NULL), 0);
	expect(s);
}

START_TEST(inherit_follow)
{
	inherit(0);
}
END_TEST

START_TEST(inherit_copy)
{
	inherit(1);
}
END_TEST

START_TEST(states_and_ops)
{
	static const struct {
		const char *path;
		bool op;
	} want[] = {{"a", false}, {"a/[s1]", false}, {"a/b/[s1]", false}, {"a/b/[s2]", false},
		{"a/b/[s2]/{op}", true}, {"a/b/[s1]/{op}", true}, {"a/b/[s1]", false},
		{"a/b", false}};
	struct pd_thread *t;
	uint32_t got[8], n = 0;
	bool op[8];

	ready();
	t = t_thread();
	t_enter(A);
	got[n] = agent_where(&op[n]), n++;
	t->state[t->states++] = S1, t_e->state_changed(t);
	got[n] = agent_where(&op[n]), n++;
	t_enter(B);
	got[n] = agent_where(&op[n]), n++;
	t->state[t->states++] = S2, t_e->state_changed(t);
	got[n] = agent_where(&op[n]), n++;
	t->op = OP, t_e->state_changed(t);
	got[n] = agent_where(&op[n]), n++;
	ck_assert_str_eq(view_where(&t_v, view_lane(&t_v, 1)->now.path), "a/b/[s2]/{op}");
	t->states--, t_e->state_changed(t);
	got[n] = agent_where(&op[n]), n++;
	t->op = 0, t_e->state_changed(t);
	got[n] = agent_where(&op[n]), n++;
	t->states--, t_e->state_changed(t);
	got[n] = agent_where(&op[n]), n++;
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_str_eq(view_where(&t_v, got[i]), want[i].path);
		ck_assert_int_eq(op[i], want[i].op);
	}
	view_check_tables(&t_v);
}
END_TEST

START_TEST(python_stack)
{
	ready();
	t_stack_names[0] = C; /* innermost first */
	t_stack_names[1] = B;
	t_stack_names[2] = A;
	t_stack_n = 3;
	ck_assert_uint_eq(scope_python(NULL, false), PATH_ROOT); /* nobody wants it */
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_PYTHON), 0);
	ck_assert_str_eq(view_where(&t_v, scope_python(NULL, false)), "a/b/c");
	ck_assert_uint_eq(scope_python(NULL, false), scope_python(NULL, false));
	t_stack_n = 0;
	ck_assert_uint_eq(scope_python(NULL, false), PATH_ROOT); /* a thread without one */
}
END_TEST

/* The first who asks within an op asks for all of it. */
START_TEST(python_stack_of_an_op)
{
	struct pd_thread *t;

	ready();
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_PYTHON), 0);
	t = t_thread();
	t_enter(A);
	t_stack_names[0] = B;
	t_stack_n = 1;
	t->op = OP, t_e->state_changed(t);
	ck_assert_str_eq(view_where(&t_v, scope_python(t->engine, true)), "b");
	t_stack_names[0] = C;
	ck_assert_str_eq(view_where(&t_v, scope_python(t->engine, true)), "b");
	ck_assert_str_eq(view_where(&t_v, scope_python(t->engine, false)), "c");
	t->op = 0, t_e->state_changed(t);
	t->op = OP, t_e->state_changed(t);
	ck_assert_str_eq(view_where(&t_v, scope_python(t->engine, true)), "c");
}
END_TEST

static uint64_t given;

static void in_context(void)
{
	struct pd_thread *t = t_thread();

	t_enter(C);
	t->context = given;
	t->base_depth = t->depth;
	t_e->context_changed(t);
	t_enter(B);
	t_exit();
	t->context = 0;
	t->base_depth = 0;
	t_e->context_changed(t);
	t_enter(B);
	t_exit();
	t_exit();
}

START_TEST(contexts)
{
	struct seen s[] = {{"a/s1/b", 1, 0}, {"c/b", 1, 0}, {"c", 1, 0}, {NULL, 0, 0}};

	ready();
	t_context[1].parent = 0, t_context[1].name = A;
	t_context[2].parent = 1, t_context[2].name = S1;
	given = 2;
	t_run(in_context);
	expect(s);
}
END_TEST

START_TEST(deeper_than_the_stack)
{
	uint32_t names[STACK_MAX + 44];
	struct seen s[] = {{"a", 0, 0}, {NULL, 0, 0}};

	ready();
	for (uint32_t i = 0; i < STACK_MAX + 44; i++) {
		names[i] = t_new("x");
		t_enter(names[i]);
	}
	ck_assert_uint_eq(t_thread()->depth, STACK_MAX + 44);
	for (uint32_t i = 0; i < STACK_MAX + 44; i++)
		t_exit();
	ck_assert_uint_eq(t_thread()->depth, 0);
	expect(s);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], STACK_MAX + 44);
}
END_TEST

START_TEST(now_block)
{
	const struct ring_now *now;

	ready();
	t_enter(A);
	t_enter(B);
	now = &view_lane(&t_v, 1)->now;
	ck_assert_uint_eq(now->seq % 2, 0);
	ck_assert_uint_eq(now->depth, 2);
	ck_assert_str_eq(view_where(&t_v, now->path), "a/b");
	ck_assert_str_eq(view_where(&t_v, now->frame[0].path), "a");
	ck_assert_uint_ne(now->frame[1].begin, 0);
	t_exit();
	ck_assert_uint_eq(now->depth, 1);
	ck_assert_str_eq(view_where(&t_v, now->path), "a");
	t_exit();
	ck_assert_uint_eq(now->depth, 0);
}
END_TEST

START_TEST(without_cpu_time)
{
	struct seen s[] = {{"a", 0, 0}, {NULL, 0, 0}};
	bool op;

	setup();
	t_open(NULL, true);
	ck_assert_int_eq(t_e->want(WANT_SCOPES), 0);
	t_enter(A);
	t_enter(B);
	ck_assert_str_eq(view_where(&t_v, agent_where(&op)), "a/b");
	t_exit();
	t_exit();
	expect(s);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 0);
}
END_TEST

static struct {
	uint32_t n[4];
	uint64_t value[4];
	char where[4][64], name[4][64];
} metrics;

static void metric_fn(void *arg, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_metric *m = (const struct rec_metric *)(const void *)rec;
	uint32_t *i = arg;

	(void)lane;
	if (REC_TYPE(*rec) != REC_METRIC)
		return;
	metrics.n[*i] = REC_FLAGS(*rec);
	metrics.value[*i] = m->value;
	(void)snprintf(metrics.where[*i], 64, "%s", view_where(v, REC_ID(*rec)));
	(void)snprintf(metrics.name[*i], 64, "%s", view_name(v, m->name));
	(*i)++;
}

START_TEST(metric_records)
{
	uint32_t n = 0;
	struct pd_thread *t;

	ready();
	t = t_thread();
	t_enter(A);
	t_e->metric(t, t_new("flops8 (inc)"), METRIC_U64, 17);
	t->op = OP, t_e->state_changed(t);
	t_e->metric(t, t_new("loss (pty)"), METRIC_STR, C);
	(void)view_walk(&t_v, metric_fn, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(metrics.n[0], METRIC_U64);
	ck_assert_uint_eq(metrics.value[0], 17);
	ck_assert_str_eq(metrics.where[0], "a");
	ck_assert_str_eq(metrics.name[0], "flops8 (inc)");
	ck_assert_str_eq(metrics.where[1], "a/{op}");
	ck_assert_str_eq(view_name(&t_v, (uint32_t)metrics.value[1]), "c");
}
END_TEST

/* --- signals --- */

static void in_handler(int sig)
{
	(void)sig;
	t_enter(B);
	t_exit();
}

START_TEST(handler_inside_the_engine)
{
	struct pd_thread *t;

	ready();
	(void)signal(SIGUSR1, in_handler);
	t = t_thread();
	t_enter(A);
	guard_in(t); /* as if interrupted within a call */
	ck_assert_int_eq(raise(SIGUSR1), 0);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	guard_out(t);
	ck_assert_uint_eq(t->depth, 1);
	t_exit();
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_SCOPE], 1);
	ck_assert_uint_eq(view_dropped(&t_v), 2);
	ck_assert_uint_eq(t_v.lost, 2);
}
END_TEST

static sigjmp_buf away;

static void jumps(int sig)
{
	(void)sig;
	siglongjmp(away, 1);
}

START_TEST(guard_heals)
{
	struct seen s[] = {{"a", 2, 0}, {NULL, 0, 0}};

	ready();
	(void)signal(SIGUSR1, jumps);
	t_enter(A);
	if (sigsetjmp(away, 1) == 0) {
		guard_in(t_thread());
		(void)raise(SIGUSR1);
	}
	ck_assert_uint_ne(t_thread()->busy, 0);
	t_exit();
	ck_assert_uint_eq(t_thread()->busy, 0);
	t_enter(A);
	t_exit();
	expect(s);
}
END_TEST

/* --- errno, fork --- */

START_TEST(errno_is_kept)
{
	ready();
	errno = 4711;
	t_enter(A);
	ck_assert_int_eq(errno, 4711);
	t_e->metric(t_thread(), B, METRIC_I64, 1);
	t_e->state_changed(t_thread());
	t_e->context_changed(t_thread());
	t_exit();
	t_run(one_c);
	ck_assert_int_eq(errno, 4711);
}
END_TEST

START_TEST(session_marks)
{
	const struct session_options o = {
		.backend = A, .cpu = SESSION_CPU_OFF, .data = SESSION_BOTH};

	ready();
	ck_assert_int_eq(t_e->session(t_thread(), SESSION_START, 7, B, &o), 0);
	ck_assert_int_eq(t_e->session(t_thread(), SESSION_FINALIZE, 7, C, NULL), 0);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_SESSION], 2);
	ck_assert_uint_ge(t_v.n[REC_CLOCK], 1);
}
END_TEST

static void paths(TCase *c)
{
	tcase_add_test(c, nested_and_unbalanced);
	tcase_add_test(c, began_before);
	tcase_add_test(c, left_after_the_end);
	tcase_add_test(c, unwound);
	tcase_add_test(c, thread_ends_with_scopes_open);
	tcase_add_test(c, follows_main);
	tcase_add_test(c, follows_main_that_has_not_moved);
	tcase_add_test(c, inherit_follow);
	tcase_add_test(c, inherit_copy);
	tcase_add_test(c, states_and_ops);
	tcase_add_test(c, python_stack);
	tcase_add_test(c, python_stack_of_an_op);
	tcase_add_test(c, contexts);
	tcase_add_test(c, deeper_than_the_stack);
	tcase_add_test(c, now_block);
	tcase_add_test(c, without_cpu_time);
	tcase_add_test(c, metric_records);
}

static void rest(TCase *c)
{
	tcase_add_test(c, handler_inside_the_engine);
	tcase_add_test(c, guard_heals);
	tcase_add_test(c, errno_is_kept);
	tcase_add_test(c, session_marks);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {paths, rest, NULL};

	return t_suite("job_scope", all);
}
