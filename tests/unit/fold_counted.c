/* SPDX-License-Identifier: MIT. fold_counted.c: what a CPU counts in scopes: which sessions have it, and what they are
 * told of what is not counted. */
#include <errno.h>

#include "counter_terms.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

#define COUNTED (METRIC_U64 | METRIC_COUNTED)

static void begin(void)
{
	setup();
	tape_verb(&t, VERB_START, 1, 10)->switches = SWITCH_COUNTERS;
	start(2, 10);
}

static const struct row_metric *metric_of(const struct batch *b, int64_t session, const char *path)
{
	char words[4096];
	uint32_t i;

	for (i = 0; i < b->metric.n; i++) {
		node_words(b, b->metric.row[i].node, words, sizeof(words));
		if (b->metric.row[i].session == session && strcmp(words, path) == 0)
			return &b->metric.row[i];
	}
	return NULL;
}

/* Its own metrics are in both sessions, what the CPU counts in the one that has the switch. */
START_TEST(of_sessions_with_the_switch)
{
	struct rec_total total = {
		.opened = 30, .last = 40, .count = 3, .sum = 300, .latest = 100, .name = N_INC};
	struct kit_lane sums = {.lane = 2};
	struct batch b;

	begin();
	put_metric(&lane, P_A, 20, N_INC, COUNTED, 5);
	put_metric(&lane, P_A, 21, N_INC, COUNTED | METRIC_SCALED, 6);
	put_metric(&lane, P_AB, 22, N_EXC, METRIC_U64, 7);
	drain(&lane, 30);
	lane_put(&sums, REC_TOTAL, COUNTED | METRIC_SCALED, P_A, &total, sizeof(total));
	tape_lane(&t, job.ring, 50, &sums);
	tape_verb(&t, VERB_SWITCH, 1, 50)->switches = 0;
	fold_take(f, &t);
	put_metric(&lane, P_A, 60, N_INC, COUNTED, 1000);
	drain(&lane, 70);
	b = collect();
	ck_assert_uint_eq(metric_of(&b, 1, "ROOT/a")->bits, 311);
	ck_assert_uint_eq(metric_of(&b, 1, "ROOT/a")->count, 5);
	ck_assert_ptr_null(metric_of(&b, 2, "ROOT/a"));
	ck_assert_uint_eq(metric_of(&b, 2, "ROOT/a/b")->bits, 7);
	ck_assert_uint_eq(f->session[0]->part[0]->counted[NOTE_SCALED], 4);
	ck_assert_uint_eq(f->session[1]->part[0]->counted[NOTE_SCALED], 0);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 0);
	batch_free(&b);
}
END_TEST

START_TEST(what_the_job_is_to_do)
{
	setup();
	tape_verb(&t, VERB_START, 1, 10)->gpu = GPU_NONE;
	tape_verb(&t, VERB_SWITCH, 1, 20)->switches = SWITCH_COUNTERS;
	fold_take(f, &t);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SWITCHES, WANT_COUNTERS);
}
END_TEST

static void say(uint8_t what, uint32_t kinds, int32_t code, int32_t paranoid)
{
	struct rec_counters r = {.clock = 20, .code = code, .paranoid = paranoid};

	lane_put(&lane, REC_COUNTERS, what, kinds, &r, sizeof(r));
	drain(&lane, 30);
}

