/* SPDX-License-Identifier: MIT. native.c: a program whose functions' shares of the time are known, for samples of native
 * frames. native SECONDS [refuse]: three functions spin, and a thread waits in a fourth one; it measures itself, and says
 * the shares. refuse: under a filter that forbids perf_event_open().
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "protond.h"

#define KEPT __attribute__((noinline, noclone)) static

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool there, over;
static uint64_t took[3], odd;

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

KEPT void spin(uint32_t which, uint64_t ns)
{
	const uint64_t begin = now_ns();
	uint64_t now, x = begin | 1;

	do {
		for (int i = 0; i < 1000; i++)
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		now = now_ns();
	} while (now - begin < ns);
	odd += x & 1;
	took[which] += now - begin;
}

KEPT void thirty(void)
{
	spin(0, 30000000);
	atomic_signal_fence(memory_order_seq_cst); /* no tail call */
}

KEPT void fifty(void)
{
	spin(1, 50000000);
	atomic_signal_fence(memory_order_seq_cst);
}

KEPT void twenty(void)
{
	spin(2, 20000000);
	atomic_signal_fence(memory_order_seq_cst);
}

KEPT void waits_here(void)
{
	(void)pthread_mutex_lock(&mutex);
	there = true;
	(void)pthread_cond_broadcast(&condition);
	while (!over)
		(void)pthread_cond_wait(&condition, &mutex);
	(void)pthread_mutex_unlock(&mutex);
}

KEPT void waits_outside(void)
{
	protond_scope_enter(protond_name("waiter"));
	waits_here();
	protond_scope_exit();
}

static void *second(void *unused)
{
	(void)unused;
	waits_outside();
	return NULL;
}

KEPT void turns(double seconds)
{
	const uint64_t begin = now_ns();

	while ((double)(now_ns() - begin) < seconds * 1e9) {
		thirty();
		fifty();
		twenty();
	}
}

/* For all threads there are. */
static bool refuse(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog program = {.len = sizeof(f) / sizeof(f[0]), .filter = f};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ==
		       0;
}

int main(int argc, char **argv)
{
	const double seconds = argc > 1 ? atof(argv[1]) : 1;
	pthread_t thread;
	double all;

	if (argc > 2 && !refuse())
		return 2;
	if (pthread_create(&thread, NULL, second, NULL) != 0)
		return 1;
	(void)pthread_mutex_lock(&mutex);
	while (!there)
		(void)pthread_cond_wait(&condition, &mutex);
	(void)pthread_mutex_unlock(&mutex);
	protond_scope_enter(protond_name("known"));
	turns(seconds);
	protond_scope_exit();
	(void)pthread_mutex_lock(&mutex);
	over = true;
	(void)pthread_cond_broadcast(&condition);
	(void)pthread_mutex_unlock(&mutex);
	(void)pthread_join(thread, NULL);
	all = (double)(took[0] + took[1] + took[2]);
	printf("%f %f %f\n", (double)took[0] / all, (double)took[1] / all, (double)took[2] / all);
	return odd == UINT64_MAX;
}
