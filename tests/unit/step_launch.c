/* SPDX-License-Identifier: MIT. step_launch.c: a signal handler that launches, at each instruction
 * of ours in turn.
 *
 * The processor's trap flag steps through one call; at its k-th instruction the handler does what
 * it is to do. Instructions of other libraries do not count, and from the tables' lock on, which no
 * handler interrupts, the call goes on by itself. For x86-64; ThreadSanitizer, which holds signals
 * back, has no use for it. */
#include "job_engine.h"

#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100ll
/* AddressSanitizer checks each access in some instructions more: any of them will do. */
#ifdef __SANITIZE_ADDRESS__
#define EVERY (all_rounds() ? 7 : 29)
#else
#define EVERY 1
#endif

/* libprotond's, whose header does not go with the engine's */
extern const struct protond_host pd_host;
extern __thread struct pd_thread *pd_self __attribute__((tls_model("initial-exec")));

extern char __executable_start, etext;
static struct {
	long at, n; /* 0: at each */
	void (*handler)(void);
	bool done;
} stepping;

static void on_trap(int number, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uintptr_t at = (uintptr_t)reg[REG_RIP];

	(void)number;
	(void)info;
	if (at < (uintptr_t)&__executable_start || at >= (uintptr_t)&etext)
		return;
	if (at == (uintptr_t)agent_lock_tables) {
		reg[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (++stepping.n < stepping.at)
		return;
	if (stepping.at != 0)
		reg[REG_EFL] &= ~TRAP_FLAG;
	stepping.done = true;
	stepping.handler();
}

/* False: the call has fewer instructions. */
static bool step(long at, void (*handler)(void), void (*call)(void))
{
	const struct sigaction a = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};

	ck_assert_int_eq(sigaction(SIGTRAP, &a, NULL), 0);
	stepping.at = at;
	stepping.n = 0;
	stepping.handler = handler;
	stepping.done = false;
	__asm__ volatile("sub $128, %%rsp; pushf; orl $0x100, (%%rsp); popf; add $128, %%rsp" ::
				 : "memory", "cc");
	call();
	__asm__ volatile("sub $128, %%rsp; pushf; andl $~0x100, (%%rsp); popf; add $128, %%rsp" ::
				 : "memory", "cc");
	return stepping.done;
}

/* --- a launch --- */

static uint32_t A, B;
static uint64_t asked, said; /* launches, and those that were said to be written */

static void launch(void)
{
	asked++;
	said += agent_launch(LAUNCH_COPY, 1, 5, 3, 307, 0);
}

static void in_a_scope(void)
{
	t_enter(B);
	launch();
	t_exit();
}

static void ready(const struct protond_host *host)
{
	static const struct engine_open o = {.n_lanes = 1024, .lane_bytes = RING_LANE_BYTES_MIN};

	if (host != NULL)
		t_host = *host;
	t_open(&o, true);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	core.flush_ms = 3600000;
	A = t_new("a");
	B = t_new("b");
}

/* Each is in the ring or refused, counted so, and goes on as if nothing had been. */
static void each_of_a_launch(void (*handler)(void), bool loss)
{
	for (long k = 1;; k += EVERY) {
		uint64_t was, before = asked;

		if (loss) { /* to be told by the next record */
			lane_nested(t_thread()->engine);
			asked++, before++;
		}
		if (!step(k, handler, launch))
			break;
		launch();
		ck_assert_uint_eq(t_thread()->busy, 0);
		was = t_v.n[REC_LAUNCH];
		(void)view_walk(&t_v, NULL, NULL);
		ck_assert_uint_eq(t_v.bad, 0);
		ck_assert_uint_eq(agent_launched(), said);
		ck_assert_uint_eq(t_v.n[REC_LAUNCH], said);
		ck_assert_uint_ge(t_v.n[REC_LAUNCH] - was, asked - before - 1);
	}
	for (uint64_t n = core.lane_bytes / 4 / sizeof(struct rec_launch); n > 0; n--)
		launch(); /* a quarter's end at the latest tells what is lost */
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_gt(t_v.lost, 0);
	ck_assert_uint_eq(view_dropped(&t_v), t_v.lost);
}

START_TEST(launch_in_a_launch)
{
	ready(NULL);
	t_enter(A);
	launch();
	each_of_a_launch(launch, false);
	ck_assert_int_gt(stepping.n, 60);
	each_of_a_launch(in_a_scope, false);
}
END_TEST

START_TEST(launch_while_a_loss_is_told)
{
	ready(NULL);
	t_enter(A);
	launch();
	each_of_a_launch(launch, true);
	ck_assert_int_gt(stepping.n, 200);
}
END_TEST

/* --- a scope that a handler leaves open while a thread's stack is worked out --- */

static uint32_t last_path;

static void last_fn(void *unused, const struct view *v, uint32_t lane, const uint64_t *rec)
{
	(void)unused;
	(void)v;
	(void)lane;
	if (REC_TYPE(*rec) == REC_LAUNCH)
		last_path = REC_ID(*rec);
}

static void leave_open(void)
{
	t_enter(B);
}

static long at; /* 0: the call has fewer instructions */

static void *first_event(void *unused)
{
	(void)t_thread();
	if (!step(at, leave_open, launch))
		at = -1;
	launch();
	(void)view_walk(&t_v, last_fn, NULL);
	ck_assert_str_eq(view_where(&t_v, last_path), at > 0 ? "a/b" : "a");
	t_e->thread_exit(t_thread());
	free(t_self);
	return unused;
}

/* --- a thread's begin and end --- */

static void thread_ends(void)
{
	t_e->thread_exit(t_thread());
}

static void *ending(void *unused)
{
	t_enter(B);
	launch();
	if (!step(at, launch, thread_ends))
		at = -1;
	ck_assert_ptr_null(agent_self); /* what it was goes now */
	free(t_self);
	return unused;
}

static void *beginning(void *unused)
{
	if (!step(at, launch, (void (*)(void))pd_host.thread))
		at = -1;
	launch();
	ck_assert_ptr_eq(agent_self, pd_self); /* the one that scopes have */
	return unused;
}

static void each_of_a_thread(void *(*main_of)(void *))
{
	pthread_t thread;

	for (at = 1; at > 0; at += at > 0 ? EVERY : 0) {
		ck_assert_int_eq(pthread_create(&thread, NULL, main_of, NULL), 0);
		ck_assert_int_eq(pthread_join(thread, NULL), 0);
		(void)view_walk(&t_v, NULL, NULL);
		ck_assert_uint_eq(agent_launched(), said);
	}
	ck_assert_int_gt(stepping.n, 60);
}

START_TEST(scope_left_open_in_the_first_event)
{
	ready(NULL);
	t_enter(A);
	launch();
	each_of_a_thread(first_event);
}
END_TEST

START_TEST(launch_while_the_thread_ends)
{
	ready(NULL);
	launch();
	each_of_a_thread(ending);
}
END_TEST

START_TEST(launch_while_the_thread_begins)
{
	ready(&pd_host);
	(void)pd_host.thread();
	launch();
	each_of_a_thread(beginning);
}
END_TEST

/* --- a forked child --- */

static long unopened;

static void launch_unopened(void)
{
	if (HOT->opened != 0)
		return;
	unopened++;
	agent_self = t_thread(); /* as in a thread that launched before, where another one opens */
	ck_assert(!agent_launch(LAUNCH_COPY, 1, 5, 3, 307, 0));
}

static void open_again(void)
{
	char text[256];
	static const struct engine_open o = {.n_lanes = 8, .lane_bytes = RING_LANE_BYTES_MIN};

	ck_assert_int_eq(t_e->open(&t_host, &o, text), 0);
}

START_TEST(launch_while_a_child_opens)
{
	int status;
	pid_t child;

	ready(NULL);
	launch();
	child = fork();
	if (child == 0) {
		/* as libprotond's forget_parent() */
		t_thread()->generation = 0;
		t_thread()->engine = NULL;
		(void)step(0, launch_unopened, open_again);
		_exit(unopened > 1000 ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void tests(TCase *c)
{
	tcase_add_test(c, launch_in_a_launch);
	tcase_add_test(c, launch_while_a_loss_is_told);
	tcase_add_test(c, scope_left_open_in_the_first_event);
	tcase_add_test(c, launch_while_the_thread_ends);
	tcase_add_test(c, launch_while_the_thread_begins);
	tcase_add_test(c, launch_while_a_child_opens);
}
Suite *suite(void)
{
	void (*const all[])(TCase *) = {tests, NULL};

	return t_suite("step_launch", all);
}