#define BIT(name) (1u << COUNTER_##name)
static const struct {
	uint8_t what;
	uint32_t kinds;
	int32_t code, paranoid;
	const char *text; /* "": it breaks a law */
} said[] = {
	{COUNTERS_REFUSED, BIT(INSTRUCTIONS) | BIT(CYCLES), ENOENT, 2,
		"not counted: instructions, cycles: this machine gives no such counters (a virtual "
		"one?); PROTOND_COUNTERS=task_clock,page_faults are the kernel's own"},
	{COUNTERS_REFUSED, BIT(CYCLES), EACCES, 4,
		"not counted: cycles: for root alone here: sysctl kernel.perf_event_paranoid=2 (it "
		"is 4) lets everybody"},
	{COUNTERS_REFUSED, BIT(CONTEXT_SWITCHES), EACCES, 2,
		"not counted: context_switches: for root alone here: sysctl "
		"kernel.perf_event_paranoid=1 (it is 2) lets everybody"},
	{COUNTERS_REFUSED, BIT(TASK_CLOCK), EPERM, 2,
		"not counted: task_clock: forbidden here; in a container --cap-add PERFMON, or a "
		"seccomp profile with perf_event_open, helps"},
	{COUNTERS_REFUSED, BIT(TASK_CLOCK), EPERM, INT32_MAX,
		"not counted: task_clock: forbidden here; in a container --cap-add PERFMON, or a "
		"seccomp profile with perf_event_open, helps"},
	{COUNTERS_REFUSED, BIT(CYCLES), ENOSYS, 2,
		"not counted: cycles: this kernel has no perf_event_open"},
	{COUNTERS_REFUSED, BIT(CYCLES), EINVAL, 2,
		"not counted: cycles: the CPU has them not, or not so many at once; ask for fewer "
		"in PROTOND_COUNTERS"},
	{COUNTERS_REFUSED, BIT(CYCLES), -7, 2, "not counted: cycles: perf_event_open: error -7"},
	{COUNTERS_LIMIT, 0, EMFILE, 2,
		"some threads are not counted: each counter takes a descriptor, and a quarter of "
		"`ulimit -n`, at most 1024, is for them"},
	{COUNTERS_GONE, 0, 0, 2,
		"a thread is not counted any more: the program closed its counters' descriptors"},
	{COUNTERS_WORDS, 0, 0, 2,
		"PROTOND_COUNTERS has an unknown word, or more than 8: "
		"instructions,cycles,cache_misses,branch_misses are counted"},
	{COUNTERS_REFUSED, 0, ENOENT, 2, ""},
	{COUNTERS_REFUSED, 1u << COUNTER_MAX, ENOENT, 2, ""},
	{COUNTERS_LIMIT, 1, EMFILE, 2, ""},
	{COUNTERS_WHAT_MAX, 0, 0, 2, ""},
	{0, 0, 0, 2, ""},
};

/* Once in each session that has the switch, whenever that is. */
START_TEST(notes)
{
	struct batch b;

	begin();
	say(said[_i].what, said[_i].kinds, said[_i].code, said[_i].paranoid);
	say(said[_i].what, said[_i].kinds, said[_i].code, said[_i].paranoid);
	tape_verb(&t, VERB_SWITCH, 2, 50)->switches = SWITCH_COUNTERS | SWITCH_OPS;
	tape_verb(&t, VERB_SWITCH, 2, 60)->switches = SWITCH_COUNTERS;
	tape_verb(&t, VERB_START, 3, 70)->switches = SWITCH_OPS;
	fold_take(f, &t);
	b = collect();
	if (*said[_i].text == '\0') {
		ck_assert_uint_eq(b.note.n, 0);
		ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 2);
	} else {
		ck_assert_uint_eq(b.note.n, 2);
		ck_assert_str_eq(b.note.row[0].text, said[_i].text);
		ck_assert_str_eq(b.note.row[1].text, said[_i].text);
		ck_assert_int_ne(b.note.row[0].session, b.note.row[1].session);
	}
	batch_free(&b);
}
END_TEST

/* One that says ever more, or numbers that break a law. */
START_TEST(a_liar)
{
	static const uint8_t flags[] = {METRIC_COUNTED, METRIC_I64 | METRIC_COUNTED,
		METRIC_STR | METRIC_COUNTED, METRIC_U64 | METRIC_SCALED, COUNTED | 32, COUNTED | 64,
		COUNTED | 128, 0xff};
	struct batch b;
	uint32_t i;

	begin();
	for (i = 0; i < sizeof(flags); i++)
		put_metric(&lane, P_A, 20, N_INC, flags[i], 5);
	put_metric(&lane, P_A, 20, N_INC, COUNTED, UINT64_MAX);
	put_metric(&lane, P_A, 20, N_INC, COUNTED, UINT64_MAX);
	drain(&lane, 30);
	for (i = 0; i < 1000; i++)
		say(COUNTERS_REFUSED, BIT(CYCLES), (int32_t)(1000 + i), 2);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), sizeof(flags));
	ck_assert_int_eq(metric_of(&b, 1, "ROOT/a")->type, METRIC_F64); /* too large a sum */
	ck_assert_uint_eq(b.note.n, UNCOUNTED_KEPT);
	batch_free(&b);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("counted");
	TCase *c = tcase_create("counted");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_test(c, of_sessions_with_the_switch);
	tcase_add_test(c, what_the_job_is_to_do);
	tcase_add_loop_test(c, notes, 0, N(said));
	tcase_add_test(c, a_liar);
	suite_add_tcase(s, c);
	return s;
}
