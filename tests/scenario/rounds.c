/* SPDX-License-Identifier: MIT. rounds.c: one session after the other, scopes as fast as can be in
 * each, and the truth about each in a file.
 *
 * Usage: rounds TRUTH THREADS ROUNDS SCOPES. Session r is "PID.r"; in it each thread does SCOPES
 * scopes, and starts and ends it with the others: between two sessions nobody does any. TRUTH has, for
 * round r and thread i, at u64[2 * (r * THREADS + i)] the scopes that are done, stored after the exit
 * returned, and behind that the ones begun, stored before the enter is called; a SIGKILL cannot undo
 * either. Behind all of them, a u64: the rounds whose protond_finalize() has returned 0.
 */
#include <errno.h>
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

struct truth {
	_Atomic uint64_t done, begun;
};

static struct truth *truth;
static unsigned threads, rounds;
static uint64_t scopes;
static uint32_t name;
static pthread_barrier_t begins, ends;

static void play(unsigned round, unsigned me)
{
	struct truth *t = &truth[(size_t)round * threads + me];

	for (uint64_t n = 1; n <= scopes; n++) {
		atomic_store_explicit(&t->begun, n, memory_order_relaxed);
		protond_scope_enter(name);
		protond_scope_exit();
		atomic_store_explicit(&t->done, n, memory_order_release);
	}
}

static void *work(void *p)
{
	for (unsigned r = 0; r < rounds; r++) {
		pthread_barrier_wait(&begins);
		play(r, (unsigned)(uintptr_t)p);
		pthread_barrier_wait(&ends);
	}
	return NULL;
}

static int one(unsigned round)
{
	const struct timespec moment = {0, 1000000};
	struct protond_options o = {.backend = "none"};
	char session[64];
	int id, r;

	(void)snprintf(session, sizeof(session), "%d.%u", (int)getpid(), round);
	while ((id = protond_start(session, &o)) == -ENOTCONN || id == -ETIMEDOUT)
		nanosleep(&moment, NULL); /* the daemon was killed, and another one comes */
	if (id < 0) {
		fprintf(stderr, "start: %d: %s\n", id, protond_error());
		return id;
	}
	pthread_barrier_wait(&begins);
	play(round, 0);
	pthread_barrier_wait(&ends);
	r = protond_finalize(id, NULL);
	if (r < 0)
		fprintf(stderr, "finalize: %d: %s\n", r, protond_error());
	return r;
}

int main(int argc, char **argv)
{
	int fd = argc == 5 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
	size_t n, bytes;
	pthread_t t;
	_Atomic uint64_t *finalized;

	if (fd < 0)
		return 2;
	threads = (unsigned)atoi(argv[2]);
	rounds = (unsigned)atoi(argv[3]);
	scopes = strtoull(argv[4], NULL, 10);
	n = (size_t)rounds * threads;
	bytes = n * sizeof(*truth) + sizeof(uint64_t);
	if (threads == 0 || threads > 64 || rounds > 65536 || ftruncate(fd, (off_t)bytes) < 0)
		return 2;
	truth = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 2;
	finalized = (_Atomic uint64_t *)(void *)(truth + n);
	name = protond_name("unit");
	pthread_barrier_init(&begins, NULL, threads);
	pthread_barrier_init(&ends, NULL, threads);
	for (uintptr_t i = 1; i < threads; i++)
		if (pthread_create(&t, NULL, work, (void *)i) != 0)
			return 3;
	puts("running");
	fflush(stdout);
	for (unsigned r = 0; r < rounds; r++) {
		if (one(r) < 0)
			return 4;
		atomic_store(finalized, r + 1);
	}
	return 0;
}
