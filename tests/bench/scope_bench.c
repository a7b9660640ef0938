/* SPDX-License-Identifier: MIT. scope_bench.c: what a scope costs, beside its floor, in turns.
 *
 * The floor is two TSC reads, the store of one 24-byte record and a release store: what nobody can
 * do without. Each round runs every case once, in batches with pauses so that the reader keeps up;
 * the clock is the thread's own CPU time. Printed: median ns of a case, and median with 95 % bounds
 * of its ratio to the floor of the same round. Drops must be 0: a full lane is cheaper than a
 * working one. A case is one enter and one exit.
 *
 * Linked with libprotond as a job is.
 * SCOPE_BENCH_ROUNDS, SCOPE_BENCH_THREADS change the size; exit status 1: a target was missed.
 */
#define JOB_PLAIN
#include "job_daemon.h"

#include <math.h>
#include <sched.h>
#include <x86intrin.h>

#include "protond.h"

#define BATCH       5000u /* pairs: 117 KiB, less than half of a lane */
#define BATCHES     12u   /* of a case in a round */
#define ROUNDS      31u
#define THREADS     2u
#define THREADS_MAX 64u
#define FEW         16u /* of a batch's pairs, where each is many records */

enum bench_case { FLOOR, CALLS, RECORDING, NESTED, COUNTED, CPU_OFF, GATE_0, CASES };

static const struct {
	const char *name;
	double ns, ratio; /* to reach; 0: no target */
} cases[CASES] = {
	[FLOOR] = {"floor: 2 TSC reads + 24 B + release", 0, 0},
	[CALLS] = {"two calls of a library that do nothing", 0, 0},
	[RECORDING] = {"scope, recorded", 0, 1.10},
	[NESTED] = {"scope in 8 different scopes, recorded", 0, 1.10},
	[COUNTED] = {"scope, with PROTOND_COUNTERS counted", 0, 0},
	[CPU_OFF] = {"scope, cpu=off", 5.0, 0},
	[GATE_0] = {"scope, nothing recorded", 2.5, 0},
};

static struct fake daemon_;
static uint32_t names[8];

struct bench {
	unsigned rounds, threads;
	double *ns[CASES];
	_Alignas(64) uint64_t *data;
	_Atomic uint64_t tail;
	pthread_barrier_t *turn;
	bool leads; /* sets what is wanted */
};

static double cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void nap(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&ts, NULL);
}

__attribute__((noinline)) static void run_floor(struct bench *b)
{
	uint64_t pos = b->tail;

	for (unsigned i = 0; i < BATCH; i++) {
		uint64_t *p = b->data + (pos & ((256u << 10) - 1)) / 8;
		const uint64_t begin = __rdtsc();

		__asm__ volatile("" ::: "memory");
		p[0] = i;
		p[1] = begin;
		p[2] = __rdtsc();
		pos += 24;
		if ((pos & ((256u << 10) - 1)) > (256u << 10) - 24)
			pos = 0;
		atomic_store_explicit(&b->tail, pos, memory_order_release);
	}
}

__attribute__((noinline)) static void run_scope(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		protond_scope_enter(names[0]);
		protond_scope_exit();
	}
}

/* What no function of a shared library can do without, and the floor has not. */
__attribute__((noinline)) static void run_calls(void)
{
	for (unsigned i = 0; i < BATCH; i++) {
		(void)protond_depth();
		(void)protond_depth();
	}
}

__attribute__((noinline)) static void run_nested(void)
{
	for (unsigned i = 0; i < BATCH / 8; i++) {
		for (unsigned j = 0; j < 8; j++)
			protond_scope_enter(names[j]);
		for (unsigned j = 0; j < 8; j++)
			protond_scope_exit();
	}
}

static void run_case(struct bench *b, enum bench_case c)
{
	if (c == FLOOR)
		run_floor(b);
	else if (c == CALLS)
		run_calls();
	else if (c == NESTED)
		run_nested();
	else
		run_scope(c == COUNTED ? BATCH / FEW : BATCH);
}

static int up(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), up);
	return v[n / 2];
}

static void want_for(enum bench_case c)
{
	static const uint32_t want[CASES] = {[FLOOR] = WANT_SCOPES | WANT_CPU_TIME,
		[CALLS] = WANT_SCOPES | WANT_CPU_TIME,
		[RECORDING] = WANT_SCOPES | WANT_CPU_TIME,
		[NESTED] = WANT_SCOPES | WANT_CPU_TIME,
		[COUNTED] = WANT_SCOPES | WANT_CPU_TIME | WANT_COUNTERS,
		[CPU_OFF] = WANT_SCOPES,
		[GATE_0] = 0};

	if (daemon_.want == want[c])
		return;
	fake_want(&daemon_, want[c]);
	nap(5);
}

