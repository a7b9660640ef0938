/* SPDX-License-Identifier: MIT. storm.c: threads without end, threads without number, and how long
 * a scope takes meanwhile.
 *
 * storm born N CREATORS SCOPES: N threads, as fast as CREATORS threads make and join them.
 * storm alive N SCOPES: N threads that are alive at once.
 * storm burst N TURNS PAUSE_US: N threads, TURNS of two scopes and a number each, at full speed, a
 * PAUSE after each thousand; 0: none. "last" says what the last turn was.
 * storm mute N: threads that leave by the bare system call, in which nobody hears of it;
 * afterwards, for each line of input, one more thread. storm speed N: scopes without pause, in
 * phases of N or more; a phase ends with a line of input.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <protond.h>

#include "storm.h"

#define CREATORS  64
#define STACK     65536 /* more would be asked of the kernel each time: glibc keeps 40 MiB of them */
#define AT_ONCE   16    /* threads that a creator makes before it joins them */
#define PHASES    3
#define BUCKETS   4096
#define BUCKET_NS 8

static uint32_t outer, inner;
static unsigned long scopes_each;
static _Atomic uint64_t did;

static void work(void)
{
	unsigned long n;

	protond_scope_enter(outer);
	for (n = 1; n < scopes_each; n++) {
		protond_scope_enter(inner);
		protond_scope_exit();
	}
	protond_scope_exit();
}

/* --- born --- */

static void *short_life(void *p)
{
	if (scopes_each > 0)
		work();
	return p;
}

static void *creator(void *p)
{
	const unsigned long n = (unsigned long)(uintptr_t)p;
	pthread_t t[AT_ONCE];
	pthread_attr_t small;

	if (pthread_attr_init(&small) != 0 || pthread_attr_setstacksize(&small, STACK) != 0)
		die("attr");
	for (unsigned long done = 0; done < n;) {
		unsigned k = 0;

		for (; k < AT_ONCE && done < n; k++, done++)
			if (pthread_create(&t[k], &small, short_life, NULL) != 0)
				die("pthread_create");
		while (k > 0)
			(void)pthread_join(t[--k], NULL);
	}
	atomic_fetch_add(&did, n * scopes_each);
	pthread_attr_destroy(&small);
	return NULL;
}

/* Nanoseconds that n threads took. */
static uint64_t born(unsigned long n, unsigned long creators)
{
	const uint64_t began = now_ns();
	pthread_t t[CREATORS];

	for (unsigned long i = 0; i < creators; i++)
		if (pthread_create(&t[i], NULL, creator, (void *)(uintptr_t)(n / creators)) != 0)
			die("pthread_create");
	for (unsigned long i = 0; i < creators; i++)
		(void)pthread_join(t[i], NULL);
	return now_ns() - began;
}

static int born_main(char **argv)
{
	const unsigned long n = number(argv, 2), creators = number(argv, 3);
	uint64_t took[2];
	char line[128];

	scopes_each = number(argv, 4);
	if (creators == 0 || creators > CREATORS)
		return 2;
	took[0] = born(n / 10, creators);
	(void)snprintf(line, sizeof(line), "did=%lu own_kb=%lu", (unsigned long)did, own_kb());
	wait_for_word(line);
	took[1] = born(n - n / 10, creators);
	printf("did=%lu own_kb=%lu ns=%lu\n", (unsigned long)did, own_kb(),
		(unsigned long)(took[0] + took[1]));
	return 0;
}

/* --- alive --- */

static pthread_barrier_t inside, leave;

static void *long_life(void *p)
{
	protond_scope_enter(outer);
	(void)pthread_barrier_wait(&inside);
	for (unsigned long n = 1; n < scopes_each; n++) {
		protond_scope_enter(inner);
		protond_scope_exit();
	}
	(void)pthread_barrier_wait(&leave);
	protond_scope_exit();
	return p;
}

static int alive_main(char **argv)
{
	const unsigned long n = number(argv, 2);
	pthread_t *t = calloc(n, sizeof(*t));
	pthread_attr_t small;
	char line[64];

	scopes_each = number(argv, 3);
	if (t == NULL || pthread_attr_init(&small) != 0 ||
		pthread_attr_setstacksize(&small, STACK) != 0 ||
		pthread_barrier_init(&inside, NULL, (unsigned)n + 1) != 0 ||
		pthread_barrier_init(&leave, NULL, (unsigned)n + 1) != 0)
		die("alive");
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&t[i], &small, long_life, NULL) != 0)
			die("pthread_create");
	(void)pthread_barrier_wait(&inside);
	(void)snprintf(line, sizeof(line), "alive=%lu", n);
	wait_for_word(line);
	(void)pthread_barrier_wait(&leave);
	for (unsigned long i = 0; i < n; i++)
		(void)pthread_join(t[i], NULL);
	free(t);
	printf("did=%lu\n", n * scopes_each);
	return 0;
}

/* --- burst --- */

static unsigned long turns, pause_us;

