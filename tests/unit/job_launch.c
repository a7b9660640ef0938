/* SPDX-License-Identifier: MIT. job_launch.c: tests of launches: where they stand, what is in their
 * records, and that each is written or counted as lost. */
#include "job_engine.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static uint32_t A, B, S, OP;

static void ready(const struct engine_open *o)
{
	A = t_new("a");
	B = t_new("b");
	S = t_new("s");
	OP = t_new("op");
	t_open(o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
}

static bool launch(uint32_t correlation)
{
	return agent_launch(LAUNCH_COPY, correlation, 5, 3, 307, 0);
}

/* The launch of a correlation id, once it was walked over. */
static struct {
	uint32_t lane, times;
	char where[48], python[48];
	struct rec_launch r;
} got[16];

static void got_fn(void *unused, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	const struct rec_launch *r = (const void *)rec;

	(void)unused;
	if (REC_TYPE(*rec) != REC_LAUNCH)
		return;
	ck_assert_uint_lt(r->correlation, 16);
	got[r->correlation].lane = lane;
	got[r->correlation].times++;
	got[r->correlation].r = *r;
	(void)snprintf(got[r->correlation].where, 48, "%s", view_where(v, REC_ID(*rec)));
	(void)snprintf(got[r->correlation].python, 48, "%s", view_where(v, r->python));
}

/* What is new stands there, once, and says all that was known. */
static void stands(uint32_t correlation, const char *where, bool op)
{
	(void)view_walk(&t_v, got_fn, NULL);
	ck_assert_uint_eq(got[correlation].times, 1);
	ck_assert_str_eq(got[correlation].where, where);
	ck_assert_uint_eq(REC_FLAGS(got[correlation].r.hdr), LAUNCH_COPY | (op ? LAUNCH_OP : 0));
	ck_assert_uint_eq(REC_BYTES(got[correlation].r.hdr), sizeof(struct rec_launch));
	ck_assert_uint_eq(got[correlation].r.name, 5);
	ck_assert_uint_eq(got[correlation].r.epoch, 3);
	ck_assert_uint_eq(got[correlation].r.api, 307);
	ck_assert_str_eq(got[correlation].python, "");
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}

START_TEST(where_the_thread_stands)
{
	struct pd_thread *t;

	ready(NULL);
	t = t_thread();
	ck_assert(launch(0)); /* the thread's first event */
	stands(0, "", false);
	t_enter(A);
	ck_assert(launch(1));
	stands(1, "a", false);
	t_enter(B);
	ck_assert(launch(2));
	stands(2, "a/b", false);
	t->state[t->states++] = S, t_e->state_changed(t);
	ck_assert(launch(3));
	stands(3, "a/b/[s]", false);
	t->op = OP, t_e->state_changed(t);
	ck_assert(launch(4));
	stands(4, "a/b/[s]/{op}", true);
	t->op = 0, t->states = 0, t_e->state_changed(t);
	t_exit();
	ck_assert(launch(5));
	stands(5, "a", false);
	ck_assert_uint_eq(agent_launched(), 6);
	for (int i = 1; i < 6; i++)
		ck_assert_uint_gt(got[i].r.clock, got[i - 1].r.clock);
	ck_assert_uint_lt(got[5].r.clock, agent_clock());
}
END_TEST

static void twice(void)
{
	ck_assert(launch(1));
	ck_assert(launch(2));
	t_enter(B);
	ck_assert(launch(3));
	t_exit();
}

START_TEST(thread_that_follows)
{
	ready(NULL);
	t_enter(A);
	ck_assert(launch(0));
	t_run(twice);
	stands(1, "a", false);
	stands(2, "a", false);
	stands(3, "a/b", false);
	ck_assert_uint_ne(got[1].lane, got[0].lane);
	ck_assert_uint_eq(agent_launched(), 4); /* its lane is left, its launches count */
	agent_launch_failed();
	ck_assert_uint_eq(agent_launched(), 3);
}
END_TEST

/* In the counter that has it: who sums them up meanwhile is wrong by what is under way, no more. */
START_TEST(failed_ones_are_taken_back_where_they_were_counted)
{
	const struct lane *l;

	ready(NULL);
	for (uint32_t i = 0; i < 3; i++)
		ck_assert(launch(i));
	l = t_thread()->engine;
	ck_assert_uint_eq(l->launches, 3);
	agent_launch_failed();
	agent_launch_failed();
	ck_assert_uint_eq(l->launches, 1);
	ck_assert_uint_eq(core.launches, 0);
	t_thread()->busy = guard_mark(); /* it was a handler's */
	agent_launch_failed();
	t_thread()->busy = 0;
	ck_assert_uint_eq(l->launches, 1);
	ck_assert_uint_eq(agent_launched(), 0);
}
END_TEST

/* The next recording has other paths for the same scopes. */
START_TEST(next_recording)
{
	ready(NULL);
	t_enter(A);
	ck_assert(launch(0));
	ck_assert_int_eq(t_e->want(0), 0);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert(launch(1));
	ck_assert(launch(2));
	stands(1, "a", false);
	stands(2, "a", false);
}
END_TEST

START_TEST(without_the_tsc)
{
	ready(NULL);
	ck_assert(worker_in(1000)); /* the agent's thread reads it, too */
	HOT->tsc = 0;
	worker_out();
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t before = agent_monotonic_ns();

		ck_assert(launch(i));
		stands(i, "", false);
		ck_assert_uint_ge(got[i].r.clock, before);
		ck_assert_uint_le(got[i].r.clock, agent_monotonic_ns());
	}
	ck_assert(agent_launch(0, 2, 5, 3, 307, 4711)); /* a clock that was read before */
	(void)view_walk(&t_v, got_fn, NULL);
	ck_assert_uint_eq(got[2].r.clock, 4711);
}
END_TEST

