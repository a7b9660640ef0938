/* SPDX-License-Identifier: MIT. zoom_bench.c: how long a window of a timeline takes, and how many bytes
 * its answer has: from the whole range to a microsecond, around random events, all lanes, 1 200 pixels.
 *
 * zoom_bench FILE [ROUNDS]; zoom_bench FILE check: instead, whether answers are what the events say. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "schema.h"
#include "zoom.h"

#define PX          1200u
#define SLICE_BYTES 28u /* of a tile: docs/web.md */
#define ROUNDS_MAX  10000u
#define CHECKS      60u

/* Of this thread's CPU: what else the machine does is not ours. */
static double now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long peak_kib(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

static void must(int r, const struct err *e)
{
	if (r == 0)
		return;
	(void)fprintf(stderr, "zoom_bench: %s\n", e->text);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static uint64_t draw(void)
{
	static uint64_t seed = 88172645463325252u;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

#define CHECK(is, ...)                                      \
	do {                                                \
		if (!(is)) {                                \
			(void)fprintf(stderr, __VA_ARGS__); \
			(void)fprintf(stderr, "\n");        \
			exit(1);                            \
		}                                           \
	} while (0)
#include "../unit/zoom_check.h"

static size_t bytes_of(const struct zoom *w, const struct zoom_tile *t)
{
	static uint8_t seen[1u << 20];
	size_t n = 32 + (size_t)t->n * SLICE_BYTES;
	uint32_t i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < t->n; i++)
		if (t->slice[i].name < sizeof(seen) && seen[t->slice[i].name]++ == 0)
			n += 4 + strlen(zoom_name(w, t->slice[i].name));
	return n;
}

/* A window of this length with a random event in its middle. */
static uint64_t around(struct zoom *w, uint64_t length, uint64_t t0, uint64_t t1)
{
	struct zoom_state state;
	struct zoom_event event;
	struct err e = {0};

	zoom_state(w, &state);
	if (length >= t1 - t0 ||
		zoom_event(w, 1 + (uint32_t)(draw() % state.events), &event, &e) < 0)
		return t0;
	return event.start_ns > t0 + length / 2 ? event.start_ns - length / 2 : t0;
}

static void bench(struct zoom *w, uint64_t length, uint32_t rounds)
{
	static double ms[ROUNDS_MAX];
	uint64_t t0, t1, from;
	size_t bytes, most = 0;
	uint32_t i, slices = 0;
	struct zoom_tile t;
	bool coarse = false;
	struct err e = {0};
	double began;

	zoom_range(w, &t0, &t1);
	for (i = 0; i < rounds; i++) {
		from = around(w, length, t0, t1);
		began = now_ms();
		must(zoom_slices(w, &(struct zoom_ask){.t0 = from, .t1 = from + length, .px = PX},
			     &t, &e),
			&e);
		ms[i] = now_ms() - began;
		bytes = bytes_of(w, &t);
		most = bytes > most ? bytes : most;
		slices = t.n > slices ? t.n : slices;
		coarse |= t.coarse;
		zoom_tile_fini(&t);
	}
	qsort(ms, rounds, sizeof(ms[0]), by_value);
	(void)printf("%14" PRIu64 " ns: p50 %7.2f ms, p99 %7.2f, most %7.2f; %5u slices, %7zu "
		     "bytes%s\n",
		length, ms[rounds / 2], ms[rounds * 99 / 100], ms[rounds - 1], slices, most,
		coarse ? ", some over more than a pixel" : "");
}

/* What is in all of it, and in all but its edges. */
static void bench_sums(struct zoom *w, uint64_t t0, uint64_t t1)
{
	const uint64_t edge = (t1 - t0) / 1000;
	struct zoom_sums sums;
	struct err e = {0};
	double began;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		const struct zoom_ask a = {.t0 = t0 + i * edge, .t1 = t1 - i * edge, .px = 1};

		began = now_ms();
		must(zoom_sums(w, &a, &sums, &e), &e);
		(void)printf("sums by name, %.1f %% of it: %.1f ms, %u names and %u more\n",
			i == 0 ? 100. : 99.8, now_ms() - began, sums.n, sums.rest_names);
		zoom_sums_fini(&sums);
	}
}

/* Counters, in windows of all lengths. */
static void bench_counters(struct zoom *w, uint64_t t0, uint64_t t1)
{
	double began, took, most = 0;
	uint64_t length, left_out;
	struct zoom_counts counts;
	uint32_t n, pixels = 0;
	struct err e = {0};

	(void)zoom_counters(w, &n, &left_out);
	for (length = t1 - t0; length >= 1000; length /= 2) {
		const uint64_t from = around(w, length, t0, t1);

		began = now_ms();
		must(zoom_count(w, &(struct zoom_ask){.t0 = from, .t1 = from + length, .px = PX},
			     &counts, &e),
			&e);
		took = now_ms() - began;
		most = took > most ? took : most;
		pixels = counts.n > pixels ? counts.n : pixels;
		zoom_counts_fini(&counts);
	}
	(void)printf("%u counters: %.1f ms at most, %u pixels\n", n, most, pixels);
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return;
	(void)fprintf(stderr, "zoom_bench: %s\n", sqlite3_errmsg(db));
	exit(1);
}

/* A chunk comes, in a copy of the timeline that stands before it. */
static void bench_refresh(sqlite3 *db, int64_t session)
{
	struct err e = {0};
	struct zoom *w, *before;
	bool changed;
	double began;

	run(db, "CREATE TEMP TABLE copy AS SELECT * FROM main.trace;"
		"CREATE UNIQUE INDEX temp.by_key ON copy(session, process, number);"
		"CREATE TEMP TABLE last AS SELECT * FROM copy ORDER BY end_ns DESC LIMIT 1;"
		"DELETE FROM copy WHERE (process, number) IN (SELECT process, number FROM last);"
		"ALTER TABLE copy RENAME TO trace");
	must(zoom_open(db, session, NULL, &w, &e), &e);
	run(db, "INSERT INTO temp.trace SELECT * FROM last");
	before = w;
	began = now_ms();
	must(zoom_refresh(&w, &changed, &e), &e);
	(void)printf("a chunk more: %.1f ms%s\n", now_ms() - began,
		!changed      ? ", unseen"
		: w != before ? ", opened afresh"
			      : "");
	zoom_free(w);
}

static int64_t only_session(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int64_t id = 0;

	if (sqlite3_prepare_v2(db, "SELECT id FROM session", -1, &st, NULL) == SQLITE_OK &&
		sqlite3_step(st) == SQLITE_ROW)
		id = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return id;
}

int main(int argc, char **argv)
{
	const uint32_t rounds = argc > 2 && strcmp(argv[2], "check") != 0
					? (uint32_t)strtoul(argv[2], NULL, 10)
					: 200;
	struct zoom_state state;
	struct zoom *w;
	struct err e = {0};
	uint64_t t0, t1, length;
	uint32_t lanes;
	double began;
	int64_t session;
	sqlite3 *db;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: zoom_bench FILE.protond [ROUNDS]\n");
		return 2;
	}
	if (sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
		schema_shade(db) != SQLITE_OK) {
		(void)fprintf(stderr, "zoom_bench: %s\n", sqlite3_errmsg(db));
		return 1;
	}
	session = only_session(db);
	if (argc > 2 && strcmp(argv[2], "check") == 0) {
		zoom_check(db, session, CHECKS);
		(void)printf("%u windows are as the events say\n", CHECKS);
		return sqlite3_close(db) == SQLITE_OK ? 0 : 1;
	}
	began = now_ms();
	must(zoom_open(db, session, NULL, &w, &e), &e);
	zoom_state(w, &state);
	zoom_range(w, &t0, &t1);
	(void)zoom_lanes(w, &lanes);
	(void)printf("%" PRIu64
		     " events in %u chunks, %u lanes, %.3f s: opened in %.0f ms of CPU; %u "
		     "summaries made; %.1f MiB held\n",
		state.events, state.chunks, lanes, (double)(t1 - t0) / 1e9, now_ms() - began,
		state.summarised, (double)state.memory / 1048576);
	bench(w, t1 - t0, rounds > 20 ? 20 : rounds);
	for (length = (t1 - t0) / 4; length >= 1000; length /= 4)
		bench(w, length, rounds);
	bench_sums(w, t0, t1);
	bench_counters(w, t0, t1);
	zoom_state(w, &state);
	(void)printf("held %.1f MiB; resident at most %ld MiB\n", (double)state.memory / 1048576,
		peak_kib() / 1024);
	zoom_free(w);
	bench_refresh(db, session);
	(void)sqlite3_close(db);
	return 0;
}
