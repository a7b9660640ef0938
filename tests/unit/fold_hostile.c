/* SPDX-License-Identifier: MIT. fold_hostile.c: bytes that break the ring's laws cost their sender,
 * are counted, and reach nobody else. */
#include "fold_help.h"

static struct fold *f;
static struct tape t;
static struct kit_process job, good;
static struct kit_lane lane;
static const char *const names[] = {"a", "b"};
static const struct ring_path paths[] = {
	{PATH_ROOT, 2, PATH_KIND_SCOPE, 1, 0}, {2, 3, PATH_KIND_SCOPE, 2, 0}};

static void setup(void)
{
	f = fold_of(NULL);
	job = kit_process(1);
	good = kit_process(2);
	lane = (struct kit_lane){.lane = 0};
	tape_process(&t, &job);
	tape_process(&t, &good);
	tape_names(&t, job.ring, 2, 2, names);
	tape_paths(&t, job.ring, 2, 2, paths);
	(void)tape_verb(&t, VERB_START, 1, 10);
	fold_take(f, &t);
}

static void teardown(void)
{
	tape_free(&t);
	fold_free(f);
}

static struct batch collect(void)
{
	struct batch b = {0};

	ck_assert_int_eq(fold_collect(f, &b), 0);
	return b;
}

static uint64_t count_at(const struct batch *b, const char *path)
{
	const struct row_cell *c = cell_at(b, 1, 0, CLASS_CPU, path);

	return c == NULL ? 0 : c->count;
}

static uint64_t count_of(const struct batch *b)
{
	return count_at(b, "ROOT/a");
}

/* --- one bad record between two good ones. skip: the rest of the entry cannot be believed */

enum bad {
	NO_LENGTH,
	OVER_THE_END,
	WRONG_LAP,
	SHORT_SCOPE,
	SHORT_LAUNCH,
	SHORT_CALL,
	CALL_PATH,
	CALL_KIND,
	CALL_NAME,
	CALL_UNNAMED,
	CALLED_NAME,
	CALLED_PATH,
	CALLED_ENDS_FIRST,
	CALL_ENDS_FIRST,
	TIMED_LAUNCH,
	SHORT_END,
	LAUNCH_ENDS_FIRST,
	SHORT_OVERHEAD,
	OVERHEAD_KIND,
	OVERHEAD_ENDS_FIRST,
	OVERHEAD_NEVER,
	SHORT_MEMORY,
	MEMORY_NO_OP,
	MEMORY_LATE_OP,
	MEMORY_KIND,
	MEMORY_DEVICE,
	MEMORY_TIME,
	MEMORY_BYTES,
	MEMORY_POOL,
	PAD_OF_WRONG_LENGTH,
	PATH_UNKNOWN,
	PATH_IS_ROOT,
	ENDS_BEFORE_IT_BEGINS,
	LAUNCH_NAME,
	LAUNCH_PYTHON,
	KERNEL_NAME,
	KERNEL_DEVICE,
	COPY_CLASS,
	METRIC_TYPE,
	METRIC_TEXT,
	LOST_CAUSE,
	SESSION_VERB,
	GPU_NAME,
	UNKNOWN_TYPE,
};

