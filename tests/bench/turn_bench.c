/* SPDX-License-Identifier: MIT. turn_bench.c: how long one entry holds the fold, of a process in as many
 * sessions as may be, by what a hostile one writes: the longest of each kind, on this thread's CPU clock.
 * Whoever asks the daemon something waits for the entry in hand.
 *
 * turn_bench [BYTES [KIND]]: of a lane's bytes in an entry; what drain.c takes for so many sessions.
 * TURN_BENCH_SESSIONS changes how many. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fold.h"
#include "hist.h"
#include "record.h"
#include "ring.h"

#define LAP         (16u << 20)
#define LANES       1024u
#define PATHS       60000u
#define DEEP        16384u /* paths from there on stand in chains as deep as may be */
#define NAMES       16384u
#define ENTRIES     256u /* of each kind, unless it says when it is done */
#define REAL        1000000000000000000ull
#define FRAMES      8192u
#define FRAMES_USER 131072u /* of all his rings: drain.h */

static uint64_t clock_ns = 1000000000, seed = 88172645463325252ull, position;
static uint8_t ring[16] = {1};
static struct journal_entry *lane_entry;
static uint32_t limit, n; /* n: so many records of the kind so far */
static bool full;         /* nothing comes behind that in an entry */

static void *must(void *p)
{
	if (p == NULL)
		abort();
	return p;
}

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double apply(struct fold *f, const struct journal_entry *e)
{
	struct timespec a, b;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	(void)fold_apply(f, e);
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
}

static void *begin(struct journal_entry **ret, uint16_t type, size_t bytes)
{
	const size_t whole = sizeof(**ret) + ((bytes + 7) & ~(size_t)7);

	*ret = must(calloc(1, whole));
	**ret = (struct journal_entry){.magic = JOURNAL_MAGIC,
		.type = type,
		.bytes = (uint32_t)whole,
		.mono_ns = clock_ns};
	memcpy((*ret)->ring, ring, 16);
	return *ret + 1;
}

static double done(struct fold *f, struct journal_entry *take)
{
	const double ms = apply(f, take);

	free(take);
	return ms;
}

static void tables(struct fold *f)
{
	struct journal_entry *e;
	struct ring_path *path;
	struct j_table *t;
	uint8_t *at;
	uint32_t i;

	t = begin(&e, J_TABLE, sizeof(*t) + NAMES * 12 + 1);
	*t = (struct j_table){TABLE_NAMES, 2, NAMES, NAMES * 12};
	for (i = 0, at = (uint8_t *)(t + 1); i < NAMES; i++, at += 12) {
		memcpy(at, &(uint32_t){8}, 4);
		(void)snprintf((char *)at + 4, 9, "n%07u", i % 10000000);
	}
	(void)done(f, e);
	t = begin(&e, J_TABLE, sizeof(*t) + PATHS * sizeof(*path));
	*t = (struct j_table){TABLE_PATHS, 2, PATHS, 0};
	for (i = 0, path = (struct ring_path *)(t + 1); i < PATHS; i++) {
		const bool top = i < DEEP || i % 255 == 0;

		path[i] = (struct ring_path){top ? 0 : 1 + i, 2 + i % NAMES, PATH_KIND_SCOPE,
			(uint16_t)(top ? 1 : path[i - 1].depth + 1), 0};
	}
	(void)done(f, e);
}

static void process(struct fold *f, uint8_t number)
{
	struct journal_entry *e;
	struct j_process *p;

	ring[0] = number;
	p = begin(&e, J_PROCESS, sizeof(*p));
	*p = (struct j_process){.uid = 7,
		.pid = 100u + number,
		.clock = RING_CLOCK_MONOTONIC,
		.n_lanes = LANES,
		.lane_bytes = LAP,
		.created_clock = clock_ns,
		.created_monotonic_ns = clock_ns};
	(void)done(f, e);
	tables(f);
}

