/* SPDX-License-Identifier: MIT. lanes_bench.c: a job of many threads, each of which does 6 000 scopes at
 * full speed and then rests for a second: more than a lane of 64 KiB has room for, so that each has
 * sums, too. For drain_bench.py --lanes. Says how many it did when its input ends.
 *
 * lanes_bench THREADS */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <protond.h>

#define THREADS 1024u
#define TIMES   3000u

static uint32_t outer, inner;
static atomic_bool over;
static uint64_t done[THREADS];

static void *work(void *arg)
{
	uint64_t *mine = arg;

	while (!atomic_load(&over)) {
		for (uint32_t i = 0; i < TIMES; i++) {
			protond_scope_enter(outer);
			protond_scope_enter(inner);
			protond_scope_exit();
			protond_scope_exit();
		}
		*mine += 2 * TIMES;
		(void)nanosleep(&(struct timespec){1, 0}, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const uint32_t n = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	static pthread_t thread[THREADS];
	uint64_t sum = 0;
	uint32_t i;

	if (n == 0 || n > THREADS)
		return 2;
	outer = protond_name("outer");
	inner = protond_name("inner");
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, work, &done[i]) != 0)
			return 3;
	(void)puts("running");
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	atomic_store(&over, true);
	for (i = 0; i < n; i++) {
		(void)pthread_join(thread[i], NULL);
		sum += done[i];
	}
	(void)printf("%llu\n", (unsigned long long)sum);
	return 0;
}