static const struct bad_case {
	const char *label;
	enum bad bad;
	bool skip;
	uint64_t lost, skipped;
} bad_cases[] = {
	{"length 0", NO_LENGTH, true, 1, 0},
	{"longer than what was drained", OVER_THE_END, true, 1, 0},
	{"of another lap", WRONG_LAP, true, 1, 0},
	{"a scope of 16 bytes", SHORT_SCOPE, false, 1, 0},
	{"a launch of 24 bytes", SHORT_LAUNCH, false, 1, 0},
	{"a pad that does not end the lap", PAD_OF_WRONG_LENGTH, true, 1, 0},
	{"no such path", PATH_UNKNOWN, false, 1, 0},
	{"a scope on ROOT", PATH_IS_ROOT, false, 1, 0},
	{"end before begin", ENDS_BEFORE_IT_BEGINS, false, 1, 0},
	{"launch: no such name", LAUNCH_NAME, false, 1, 0},
	{"launch: no such python path", LAUNCH_PYTHON, false, 1, 0},
	{"kernel: no such name", KERNEL_NAME, false, 1, 0},
	{"kernel: no such device", KERNEL_DEVICE, false, 1, 0},
	{"copy: no such class", COPY_CLASS, false, 1, 0},
	{"metric: no such type", METRIC_TYPE, false, 1, 0},
	{"metric: no such text", METRIC_TEXT, false, 1, 0},
	{"lost: no such cause", LOST_CAUSE, false, 1, 0},
	{"session: no such verb", SESSION_VERB, false, 1, 0},
	{"gpu: no such name", GPU_NAME, false, 1, 0},
	{"call: too short", SHORT_CALL, false, 1, 0},
	{"call: no such path", CALL_PATH, false, 1, 0},
	{"call: no such kind", CALL_KIND, false, 1, 0},
	{"call: no such name", CALL_NAME, false, 1, 0},
	{"call: of the switch api alone, without its flag", CALL_UNNAMED, false, 1, 0},
	{"call in short: no such name", CALLED_NAME, false, 1, 0},
	{"call in short: no such path", CALLED_PATH, false, 1, 0},
	{"call in short: ends beyond all time", CALLED_ENDS_FIRST, false, 1, 0},
	{"call: ends before it begins", CALL_ENDS_FIRST, false, 1, 0},
	{"launch: a time is no name", TIMED_LAUNCH, false, 0, 0},
	{"launch: says that it ends, and is too short to", SHORT_END, false, 0, 0},
	{"launch: ends before it begins", LAUNCH_ENDS_FIRST, false, 1, 0},
	{"overhead: too short", SHORT_OVERHEAD, false, 1, 0},
	{"overhead: no such kind", OVERHEAD_KIND, false, 1, 0},
	{"overhead: ends before it begins", OVERHEAD_ENDS_FIRST, false, 1, 0},
	{"overhead: a time that is none", OVERHEAD_NEVER, false, 1, 0},
	{"memory: too short", SHORT_MEMORY, false, 1, 0},
	{"memory: nothing done", MEMORY_NO_OP, false, 1, 0},
	{"memory: no such thing to do", MEMORY_LATE_OP, false, 1, 0},
	{"memory: no such kind", MEMORY_KIND, false, 1, 0},
	{"memory: no such device", MEMORY_DEVICE, false, 1, 0},
	{"memory: a time that is none", MEMORY_TIME, false, 1, 0},
	{"memory: more than there is", MEMORY_BYTES, false, 1, 0},
	{"memory: a pool of more than there is", MEMORY_POOL, false, 1, 0},
	{"a type of tomorrow", UNKNOWN_TYPE, false, 0, 1},
};

