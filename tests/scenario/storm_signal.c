/* SPDX-License-Identifier: MIT. storm_signal.c: signal handlers that enter scopes, wherever the
 * thread that they interrupt may be: in a scope's beginning or end, in the name table, in malloc(),
 * or about to end.
 *
 * storm_signal inside ROUNDS EVERY_NS main|alternate: two threads; a handler has scopes of its own.
 * storm_signal dying N EVERY_NS: the same, in N threads that live for three scopes.
 * storm_signal jump ROUNDS EVERY_NS main|alternate|below|above: a handler leaves its scope by a
 * jump; below, above: out of another handler, whose stack stands there.
 *
 * Says how many scopes the threads did, and the handlers, and how often a handler jumped out of a
 * call of ours: whether that call was made nobody can say.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <protond.h>

#include "storm.h"

#define THREADS 2
#define STACK   (256u << 10)
#define NAMES   20000u
#define FINAL   1000u

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static uint32_t outer, inner, handler, deeper, after;
static unsigned long rounds, every_ns;
static const char *where;
static _Atomic uint64_t threads_did, handlers_did, jumps, torn;

/* Each thread's own; a handler runs on the thread that it counts for. */
static __thread volatile sig_atomic_t calling, may_jump;
static __thread sigjmp_buf back;

/* --- timers and stacks --- */

static timer_t timer_of(pid_t tid, int sig)
{
	const struct timespec every = {.tv_nsec = (long)every_ns};
	const struct itimerspec t = {every, every};
	struct sigevent e = {.sigev_signo = sig};
	timer_t id;

	e.sigev_notify = tid != 0 ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
	e.sigev_notify_thread_id = tid;
	if (timer_create(CLOCK_MONOTONIC, &e, &id) < 0 || timer_settime(id, 0, &t, NULL) < 0)
		die("timer");
	return id;
}

static void handle(int sig, void (*fn)(int))
{
	struct sigaction a = {.sa_handler = fn, .sa_flags = SA_RESTART};

	if (strcmp(where, "main") != 0)
		a.sa_flags |= SA_ONSTACK;
	if (sigaction(sig, &a, NULL) < 0)
		die("sigaction");
}

static void block(int how)
{
	sigset_t s;

	(void)sigemptyset(&s);
	(void)sigaddset(&s, SIGPROF);
	(void)sigaddset(&s, SIGALRM);
	(void)pthread_sigmask(how, &s, NULL);
}

/* A thread on a stack of ours, and its alternate stack above or below that. */
static pthread_t start(void *(*fn)(void *), unsigned char **ret_alternate)
{
	const bool above = strcmp(where, "above") == 0;
	unsigned char *p =
		mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t a;
	pthread_t t;

	if (p == MAP_FAILED)
		die("mmap");
	*ret_alternate = above ? p + STACK : p;
	if (pthread_attr_init(&a) != 0 ||
		pthread_attr_setstack(&a, above ? p : p + STACK, STACK) != 0 ||
		pthread_create(&t, &a, fn, ret_alternate) != 0)
		die("thread");
	pthread_attr_destroy(&a);
	return t;
}

static void alternate(void *p)
{
	const stack_t s = {.ss_sp = *(unsigned char **)p, .ss_size = STACK};

	if (strcmp(where, "main") != 0 && sigaltstack(&s, NULL) < 0)
		die("sigaltstack");
}

static void both(void *(*fn)(void *))
{
	unsigned char *stack[THREADS];
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		t[i] = start(fn, &stack[i]);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(t[i], NULL);
}

/* --- handlers --- */

static void has_scopes(int sig)
{
	(void)sig;
	protond_scope_enter(handler);
	protond_scope_enter(protond_name("deeper"));
	protond_scope_exit();
	protond_scope_exit();
	atomic_fetch_add(&handlers_did, 2);
}

static void leaves(int sig)
{
	(void)sig;
	if (!may_jump)
		return;
	may_jump = 0; /* siglongjmp() lets the next signal in before it has left this stack */
	atomic_fetch_add(&jumps, 1);
	atomic_fetch_add(&torn, (uint64_t)calling);
	calling = 1;
	protond_scope_enter(handler);
	calling = 0;
	atomic_fetch_add(&handlers_did, 1);
	siglongjmp(back, 1);
}

/* --- inside --- */