static void *turn(void *p)
{
	const uint32_t number = protond_metric("number"), last = protond_metric("last (pty)");
	const struct timespec ts = {0, (long)pause_us * 1000};

	(void)pthread_barrier_wait(&inside);
	for (unsigned long n = 1; n <= turns; n++) {
		protond_scope_enter(outer);
		protond_scope_enter(inner);
		protond_metric_u64(number, n);
		protond_scope_exit();
		protond_scope_exit();
		if (n % 1000 == 0)
			protond_metric_u64(last, n);
		if (n % 1000 == 0 && pause_us > 0)
			(void)nanosleep(&ts, NULL);
	}
	(void)pthread_barrier_wait(&leave);
	return p;
}

static int burst_main(char **argv)
{
	const unsigned long n = number(argv, 2);
	pthread_t t;

	turns = number(argv, 3);
	pause_us = number(argv, 4);
	if (pthread_barrier_init(&inside, NULL, (unsigned)n + 1) != 0 ||
		pthread_barrier_init(&leave, NULL, (unsigned)n + 1) != 0)
		die("burst");
	for (unsigned long i = 0; i < n; i++)
		if (pthread_create(&t, NULL, turn, NULL) != 0 || pthread_detach(t) != 0)
			die("pthread_create");
	(void)pthread_barrier_wait(&inside);
	(void)pthread_barrier_wait(&leave);
	wait_for_word("did");
	return 0;
}

/* --- mute --- */

static void *leave_mute(void *p)
{
	work();
	(void)syscall(SYS_exit, 0);
	return p;
}

static void one(void *(*fn)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, NULL) != 0)
		die("pthread_create");
	(void)pthread_join(t, NULL);
	atomic_fetch_add(&did, scopes_each);
}

static int mute_main(char **argv)
{
	char word[64];

	scopes_each = 3;
	for (unsigned long n = number(argv, 2); n > 0; n--)
		one(leave_mute);
	outer = protond_name("later");
	do {
		puts("ready");
		fflush(stdout);
		if (fgets(word, sizeof(word), stdin) == NULL)
			die("nobody answers");
		one(short_life);
	} while (word[0] != 'q');
	printf("did=%lu\n", (unsigned long)did);
	return 0;
}

/* --- speed --- */

/* Of one phase; the last bucket has all that took longer. */
struct times {
	uint64_t n, max, bucket[BUCKETS];
};

static struct times times[PHASES];
static _Atomic unsigned phase;
static _Atomic bool enough;
static uint64_t phase_is;
static sem_t reached;

static void note(struct times *t, uint64_t ns)
{
	const uint64_t at = ns / BUCKET_NS;

	t->n++;
	t->max = ns > t->max ? ns : t->max;
	t->bucket[at < BUCKETS ? at : BUCKETS - 1]++;
}

static void *run(void *p)
{
	uint64_t n = 0;

	while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
		struct times *t = &times[atomic_load_explicit(&phase, memory_order_relaxed)];
		const uint64_t began = now_ns();

		protond_scope_enter(inner);
		protond_scope_exit();
		note(t, now_ns() - began);
		n++;
		if (t->n == phase_is)
			(void)sem_post(&reached);
	}
	atomic_store(&did, n);
	return p;
}

static uint64_t percentile(const struct times *t, double share)
{
	const uint64_t want = (uint64_t)((double)t->n * share);
	uint64_t seen = 0;

	for (unsigned i = 0; i + 1 < BUCKETS; i++) {
		seen += t->bucket[i];
		if (seen > want)
			return (i + 1ull) * BUCKET_NS;
	}
	return t->max;
}

static void say(const struct times *t)
{
	printf("n=%lu p50=%lu p99=%lu p999=%lu max=%lu\n", (unsigned long)t->n,
		(unsigned long)percentile(t, 0.5), (unsigned long)percentile(t, 0.99),
		(unsigned long)percentile(t, 0.999), (unsigned long)t->max);
}

/* Two readings of the clock with nothing between: what the figures contain besides. */
static void say_floor(void)
{
	static struct times t;

	for (unsigned i = 0; i < 1000000; i++) {
		const uint64_t began = now_ns();

		note(&t, now_ns() - began);
	}
	say(&t);
}

static int speed_main(char **argv)
{
	pthread_t t;

	phase_is = number(argv, 2);
	if (sem_init(&reached, 0, 0) < 0 || pthread_create(&t, NULL, run, NULL) != 0)
		die("speed");
	for (unsigned i = 0; i < PHASES; i++) {
		while (sem_wait(&reached) < 0)
			;
		wait_for_word("phase");
		if (i + 1 < PHASES)
			atomic_store(&phase, i + 1);
	}
	atomic_store(&enough, true);
	(void)pthread_join(t, NULL);
	say_floor();
	for (unsigned i = 0; i < PHASES; i++)
		say(&times[i]);
	printf("did=%lu\n", (unsigned long)did);
	return 0;
}

int main(int argc, char **argv)
{
	outer = protond_name("outer");
	inner = protond_name("inner");
	if (argc > 2 && strcmp(argv[1], "born") == 0)
		return born_main(argv);
	if (argc > 2 && strcmp(argv[1], "alive") == 0)
		return alive_main(argv);
	if (argc > 3 && strcmp(argv[1], "burst") == 0)
		return burst_main(argv);
	if (argc > 2 && strcmp(argv[1], "mute") == 0)
		return mute_main(argv);
	if (argc > 2 && strcmp(argv[1], "speed") == 0)
		return speed_main(argv);
	return 2;
}