static void put_bad(enum bad bad)
{
	union {
		uint64_t w[8];
		struct rec_scope scope;
		struct rec_launch launch;
		struct rec_launch_ended ended;
		struct rec_overhead overhead;
		struct rec_kernel kernel;
		struct rec_metric metric;
	} r = {{0}};
	struct rec_memory m = {0};
	uint64_t hdr = REC_HDR(24, REC_SCOPE, 0, 0, 2);

	switch (bad) {
	case NO_LENGTH:
		hdr &= ~0xffull;
		lane_raw(&lane, &hdr, 8);
		return;
	case OVER_THE_END:
		hdr |= 0xff;
		lane_raw(&lane, &hdr, 8);
		return;
	case WRONG_LAP:
		r.w[0] = REC_HDR(24, REC_SCOPE, 1, 0, 2);
		lane_raw(&lane, &r, 24);
		return;
	case PAD_OF_WRONG_LENGTH:
		hdr = REC_HDR(0, REC_PAD, 0, 0, 64);
		lane_raw(&lane, &hdr, 8);
		return;
	case SHORT_SCOPE:
		lane_put(&lane, REC_SCOPE, 0, 2, &r, 16);
		return;
	case SHORT_LAUNCH:
		lane_put(&lane, REC_LAUNCH, 0, 2, &r, 24);
		return;
	case SHORT_CALL:
		lane_put(&lane, REC_CALL, 0, 2, &r, 56);
		return;
	case CALL_PATH:
		put_call(&lane, 4, 30, 40, 0);
		return;
	case CALL_KIND:
		put_call(&lane, 2, 30, 40, GPU_IDS);
		return;
	case CALL_NAME:
		put_api(&lane, 2, 30, 40, 1u << 20, 8, CALL_API);
		return;
	case CALLED_NAME:
		put_called(&lane, 2, 30, 10, 1u << 20);
		return;
	case CALLED_PATH:
		put_called(&lane, 4, 30, 10, 2);
		return;
	case CALLED_ENDS_FIRST:
		put_called(&lane, 2, UINT64_MAX - 5, 10, 2);
		return;
	case CALL_UNNAMED:
		put_api(&lane, 2, 30, 40, 0, 8, 0);
		return;
	case CALL_ENDS_FIRST:
		put_call(&lane, 2, 40, 30, 0);
		return;
	case TIMED_LAUNCH:
		r.launch.name = UINT32_MAX;
		lane_put(&lane, REC_LAUNCH, LAUNCH_COPY | LAUNCH_TIMED, 2, &r, 32);
		return;
	case SHORT_END:
		lane_put(&lane, REC_LAUNCH, LAUNCH_ENDS, 2, &r, 32);
		return;
	case LAUNCH_ENDS_FIRST:
		r.ended.launch.clock = 40;
		r.ended.end = 30;
		lane_put(&lane, REC_LAUNCH, LAUNCH_ENDS, 2, &r, 40);
		return;
	case SHORT_OVERHEAD:
		lane_put(&lane, REC_OVERHEAD, 0, 1, &r, 32);
		return;
	case OVERHEAD_KIND:
	case OVERHEAD_ENDS_FIRST:
	case OVERHEAD_NEVER:
		r.overhead.start = 40;
		r.overhead.end = bad == OVERHEAD_ENDS_FIRST ? 30
				 : bad == OVERHEAD_NEVER    ? UINT64_MAX
							    : 50;
		lane_put(&lane, REC_OVERHEAD, 0, bad == OVERHEAD_KIND ? UINT32_MAX : 1, &r, 40);
		return;
	case SHORT_MEMORY:
		lane_put(&lane, REC_MEMORY, MEMORY_ALLOC, 0, &r, 64);
		return;
	case MEMORY_NO_OP:
	case MEMORY_LATE_OP:
	case MEMORY_KIND:
	case MEMORY_DEVICE:
	case MEMORY_TIME:
	case MEMORY_BYTES:
	case MEMORY_POOL:
		m.time = bad == MEMORY_TIME ? UINT64_MAX - REAL_AHEAD : 40;
		m.device = bad == MEMORY_DEVICE ? RING_DEVICES_MAX : 0;
		m.bytes = bad == MEMORY_BYTES ? UINT64_MAX : 8;
		m.reserved = bad == MEMORY_POOL ? 1ull << 51 : 0;
		put_memory(&lane,
			bad == MEMORY_NO_OP     ? 0
			: bad == MEMORY_LATE_OP ? MEMORY_OP_MAX
						: MEMORY_ALLOC,
			bad == MEMORY_KIND ? HELD_MAX : HELD_DEVICE, &m);
		return;
	case PATH_UNKNOWN:
		lane_put(&lane, REC_SCOPE, 0, 4, &r, 24);
		return;
	case PATH_IS_ROOT:
		lane_put(&lane, REC_SCOPE, 0, PATH_ROOT, &r, 24);
		return;
	case ENDS_BEFORE_IT_BEGINS:
		put_scope(&lane, 2, 50, 40);
		return;
	case LAUNCH_NAME:
		r.launch.name = 4;
		lane_put(&lane, REC_LAUNCH, 0, 2, &r, 32);
		return;
	case LAUNCH_PYTHON:
		r.launch.python = UINT32_MAX;
		lane_put(&lane, REC_LAUNCH, 0, 2, &r, 32);
		return;
	case KERNEL_NAME:
		lane_put(&lane, REC_KERNEL, 0, 4, &r, 64);
		return;
	case KERNEL_DEVICE:
		r.kernel.device = RING_DEVICES_MAX;
		lane_put(&lane, REC_KERNEL, 0, 2, &r, 64);
		return;
	case COPY_CLASS:
		lane_put(&lane, REC_COPY, 0, COPY_P2P + 1, &r, 64);
		return;
	case METRIC_TYPE:
		put_metric(&lane, 2, 30, 2, METRIC_STR + 1, 0);
		return;
	case METRIC_TEXT:
		put_metric(&lane, 2, 30, 2, METRIC_STR, 1ull << 40);
		return;
	case LOST_CAUSE:
		lane_put(&lane, REC_LOST, 0, LOST_CAUSE_MAX, &r, 32);
		return;
	case SESSION_VERB:
		lane_put(&lane, REC_SESSION, 9, 0, &r, 64);
		return;
	case GPU_NAME:
		lane_put(&lane, REC_GPU, 0, 77, &r, 32);
		return;
	case UNKNOWN_TYPE:
		lane_put(&lane, REC_MAX + 3, 0, 0, &r, 48);
		return;
	}
}

