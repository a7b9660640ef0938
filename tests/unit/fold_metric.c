/* SPDX-License-Identifier: MIT. fold_metric.c: numbers, and those of a graph's capture. */
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

/* --- metrics */

static uint64_t bits(double d)
{
	uint64_t u;

	memcpy(&u, &d, sizeof(u));
	return u;
}

static const struct row_metric *metric_at(
	const struct batch *b, int64_t session, uint32_t segment, const char *path)
{
	char words[4096];
	uint32_t i;

	for (i = 0; i < b->metric.n; i++) {
		node_words(b, b->metric.row[i].node, words, sizeof(words));
		if (b->metric.row[i].session == session && b->metric.row[i].segment == segment &&
			strcmp(words, path) == 0)
			return &b->metric.row[i];
	}
	return NULL;
}

/* They stand below the launch that ran the graph, in its session and phase, whichever came first. */
START_TEST(captured_numbers)
{
	static const char at[] = "ROOT/a/b/<captured_at>/cap", op[] = "ROOT/a/b/<captured_at>/a/op";
	struct batch b;
	uint32_t i;

	start(1, 10 * SECOND);
	for (i = 0; i < 3; i++) {
		if (_i == 0) {
			put_launch(&lane, P_AB, (11 + i) * SECOND, 1 + i, LAUNCH_GRAPH);
			drain(&lane, (11 + i) * SECOND);
		}
		put_kernel(&gpu, N_KERN, (11 + i) * SECOND, 5, 1 + i, GPU_FLAG_GRAPH);
		put_captured(&gpu, P_CAP, (11 + i) * SECOND, N_INC, METRIC_I64, 5, 1 + i);
		put_captured(&gpu, P_OP, (11 + i) * SECOND, N_EXC, METRIC_F64, bits(0.5), 1 + i);
		drain(&gpu, (11 + i) * SECOND + 1);
		if (_i == 1) {
			put_launch(&lane, P_AB, (11 + i) * SECOND, 1 + i, LAUNCH_GRAPH);
			drain(&lane, (11 + i) * SECOND + 2);
		}
		if (i == 1)
			verb(VERB_PHASE, 1, 12 * SECOND + 500);
		if (i == 0)
			start(2, 11 * SECOND + 500);
	}
	b = collect();
	ck_assert_uint_eq(metric_at(&b, 1, 0, at)->bits, 10);
	ck_assert_uint_eq(metric_at(&b, 1, 0, at)->count, 2);
	ck_assert_uint_eq(metric_at(&b, 1, 1, at)->bits, 5);
	ck_assert_uint_eq(metric_at(&b, 1, 0, op)->bits, bits(1.0));
	ck_assert_uint_eq(metric_at(&b, 2, 0, at)->bits, 10); /* not the first run's */
	ck_assert_uint_eq(b.process.row[0].counters[2], 3);   /* they are no kernels */
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 0);
	batch_free(&b);
}
END_TEST