START_TEST(clock_that_was_read_before)
{
	ready(NULL);
	for (uint32_t i = 0; i < 2;
		i++) { /* the thread's first event, and one in the usual state */
		ck_assert(agent_launch(0, i, 5, 3, 307, 4711 + i));
		(void)view_walk(&t_v, got_fn, NULL);
		ck_assert_uint_eq(got[i].r.clock, 4711 + i);
	}
}
END_TEST

static struct {
	uint32_t n;
	char where[48];
	struct rec_called r;
} called;

static void called_fn(void *unused, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	(void)unused;
	(void)lane;
	if (REC_TYPE(*rec) != REC_CALLED)
		return;
	called.n++;
	memcpy(&called.r, rec, sizeof(called.r));
	(void)snprintf(called.where, 48, "%s", view_where(v, REC_ID(*rec)));
}

/* Only a thread in the usual state has them; any other is told to take the long way. */
START_TEST(calls_in_short)
{
	const struct rec_call long_one = {.begin = 1, .end = 2};
	struct pd_thread *t;
	uint64_t begin;

	ready(NULL);
	t = t_thread();
	ck_assert(!agent_called(1, 5, 3, agent_clock()));
	ck_assert(agent_call(&long_one)); /* the thread's first event */
	t_enter(A);
	begin = agent_clock();
	ck_assert(agent_called(1, 5, 3, begin));
	(void)view_walk(&t_v, called_fn, NULL);
	ck_assert_uint_eq(called.n, 1);
	ck_assert_str_eq(called.where, "a");
	ck_assert_uint_eq(called.r.begin, begin);
	ck_assert_uint_le(begin + called.r.took, agent_clock());
	ck_assert(called.r.correlation == 1 && called.r.name == 5 && called.r.epoch == 3);
	ck_assert(!agent_called(2, 5, 3, begin - UINT32_MAX - 1ull)); /* too long */
	t->op = OP, t_e->state_changed(t);
	ck_assert(!agent_called(2, 5, 3, begin));
	t->op = 0, t_e->state_changed(t);
	ck_assert(agent_called(2, 5, 3, begin));
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_PYTHON), 0);
	ck_assert(agent_call(&long_one));
	ck_assert(!agent_called(3, 5, 3, begin));
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert(agent_call(&long_one));
	(void)view_walk(&t_v, called_fn, NULL);
	t_v.n[REC_CALL] = called.n = 0;
	for (uint32_t i = 0; i < 1u << 20;
		i++) /* of a daemon that knows no sums: counted as lost */
		if (!agent_called(3, 5, 3, begin))
			(void)agent_call(&long_one);
	(void)view_walk(&t_v, called_fn, NULL);
	ck_assert_uint_gt(called.n, 100);
	ck_assert_uint_eq(called.n + t_v.n[REC_CALL] + view_dropped(&t_v), 1u << 20);
}
END_TEST