START_TEST(bad_records)
{
	const struct bad_case *c = &bad_cases[_i];
	struct batch b;

	put_scope(&lane, 2, 20, 30);
	put_bad(c->bad);
	put_scope(&lane, 2, 40, 50);
	tape_lane(&t, job.ring, 60, &lane);
	put_scope(&lane, 2, 60, 70); /* the next entry is read */
	tape_lane(&t, job.ring, 80, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_msg(count_of(&b) == (c->skip ? 2 : 3), "%s: %lu", c->label, count_of(&b));
	ck_assert_msg(loss_of(&b, 1, LOST_BAD) == c->lost, "%s: lost", c->label);
	ck_assert_msg(b.process.row[0].counters[6] == c->skipped, "%s: skipped", c->label);
	ck_assert_uint_eq(b.process.row[1].counters[4], 0); /* the neighbour */
	batch_free(&b);
}
END_TEST

/* --- entries */

START_TEST(lanes_that_are_not)
{
	struct j_lane *l;
	struct batch b;

	l = tape_add(&t, J_LANE, job.ring, 20, sizeof(*l));
	*l = (struct j_lane){.lane = KIT_LANES};
	l = tape_add(&t, J_LANE, job.ring, 20, sizeof(*l));
	*l = (struct j_lane){.bytes = 4096}; /* more than the entry has */
	l = tape_add(&t, J_LANE, job.ring, 20, sizeof(*l) + 24);
	*l = (struct j_lane){.from = 3, .bytes = 24};
	l = tape_add(&t, J_LANE, (const uint8_t *)"nobody's ring...", 20, sizeof(*l));
	(void)tape_add(&t, J_LANE, job.ring, 20, 8); /* shorter than its struct */
	(void)tape_add(&t, J_MAX + 7, job.ring, 20, 64);
	(void)tape_add(&t, 0, job.ring, 20, 64);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 3);
	batch_free(&b);
}
END_TEST

START_TEST(the_same_bytes_again_are_not_counted_again)
{
	struct kit_lane again;
	struct batch b;

	put_scope(&lane, 2, 20, 30);
	put_scope(&lane, 2, 20, 30);
	again = lane;
	tape_lane(&t, job.ring, 40, &lane);
	put_scope(&again, 2, 20, 30); /* overlaps: two known, one new */
	tape_lane(&t, job.ring, 40, &again);
	again.n = 0;
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(count_of(&b), 3);
	ck_assert_uint_eq(b.lane.row[0].head, 72);
	batch_free(&b);
}
END_TEST

START_TEST(laps)
{
	struct batch b;
	uint32_t i;

	for (i = 0; i < 5; i++) { /* 65 536 is no multiple of 24: every lap ends in a pad */
		while (lane.n < KIT_LAP - 2048)
			put_scope(&lane, 2, 20, 30);
		tape_lane(&t, job.ring, 40, &lane);
	}
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 0);
	ck_assert_uint_gt(lane.from, 4 * KIT_LAP);
	ck_assert_uint_ge(count_of(&b), 5 * ((KIT_LAP - 2048) / 24 - 1));
	batch_free(&b);
}
END_TEST

/* --- tables */

static const struct path_case {
	const char *label;
	struct ring_path path;
	bool ok;
} path_cases[] = {
	{"child of a", {2, 3, PATH_KIND_SCOPE, 2, 0}, true},
	{"its own parent", {4, 3, PATH_KIND_SCOPE, 2, 0}, false},
	{"a later parent", {9, 3, PATH_KIND_SCOPE, 2, 0}, false},
	{"wrong depth", {2, 3, PATH_KIND_SCOPE, 3, 0}, false},
	{"a second root", {0, 3, PATH_KIND_ROOT, 1, 0}, false},
	{"a kernel in a ring", {2, 3, PATH_KIND_KERNEL, 2, 0}, false},
	{"a kind that is none", {2, 3, PATH_KIND_MAX, 2, 0}, false},
	{"no such name", {2, 4, PATH_KIND_SCOPE, 2, 0}, false},
};

START_TEST(path_laws)
{
	const struct path_case *c = &path_cases[_i];
	struct ring_path next = {4, 2, PATH_KIND_SCOPE, (uint16_t)(c->ok ? 3 : 2), 0};
	char words[64];
	struct batch b;

	tape_paths(&t, job.ring, 4, 1, &c->path);
	tape_paths(&t, job.ring, 5, 1, &next); /* ids behind it hold */
	fold_take(f, &t);
	put_scope(&lane, 4, 20, 30);
	put_scope(&lane, 5, 20, 30);
	tape_lane(&t, job.ring, 40, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_msg(loss_of(&b, 1, LOST_BAD) == (c->ok ? 0 : 2), "%s", c->label);
	(void)fold_path_text(f, job.ring, 5, words, sizeof(words));
	ck_assert_str_eq(words, c->ok ? "a/b/a" : "(other)/a");
	batch_free(&b);
}
END_TEST

START_TEST(depth_has_an_end)
{
	struct ring_path path;
	struct batch b;
	uint32_t i;

	for (i = 4; i <= 300; i++) {
		path = (struct ring_path){i - 1, 2, PATH_KIND_SCOPE, (uint16_t)(i - 1), 0};
		tape_paths(&t, job.ring, i, 1, &path);
	}
	fold_take(f, &t);
	b = collect(); /* 257 is one too deep; what follows is below (other), whose depth is 1 */
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 300 - 257);
	batch_free(&b);
}
END_TEST

