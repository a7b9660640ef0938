/* SPDX-License-Identifier: MIT. fold_bench.c: events a second through drain → correlate → tree on
 * one core: of every four, one LAUNCH, one KERNEL, two SCOPE; 10 000 paths, each with its own
 * kernel cell.
 *
 * Only fold_apply() is timed, on entries as the daemon makes them: a lap of an application's lane,
 * then what the agent's lane has of it. Median of the rounds, on this thread's CPU clock. Exit
 * status 1: the target was missed or the law attempted = stored does not hold.
 *
 * FOLD_BENCH_ROUNDS, _SESSIONS, _PATHS change the size; FOLD_BENCH_TIMELINE=1 keeps timelines, too.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "fold.h"
#include "record.h"
#include "ring.h"

#define PATHS     10000u /* FOLD_BENCH_PATHS */
#define NAMES     (paths + 2)
#define LAP       RING_LANE_BYTES
#define BATCH     (LAP / (32 + 2 * 24)) /* launches in one lap of the application's lane */
#define ENTRIES   40u                   /* of each lane in a round */
#define TARGET    20e6
#define IN_FLIGHT 100000u
#define REAL      1000000000000000000ull
#define ENTRY_MAX (sizeof(struct journal_entry) + sizeof(struct j_lane) + LAP)

static const uint8_t ring[16] = {1};
static uint64_t clock_ns = 1000000000;
static uint32_t paths;
static uint64_t order; /* walks over the paths in no order that a cache likes */

static void *must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static struct journal_entry *entry(uint16_t type, size_t bytes)
{
	size_t whole = sizeof(struct journal_entry) + ((bytes + 7) & ~(size_t)7);
	struct journal_entry *e = must(calloc(1, whole));

	e->magic = JOURNAL_MAGIC;
	e->type = type;
	e->bytes = (uint32_t)whole;
	e->mono_ns = clock_ns;
	memcpy(e->ring, ring, 16);
	return e;
}

static void apply(struct fold *f, struct journal_entry *take)
{
	if (fold_apply(f, take) != 0)
		abort();
	free(take);
}

static void begin(struct fold *f, uint32_t sessions, bool timeline)
{
	struct journal_entry *e = entry(J_PROCESS, sizeof(struct j_process));
	struct j_process *p = (struct j_process *)(e + 1);
	struct j_table *t;
	struct j_verb *v;
	struct ring_path *path;
	uint32_t i;
	uint8_t *at;

	*p = (struct j_process){.uid = 7, .clock = RING_CLOCK_TSC, .n_lanes = 4, .lane_bytes = LAP};
	p->tsc_khz = 2100000;
	p->created_clock = p->created_monotonic_ns = clock_ns;
	apply(f, e);
	e = entry(J_TABLE, sizeof(*t) + NAMES * 20);
	t = (struct j_table *)(e + 1);
	*t = (struct j_table){TABLE_NAMES, 2, NAMES, NAMES * 20};
	for (i = 0, at = (uint8_t *)(t + 1); i < NAMES; i++, at += 20) {
		memcpy(at, &(uint32_t){16}, 4);
		(void)snprintf((char *)at + 4, 17, "a_name_%09u", i % 1000000000);
	}
	apply(f, e);
	e = entry(J_TABLE, sizeof(*t) + paths * sizeof(*path));
	t = (struct j_table *)(e + 1);
	*t = (struct j_table){TABLE_PATHS, 2, paths, 0};
	for (i = 0, path = (struct ring_path *)(t + 1); i < paths; i++)
		path[i] = (struct ring_path){i < 10 ? 0 : 2 + i / 10, 2 + i, PATH_KIND_SCOPE,
			(uint16_t)(i < 10 ? 1 : path[i / 10].depth + 1), 0};
	apply(f, e);
	for (i = 0; i < sessions; i++) {
		e = entry(J_VERB, sizeof(*v));
		v = (struct j_verb *)(e + 1);
		*v = (struct j_verb){
			.verb = VERB_START, .uid = 7, .mono_ns = clock_ns, .match = MATCH_USER};
		v->session[0] = (uint8_t)(i + 1);
		v->data = timeline ? SESSION_TRACE : SESSION_TREE;
		apply(f, e);
	}
}