START_TEST(stack_of_the_language)
{
	ready(NULL);
	t_stack_names[0] = B; /* innermost first */
	t_stack_names[1] = A;
	t_stack_n = 2;
	ck_assert(launch(0));
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_PYTHON), 0);
	ck_assert(launch(1));
	ck_assert(launch(2));
	(void)view_walk(&t_v, got_fn, NULL);
	ck_assert_str_eq(got[0].python, "");
	ck_assert_str_eq(got[1].python, "a/b");
	ck_assert_str_eq(got[2].python, "a/b");
}
END_TEST

START_TEST(on_the_backends_thread)
{
	ready(NULL);
	ck_assert(launch(0));
	ck_assert(worker_in(1000));
	ck_assert(launch(1));
	ck_assert(launch(2));
	worker_out();
	ck_assert(launch(3));
	stands(3, "", false);
	ck_assert_uint_eq(got[1].lane, core.agent->index);
	ck_assert_uint_eq(got[2].lane, core.agent->index);
	ck_assert_uint_eq(got[3].lane, got[0].lane);
	ck_assert_uint_ne(got[3].lane, core.agent->index);
}
END_TEST

/* From a destructor that runs after the library's own. */
static void after_the_end(void)
{
	struct pd_thread *old = t_thread();

	ck_assert(launch(1));
	t_e->thread_exit(old);
	old->generation = HOT->generation; /* another thread's by now: not to be touched */
	old->busy = 0;
	t_self = NULL;
	ck_assert(launch(2));
	ck_assert_uint_eq(t_thread()->generation, HOT->generation);
	free(old);
}

START_TEST(thread_that_has_ended)
{
	ready(NULL);
	t_run(after_the_end);
	stands(1, "", false);
	stands(2, "", false);
}
END_TEST

/* --- what is refused --- */

static bool nested;

static void in_handler(int sig)
{
	(void)sig;
	nested = launch(1);
}

START_TEST(handler_inside_the_engine)
{
	ready(NULL);
	(void)signal(SIGUSR1, in_handler);
	ck_assert(launch(0));
	for (int i = 0; i < 2; i++) {
		nested = true;
		guard_in(t_thread()); /* as if interrupted within a call */
		ck_assert_int_eq(raise(SIGUSR1), 0);
		guard_out(t_thread());
		ck_assert(!nested);
	}
	ck_assert_uint_eq(agent_launched(), 1);
	ck_assert_int_eq(raise(SIGUSR1), 0);
	ck_assert(nested);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_LAUNCH], 2);
	ck_assert_uint_eq(view_dropped(&t_v), 2);
	ck_assert_uint_eq(t_v.lost, 2);
}
END_TEST

static const struct engine_open small = {.n_lanes = 8, .lane_bytes = RING_LANE_BYTES_MIN};

static const struct engine_open two = {.n_lanes = 2, .lane_bytes = RING_LANE_BYTES_MIN};

START_TEST(full_lane)
{
	uint64_t n = 0;

	ready(&two); /* one is the agent's: there is no further one */
	for (int lap = 0; lap < 300; lap++) {
		for (int i = 0; i < 2500; i++, n++) /* of 32 bytes: 2 048 fit */
			ck_assert(launch(0));
		(void)view_walk(&t_v, NULL, NULL);
	}
	ck_assert(launch(0)); /* before it, what was lost is told */
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_ge(view_dropped(&t_v), 300 * 400);
	ck_assert_uint_eq(t_v.n[REC_LAUNCH] + view_dropped(&t_v), n + 1);
	ck_assert_uint_eq(t_v.lost, view_dropped(&t_v));
	ck_assert_uint_eq(agent_launched(), n + 1); /* their activities come all the same */
}
END_TEST

