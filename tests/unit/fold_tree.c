/* SPDX-License-Identifier: MIT. fold_tree.c: what ends up in which cell: scopes against windows, Python's
 * stacks, the end of a job, its own sessions. */
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

/* --- scopes against active intervals: active in [100, 200) and [300, 400) s */

static const struct scope_case {
	const char *label;
	uint64_t begin, end; /* s */
	uint64_t count, sum; /* s; the cell is expected when either is not 0 */
} scope_cases[] = {
	{"inside", 110, 120, 1, 10},
	{"before", 10, 20, 0, 0},
	{"between", 210, 290, 0, 0},
	{"begins before", 50, 150, 1, 50},
	{"ends after: time, no count", 150, 250, 0, 50},
	{"ends at the end: no count", 150, 200, 0, 50},
	{"begins at the end", 200, 250, 0, 0},
	{"across all, ends in the second", 50, 350, 1, 150},
	{"across all", 50, 450, 0, 200},
	{"across the pause", 150, 350, 1, 100},
	{"instant", 110, 110, 1, 0},
};

START_TEST(scope_windows)
{
	const struct scope_case *c = &scope_cases[_i];
	const struct row_cell *cell;
	struct batch b;

	start(1, 100 * SECOND);
	verb(VERB_DEACTIVATE, 1, 200 * SECOND);
	verb(VERB_ACTIVATE, 1, 300 * SECOND);
	verb(VERB_DEACTIVATE, 1, 400 * SECOND);
	put_scope(&lane, P_AB, c->begin * SECOND, c->end * SECOND);
	drain(&lane, 500 * SECOND);
	b = collect();
	cell = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a/b");
	if (c->count == 0 && c->sum == 0) {
		ck_assert_msg(cell == NULL, "%s", c->label);
	} else {
		ck_assert_msg(cell != NULL, "%s", c->label);
		ck_assert_msg(cell->count == c->count && cell->sum_ns == c->sum * SECOND,
			"%s: %lu %lu", c->label, cell->count, cell->sum_ns);
		ck_assert_uint_eq(cell->max_ns, c->count * c->sum * SECOND);
	}
	batch_free(&b);
}
END_TEST

