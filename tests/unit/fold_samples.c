/* SPDX-License-Identifier: MIT. fold_samples.c: samples of what threads are in: on which node, how many, and for how
 * long; of a session that has the switch. */
#include "chunks.h"
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

/* 9 = f, 10 = f/g: frames, outermost first. */
static const char *const frames[] = {"x.py:1@f", "x.py:9@g"};
enum { N_F = N_NONE + 1, N_G };
enum { P_F = P_AT_ROOT + 1, P_FG };
static const struct ring_path below[] = {
	{PATH_ROOT, N_F, PATH_KIND_FRAME, 1, 0},
	{P_F, N_G, PATH_KIND_FRAME, 2, 0},
};

static struct j_verb *begin(void)
{
	struct j_verb *v;

	setup();
	tape_names(&t, job.ring, N_F, 2, frames);
	tape_paths(&t, job.ring, P_F, 2, below);
	v = tape_verb(&t, VERB_START, 1, 100 * SECOND);
	v->switches = SWITCH_CPU_SAMPLES;
	return v;
}

static void put_sample(
	uint32_t path, uint32_t python, uint64_t from, uint64_t to, uint32_t n, uint8_t flags)
{
	struct rec_sample r = {.begin = from, .end = to, .python = python, .tid = 7, .samples = n};

	lane_put(&lane, REC_SAMPLE, flags, path, &r, sizeof(r));
}

static void is(const struct batch *b, uint8_t class, const char *path, uint64_t n, uint64_t ns)
{
	const struct row_cell *c = cell_at(b, 1, 0, class, path);

	ck_assert_msg(c != NULL, "%s", path);
	ck_assert_msg(
		c->count == n && c->sum_ns == ns, "%s: %lu, %lu ns", path, c->count, c->sum_ns);
}

START_TEST(below_their_scope)
{
	struct batch b;

	begin()->gpu = GPU_NONE; /* no GPU is wanted for it */
	start(2, 100 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SWITCHES, WANT_CPU_SAMPLES);
	put_sample(P_AB, P_FG, 110 * SECOND, 111 * SECOND, 90, 0);
	put_sample(P_AB, P_FG, 111 * SECOND, 113 * SECOND, 200, SAMPLE_OFF_CPU);
	put_sample(P_AB, P_FG, 113 * SECOND, 114 * SECOND, 50, SAMPLE_OFF_CPU | SAMPLE_READY);
	put_sample(P_AB, P_F, 113 * SECOND, 114 * SECOND, 100, 0);
	put_sample(P_A, PATH_ROOT, 114 * SECOND, 115 * SECOND, 7, SAMPLE_OFF_CPU); /* no Python's */
	put_sample(PATH_ROOT, P_F, 115 * SECOND, 115 * SECOND, 1, SAMPLE_NO_FRAMES);
	drain(&lane, 120 * SECOND);
	b = collect();
	is(&b, CLASS_SAMPLE, "ROOT/a/b/x.py:1@f/x.py:9@g", 340, 4 * SECOND);
	is(&b, CLASS_SAMPLE_OFF, "ROOT/a/b/x.py:1@f/x.py:9@g", 250, 3 * SECOND);
	is(&b, CLASS_SAMPLE_READY, "ROOT/a/b/x.py:1@f/x.py:9@g", 50, SECOND);
	is(&b, CLASS_SAMPLE, "ROOT/a/b/x.py:1@f", 100, SECOND);
	is(&b, CLASS_SAMPLE, "ROOT/a", 7, SECOND);
	is(&b, CLASS_SAMPLE_OFF, "ROOT/a", 7, SECOND);
	is(&b, CLASS_SAMPLE, "ROOT/x.py:1@f", 1, 0);
	ck_assert_ptr_null(cell_at(&b, 1, 0, CLASS_SAMPLE_OFF, "ROOT/a/b/x.py:1@f"));
	ck_assert_ptr_null(cell_at(&b, 1, 0, CLASS_CPU, "ROOT/a")); /* time is not measured by it */
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_SAMPLE, "ROOT/a"));
	ck_assert_uint_eq(f->session[0]->part[0]->counted[NOTE_NO_FRAMES], 1);
	batch_free(&b);
}
END_TEST

