/* SPDX-License-Identifier: MIT. storm_fork.c: children without end, out of a process whose other
 * threads are inside of scopes, of the tables and of the list of lanes at that instant.
 *
 * storm_fork forks N: N children, one after the other, each inside the parent's open scope. A child
 * waits until it is recorded, has its scopes, and ends in one of the WAYS.
 * storm_fork thread N: the same, by a thread that is not the main thread.
 * storm_fork handler N: N children of a signal handler that interrupted a scope; they return from
 * it. storm_fork execed: what a child becomes.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <protond.h>

#include "storm.h"

#define SCOPES  20u /* of a child */
#define NAMES   3000u
#define LAP     20000u /* scopes: more than a lane of 256 KiB holds */
#define WAIT_NS 30000000000ull

enum way { WAY_EXIT_NOW, WAY_EXIT, WAY_KILLED, WAY_EXEC, WAY_HASTY, WAY_VFORK, WAYS };

static uint32_t name_child, name_execed, name_hasty, name_work;
static _Atomic bool enough;
static _Atomic uint64_t worked, named, children_did, execed_did, hasty_did;

static void scopes(uint32_t name, unsigned n)
{
	for (; n > 0; n--) {
		protond_scope_enter(name);
		protond_scope_exit();
	}
}

/* --- what the others do meanwhile --- */

static void *brief(void *p)
{
	scopes(name_work, 1);
	return p;
}

/* New names and paths, and threads that take lanes and give them back. */
static void *busy(void *p)
{
	char text[32];
	pthread_t t;
	uint64_t n = 0;

	while (!atomic_load(&enough)) {
		(void)snprintf(text, sizeof(text), "name %lu", (unsigned long)(n % NAMES));
		protond_scope_enter(protond_name(text));
		scopes(name_work, 1);
		protond_scope_exit();
		if (pthread_create(&t, NULL, brief, NULL) != 0)
			die("pthread_create");
		(void)pthread_join(t, NULL);
		n++;
	}
	atomic_fetch_add(&worked, n * 2);
	atomic_fetch_add(&named, n);
	return p;
}

/* --- a child --- */

static void recorded(void)
{
	const uint64_t until = now_ns() + WAIT_NS;

	while (!protond_recording()) {
		if (now_ns() > until)
			_exit(9);
		(void)sched_yield();
	}
}

static _Noreturn void child(enum way way, char *self)
{
	char execed[] = "execed";
	char *argv[] = {self, execed, NULL};

	scopes(name_hasty, 1);
	if (way == WAY_HASTY)
		_exit(0);
	recorded();
	scopes(name_child, SCOPES);
	if (way == WAY_EXIT)
		exit(0);
	if (way == WAY_KILLED)
		(void)kill(getpid(), SIGKILL);
	if (way == WAY_EXEC)
		(void)execv(self, argv);
	_exit(way == WAY_EXIT_NOW ? 0 : 8);
}

static pid_t give_birth(enum way way, char *self)
{
	char execed[] = "execed";
	char *argv[] = {self, execed, NULL};
	const pid_t pid = way == WAY_VFORK ? vfork() : fork();

	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;
	if (way != WAY_VFORK)
		child(way, self);
	(void)execv(self, argv);
	_exit(8);
}

static void count(enum way way, int status)
{
	const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if (way == WAY_KILLED ? !killed : !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "a child of way %d ended with status %#x\n", (int)way,
			(unsigned)status);
		exit(4);
	}
	hasty_did += way != WAY_VFORK;
	children_did += way != WAY_VFORK && way != WAY_HASTY ? SCOPES : 0;
	execed_did += way == WAY_VFORK || way == WAY_EXEC ? SCOPES : 0;
}

static unsigned long forks_n;
static char *program;

static void *forks(void *p)
{
	protond_scope_enter(protond_name("parent"));
	for (unsigned long i = 0; i < forks_n; i++) {
		const enum way way = (enum way)(i % WAYS);
		const pid_t pid = give_birth(way, program);
		int status = 0;

		scopes(name_work, 1);
		atomic_fetch_add(&worked, 1);
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				die("waitpid");
		count(way, status);
	}
	protond_scope_exit();
	return p;
}

static void storm(bool side)
{
	pthread_t other, forking;

	if (pthread_create(&other, NULL, busy, NULL) != 0 ||
		(side && pthread_create(&forking, NULL, forks, NULL) != 0))
		die("pthread_create");
	if (side)
		(void)pthread_join(forking, NULL);
	else
		(void)forks(NULL);
	atomic_store(&enough, true);
	(void)pthread_join(other, NULL);
}

/* --- children of a handler --- */

static volatile sig_atomic_t born, is_child;
static _Atomic uint64_t
	*shared; /* what the parent did by its last signal: its children see it too */
static pid_t parent;

/* The child returns when the parent has gone far beyond this place: once around its lane. */
static void has_child(int sig)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	const uint64_t here = worked;
	pid_t pid;

	(void)sig;
	*shared = here;
	born++;
	pid = fork();
	if (pid != 0)
		return;
	while (*shared < here + LAP && getppid() == parent)
		(void)nanosleep(&ms, NULL);
	is_child = 1;
}

static void interrupted(unsigned long n)
{
	const struct itimerval every = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	struct sigaction a = {.sa_handler = has_child, .sa_flags = SA_RESTART};

	parent = getpid();
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || signal(SIGCHLD, SIG_IGN) == SIG_ERR ||
		sigaction(SIGALRM, &a, NULL) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0)
		die("handler");
	while ((unsigned long)born < n && !is_child) {
		protond_scope_enter(name_work);
		protond_scope_exit();
		atomic_store_explicit(&worked, worked + 1, memory_order_relaxed);
	}
	if (is_child)
		_exit(0);
	(void)setitimer(ITIMER_REAL, &never, NULL);
}

int main(int argc, char **argv)
{
	name_child = protond_name("child");
	name_execed = protond_name("execed");
	name_hasty = protond_name("hasty");
	name_work = protond_name("work");
	program = argv[0];
	if (argc > 1 && strcmp(argv[1], "execed") == 0) {
		recorded();
		scopes(name_execed, SCOPES);
		return 0;
	}
	if (argc < 3)
		return 2;
	forks_n = number(argv, 2);
	if (strcmp(argv[1], "handler") == 0)
		interrupted(forks_n);
	else
		storm(strcmp(argv[1], "thread") == 0);
	printf("work=%lu name=%lu child=%lu execed=%lu hasty=%lu\n", (unsigned long)worked,
		(unsigned long)named, (unsigned long)children_did, (unsigned long)execed_did,
		(unsigned long)hasty_did);
	return 0;
}