static void *inside(void *p)
{
	char text[32];
	timer_t timer;
	void *m = NULL;

	alternate(p);
	timer = timer_of((pid_t)syscall(SYS_gettid), SIGPROF);
	for (unsigned long i = 0; i < rounds; i++) {
		protond_scope_enter(outer);
		(void)snprintf(text, sizeof(text), "name %lu", i % NAMES);
		(void)protond_name(text);
		for (int k = 0; k < 10; k++) {
			protond_scope_enter(inner);
			free(m);
			m = malloc(24u + i % 5000);
			protond_scope_exit();
		}
		protond_scope_exit();
	}
	(void)timer_delete(timer);
	free(m);
	atomic_fetch_add(&threads_did, rounds * 11);
	return NULL;
}

/* --- dying --- */

static void *three_scopes(void *p)
{
	protond_scope_enter(outer);
	protond_scope_enter(inner);
	protond_scope_exit();
	protond_scope_enter(inner);
	protond_scope_exit();
	protond_scope_exit();
	return p;
}

/* The signals go to whoever does not block them: the threads that come and go. */
static void dying(void)
{
	const timer_t timer = timer_of(0, SIGPROF);
	pthread_attr_t a;
	pthread_t t[THREADS];
	sigset_t none;

	(void)sigemptyset(&none);
	if (pthread_attr_init(&a) != 0 || pthread_attr_setstacksize(&a, 65536) != 0 ||
		pthread_attr_setsigmask_np(&a, &none) != 0)
		die("attr");
	for (unsigned long i = 0; i < rounds / THREADS; i++) {
		for (int k = 0; k < THREADS; k++)
			if (pthread_create(&t[k], &a, three_scopes, NULL) != 0)
				die("pthread_create");
		for (int k = 0; k < THREADS; k++)
			(void)pthread_join(t[k], NULL);
	}
	(void)timer_delete(timer);
	atomic_fetch_add(&threads_did, rounds / THREADS * THREADS * 3);
}

/* --- jump --- */

static void work_until_thrown(int sig)
{
	(void)sig;
	for (;;) {
		calling = 1;
		protond_scope_enter(outer);
		calling = 0;
		atomic_fetch_add(&threads_did, 1);
		for (int k = 0; k < 10; k++) {
			calling = 1;
			protond_scope_enter(inner);
			calling = 0;
			atomic_fetch_add(&threads_did, 1);
			calling = 1;
			protond_scope_exit();
			calling = 0;
		}
		calling = 1;
		protond_scope_exit();
		calling = 0;
	}
}

static void *jumping(void *p)
{
	const bool deep = strcmp(where, "above") == 0 || strcmp(where, "below") == 0;
	timer_t timer[2];
	pid_t tid = (pid_t)syscall(SYS_gettid);

	alternate(p);
	timer[0] = timer_of(tid, SIGPROF);
	timer[1] = timer_of(tid, SIGALRM);
	for (unsigned long i = 0; i < rounds; i++) {
		if (sigsetjmp(back, 1) == 0) {
			may_jump = 1;
			if (deep)
				(void)raise(SIGUSR1);
			else
				work_until_thrown(0);
		}
		may_jump = 0;
		calling = 0;
		protond_scope_unwind(0);
	}
	(void)timer_delete(timer[0]);
	(void)timer_delete(timer[1]);
	for (unsigned i = 0; i < FINAL; i++) {
		protond_scope_enter(after);
		protond_scope_exit();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	rounds = number(argv, 2);
	every_ns = number(argv, 3);
	where = argc > 4 ? argv[4] : "main";
	outer = protond_name("outer");
	inner = protond_name("inner");
	handler = protond_name("handler");
	deeper = protond_name("deeper");
	after = protond_name("after");
	handle(SIGPROF, has_scopes);
	handle(SIGALRM, leaves);
	handle(SIGUSR1, work_until_thrown);
	if (strcmp(argv[1], "inside") == 0) {
		both(inside);
	} else if (strcmp(argv[1], "dying") == 0) {
		block(SIG_BLOCK);
		dying();
	} else {
		both(jumping);
	}
	printf("threads=%lu handlers=%lu jumps=%lu torn=%lu\n", (unsigned long)threads_did,
		(unsigned long)handlers_did, (unsigned long)jumps, (unsigned long)torn);
	return 0;
}