START_TEST(with_stacks_for_the_tree)
{
	struct batch b;

	begin()->context = SESSION_PYTHON;
	put_sample(P_OP, P_FG, 110 * SECOND, 111 * SECOND, 90, 0);
	put_sample(P_A, PATH_ROOT, 110 * SECOND, 111 * SECOND, 90, 0);
	drain(&lane, 120 * SECOND);
	b = collect();
	is(&b, CLASS_SAMPLE, "ROOT/x.py:1@f/x.py:9@g/op", 90, SECOND);
	is(&b, CLASS_SAMPLE, "ROOT/a", 90, SECOND);
	batch_free(&b);
}
END_TEST

/* Of a run of looks a session has its part, whose looks are that part of them. */
START_TEST(across_its_beginning_and_end)
{
	struct batch b;

	begin();
	verb(VERB_DEACTIVATE, 1, 200 * SECOND);
	put_sample(P_A, P_F, 98 * SECOND, 102 * SECOND, 400, 0);
	put_sample(P_AB, P_F, 199 * SECOND, 203 * SECOND, 400, 0);
	put_sample(P_AB, P_FG, 90 * SECOND, 99 * SECOND, 900, 0);
	put_sample(P_AB, P_FG, 201 * SECOND, 202 * SECOND, 100, 0);
	drain(&lane, 300 * SECOND);
	b = collect();
	is(&b, CLASS_SAMPLE, "ROOT/a/x.py:1@f", 200, 2 * SECOND);
	is(&b, CLASS_SAMPLE, "ROOT/a/b/x.py:1@f", 100, SECOND);
	ck_assert_ptr_null(cell_at(&b, 1, 0, CLASS_SAMPLE, "ROOT/a/b/x.py:1@f/x.py:9@g"));
	batch_free(&b);
}
END_TEST

START_TEST(in_a_timeline)
{
	const struct trace_pack *k;

	begin()->data = SESSION_BOTH;
	put_sample(P_AB, P_FG, 110 * SECOND, 111 * SECOND, 90, 0);
	put_sample(P_AB, P_FG, 111 * SECOND, 113 * SECOND, 200, SAMPLE_OFF_CPU);
	drain(&lane, 120 * SECOND);
	k = &f->session[0]->part[0]->timeline->pack;
	ck_assert_uint_eq(k->n[TRACE_N_SCOPES], 2);
	ck_assert_uint_eq(k->n[TRACE_N_THREADS], 1);
	ck_assert_uint_eq(k->n[TRACE_N_NODES], 1);
}
END_TEST

START_TEST(that_break_the_law)
{
	struct batch b;

	begin();
	put_sample(P_A, P_F, 111 * SECOND, 110 * SECOND, 1, 0);
	put_sample(P_FG + 1, P_F, 110 * SECOND, 111 * SECOND, 1, 0);
	put_sample(P_A, P_FG + 1, 110 * SECOND, 111 * SECOND, 1, 0);
	put_sample(P_A, P_F, 110 * SECOND, 111 * SECOND, UINT32_MAX, 0xff);
	put_sample(P_A, P_F, 0, UINT64_MAX, UINT32_MAX, 0);
	drain(&lane, 120 * SECOND);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_BAD), 3);
	batch_free(&b);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
	Suite *s = suite_create("samples");
	TCase *c = tcase_create("samples");

	tcase_add_checked_fixture(c, NULL, teardown);
	tcase_add_test(c, below_their_scope);
	tcase_add_test(c, with_stacks_for_the_tree);
	tcase_add_test(c, across_its_beginning_and_end);
	tcase_add_test(c, in_a_timeline);
	tcase_add_test(c, that_break_the_law);
	suite_add_tcase(s, c);
	return s;
}