static double verb(struct fold *f, uint32_t what, uint32_t number, uint8_t data)
{
	struct journal_entry *e;
	struct j_verb *v = begin(&e, J_VERB, sizeof(*v));

	*v = (struct j_verb){.verb = what,
		.uid = 7,
		.mono_ns = clock_ns,
		.match = MATCH_USER,
		.context = SESSION_PYTHON,
		.data = data};
	v->session[0] = (uint8_t)(number + 1);
	return done(f, e);
}

static struct j_lane *lane(void)
{
	return (struct j_lane *)(lane_entry + 1);
}

static void lane_begin(uint16_t type)
{
	*lane_entry =
		(struct journal_entry){.magic = JOURNAL_MAGIC, .type = type, .mono_ns = clock_ns};
	memcpy(lane_entry->ring, ring, 16);
	full = false;
	*lane() = (struct j_lane){.lane = type == J_SUMS, .from = position};
}

static double lane_done(struct fold *f)
{
	lane_entry->bytes = (uint32_t)(sizeof(*lane_entry) + sizeof(struct j_lane)) + lane()->bytes;
	if (lane_entry->type == J_LANE)
		position += lane()->bytes;
	return apply(f, lane_entry);
}

/* False: the entry is full. */
static bool put(uint8_t type, uint8_t flags, uint32_t id, void *rec, uint32_t bytes)
{
	const uint64_t at = position + lane()->bytes;
	const uint64_t hdr = REC_HDR(bytes, type, at / LAP, flags, id);

	if (full || lane()->bytes + bytes > limit || LAP - at % LAP < bytes)
		return false;
	memcpy(rec, &hdr, 8);
	memcpy((uint8_t *)(lane() + 1) + lane()->bytes, rec, bytes);
	lane()->bytes += bytes;
	full = type == REC_SESSION && flags == SESSION_START; /* as drain.c does */
	return true;
}

/* --- kinds: each puts one record more; false: the entry is full --- */

static bool put_scope(void)
{
	struct rec_scope s = {.begin = clock_ns - rnd() % 100000, .end = clock_ns};

	return put(REC_SCOPE, 0, 2 + n * 7919 % PATHS, &s, sizeof(s));
}

static bool put_metric(void)
{
	struct rec_metric m = {
		.clock = clock_ns, .value = 1, .name = 2 + n * 17 % NAMES, .python = 2 + n % PATHS};

	return put(REC_METRIC, METRIC_U64, 2 + n * 7919 % PATHS, &m, sizeof(m));
}

static bool put_launch(void)
{
	struct rec_launch l = {.clock = clock_ns,
		.correlation = 1000 + n,
		.epoch = 1,
		.python = 2 + n * 31 % PATHS};

	return put(REC_LAUNCH, n % 3 == 0 ? LAUNCH_GRAPH : 0, 2 + n * 7919 % PATHS, &l, sizeof(l));
}

static bool put_kernel_of(uint32_t corr, uint32_t captured)
{
	struct rec_kernel k = {.start = clock_ns - 1000 - rnd() % 1000000 * 2 + REAL,
		.correlation = corr,
		.epoch = 1,
		.captured = captured,
		.config = UINT32_MAX,
		.device = (uint16_t)(rnd() % 4)};

	k.end = k.start + 1 + rnd() % 1000;
	return put(REC_KERNEL, GPU_FLAG_GRAPH, 2 + n % NAMES, &k, sizeof(k));
}

/* Of one graph, out of order. */
static bool put_kernel(void)
{
	struct rec_launch l = {.clock = clock_ns, .correlation = 1, .epoch = 1};

	return n == 0 ? put(REC_LAUNCH, LAUNCH_GRAPH, 2, &l, sizeof(l)) : put_kernel_of(1, 0);
}

static bool put_captured(void)
{
	struct rec_launch l = {.clock = clock_ns, .correlation = 1, .epoch = 1};

	return n == 0 ? put(REC_LAUNCH, LAUNCH_GRAPH, 2, &l, sizeof(l))
		      : put_kernel_of(1, 2 + DEEP + (n * 255 + 254 - n % 7) % (PATHS - DEEP));
}