START_TEST(tables_are_idempotent)
{
	static const char *const more[] = {"a", "b", "new"};
	char words[16];
	struct batch b;

	tape_names(&t, job.ring, 2, 2, names);
	tape_names(&t, job.ring, 2, 3, more);
	tape_names(&t, job.ring, 1, 1, names); /* known: not believed again */
	tape_names(&t, job.ring, 9, 1, names); /* a gap */
	tape_paths(&t, job.ring, 2, 2, paths);
	tape_paths(&t, job.ring, 0, 0, paths);
	tape_paths(&t, job.ring, 4, 1, &(struct ring_path){3, 4, PATH_KIND_SCOPE, 3, 0});
	fold_take(f, &t);
	(void)fold_path_text(f, job.ring, 4, words, sizeof(words));
	ck_assert_str_eq(words, "a/b/new");
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 1);
	batch_free(&b);
}
END_TEST

START_TEST(names_that_lie)
{
	static const uint32_t bytes[] = {3, 1025};
	static char longest[1025];
	const char *text[] = {"a\xff\n", longest};
	struct j_table *j;
	char words[64];
	struct batch b;

	memset(longest, 'x', sizeof(longest));
	tape_names_raw(
		&t, job.ring, 4, 2, bytes, text); /* the second is too long: it and the rest */
	j = tape_add(&t, J_TABLE, job.ring, 0, sizeof(*j) + 8);
	*j = (struct j_table){TABLE_NAMES, 5, 1000000, 8};
	memcpy(j + 1, &(uint32_t){UINT32_MAX}, 4);
	j = tape_add(&t, J_TABLE, job.ring, 0, sizeof(*j));
	*j = (struct j_table){TABLE_PATHS, 4, UINT32_MAX, 0};
	j = tape_add(&t, J_TABLE, job.ring, 0, sizeof(*j));
	*j = (struct j_table){77, 0, 1, 0};
	tape_paths(&t, job.ring, 4, 1, &(struct ring_path){0, 4, PATH_KIND_SCOPE, 1, 0});
	fold_take(f, &t);
	(void)fold_path_text(f, job.ring, 4, words, sizeof(words));
	ck_assert_str_eq(words, "a\xef\xbf\xbd\n");
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 1 + 1000000 + 1 + 1);
	batch_free(&b);
}
END_TEST

#define WIDE 30000u

/* While other jobs take all the memory there is, paths are the surplus, and said to be; what comes
 * when there is room again is known. */
START_TEST(paths_without_room)
{
	static struct ring_path wide[WIDE];
	const struct ring_path later[] = {
		{PATH_ROOT, 2, PATH_KIND_SCOPE, 1, 0}, /* known */
		{3 + WIDE, 3, PATH_KIND_SCOPE, 2, 0},  /* below one that is not */
	};
	const uint32_t first = 4, last = first + WIDE;
	char words[16];
	struct batch b;

	for (uint32_t i = 0; i < WIDE; i++)
		wide[i] = (struct ring_path){PATH_ROOT, 3, PATH_KIND_SCOPE, 1, 0};
	fold_waiting(f, 1 << 30);
	tape_paths(&t, job.ring, first, WIDE, wide);
	fold_take(f, &t);
	put_scope(&lane, last - 1, 20, 30);
	put_launch(&lane, last - 1, 20, 1, 0);
	tape_lane(&t, job.ring, 40, &lane);
	fold_take(f, &t);
	fold_waiting(f, -(1 << 30));
	tape_paths(&t, job.ring, last, 2, later);
	fold_take(f, &t);
	put_scope(&lane, first, 20, 30);
	put_scope(&lane, last, 20, 30);
	put_scope(&lane, last + 1, 20, 30);
	put_scope(&lane, last - 1, 20, 30);
	tape_lane(&t, job.ring, 40, &lane);
	fold_take(f, &t);
	(void)fold_path_text(f, job.ring, last, words, sizeof(words));
	ck_assert_str_eq(words, "a");
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_PATHS), 4);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 0);
	ck_assert_uint_eq(count_at(&b, "ROOT/(other)"), 3);
	ck_assert_uint_eq(count_of(&b), 1);
	ck_assert_uint_eq(count_at(&b, "ROOT/b"), 1);
	batch_free(&b);
	put_scope(&lane, last + 2, 20, 30); /* no table had it */
	tape_lane(&t, job.ring, 40, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 1);
	batch_free(&b);
}
END_TEST

