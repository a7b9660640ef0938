/* SPDX-License-Identifier: MIT. fold_correlate.c: launches and the GPU's records of them: joined, lost, held at the end. */
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

/* --- launches against records */

struct step {
	enum { LAUNCH = 1, KERNEL, COPY, SET, DELIVERED, WAIT } what;
	uint32_t corr; /* WAIT: seconds */
	uint8_t flags;
	uint32_t name, captured; /* DELIVERED: name is pending */
	uint32_t graph_exec;
};

/* clang-format off */
#define L(corr, flags)       {LAUNCH, corr, flags, 0, 0, 0}
#define K(corr, flags, name) {KERNEL, corr, flags, name, 0, 0}
#define G                    {KERNEL, 7, GPU_FLAG_GRAPH, N_KERN, P_CAP, 0}
#define X(corr, captured)    {KERNEL, corr, GPU_FLAG_GRAPH, N_KERN, captured, 3}
#define LOOP(graph)          {KERNEL, 0, GPU_FLAG_GRAPH, N_KERN, 0, graph}
#define D(pending)           {DELIVERED, 0, 0, pending, 0, 0}
#define W(seconds)           {WAIT, seconds, 0, 0, 0, 0}
#define KERN                 "ROOT/a/b/kern", CLASS_COMPUTE
#define CAP                  "ROOT/a/b/<captured_at>/cap/kern", CLASS_COMPUTE
#define NO_LAUNCH            no_launch, CLASS_COMPUTE

