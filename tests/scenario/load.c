/* SPDX-License-Identifier: MIT. load.c: scopes as fast as asked, with the truth in a page of its
 * own.
 *
 * Usage: load TRUTH THREADS PAUSE_NS BATCH. TRUTH is a file of 4096 bytes; thread i counts at
 * u64[8 * i] the scopes that it is done with, stored after the exit returned, and behind that the
 * ones it has begun, stored before the enter is called; a SIGKILL cannot undo either. After each
 * BATCH scopes of a thread there is a pause.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <protond.h>

/* A cache line each: to wait for another thread's would be most of what a scope takes. */
struct truth {
	_Alignas(64) _Atomic uint64_t done;
	_Atomic uint64_t begun;
};

static struct truth *truth;
static long pause_ns;
static uint64_t batch;

static void *work(void *p)
{
	const uintptr_t me = (uintptr_t)p;
	char name[32];
	uint32_t outer, inner;
	struct timespec ts = {0, pause_ns};

	(void)snprintf(name, sizeof(name), "worker %u", (unsigned)me);
	outer = protond_name(name);
	inner = protond_name("unit");
	protond_scope_enter(outer);
	for (uint64_t n = 1;; n++) {
		/* Before the record: the agent publishes that with a release. */
		atomic_store_explicit(&truth[me].begun, n, memory_order_relaxed);
		protond_scope_enter(inner);
		protond_scope_exit();
		atomic_store_explicit(&truth[me].done, n, memory_order_release);
		if (pause_ns > 0 && n % batch == 0)
			nanosleep(&ts, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int fd = argc == 5 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	unsigned threads;
	pthread_t t;

	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 2;
	truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	threads = (unsigned)atoi(argv[2]);
	pause_ns = atol(argv[3]);
	batch = strtoull(argv[4], NULL, 10);
	if (truth == MAP_FAILED || threads == 0 || threads > 4096 / sizeof(*truth) || batch == 0)
		return 2;
	for (uintptr_t i = 1; i < threads; i++)
		if (pthread_create(&t, NULL, work, (void *)i) != 0)
			return 3;
	puts("running");
	fflush(stdout);
	work(NULL);
	return 0;
}