/* Names that differ in bytes but not in words are one node: a row is never written twice. */
START_TEST(equal_words_are_one_node)
{
	static const uint32_t bytes[] = {1, 1};
	const char *text[] = {"\xff", "\xfe"};
	const struct ring_path two[] = {
		{0, 4, PATH_KIND_SCOPE, 1, 0}, {0, 5, PATH_KIND_SCOPE, 1, 0}};
	struct batch b;

	tape_names_raw(&t, job.ring, 4, 2, bytes, text);
	tape_paths(&t, job.ring, 4, 2, two);
	fold_take(f, &t);
	put_scope(&lane, 4, 20, 30);
	put_scope(&lane, 5, 20, 30);
	tape_lane(&t, job.ring, 40, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1);
	ck_assert_uint_eq(b.cell.row[0].count, 2);
	batch_free(&b);
}
END_TEST

/* --- the times of a liar */

START_TEST(times_of_a_liar)
{
	struct rec_kernel k = {
		.start = 1, .end = UINT64_MAX, .correlation = 1, .epoch = 1, .config = 9999};
	struct rec_clock c = {.clock = 5, .monotonic_ns = UINT64_MAX, .realtime_ns = UINT64_MAX};
	const struct row_cell *cell;
	struct batch b;
	uint32_t i;

	lane_put(&lane, REC_CLOCK, 0, 0, &c, sizeof(c));
	for (i = 0; i < 10; i++)
		put_scope(&lane, 2, 10, UINT64_MAX - i);
	put_launch(&lane, 2, 20, 1, 0);
	lane_put(&lane, REC_KERNEL, 0, 3, &k, sizeof(k));
	tape_lane(&t, job.ring, 40, &lane);
	fold_take(f, &t);
	b = collect();
	cell = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a");
	ck_assert_uint_le(cell->sum_ns, INT64_MAX); /* the store's columns are signed */
	cell = cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b");
	ck_assert_uint_eq(cell->count, 1);
	ck_assert_uint_eq(cell->untimed, 1);
	ck_assert_uint_eq(b.config.n, 0);
	batch_free(&b);
}
END_TEST

/* --- losses: in-band and by counter are one */

/* A session that begins at the end of time, was active for longer still, and ends before. */
START_TEST(sessions_of_a_liar)
{
	struct batch b;
	uint32_t i;

	tape_anchor(&t, RING_CLOCK_MONOTONIC, 10, 10, 10 + REAL_AHEAD);
	put_session(&lane, SESSION_START, 0, UINT64_MAX / 4, 2);
	put_session(&lane, SESSION_FINALIZE, 0, UINT64_MAX, 2);
	put_session(&lane, SESSION_START, 1, 20, 2);
	for (i = 0; i < 8; i++) {
		put_session(&lane, SESSION_DEACTIVATE, 1, UINT64_MAX, 2);
		put_session(&lane, SESSION_ACTIVATE, 1, 20, 2);
	}
	for (i = 2; i < 40; i++)
		put_session(&lane, SESSION_START, i, 20 + i, 2);
	tape_lane(&t, job.ring, 200, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.session.n, 1 + 33);
	for (i = 0; i < b.session.n; i++) {
		ck_assert_uint_le(b.session.row[i].active_ns, INT64_MAX);
		ck_assert_int_ge(b.session.row[i].created_ns, 0);
		ck_assert(b.session.row[i].finalized_ns == 0 ||
			  b.session.row[i].finalized_ns >= b.session.row[i].created_ns);
	}
	batch_free(&b);
}
END_TEST

START_TEST(losses_are_not_counted_twice)
{
	struct rec_lost r = {.count = 5, .first = 20, .last = 25};
	struct ring_counts *c;
	struct j_drop *d;
	struct batch b;

	lane_put(&lane, REC_LOST, 0, LOST_LANE_FULL, &r, sizeof(r));
	tape_lane(&t, job.ring, 30, &lane);
	fold_take(f, &t);
	c = tape_add(&t, J_COUNTS, job.ring, 31, sizeof(*c) + sizeof(*d));
	d = (struct j_drop *)(c + 1);
	*d = (struct j_drop){0, 0, 7, 1};
	c->paths_refused = 4;
	tape_end(&t, job.ring, 32, END_EXITED, 0);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LANE_FULL), 7);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_NESTED), 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_PATHS), 4);
	ck_assert_uint_eq(b.process.row[0].counters[4], 8); /* paths are no drops */
	batch_free(&b);
}
END_TEST