/* Path 9 is cap's, but not in the job's own sessions 0 and 12; 10 the same of 2 alone. */
START_TEST(captured_while_inactive)
{
	static const char *const except[] = {"0,12", "2"};
	static const struct ring_path more[] = {{P_CAP, N_NONE + 1, PATH_KIND_EXCEPT, 2, 0},
		{P_CAP, N_NONE + 2, PATH_KIND_EXCEPT, 2, 0}};
	static const char at[] = "ROOT/a/b/<captured_at>/cap",
			  kern[] = "ROOT/a/b/<captured_at>/cap/kern";
	struct batch b;
	uint32_t i;

	tape_names(&t, job.ring, N_NONE + 1, 2, except);
	tape_paths(&t, job.ring, P_AT_ROOT + 1, 2, more);
	start(1, 10 * SECOND); /* of the control socket: it is in no list */
	for (i = 0; i < 3; i++)
		put_session(&lane, SESSION_START, i, 10 * SECOND + i, N_JOB);
	put_launch(&lane, P_AB, 11 * SECOND, 1, LAUNCH_GRAPH);
	put_scope(
		&lane, P_AT_ROOT + 1, 11 * SECOND, 11 * SECOND + 5); /* of a job that lies: cap's */
	drain(&lane, 11 * SECOND);
	for (i = 0; i < 2; i++) {
		struct rec_kernel k = {.start = 11 * SECOND + REAL_AHEAD,
			.end = 11 * SECOND + 60 + REAL_AHEAD,
			.correlation = 1,
			.epoch = 1,
			.captured = P_AT_ROOT + 1 + i,
			.config = UINT32_MAX};

		lane_put(&gpu, REC_KERNEL, GPU_FLAG_GRAPH, N_KERN, &k, sizeof(k));
		put_captured(&gpu, P_AT_ROOT + 1 + i, 11 * SECOND, N_INC, METRIC_I64, 5, 1);
	}
	drain(&gpu, 12 * SECOND);
	b = collect();
	for (i = 0; i < 4; i++) { /* session 1, then the job's 0, 1, 2 */
		const struct row_cell *c = cell_at(&b, 1 + i, 0, CLASS_COMPUTE, kern);
		static const uint64_t times[] = {2, 1, 2, 1};

		ck_assert_uint_eq(c->count, times[i]);
		ck_assert_uint_eq(metric_at(&b, 1 + i, 0, at)->count, times[i]);
	}
	ck_assert_ptr_nonnull(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/cap"));
	batch_free(&b);
}
END_TEST

START_TEST(bad_numbers_of_a_capture)
{
	struct batch b;

	start(1, 10 * SECOND);
	put_launch(&lane, P_AB, 11 * SECOND, 1, LAUNCH_GRAPH);
	drain(&lane, 11 * SECOND);
	put_captured(&gpu, P_CAP, 11 * SECOND, N_INC, 0, 5, 1);              /* no type */
	put_captured(&gpu, P_CAP, 11 * SECOND, N_INC, METRIC_STR + 1, 5, 1); /* nor this */
	put_captured(&gpu, P_CAP, 11 * SECOND, N_NONE + 9, METRIC_I64, 5, 1);
	put_captured(&gpu, P_CAP, 11 * SECOND, N_PTY, METRIC_STR, UINT64_MAX, 1);
	put_captured(&gpu, P_AT_ROOT + 9, 11 * SECOND, N_INC, METRIC_I64, 5,
		1); /* counts at the launch */
	drain(&gpu, 12 * SECOND);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 5);
	ck_assert_uint_eq(b.metric.n, 1);
	ck_assert_uint_eq(metric_at(&b, 1, 0, "ROOT/a/b")->bits, 5);
	batch_free(&b);
}
END_TEST

START_TEST(metrics)
{
	const struct row_metric *m;
	struct batch b;

	start(1, 10);
	put_metric(&lane, P_A, 20, N_INC, METRIC_I64, 5);
	put_metric(&lane, P_A, 21, N_INC, METRIC_I64, 6);
	put_metric(&lane, P_AB, 22, N_EXC, METRIC_I64, 1);
	put_metric(&lane, P_AB, 23, N_EXC, METRIC_F64, bits(0.5));
	put_metric(&lane, P_A, 24, N_PTY, METRIC_I64, 1);
	put_metric(&lane, P_A, 25, N_PTY, METRIC_STR, N_A);
	put_metric(&lane, P_A, 26, N_INC, METRIC_STR, N_A); /* text is not summed: left out, told */
	put_metric(&lane, P_A, 27, N_INC, 9, 0);            /* no such type */
	drain(&lane, 30);
	b = collect();
	ck_assert_uint_eq(b.metric.n, 3);
	m = &b.metric.row[0];
	ck_assert_str_eq(m->name, "m8");
	ck_assert_uint_eq(m->kind, KIND_INCLUSIVE);
	ck_assert_uint_eq(m->bits, 11);
	ck_assert_uint_eq(m->count, 2);
	m = &b.metric.row[1];
	ck_assert_str_eq(m->name, "m8");
	ck_assert_uint_eq(m->kind, KIND_EXCLUSIVE);
	ck_assert_uint_eq(m->type, METRIC_F64);
	ck_assert_uint_eq(m->bits, bits(1.5));
	m = &b.metric.row[2];
	ck_assert_str_eq(m->name, "tag");
	ck_assert_uint_eq(m->type, METRIC_STR);
	ck_assert_str_eq(m->text, "a");
	ck_assert_uint_eq(b.note.n, 2);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 1);
	batch_free(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_metric");
	TCase *c = tcase_create("metrics");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, captured_numbers, 0, 2);
	tcase_add_test(c, captured_while_inactive);
	tcase_add_test(c, bad_numbers_of_a_capture);
	tcase_add_test(c, metrics);
	suite_add_tcase(s, c);
	return s;
}