struct stream {
	struct journal_entry *e;
	uint32_t lane;
	uint64_t position;
};

static void stream_begin(struct stream *s, uint32_t lane)
{
	s->e = must(calloc(1, ENTRY_MAX));
	s->lane = lane;
}

static struct j_lane *stream_lane(struct stream *s)
{
	return (struct j_lane *)(s->e + 1);
}

static void stream_open(struct stream *s)
{
	*s->e = (struct journal_entry){.magic = JOURNAL_MAGIC, .type = J_LANE, .mono_ns = clock_ns};
	memcpy(s->e->ring, ring, 16);
	*stream_lane(s) = (struct j_lane){.lane = s->lane, .from = s->position};
}

static void put(struct stream *s, uint8_t type, uint32_t id, void *record, uint32_t bytes)
{
	struct j_lane *l = stream_lane(s);
	uint8_t *at = (uint8_t *)(l + 1) + l->bytes;
	uint64_t left = LAP - s->position % LAP, hdr;

	if (left < bytes) {
		hdr = REC_HDR(0, REC_PAD, s->position / LAP, 0, left);
		memcpy(at, &hdr, 8);
		memset(at + 8, 0, left - 8);
		at += left;
		l->bytes += (uint32_t)left;
		s->position += left;
	}
	hdr = REC_HDR(bytes, type, s->position / LAP, 0, id);
	memcpy(record, &hdr, 8);
	memcpy(at, record, bytes);
	l->bytes += bytes;
	s->position += bytes;
}

static void fill(struct stream *app, struct stream *gpu, uint32_t *corr)
{
	struct rec_launch launch = {.epoch = 1};
	struct rec_kernel kernel = {.epoch = 1, .config = UINT32_MAX};
	struct rec_scope scope = {0};
	uint32_t i, path;

	stream_open(app);
	stream_open(gpu);
	for (i = 0; i < BATCH - 1; i++) {
		path = 2 + (uint32_t)(order++ * 7919 % paths);
		clock_ns += 3000;
		launch.clock = clock_ns;
		launch.correlation = ++*corr;
		put(app, REC_LAUNCH, path, &launch, sizeof(launch));
		scope = (struct rec_scope){0, clock_ns - 900, clock_ns + 100};
		put(app, REC_SCOPE, path, &scope, sizeof(scope));
		scope = (struct rec_scope){0, clock_ns - 2000, clock_ns + 200};
		put(app, REC_SCOPE, path > 12 ? 2 + (path - 2) / 10 : path, &scope, sizeof(scope));
		kernel.correlation = *corr;
		kernel.start = clock_ns + REAL;
		kernel.end = kernel.start + 1500 + (i & 1023);
		put(gpu, REC_KERNEL, 2 + path % 50, &kernel, sizeof(kernel));
	}
	app->e->bytes =
		(uint32_t)(sizeof(*app->e) + sizeof(struct j_lane)) + stream_lane(app)->bytes;
	gpu->e->bytes =
		(uint32_t)(sizeof(*gpu->e) + sizeof(struct j_lane)) + stream_lane(gpu)->bytes;
}