static double measure(struct bench *b, enum bench_case c)
{
	double v[BATCHES];

	run_case(b, c); /* not measured */
	nap(3);
	for (unsigned i = 0; i < BATCHES; i++) {
		const double t0 = cpu_ns();

		run_case(b, c);
		v[i] = (cpu_ns() - t0) / (c == COUNTED ? BATCH / FEW : BATCH);
		nap(3);
	}
	return median(v, BATCHES);
}

static void *bench_main(void *p)
{
	struct bench *b = p;

	for (unsigned r = 0; r < b->rounds; r++) {
		for (unsigned c = 0; c < CASES; c++) {
			(void)pthread_barrier_wait(b->turn);
			if (b->leads)
				want_for((enum bench_case)c);
			(void)pthread_barrier_wait(b->turn);
			b->ns[c][r] = measure(b, (enum bench_case)c);
		}
	}
	return NULL;
}

static bool report(struct bench *b, unsigned c, unsigned threads)
{
	double *ratio = calloc(b->rounds, sizeof(*ratio));
	const double z = 0.98 * sqrt((double)b->rounds); /* order statistics of the median */
	unsigned lo, hi;
	double ns, mid;
	bool ok;

	for (unsigned r = 0; r < b->rounds; r++)
		ratio[r] = b->ns[c][r] / b->ns[FLOOR][r];
	mid = median(ratio, b->rounds);
	lo = (unsigned)fmax(0, floor(b->rounds / 2.0 - z));
	hi = (unsigned)fmin(b->rounds - 1, ceil(b->rounds / 2.0 + z));
	{
		double *copy = calloc(b->rounds, sizeof(*copy));

		memcpy(copy, b->ns[c], b->rounds * sizeof(*copy));
		ns = median(copy, b->rounds);
		free(copy);
	}
	ok = (cases[c].ns <= 0 || ns <= cases[c].ns) &&
	     (cases[c].ratio <= 0 || ratio[hi] <= cases[c].ratio);
	printf("%-40s %u thread%s %7.2f ns  x%.3f [%.3f, %.3f]", cases[c].name, threads,
		threads > 1 ? "s" : " ", ns, mid, ratio[lo], ratio[hi]);
	if (cases[c].ratio > 0)
		printf("  target x%.2f: %s", cases[c].ratio, ok ? "reached" : "MISSED");
	if (cases[c].ns > 0)
		printf("  target %.1f ns: %s", cases[c].ns, ok ? "reached" : "MISSED");
	printf("\n");
	free(ratio);
	return ok;
}

static bool run_threads(unsigned threads, unsigned rounds)
{
	struct bench *b = calloc(threads, sizeof(*b));
	pthread_t th[THREADS_MAX];
	pthread_barrier_t turn;
	bool ok = true;

	(void)pthread_barrier_init(&turn, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		b[i].rounds = rounds;
		b[i].turn = &turn;
		b[i].leads = i == 0;
		b[i].data = mmap(NULL, 256u << 10, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		for (unsigned c = 0; c < CASES; c++)
			b[i].ns[c] = calloc(rounds, sizeof(double));
		if (i > 0)
			(void)pthread_create(&th[i], NULL, bench_main, &b[i]);
	}
	(void)bench_main(&b[0]);
	for (unsigned i = 1; i < threads; i++)
		(void)pthread_join(th[i], NULL);
	for (unsigned c = 0; c < CASES; c++)
		ok = report(&b[0], c, threads) && ok;
	return ok;
}

static unsigned setting(const char *name, unsigned fallback)
{
	const char *s = getenv(name);

	return s != NULL ? (unsigned)strtoul(s, NULL, 10) : fallback;
}

int main(void)
{
	const unsigned rounds = setting("SCOPE_BENCH_ROUNDS", ROUNDS);
	const unsigned threads = setting("SCOPE_BENCH_THREADS", THREADS);
	bool ok;

	fake_place(&daemon_, 0);
	fake_start(&daemon_);
	for (unsigned i = 0; i < 8; i++) {
		char n[16];

		(void)snprintf(n, sizeof(n), "scope %u", i);
		names[i] = protond_name(n);
	}
	if (protond_start("bench", &(struct protond_options){.backend = "none"}) != 0) {
		fprintf(stderr, "scope_bench: %s\n", protond_error());
		return 2;
	}
	/* from here on the daemon alone says what is wanted; the last finalize waits for nobody */
	(void)protond_finalize(0, NULL);
	fake_want(&daemon_, WANT_SCOPES | WANT_CPU_TIME);
	nap(20);
	ok = run_threads(1, rounds);
	if (threads > 1)
		ok = run_threads(threads < THREADS_MAX ? threads : THREADS_MAX, rounds) && ok;
	fake_stop(&daemon_);
	(void)view_walk(&daemon_.v, NULL, NULL);
	printf("scopes stored %lu, dropped %lu\n", (unsigned long)daemon_.v.n[REC_SCOPE],
		(unsigned long)view_dropped(&daemon_.v));
	fake_clean(&daemon_);
	return ok && view_dropped(&daemon_.v) == 0 ? 0 : 1;
}