static const char no_launch[] = "ROOT/(no launch)/kern";
static const struct join_case {
	const char *label;
	struct step step[8];
	const char *path;
	uint8_t class;
	uint64_t count, sum_ns, untimed, lost, matched;
} join_cases[] = {
	{"launch then kernel", {L(7, 0), K(7, 0, N_KERN)}, KERN, 1, 60, 0, 0, 1},
	{"kernel overtakes launch", {K(7, 0, N_KERN), L(7, 0)}, KERN, 1, 60, 0, 0, 1},
	{"ids do not match", {L(7, 0), K(8, 0, N_KERN), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 0},
	{"the second record of an ordinary launch has none",
		{L(7, 0), K(7, 0, N_KERN), K(7, 0, N_KERN), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 1},
	{"comm by name", {L(7, 0), K(7, 0, N_NCCL)}, "ROOT/a/b/ncclAllReduce", CLASS_COMM, 1, 60, 0, 0, 1},
	{"an op stands for its kernels", {L(7, LAUNCH_OP), K(7, 0, N_KERN)},
		"ROOT/a/op", CLASS_COMPUTE, 1, 60, 0, 0, 1},
	{"copy", {L(7, LAUNCH_COPY), {COPY, 7, 0, COPY_H2D, 0, 0}},
		"ROOT/a/b/[memcpy HtoD]", CLASS_H2D, 1, 60, 0, 0, 1},
	{"set", {L(7, LAUNCH_SET), {SET, 7, 0, 0, 0, 0}}, "ROOT/a/b/[memset]", CLASS_MEMSET, 1, 60, 0, 0, 1},
	{"untimed", {L(7, 0), K(7, GPU_FLAG_UNTIMED, N_KERN)}, KERN, 1, 0, 1, 0, 1},
	{"graph: many records", {L(7, LAUNCH_GRAPH), G, G}, CAP, 2, 120, 0, 0, 1},
	{"graph: records first", {G, G, L(7, LAUNCH_GRAPH), G}, CAP, 3, 180, 0, 0, 1},
	{"graph: captured at the root", {L(7, LAUNCH_GRAPH), {KERNEL, 7, GPU_FLAG_GRAPH, N_KERN, P_AT_ROOT, 0}},
		"ROOT/a/b/<captured_at>/kern", CLASS_COMPUTE, 1, 60, 0, 0, 1},
	{"graph: captured by nobody", {L(7, LAUNCH_GRAPH), K(7, GPU_FLAG_GRAPH, N_KERN)}, KERN, 1, 60, 0, 0, 1},
	{"graph: captured in an op", {L(7, LAUNCH_GRAPH), {KERNEL, 7, GPU_FLAG_GRAPH, N_KERN, P_OP, 0}},
		"ROOT/a/b/<captured_at>/a/op", CLASS_COMPUTE, 1, 60, 0, 0, 1},
	{"graph: passed, but not for 5 s", {L(7, LAUNCH_GRAPH), G, D(0), D(0), W(4), G}, CAP, 2, 120, 0, 0, 1},
	{"graph: passed for 5 s: what comes now has no launch",
		{L(7, LAUNCH_GRAPH), G, D(0), D(0), W(6), K(7, 0, N_KERN), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 1},
	{"a loop in a graph has the graph's launch", {L(7, LAUNCH_GRAPH), X(7, P_CAP), LOOP(3), LOOP(3)}, KERN, 2, 120, 0, 0, 1},
	{"a loop that comes first in its graph",
		{LOOP(3), LOOP(3), L(7, LAUNCH_GRAPH), X(7, P_CAP), LOOP(3)}, KERN, 3, 180, 0, 0, 1},
	{"a loop and its graph before the launch", {LOOP(3), X(7, P_CAP), LOOP(3), L(7, LAUNCH_GRAPH)}, KERN, 2, 120, 0, 0, 1},
	{"a loop of the next launch of the same graph",
		{L(7, LAUNCH_GRAPH), X(7, P_CAP), L(8, LAUNCH_GRAPH | LAUNCH_OP), X(8, 0), LOOP(3)},
		"ROOT/a/op", CLASS_COMPUTE, 2, 120, 0, 0, 2},
	{"a loop of another graph", {L(7, LAUNCH_GRAPH), X(7, P_CAP), LOOP(4), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 1},
	{"a loop of no graph", {L(7, LAUNCH_GRAPH), X(7, P_CAP), K(0, 0, N_KERN), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 1},
	{"a loop whose graph says it is an ordinary launch", {L(7, 0), X(7, 0), LOOP(3), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 1},
	{"a loop 4 s after its graph's last record", {L(7, LAUNCH_GRAPH), X(7, P_CAP), W(4), LOOP(3)}, KERN, 1, 60, 0, 0, 1},
	{"a loop after its graph's launch is forgotten",
		{L(7, LAUNCH_GRAPH), X(7, P_CAP), D(0), D(0), W(6), LOOP(3), W(6)}, NO_LAUNCH, 1, 60, 0, 0, 1},
	{"a loop that runs, given up: counted, no time", {L(7, LAUNCH_GRAPH), X(7, P_CAP),
		{KERNEL, 0, GPU_FLAG_GRAPH | GPU_FLAG_RUNNING, N_KERN, 0, 3}, W(6)}, KERN, 1, 0, 1, 0, 1},
	{"a flush left nothing, 5 s ago: lost", {L(7, 0), L(9, 0), K(9, 0, N_KERN), D(0), W(6)},
		KERN, 1, 60, 0, 1, 1},
	{"a flush left one: not lost", {L(7, 0), L(9, 0), K(9, 0, N_KERN), D(1), W(6)}, KERN, 1, 60, 0, 0, 1},
	{"the id comes round: the old one is lost", {L(7, 0), L(7, 0), K(7, 0, N_KERN)}, KERN, 1, 60, 0, 1, 1},
	{"running, then given up: counted, no time",
		{L(7, 0), K(7, GPU_FLAG_RUNNING, N_KERN), D(0), W(6)}, KERN, 1, 0, 1, 0, 1},
	{"running, then done after all: once",
		{L(7, 0), K(7, GPU_FLAG_RUNNING, N_KERN), K(7, 0, N_KERN)}, KERN, 1, 60, 0, 0, 1},
	{"running, then done, then launched: once",
		{K(7, GPU_FLAG_RUNNING, N_KERN), K(7, 0, N_KERN), L(7, 0)}, KERN, 1, 60, 0, 0, 1},
};
/* clang-format on */

static void put_step(const struct step *s, uint64_t *ns)
{
	uint32_t path = (s->flags & LAUNCH_OP) != 0 ? P_OP : P_AB;
	struct rec_kernel k = {.start = *ns + REAL_AHEAD,
		.end = *ns + 60 + REAL_AHEAD,
		.correlation = s->corr,
		.epoch = 1,
		.captured = s->captured,
		.graph_exec = s->graph_exec,
		.config = UINT32_MAX};
	struct rec_copy c = {.start = *ns + REAL_AHEAD,
		.end = *ns + 60 + REAL_AHEAD,
		.correlation = s->corr,
		.epoch = 1,
		.bytes = 4096};

	*ns += 1000;
	if (s->what == LAUNCH) {
		put_launch(&lane, path, *ns, s->corr, s->flags);
		drain(&lane, *ns);
		return;
	}
	if (s->what == KERNEL && (s->flags & GPU_FLAG_RUNNING) != 0)
		k.end = 0;
	if (s->what == KERNEL)
		lane_put(&gpu, REC_KERNEL, s->flags, s->name, &k, sizeof(k));
	else if (s->what == COPY || s->what == SET)
		lane_put(&gpu, s->what == COPY ? REC_COPY : REC_SET, s->flags, s->name, &c,
			sizeof(c));
	else if (s->what == DELIVERED)
		put_delivered(&gpu, *ns, s->name);
	if (s->what != WAIT) {
		drain(&gpu, *ns);
		return;
	}
	*ns += s->corr * SECOND;
	tape_anchor(&t, RING_CLOCK_MONOTONIC, *ns, *ns, *ns + REAL_AHEAD); /* time goes on */
	fold_take(f, &t);
}

START_TEST(join)
{
	const struct join_case *c = &join_cases[_i];
	const struct row_cell *cell;
	uint64_t ns = 20 * SECOND;
	struct batch b;
	uint32_t i;

	start(1, 10 * SECOND);
	for (i = 0; i < 8 && c->step[i].what != 0; i++)
		put_step(&c->step[i], &ns);
	b = collect();
	cell = cell_at(&b, 1, 0, c->class, c->path);
	ck_assert_msg(cell != NULL, "%s: no cell", c->label);
	ck_assert_msg(cell->count == c->count, "%s: count %lu", c->label, cell->count);
	ck_assert_msg(cell->sum_ns == c->sum_ns, "%s: sum %lu", c->label, cell->sum_ns);
	ck_assert_msg(cell->untimed == c->untimed, "%s: untimed", c->label);
	ck_assert_msg(strcmp(c->path, no_launch) == 0 ||
			      cell_at(&b, 1, 0, CLASS_COMPUTE, no_launch) == NULL,
		"%s: one more", c->label);
	ck_assert_msg(loss_of(&b, 1, LOST_LAUNCHES) == c->lost, "%s: lost", c->label);
	ck_assert_msg(b.session.row[0].matched == c->matched, "%s: matched", c->label);
	batch_free(&b);
}
END_TEST

/* The first are told apart; the others are launches without one, and none is taken for another. */
START_TEST(sizes_of_a_kernel)
{
	enum { SIZES = CONFIGS_A_NODE + 4 };
	struct ring_config config[SIZES] = {{{0}, {0}, 0, 0, 0, 0, {0}}};
	struct rec_kernel r = {.epoch = 1, .stream = 7};
	struct batch b;
	uint32_t i;

	for (i = 0; i < SIZES; i++)
		config[i].grid[0] = i + 1;
	tape_table(&t, job.ring, TABLE_CONFIGS, 0, SIZES, config, sizeof(config[0]));
	start(1, 10 * SECOND);
	for (i = 0; i < 3 * SIZES; i++) {
		put_launch(&lane, P_AB, 11 * SECOND + i, i + 1, 0);
		drain(&lane, 11 * SECOND);
		r.start = 11 * SECOND + 10 * i + REAL_AHEAD;
		r.end = r.start + 5;
		r.correlation = i + 1;
		r.config = i % SIZES;
		lane_put(&gpu, REC_KERNEL, 0, N_KERN, &r, sizeof(r));
		drain(&gpu, 11 * SECOND + 10 * i);
	}
	b = collect();
	ck_assert_uint_eq(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/b/kern")->count, 3 * SIZES);
	ck_assert_uint_eq(b.config.n, CONFIGS_A_NODE);
	for (i = 0; i < b.config.n; i++)
		ck_assert_uint_eq(b.config.row[i].count, 3);
	batch_free(&b);
}
END_TEST

START_TEST(launch_decides_the_session)
{
	struct batch b;

	start(1, 10 * SECOND);
	put_launch(&lane, P_A, 11 * SECOND, 1, 0);
	drain(&lane, 11 * SECOND);
	start(2, 12 * SECOND); /* runs in both, was launched in one */
	put_kernel(&gpu, N_KERN, 13 * SECOND, 5, 1, 0);
	drain(&gpu, 14 * SECOND);
	b = collect();
	ck_assert_ptr_nonnull(cell_at(&b, 1, 0, CLASS_COMPUTE, "ROOT/a/kern"));
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_COMPUTE, "ROOT/a/kern"));
	batch_free(&b);
}
END_TEST

/* What a flush that left nothing pending did not bring has no record; of what came behind it, CUPTI may
 * have held one. A session that ends before the process does not ask why. */
START_TEST(what_cupti_held_at_the_end)
{
	struct batch b;

	start(1, 10 * SECOND);
	start(2, 10 * SECOND);
	put_launch(&lane, P_A, 11 * SECOND, 1, 0);
	drain(&lane, 12 * SECOND);
	put_delivered(&gpu, 13 * SECOND, 0);
	drain(&gpu, 13 * SECOND);
	put_launch(&lane, P_A, 14 * SECOND, 2, 0);
	put_launch(&lane, P_A, 14 * SECOND, 3, LAUNCH_GRAPH);
	drain(&lane, 15 * SECOND);
	verb(VERB_FINALIZED, 2, 16 * SECOND);
	tape_end(&t, job.ring, 30 * SECOND, _i == 0 ? END_KILLED : END_EXITED, 0);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(loss_of(&b, 1, LOST_LAUNCHES), 1);
	ck_assert_uint_eq(loss_of(&b, 1, LOST_UNDELIVERED), 2);
	ck_assert_uint_eq(loss_of(&b, 2, LOST_LAUNCHES), 3);
	ck_assert_uint_eq(loss_of(&b, 2, LOST_UNDELIVERED), 0);
	batch_free(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_correlate");
	TCase *c = tcase_create("launches");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, join, 0, N(join_cases));
	tcase_add_test(c, sizes_of_a_kernel);
	tcase_add_test(c, launch_decides_the_session);
	tcase_add_loop_test(c, what_cupti_held_at_the_end, 0, 2);
	suite_add_tcase(s, c);
	return s;
}