START_TEST(scope_segments)
{
	const struct row_cell *c;
	struct batch b;

	start(1, 10 * SECOND);
	verb(VERB_PHASE, 1, 20 * SECOND);
	put_scope(&lane, P_A, 11 * SECOND, 12 * SECOND); /* late, but of the first */
	put_scope(&lane, P_A, 15 * SECOND, 25 * SECOND); /* of the window of its end */
	put_launch(&lane, P_A, 19 * SECOND, 1, 0);
	put_kernel(&lane, N_KERN, 30 * SECOND, 5, 1, 0); /* of the window of its launch */
	drain(&lane, 26 * SECOND);
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a");
	ck_assert_uint_eq(c->count, 1);
	c = cell_at(&b, 1, 1, CLASS_CPU, "ROOT/a");
	ck_assert_uint_eq(c->count, 1);
	ck_assert_uint_eq(c->sum_ns, 10 * SECOND);
	ck_assert_ptr_nonnull(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/kern"));
	ck_assert_uint_eq(b.segment.n, 2);
	batch_free(&b);
}
END_TEST

/* Of the phase that goes on, and of the first session that has them. */
START_TEST(what_open_scopes_said)
{
	char text[64], cut[8];

	start(1, 10 * SECOND);
	ck_assert_uint_eq(fold_properties_text(f, job.ring, P_A, text, sizeof(text)), 0);
	put_metric(&lane, P_A, 11 * SECOND, N_PTY, METRIC_I64, (uint64_t)-17);
	put_metric(&lane, P_A, 12 * SECOND, N_INC, METRIC_I64, 5); /* no property */
	put_metric(&lane, P_AB, 12 * SECOND, N_PTY, METRIC_STR, N_KERN);
	drain(&lane, 13 * SECOND);
	ck_assert_uint_eq(fold_properties_text(f, job.ring, P_A, text, sizeof(text)), 7);
	ck_assert_str_eq(text, "tag=-17");
	(void)fold_properties_text(f, job.ring, P_AB, text, sizeof(text));
	ck_assert_str_eq(text, "tag=kern");
	ck_assert_uint_eq(fold_properties_text(f, job.ring, P_AB, cut, sizeof(cut)), 7);
	ck_assert_str_eq(cut, "tag=ker");
	ck_assert_uint_eq(fold_properties_text(f, job.ring, 1u << 20, text, sizeof(text)), 0);
	ck_assert_uint_eq(
		fold_properties_text(f, (const uint8_t *)"nobody's ring..", P_A, text, 64), 0);
	verb(VERB_PHASE, 1, 20 * SECOND);
	ck_assert_uint_eq(fold_properties_text(f, job.ring, P_A, text, sizeof(text)), 0);
	put_metric(&lane, P_A, 21 * SECOND, N_PTY, METRIC_I64, 18);
	drain(&lane, 22 * SECOND);
	(void)fold_properties_text(f, job.ring, P_A, text, sizeof(text));
	ck_assert_str_eq(text, "tag=18");
}
END_TEST

START_TEST(scopes_open_at_finalize)
{
	const struct j_now now[] = {{0, 1, 0, P_A, 20 * SECOND}, {0, 1, 1, P_AB, 0}};
	const struct row_cell *c;
	struct j_now open[4];
	struct batch b;

	start(1, 10 * SECOND);
	verb(VERB_FINALIZE, 1, 50 * SECOND);
	tape_now(&t, job.ring, 51 * SECOND, 2, now);
	fold_take(f, &t);
	ck_assert_uint_eq(fold_open_scopes(f, job.ring, open, 4), 2);
	ck_assert_uint_eq(fold_open_scopes(f, job.ring, open, 1), 1);
	ck_assert_uint_eq(open[0].path, P_A);
	ck_assert_uint_eq(fold_open_scopes(f, (const uint8_t *)"nobody's ring..", open, 4), 0);
	put_scope(&lane, P_A, 20 * SECOND, 52 * SECOND); /* is left meanwhile: not twice */
	tape_lane(&t, job.ring, 53 * SECOND, &lane);
	fold_take(f, &t);
	ck_assert_uint_eq(fold_open_scopes(f, job.ring, open, 4), 1);
	ck_assert(open[0].path == P_AB && open[0].depth == 1 && open[0].begin == 0);
	ck_assert(fold_is_settled(f, (const uint8_t *)"\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"));
	verb(VERB_FINALIZED, 1, 54 * SECOND);
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a");
	ck_assert_uint_eq(c->sum_ns, 30 * SECOND);
	ck_assert_uint_eq(c->count + c->open, 0);
	c = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a/b"); /* begin unknown: from the session's */
	ck_assert_uint_eq(c->sum_ns, 40 * SECOND);
	ck_assert_uint_eq(c->open, 1);
	ck_assert_uint_eq(b.session.row[0].state, SESSION_IS_FINALIZED);
	ck_assert_uint_eq(b.session.row[0].active_ns, 40 * SECOND);
	batch_free(&b);
}
END_TEST

/* A job is killed when a scope's record is written, and its thread still says that it is in it. */
static const struct counted_case {
	const char *label;
	uint8_t flags;
	uint32_t lane, path;
	uint64_t begin; /* of the frame; the record's is 20 s */
	uint32_t count, open;
} counted_cases[] = {
	{"the same", 0, 0, P_AB, 20 * SECOND, 1, 0},
	{"entered again", 0, 0, P_AB, 41 * SECOND, 1, 1},
	{"what it was in", 0, 0, P_A, 20 * SECOND, 1, 1},
	{"another thread's", 0, 1, P_AB, 20 * SECOND, 1, 1},
	{"began before", SCOPE_BEGAN_BEFORE, 0, P_AB, 0, 1, 0},
	{"in no stack", SCOPE_SPAN, 0, P_AB, 20 * SECOND, 1, 1},
};

START_TEST(a_scope_that_ended_is_not_open)
{
	const struct counted_case *c = &counted_cases[_i];
	const struct j_now now[] = {
		{c->lane, 1, 0, P_A, 15 * SECOND}, {c->lane, 1, 1, c->path, c->begin}};
	struct rec_scope r = {.begin = 20 * SECOND, .end = 40 * SECOND};
	uint64_t open = 0, count = 0;
	struct batch b;
	uint32_t i;

	start(1, 10 * SECOND);
	lane_put(&lane, REC_SCOPE, c->flags, P_AB, &r, sizeof(r));
	drain(&lane, 45 * SECOND);
	tape_now(&t, job.ring, 49 * SECOND, 2, now);
	tape_end(&t, job.ring, 50 * SECOND, END_KILLED, 9);
	fold_take(f, &t);
	b = collect();
	for (i = 0; i < b.cell.n; i++) {
		count += b.cell.row[i].count;
		open += b.cell.row[i].open;
	}
	ck_assert_msg(count == c->count && open == 1 + c->open, "%s: %llu, %llu", c->label,
		(unsigned long long)count, (unsigned long long)open);
	batch_free(&b);
}
END_TEST

/* A child that was forked inside a scope, when the session had been active for long. */
START_TEST(open_scope_of_a_younger_process)
{
	const struct j_now now = {0, 1, 0, P_A, 0};
	const struct row_cell *c;
	struct batch b;

	start(1, 10 * SECOND);
	job = kit_process(2);
	job.created_clock = job.created_ns = 30 * SECOND;
	tape_process(&t, &job);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	tape_now(&t, job.ring, 49 * SECOND, 1, &now);
	tape_end(&t, job.ring, 50 * SECOND, END_KILLED, 9);
	fold_take(f, &t);
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a");
	ck_assert_uint_eq(c->sum_ns, 20 * SECOND);
	ck_assert_uint_eq(c->open, 1);
	batch_free(&b);
}
END_TEST

static const struct python_case {
	const char *label;
	uint32_t path, python;
	uint8_t flags;
	const char *shadow, *stack, *metric; /* kernels; where the second session has metrics */
} python_cases[] = {
	{"has a stack", P_AB, P_CAP, 0, "ROOT/a/b/kern", "ROOT/cap/kern", "ROOT/cap"},
	{"has none", P_AB, PATH_ROOT, 0, "ROOT/a/b/kern", "ROOT/a/b/kern", "ROOT/a/b"},
	{"an op below a stack", P_OP, P_CAP, LAUNCH_OP, "ROOT/a/op", "ROOT/cap/op", "ROOT/cap/op"},
	{"a state", P_STATE, P_CAP, 0, "ROOT/a/none/kern", "ROOT/cap/none/kern", "ROOT/cap/none"},
	{"an op in a state", P_STATE_OP, P_CAP, LAUNCH_OP, "ROOT/a/none/op", "ROOT/cap/none/op",
		"ROOT/cap/none/op"},
};

static bool has_metric(const struct batch *b, int64_t session, const char *path)
{
	char words[4096];
	uint32_t i;

	for (i = 0; i < b->metric.n; i++) {
		node_words(b, b->metric.row[i].node, words, sizeof(words));
		if (b->metric.row[i].session == session && strcmp(words, path) == 0)
			return true;
	}
	return false;
}

START_TEST(python_stacks)
{
	const struct python_case *c = &python_cases[_i];
	struct rec_launch r = {
		.clock = 11 * SECOND, .correlation = 1, .epoch = 1, .python = c->python};
	struct rec_metric m = {
		.clock = 11 * SECOND, .value = 5, .name = N_INC, .python = c->python};
	struct rec_metric bad = {
		.clock = 11 * SECOND, .value = 5, .name = N_EXC, .python = P_AT_ROOT + 1};
	struct batch b;

	start(1, 10 * SECOND);
	tape_verb(&t, VERB_START, 2, 10 * SECOND)->context = 1;
	fold_take(f, &t);
	lane_put(&lane, REC_METRIC, METRIC_I64, c->path, &m, sizeof(m));
	lane_put(&lane, REC_METRIC, METRIC_I64, c->path, &bad, sizeof(bad));
	lane_put(&lane, REC_LAUNCH, c->flags, c->path, &r, sizeof(r));
	drain(&lane, 11 * SECOND);
	put_kernel(&gpu, N_KERN, 13 * SECOND, 5, 1, 0);
	drain(&gpu, 14 * SECOND);
	b = collect();
	ck_assert_uint_eq(b.metric.n, 2); /* one for each session */
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 1);
	ck_assert_msg(has_metric(&b, 2, c->metric), "%s", c->label);
	ck_assert_msg(cell_at(&b, 1, 0, CLASS_COMPUTE, c->shadow) != NULL, "%s", c->label);
	ck_assert_msg(cell_at(&b, 2, 0, CLASS_COMPUTE, c->stack) != NULL, "%s", c->label);
	batch_free(&b);
}
END_TEST