/* Each of another place: a new path to walk for each. */
static bool put_captured_anew(void)
{
	struct rec_launch l = {.clock = clock_ns, .correlation = 1, .epoch = 1};

	return n % 2 == 0 ? put(REC_LAUNCH, LAUNCH_GRAPH, 2 + n % DEEP, &l, sizeof(l))
			  : put_kernel_of(1, 2 + DEEP + (n * 255 + 254) % (PATHS - DEEP));
}

/* Nobody launched them; more than may wait. */
static bool put_stray(void)
{
	return put_kernel_of(0x10000 + n, 0);
}

static bool put_lost(void)
{
	struct rec_lost l = {.count = 1, .first = clock_ns - 1000, .last = clock_ns};

	return put(REC_LOST, 0, LOST_LANE_FULL, &l, sizeof(l));
}

static bool put_clock(void)
{
	struct rec_clock c = {.clock = clock_ns + n,
		.monotonic_ns = clock_ns + n,
		.realtime_ns = clock_ns + n + REAL};

	return put(REC_CLOCK, 0, 0, &c, sizeof(c));
}

static bool put_thread(void)
{
	struct rec_thread t = {.tid = n, .generation = n};

	return put(REC_THREAD, n % 2 != 0 ? THREAD_SUMS : 0, 0, &t, sizeof(t));
}

static bool put_sum(void)
{
	struct rec_sum s = {.opened = clock_ns, .last = clock_ns, .time = 1, .max = 1};
	uint32_t i;

	s.first = (uint32_t)(rnd() % SUM_PARTS) * SUM_BUCKETS;
	for (i = 0; i < SUM_BUCKETS; i++)
		s.count[i] = 1 + (n % 5 == 0 ? 70000 : 0);
	return put(REC_SUM, 0, 2 + n * 7919 % PATHS, &s, sizeof(s));
}

static bool put_total(void)
{
	struct rec_total t = {.opened = clock_ns,
		.last = clock_ns,
		.count = 1,
		.sum = 1,
		.latest = 1,
		.name = 2 + n * 17 % NAMES};

	return put(REC_TOTAL, METRIC_U64, 2 + n * 7919 % PATHS, &t, sizeof(t));
}

/* Sessions of its own that begin and end, one after the other. */
static bool put_session(void)
{
	struct rec_session s = {.clock = clock_ns + n, .name = 2};
	const uint32_t number = n / 2;

	return put(
		REC_SESSION, n % 2 == 0 ? SESSION_START : SESSION_FINALIZE, number, &s, sizeof(s));
}

static bool put_phase(void)
{
	struct rec_session s = {.clock = clock_ns + n, .name = 2};

	return put(REC_SESSION,
		n < 32       ? SESSION_START
		: n % 3 == 0 ? SESSION_PHASE
		: n % 3 == 1 ? SESSION_DEACTIVATE
			     : SESSION_ACTIVATE,
		n < 32 ? n : SESSION_ALL, &s, sizeof(s));
}

static bool put_delivered(void)
{
	struct rec_delivered d = {.clock = clock_ns, .pending = 0};

	return put(REC_DELIVERED, 0, 1, &d, sizeof(d));
}

/* --- what was before it --- */

static double now(struct fold *f, uint32_t n_frames)
{
	struct journal_entry *e;
	struct j_now *j = begin(&e, J_NOW, n_frames * sizeof(*j));
	uint32_t i;

	for (i = 0; i < n_frames; i++)
		j[i] = (struct j_now){.lane = i % LANES,
			.tid = i % LANES,
			.path = 2 + (uint32_t)(rnd() % PATHS),
			.depth = i / LANES,
			.begin = clock_ns - 1000};
	return done(f, e);
}

static void in_flight(struct fold *f)
{
	uint32_t i;

	limit = 16384;
	for (i = 0; i < ENTRIES; i++) {
		lane_begin(J_LANE);
		while (put_launch())
			n++;
		(void)lane_done(f);
	}
}

static void open_scopes(struct fold *f)
{
	(void)now(f, FRAMES);
	in_flight(f);
}