START_TEST(a_loss_before_the_session_is_not_its)
{
	struct rec_lost r = {.count = 5, .first = 2, .last = 5};
	struct batch b;

	lane_put(&lane, REC_LOST, 0, LOST_LANE_FULL, &r, sizeof(r));
	tape_lane(&t, job.ring, 30, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LANE_FULL), 0);
	batch_free(&b);
}
END_TEST

/* --- ceilings */

START_TEST(a_job_cannot_start_sessions_without_end)
{
	struct fold_process p;
	struct batch b;
	uint32_t i;

	for (i = 0; i < 100; i++)
		put_session(&lane, SESSION_START, i, 20 + i, 2);
	tape_lane(&t, job.ring, 200, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.session.n, 1 + 32);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 68);
	ck_assert(fold_get_process(f, good.ring, &p));
	ck_assert_uint_eq(p.drops, 0);
	batch_free(&b);
}
END_TEST

/* As it may be where the daemon was away: each is ended before the next, and none of it known yet.
 */
START_TEST(ended_sessions_make_room)
{
	struct batch b;
	uint32_t i;

	for (i = 0; i < 100; i++) {
		put_session(&lane, SESSION_START, i, 20 + 10 * i, 2);
		put_scope(&lane, 2, 22 + 10 * i, 24 + 10 * i);
		put_session(&lane, SESSION_FINALIZE, i, 25 + 10 * i, 2);
	}
	tape_lane(&t, job.ring, 2000, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.session.n, 1 + 100);
	ck_assert_uint_eq(b.cell.n, 1 + 100);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 0);
	batch_free(&b);
}
END_TEST

START_TEST(ceilings_refuse)
{
	struct fold_limits small = {.sessions = 1, .processes = 1};
	struct kit_process third = kit_process(3);

	fold_free(f);
	f = fold_of(&small);
	(void)tape_verb(&t, VERB_START, 1, 10);
	(void)tape_verb(&t, VERB_START, 2, 11);
	tape_process(&t, &job);
	tape_process(&t, &third);
	ck_assert_int_eq(fold_apply(f, t.entry[0]), 0);
	ck_assert_int_eq(fold_apply(f, t.entry[1]), -ENOSPC);
	ck_assert_int_eq(fold_apply(f, t.entry[2]), 0);
	ck_assert_int_eq(fold_apply(f, t.entry[3]), -ENOSPC);
}
END_TEST

static int started(struct fold *to, uint8_t session, uint32_t uid)
{
	struct j_verb *v = tape_verb(&t, VERB_START, session, 10u + session);
	int r;

	v->uid = uid;
	r = fold_apply(to, t.entry[0]);
	tape_free(&t);
	return r;
}

static void ended(struct fold *to, uint8_t session)
{
	(void)tape_verb(&t, VERB_FINALIZED, session, 100u + session);
	fold_take(to, &t);
}

/* By whatever way they came, and over a restart. */
START_TEST(a_user_has_a_share_of_the_sessions)
{
	const struct fold_limits small = {.sessions = 8};
	struct fold_session s;
	uint8_t third[16];
	struct fold *next;
	struct batch b;

	fold_free(f);
	f = fold_of(&small);
	ck_assert_int_eq(started(f, 1, UID), 0);
	ck_assert_int_eq(started(f, 2, UID), 0);
	ck_assert_int_eq(started(f, 3, UID), -EDQUOT);
	ck_assert_int_eq(started(f, 4, UID + 1), 0);
	memset(third, 3, sizeof(third));
	ck_assert(!fold_get_session(f, third, &s));
	ck_assert_uint_eq(fold_refused(f).n, 1);
	ck_assert_uint_eq(fold_refused(f).uid, UID);
	b = collect();
	next = fold_of(&small);
	ck_assert_int_eq(fold_restore(next, &b), 0);
	batch_free(&b);
	ck_assert_int_eq(started(next, 3, UID), -EDQUOT);
	ended(next, 1);
	ck_assert_int_eq(started(next, 3, UID), 0); /* what is finalized does not count */
	fold_free(next);
}
END_TEST