START_TEST(end_closes_everything)
{
	const struct j_now now = {0, 1, 0, P_A, 20 * SECOND};
	struct fold_process p;
	struct batch b;
	uint32_t i;
	bool told = false;

	put_session(&lane, SESSION_START, 0, 10 * SECOND, N_JOB);
	put_launch(&lane, P_A, 11 * SECOND, 1, 0);
	put_launch(&lane, P_A, 11 * SECOND, 2, 0);
	drain(&lane, 12 * SECOND);
	put_kernel(&gpu, N_KERN, 13 * SECOND, 0, 2, GPU_FLAG_RUNNING);
	drain(&gpu, 14 * SECOND);
	tape_now(&t, job.ring, 29 * SECOND, 1, &now);
	tape_end(&t, job.ring, 30 * SECOND, END_KILLED, 9);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")->sum_ns, 10 * SECOND);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")->open, 1);
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/kern")->untimed, 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_UNDELIVERED), 1);
	ck_assert_uint_eq(b.session.row[0].launches, 2);
	ck_assert_uint_eq(b.session.row[0].matched, 1);
	ck_assert_uint_eq(b.session.row[0].state, SESSION_IS_FINALIZED);
	for (i = 0; i < b.note.n; i++)
		told |= strcmp(b.note.row[i].text,
				"process 101 was killed (signal 9) with 1 "
				"scope open and 2 launches in flight, in 'a'") == 0;
	ck_assert(told);
	ck_assert(fold_get_process(f, job.ring, &p));
	ck_assert(p.ended);
	ck_assert_uint_eq(fold_want(f, job.ring), 0);
	batch_free(&b);
}
END_TEST