static const struct kind {
	const char *name;
	bool (*put)(void);
	void (*before)(struct fold *f);
	uint16_t type;
	uint32_t sessions; /* fewer than all, for those that it starts itself */
} kinds[] = {
	{"scopes", put_scope, NULL, J_LANE, 64},
	{"metrics", put_metric, NULL, J_LANE, 64},
	{"launches", put_launch, NULL, J_LANE, 64},
	{"kernels", put_kernel, NULL, J_LANE, 64},
	{"captured", put_captured, NULL, J_LANE, 64},
	{"captured anew", put_captured_anew, NULL, J_LANE, 64},
	{"strays", put_stray, in_flight, J_LANE, 64},
	{"lost", put_lost, NULL, J_LANE, 64},
	{"clocks", put_clock, NULL, J_LANE, 64},
	{"threads", put_thread, open_scopes, J_LANE, 64},
	{"sums", put_sum, NULL, J_LANE, 64},
	{"totals", put_total, NULL, J_LANE, 64},
	{"open sums", put_sum, NULL, J_SUMS, 64},
	{"open totals", put_total, NULL, J_SUMS, 64},
	{"scopes left", put_scope, open_scopes, J_LANE, 64},
	{"sessions", put_session, open_scopes, J_LANE, 32},
	{"phases", put_phase, open_scopes, J_LANE, 32},
	{"delivered", put_delivered, in_flight, J_LANE, 64},
};

static void run(const struct kind *k, uint32_t bytes, uint32_t sessions, uint8_t data)
{
	double ms, most = 0, all = 0;
	struct fold *f;
	uint32_t i;

	if (fold_new(NULL, &f) != 0)
		abort();
	position = 0;
	n = 0;
	clock_ns += 1000000000;
	process(f, 1);
	for (i = 0; i < sessions && i < k->sessions; i++)
		(void)verb(f, VERB_START, i, data);
	clock_ns += 1000000000;
	if (k->before != NULL)
		k->before(f);
	limit = bytes;
	n = 0;
	for (i = 0; i < ENTRIES; i++) {
		clock_ns += 10000000;
		lane_begin(k->type);
		while (k->put())
			n++;
		ms = lane_done(f);
		most = ms > most ? ms : most;
		all += ms;
	}
	printf("%-14s %6.2f ms, mean %6.2f\n", k->name, most, all / i);
	fold_free(f);
}

static void run_now(uint32_t sessions, uint8_t data)
{
	double ms, most = 0, last = 0;
	struct fold *f;
	uint32_t i;

	if (fold_new(NULL, &f) != 0)
		abort();
	for (i = 1; i <= 64; i++) {
		process(f, (uint8_t)i);
		if (i == 1)
			for (uint32_t s = 0; s < sessions; s++)
				(void)verb(f, VERB_START, s, data);
		clock_ns += 1000000;
		ms = now(f, i == 1 ? FRAMES : FRAMES_USER / 64);
		most = ms > most ? ms : most;
	}
	clock_ns += 1000000000;
	for (i = 0; i < sessions; i++) {
		ms = verb(f, VERB_FINALIZED, i, data);
		last = ms > last ? ms : last;
	}
	printf("%-14s %6.2f ms\n%-14s %6.2f ms\n", "now", most, "finalized", last);
	fold_free(f);
}

int main(int argc, char **argv)
{
	const uint32_t bytes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2048;
	const char *s = getenv("TURN_BENCH_SESSIONS"), *timeline = getenv("TURN_BENCH_TIMELINE");
	const uint32_t sessions = s != NULL ? (uint32_t)strtoul(s, NULL, 10) : 64;
	const uint8_t data = timeline != NULL ? SESSION_BOTH : SESSION_TREE;
	uint32_t i;

	if (bytes < 256 || bytes > 1u << 20 || sessions > 64)
		return 2;
	lane_entry = must(calloc(1, sizeof(*lane_entry) + sizeof(struct j_lane) + bytes + 16384));
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (argc < 3 || strcmp(argv[2], kinds[i].name) == 0)
			run(&kinds[i], bytes, sessions, data);
	if (argc < 3 || strcmp(argv[2], "now") == 0)
		run_now(sessions, data);
	free(lane_entry);
	return 0;
}