#ifndef __SANITIZE_THREAD__ /* it calls a handler without a signal's frame: see guard.c */
static volatile sig_atomic_t handled;

static void handler_records(int sig)
{
	(void)sig;
	t_enter(B);
	for (int i = 0; i < 255; i++) /* 8 KiB: an eighth of the lane */
		(void)launch(1);
	t_exit();
	handled++;
}

/* A handler comes between any two instructions and writes into the same lane, so that what was free
 * before it is not behind it. The reader checks each record's lap and place. */
START_TEST(handlers_between)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	uint64_t n = 0;

	ready(&small);
	ck_assert(launch(0));
	(void)signal(SIGALRM, handler_records);
	for (int i = 0; i < 5000; i++) {
		const struct itimerval once = {.it_value = {.tv_usec = 1 + i % 60}};

		(void)setitimer(ITIMER_REAL, &once, NULL);
		for (int k = 0; k < 2000; k++, n++)
			(void)launch(0);
		(void)view_walk(&t_v, NULL, NULL);
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_int_gt(handled, 1000);
	ck_assert_uint_eq(t_v.n[REC_LAUNCH] + t_v.n[REC_SCOPE] + view_dropped(&t_v),
		n + 1 + 256 * (uint64_t)handled);
	ck_assert_uint_gt(t_v.n[REC_LAUNCH], n / 2);
}
END_TEST
#endif

START_TEST(no_lane_left)
{
	static const struct engine_open few = {.n_lanes = 2, .lane_bytes = RING_LANE_BYTES_MIN};

	ready(&few); /* one is the agent's */
	ck_assert(launch(0));
	t_run(twice);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_LAUNCH] + view_dropped(&t_v), 1 + 4);
	ck_assert_uint_eq(agent_launched(), 1 + 3);
}
END_TEST

static void forked(long child)
{
	const uint64_t before = agent_launched();
	int status = -1;

	if (child == 0) {
		const bool wrote = launch(1) || launch(2);

		_exit(wrote || agent_launched() > before ? 1 : 0);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid((pid_t)child, &status, 0), (pid_t)child);
	ck_assert_int_eq(status, 0);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_LAUNCH], 1);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}

START_TEST(forked_child)
{
	ready(NULL);
	ck_assert(launch(0));
	forked(fork());
	forked(syscall(SYS_fork)); /* without the library's hooks */
}
END_TEST

START_TEST(errno_is_kept)
{
	ready(NULL);
	errno = 4711;
	ck_assert(launch(0)); /* claims a lane */
	ck_assert(launch(1));
	t_run(twice);
	ck_assert_int_eq(errno, 4711);
}
END_TEST

static void written(TCase *c)
{
	tcase_add_test(c, where_the_thread_stands);
	tcase_add_test(c, thread_that_follows);
	tcase_add_test(c, failed_ones_are_taken_back_where_they_were_counted);
	tcase_add_test(c, next_recording);
	tcase_add_test(c, without_the_tsc);
	tcase_add_test(c, clock_that_was_read_before);
	tcase_add_test(c, stack_of_the_language);
	tcase_add_test(c, calls_in_short);
	tcase_add_test(c, on_the_backends_thread);
	tcase_add_test(c, thread_that_has_ended);
}

static void refused(TCase *c)
{
	tcase_add_test(c, handler_inside_the_engine);
	tcase_add_test(c, full_lane);
#ifndef __SANITIZE_THREAD__
	tcase_add_test(c, handlers_between);
#endif
	tcase_add_test(c, no_lane_left);
	tcase_add_test(c, forked_child);
	tcase_add_test(c, errno_is_kept);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {written, refused, NULL};

	return t_suite("job_launch", all);
}