/* --- sessions of the job, in its own lane */

START_TEST(job_session_is_exact)
{
	uint8_t uuid[16];
	struct fold_session s;
	struct batch b;

	put_scope(&lane, P_A, 1000, 1009); /* before: not in */
	put_session(&lane, SESSION_START, 0, 1010, N_JOB);
	put_scope(&lane, P_A, 1010, 1011);
	put_session(&lane, SESSION_DEACTIVATE, 0, 1012, 0);
	put_scope(&lane, P_A, 1012, 1013);
	put_session(&lane, SESSION_ACTIVATE, SESSION_ALL, 1014, 0);
	put_scope(&lane, P_A, 1014, 1015);
	put_session(&lane, SESSION_FINALIZE, 0, 1016, 0);
	put_scope(&lane, P_A, 1016, 1017);
	drain(&lane, 2000);
	ck_assert(fold_job_session(f, job.ring, 0, uuid));
	ck_assert(!fold_job_session(f, job.ring, 1, uuid + 0));
	ck_assert(fold_get_session(f, uuid, &s));
	ck_assert_uint_eq(s.state, SESSION_IS_FINALIZING);
	ck_assert_str_eq(s.name, "job");
	ck_assert_uint_eq(s.active_ns, 4);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")->count, 2);
	batch_free(&b);
}
END_TEST

START_TEST(session_of_another_lane_is_known)
{
	struct kit_lane other = {.lane = 1};
	struct batch b;

	put_session(&other, SESSION_START, 0, 1000, N_JOB); /* such entries come first in a tick */
	tape_lane(&t, job.ring, 3000, &other);
	put_scope(&lane, P_A, 900, 950);
	put_scope(&lane, P_A, 1100, 1200);
	tape_lane(&t, job.ring, 3000, &lane);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")->count, 1);
	batch_free(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_tree");
	TCase *c = tcase_create("cells");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, scope_windows, 0, N(scope_cases));
	tcase_add_test(c, scope_segments);
	tcase_add_test(c, scopes_open_at_finalize);
	tcase_add_test(c, what_open_scopes_said);
	tcase_add_loop_test(c, a_scope_that_ended_is_not_open, 0,
		(int)(sizeof(counted_cases) / sizeof(counted_cases[0])));
	tcase_add_test(c, open_scope_of_a_younger_process);
	tcase_add_loop_test(c, python_stacks, 0, sizeof(python_cases) / sizeof(python_cases[0]));
	tcase_add_test(c, end_closes_everything);
	tcase_add_test(c, job_session_is_exact);
	tcase_add_test(c, session_of_another_lane_is_known);
	suite_add_tcase(s, c);
	return s;
}