static double cpu_s(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

__attribute__((noinline)) static double round_rate(
	struct fold *f, struct stream *app, struct stream *gpu, uint32_t *corr)
{
	double spent = 0, from;
	uint32_t i;

	for (i = 0; i < ENTRIES; i++) {
		fill(app, gpu, corr);
		from = cpu_s();
		if (fold_apply(f, app->e) != 0 || fold_apply(f, gpu->e) != 0)
			abort();
		spent += cpu_s() - from;
	}
	return ENTRIES * (BATCH - 1) * 4 / spent;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t env_number(const char *name, uint32_t otherwise)
{
	const char *v = getenv(name);

	return v == NULL ? otherwise : (uint32_t)strtoul(v, NULL, 10);
}

/* Every launch has its kernel in a cell, every scope its count. */
static bool law_holds(struct fold *f, uint64_t launches, uint64_t *ret_bytes)
{
	uint64_t scopes = 0, kernels = 0;
	struct batch b = {0};
	double from = cpu_s();
	uint32_t i;

	if (fold_collect(f, &b) != 0)
		return false;
	printf("collect: %u cells, %u nodes, %u chunks in %.1f ms\n", b.cell.n, b.node.n, b.trace.n,
		1e3 * (cpu_s() - from));
	for (i = 0; i < b.trace.n; i++)
		*ret_bytes += b.trace.row[i].n;
	for (i = 0; i < b.cell.n; i++) {
		if (b.cell.row[i].session != 1)
			continue;
		if (b.cell.row[i].class == CLASS_CPU)
			scopes += b.cell.row[i].count;
		else
			kernels += b.cell.row[i].count;
	}
	batch_free(&b);
	return scopes == 2 * launches && kernels == launches;
}

/* What a transaction writes of launches that wait for their records, and of records that wait for
 * their launches: of as many, all of it each time. */
static bool waiting(struct fold *f, struct stream *app, struct stream *gpu, uint32_t *corr)
{
	const char *const what[] = {"launches", "and as many records"};
	struct stream *half[] = {app, gpu};
	const uint32_t n = (uint32_t)(IN_FLIGHT / (BATCH - 1));
	struct batch b = {0};
	uint64_t bytes;
	uint32_t i, k;
	double from;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < n; i++) {
			fill(app, gpu, corr);
			if (fold_apply(f, half[k]->e) != 0)
				return false;
		}
		if (fold_collect(f, &b) != 0) /* the cells */
			return false;
		batch_free(&b);
		fill(app, gpu, corr); /* a few more, or nothing would be new */
		if (fold_apply(f, half[k]->e) != 0)
			return false;
		from = cpu_s();
		if (fold_collect(f, &b) != 0)
			return false;
		from = cpu_s() - from;
		for (bytes = 0, i = 0; i < b.pending.n; i++)
			bytes += b.pending.row[i].n;
		printf("in flight: %u %s, %.1f KiB, collected in %.2f ms\n",
			(n + 1) * (uint32_t)(BATCH - 1), what[k], (double)bytes / 1024, 1e3 * from);
		batch_free(&b);
	}
	return true;
}

int main(void)
{
	uint32_t rounds = env_number("FOLD_BENCH_ROUNDS", 15), corr = 0, i;
	uint32_t sessions = env_number("FOLD_BENCH_SESSIONS", 1);
	const bool timeline = env_number("FOLD_BENCH_TIMELINE", 0) != 0;
	uint64_t bytes = 0;
	double *rate = must(calloc(rounds, sizeof(*rate)));
	struct stream app = {0}, gpu = {0};
	struct fold *f;
	bool law;

	paths = env_number("FOLD_BENCH_PATHS", PATHS);
	if (rounds == 0 || paths < 100 || fold_new(NULL, &f) != 0)
		return 2;
	begin(f, sessions, timeline);
	stream_begin(&app, 0);
	stream_begin(&gpu, 1);
	gpu.e = must(realloc(gpu.e, 2 * ENTRY_MAX));
	(void)round_rate(f, &app, &gpu, &corr); /* nodes and cells are made */
	for (i = 0; i < rounds; i++) {
		if (timeline)
			(void)law_holds(
				f, corr, &bytes); /* as the store would, or chunks pile up */
		rate[i] = round_rate(f, &app, &gpu, &corr);
	}
	qsort(rate, rounds, sizeof(*rate), by_value);
	printf("fold%s: %.1f M events/s (median of %u; %.1f to %.1f), %u session(s), %u paths, "
	       "%u events a round; target %.0f\n",
		timeline ? " with timelines" : "", rate[rounds / 2] / 1e6, rounds, rate[0] / 1e6,
		rate[rounds - 1] / 1e6, sessions, paths, ENTRIES * ((uint32_t)BATCH - 1) * 4,
		TARGET / 1e6);
	law = law_holds(f, corr, &bytes);
	if (timeline)
		printf("timeline: %.1f bytes for a launch with its kernel and two scopes\n",
			(double)bytes / corr / sessions);
	printf("law: attempted = stored %s\n", law ? "holds" : "BROKEN");
	law = waiting(f, &app, &gpu, &corr) && law;
	fold_free(f);
	free(app.e);
	free(gpu.e);
	law = law && (sessions > 1 || timeline || rate[rounds / 2] >= TARGET);
	free(rate);
	return law ? 0 : 1;
}
