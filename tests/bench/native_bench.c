/* SPDX-License-Identifier: MIT. native_bench.c: what a look at the native frames of a thread that runs costs the thread and
 * the one that looks. In turns of a fifth of a second with looks and without: how far the thread comes in its CPU time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "native_stack.h"

#define TURNS   60u
#define TURN_NS 200000000u
#define REST_NS 300000 /* between two looks */

static _Atomic uint32_t tid, over;
static _Atomic uint64_t steps;

static uint64_t ns_of(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *spin(void *unused)
{
	uint64_t i;

	(void)unused;
	atomic_store(&tid, (uint32_t)syscall(SYS_gettid));
	for (i = 0; atomic_load_explicit(&over, memory_order_relaxed) == 0; i++)
		atomic_store_explicit(&steps, i, memory_order_relaxed);
	return NULL;
}

struct side {
	uint64_t steps, cpu_ns, own_ns, looks, found;
};

static void turn(struct side *s, struct native *n, clockid_t clock)
{
	const struct timespec rest = {.tv_nsec = REST_NS};
	const uint64_t began = ns_of(CLOCK_MONOTONIC), own = ns_of(CLOCK_THREAD_CPUTIME_ID),
		       cpu = ns_of(clock), at = atomic_load(&steps);

	while (ns_of(CLOCK_MONOTONIC) - began < TURN_NS) {
		s->found += n != NULL && native_look(n, tid, tid, false, 0) == NATIVE_FOUND;
		s->looks++;
		(void)nanosleep(&rest, NULL);
	}
	s->steps += atomic_load(&steps) - at;
	s->cpu_ns += ns_of(clock) - cpu;
	s->own_ns += ns_of(CLOCK_THREAD_CPUTIME_ID) - own;
}

int main(void)
{
	struct side side[2];
	struct memory m = memory_self();
	struct native *n = native_new(&m);
	clockid_t clock;
	pthread_t thread;
	double slower;
	uint32_t i;

	memset(side, 0, sizeof(side));
	if (n == NULL || pthread_create(&thread, NULL, spin, NULL) != 0 ||
		pthread_getcpuclockid(thread, &clock) != 0)
		return 1;
	while (tid == 0)
		;
	for (i = 0; i < TURNS; i++)
		turn(&side[i & 1], (i & 1) != 0 ? n : NULL, clock);
	atomic_store(&over, 1);
	(void)pthread_join(thread, NULL);
	slower = 1 - (double)side[1].steps / (double)side[1].cpu_ns * (double)side[0].cpu_ns /
			     (double)side[0].steps;
	printf("%llu looks, %.0f%% of them found a stack; one took %.1f us of the thread, %.1f us "
	       "of who "
	       "looks\n",
		(unsigned long long)side[1].looks,
		100 * (double)side[1].found / (double)side[1].looks,
		slower * (double)side[1].cpu_ns / (double)side[1].looks / 1e3,
		((double)side[1].own_ns / (double)side[1].looks -
			(double)side[0].own_ns / (double)side[0].looks) /
			1e3);
	native_free(n);
	memory_fini(&m);
	return 0;
}
