/* SPDX-License-Identifier: MIT. work.c: one small function, called again and again, with a scope
 * around it of whichever tracer this is built for: WITH_PROTOND, WITH_LTTNG (two tracepoints), or
 * none (bare; and, with -pg, what uftrace patches). Prints the thread's CPU time of one call.
 * Batches with pauses, so that whoever reads keeps up: what drops events is cheaper than what
 * works.
 *
 * work BATCHES
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef WITH_LTTNG
#include "tp.h"
#endif
#ifdef WITH_PROTOND
#include <protond.h>
#endif

#define BATCH 1000u

static volatile uint64_t sink;

__attribute__((noinline)) static void work(uint64_t i)
{
	sink += i;
}

static void traced(uint64_t i)
{
#ifdef WITH_PROTOND
	static uint32_t name;

	if (name == 0)
		name = protond_name("work");
	protond_scope_enter(name);
	work(i);
	protond_scope_exit();
#elif defined(WITH_LTTNG)
	lttng_ust_tracepoint(peer, enter, "work");
	work(i);
	lttng_ust_tracepoint(peer, leave);
#else
	work(i);
#endif
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int up(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t *ns = calloc(n != 0 ? n : 1, sizeof(*ns));

	if (n == 0 || ns == NULL)
		return 2;
	for (unsigned b = 0; b < n; b++) {
		const uint64_t from = cpu_ns();

		for (unsigned i = 0; i < BATCH; i++)
			traced(i);
		ns[b] = cpu_ns() - from;
		(void)nanosleep(&pause, NULL);
	}
	qsort(ns, n, sizeof(*ns), up);
	printf("ns=%.2f scopes=%u\n", (double)ns[n / 2] / BATCH, n * BATCH);
	free(ns);
	return 0;
}