START_TEST(a_job_is_told_of_its_share)
{
	struct fold_limits small = {.sessions = 8};
	struct err e = {0};
	uint8_t uuid[16];

	fold_free(f);
	f = fold_of(&small);
	tape_process(&t, &job);
	tape_names(&t, job.ring, 2, 2, names);
	fold_take(f, &t);
	ck_assert_int_eq(started(f, 1, UID), 0);
	put_session(&lane, SESSION_START, 0, 20, 2);
	put_session(&lane, SESSION_START, 1, 21, 2);
	tape_lane(&t, job.ring, 30, &lane);
	fold_take(f, &t); /* the lane is taken, whatever became of that */
	ck_assert_int_eq(fold_job_refused(f, job.ring, 0), 0);
	ck_assert_int_eq(fold_job_refused(f, job.ring, 1), -EDQUOT);
	ck_assert(fold_job_session(f, job.ring, 0, uuid));
	ck_assert(!fold_job_session(f, job.ring, 1, uuid));
	ended(f, 1);
	put_session(&lane, SESSION_START, 2, 40, 2);
	tape_lane(&t, job.ring, 50, &lane);
	fold_take(f, &t);
	ck_assert(fold_job_session(f, job.ring, 2, uuid));
	ck_assert(!fold_job_session(f, job.ring, 1, uuid));
	ck_assert_int_eq(fold_refused_words(f, UID, -EDQUOT, &e), -EDQUOT);
	ck_assert_str_eq(e.text,
		"user 1000 has 2 sessions that are not finalized, the most one user may have; "
		"finalize some: `protonctl finalize NAME`");
}
END_TEST

/* Whoever starts and ends sessions faster than they are stored leaves some to those who have few.
 */
START_TEST(the_last_sessions_are_for_who_has_few)
{
	const struct fold_limits small = {.sessions = 32};
	uint8_t i;

	fold_free(f);
	f = fold_of(&small);
	for (i = 1; i <= 28; i++) {
		ck_assert_int_eq(started(f, i, UID), 0);
		ended(f, i);
	}
	ck_assert_int_eq(started(f, 40, UID), -ENOSPC);
	ck_assert_int_eq(started(f, 41, UID + 1), 0);
	ck_assert_int_eq(started(f, 42, UID + 1), 0);
	ck_assert_int_eq(started(f, 43, UID + 1), -ENOSPC);
	ck_assert_int_eq(started(f, 44, UID + 2), 0);
}
END_TEST

START_TEST(an_ended_process_makes_room)
{
	struct fold_limits small = {.processes = 1};
	struct fold_process p;
	struct batch b;

	fold_free(f);
	f = fold_of(&small);
	tape_process(&t, &job);
	tape_end(&t, job.ring, 50, END_EXITED, 0);
	fold_take(f, &t);
	tape_process(&t, &good);
	ck_assert_int_eq(fold_apply(f, t.entry[0]), -ENOSPC); /* not stored yet */
	b = collect();
	batch_free(&b);
	ck_assert_int_eq(fold_apply(f, t.entry[0]), -ENOSPC); /* nobody finds it there yet */
	fold_seen(f, fold_round(f));
	ck_assert_int_eq(fold_apply(f, t.entry[0]), 0);
	ck_assert(!fold_get_process(f, job.ring, &p));
	ck_assert(fold_get_process(f, good.ring, &p));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_hostile");
	TCase *c = tcase_create("laws");

#define N(a) (int)(sizeof(a) / sizeof(a[0]))
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, bad_records, 0, N(bad_cases));
	tcase_add_test(c, lanes_that_are_not);
	tcase_add_test(c, the_same_bytes_again_are_not_counted_again);
	tcase_add_test(c, laps);
	tcase_add_loop_test(c, path_laws, 0, N(path_cases));
	tcase_add_test(c, depth_has_an_end);
	tcase_add_test(c, tables_are_idempotent);
	tcase_add_test(c, names_that_lie);
	tcase_add_test(c, paths_without_room);
	tcase_add_test(c, equal_words_are_one_node);
	tcase_add_test(c, times_of_a_liar);
	tcase_add_test(c, sessions_of_a_liar);
	tcase_add_test(c, losses_are_not_counted_twice);
	tcase_add_test(c, a_loss_before_the_session_is_not_its);
	tcase_add_test(c, a_job_cannot_start_sessions_without_end);
	tcase_add_test(c, ended_sessions_make_room);
	tcase_add_test(c, ceilings_refuse);
	tcase_add_test(c, a_user_has_a_share_of_the_sessions);
	tcase_add_test(c, a_job_is_told_of_its_share);
	tcase_add_test(c, the_last_sessions_are_for_who_has_few);
	tcase_add_test(c, an_ended_process_makes_room);
	suite_add_tcase(s, c);
	return s;
}
