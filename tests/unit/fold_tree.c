/* SPDX-License-Identifier: MIT. fold_tree.c: what ends up in which cell: scopes against windows,
 * launches against records, metrics, sessions of the job and of the control socket. */
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

/* One launch, in a session of scopes and in one of Python stacks. */
/* What session 1 has of the calls and session 2, whose switch is off, has not. */
static const struct {
	uint8_t kind, class;
	const char *path;
} call_cases[] = {
	{0, CLASS_STREAM_SYNC, "ROOT/a/b/cudaStreamSynchronize"},
	{1, CLASS_EVENT_SYNC, "ROOT/a/b/cudaEventSynchronize"},
	{2, CLASS_DEVICE_SYNC, "ROOT/a/b/cudaDeviceSynchronize"},
	{3, CLASS_STREAM_WAIT, "ROOT/a/b/cudaStreamWaitEvent"},
	{4, CLASS_EVENT_RECORD, "ROOT/a/b/cudaEventRecord"},
	{5, CLASS_ALLOC, "ROOT/a/b/cudaMalloc"},
	{6, CLASS_FREE, "ROOT/a/b/cudaFree"},
	{7, CLASS_REGISTER, "ROOT/a/b/cudaHostRegister"},
};

START_TEST(calls)
{
	const uint8_t kind = call_cases[_i].kind, class = call_cases[_i].class;
	const char *path = call_cases[_i].path;
	const struct row_cell *c;
	struct batch b;

	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_SYNC;
	start(2, 10 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SYNC, WANT_SYNC);
	put_call(&lane, P_AB, 5 * SECOND, 6 * SECOND, kind);   /* before */
	put_call(&lane, P_AB, 9 * SECOND, 12 * SECOND, kind);  /* of it, 2 s */
	put_call(&lane, P_AB, 13 * SECOND, 16 * SECOND, kind); /* 3 s */
	drain(&lane, 17 * SECOND);
	tape_verb(&t, VERB_SWITCH, 1, 18 * SECOND)->switches = 0;
	put_call(&lane, P_AB, 19 * SECOND, 20 * SECOND, kind);
	drain(&lane, 21 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SYNC, 0);
	b = collect();
	c = cell_at(&b, 1, 0, class, path);
	ck_assert_msg(c != NULL && c->count == 2 && c->sum_ns == 5 * SECOND, "%s", path);
	ck_assert(c->min_ns == 2 * SECOND && c->max_ns == 3 * SECOND && c->device == UINT32_MAX);
	ck_assert_ptr_null(cell_at(&b, 2, 0, class, path));
	ck_assert_uint_eq(b.busy.n, 0);
	batch_free(&b);
}
END_TEST

/* Session 1 has every call below its name, session 2 what waits, session 3 nothing. One that failed is
 * counted twice: among all, and among those. */
START_TEST(every_call)
{
	const struct row_cell *c;
	struct batch b;

	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_API;
	tape_verb(&t, VERB_START, 2, 10 * SECOND)->switches = SWITCH_SYNC;
	start(3, 10 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SWITCHES, WANT_API | WANT_SYNC);
	put_api(&lane, P_AB, 5 * SECOND, 6 * SECOND, N_KERN, 8, CALL_API); /* before */
	put_called(&lane, P_AB, 9 * SECOND, (uint32_t)(3 * SECOND), N_KERN);
	put_api(&lane, P_AB, 13 * SECOND, 16 * SECOND, N_KERN, 8, CALL_API | CALL_FAILED);
	put_api(&lane, P_AB, 16 * SECOND, 17 * SECOND, N_KERN, 0, CALL_API);
	put_api(&lane, P_AB, 16 * SECOND, 17 * SECOND, NAME_NONE, 8, CALL_API);
	put_call(&lane, P_AB, 16 * SECOND, 17 * SECOND, 0); /* with sync alone */
	put_api(&lane, P_AB, 16 * SECOND, 17 * SECOND, N_KERN, 5, CALL_API | CALL_ONLY_MEMORY);
	put_memory_call(&lane, P_AB, 16 * SECOND, 17 * SECOND, 9); /* with alloc alone */
	drain(&lane, 18 * SECOND);
	tape_verb(&t, VERB_SWITCH, 1, 18 * SECOND)->switches = 0;
	put_api(&lane, P_AB, 19 * SECOND, 20 * SECOND, N_KERN, 8, CALL_API);
	drain(&lane, 21 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_API, 0);
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_API, "ROOT/a/b/kern");
	ck_assert(c != NULL && c->count == 4 && c->sum_ns == 7 * SECOND);
	c = cell_at(&b, 1, 0, CLASS_API_ERROR, "ROOT/a/b/kern");
	ck_assert(c != NULL && c->count == 1 && c->sum_ns == 3 * SECOND);
	c = cell_at(&b, 1, 0, CLASS_API, "ROOT/a/b/[call]");
	ck_assert(c != NULL && c->count == 1);
	ck_assert_ptr_null(cell_at(&b, 1, 0, CLASS_STREAM_SYNC, "ROOT/a/b/cudaStreamSynchronize"));
	c = cell_at(&b, 2, 0, CLASS_STREAM_SYNC, "ROOT/a/b/cudaStreamSynchronize");
	ck_assert(c != NULL && c->count == 2);
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_API, "ROOT/a/b/kern"));
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_ALLOC, "ROOT/a/b/cudaMalloc"));
	ck_assert_ptr_null(cell_at(&b, 3, 0, CLASS_API, "ROOT/a/b/kern"));
	batch_free(&b);
}
END_TEST

/* A copy's call waited if the memory was not pinned, or the call is one that does. */
static const struct {
	uint8_t launch, record;
	bool waited;
} copy_calls[] = {
	{LAUNCH_COPY | LAUNCH_TIMED, 0, false},
	{LAUNCH_COPY | LAUNCH_TIMED, GPU_FLAG_PAGED, true},
	{LAUNCH_COPY | LAUNCH_TIMED | LAUNCH_BLOCKS, 0, true},
	{LAUNCH_COPY | LAUNCH_BLOCKS, GPU_FLAG_PAGED, false},
};

START_TEST(copies_that_wait)
{
	struct rec_launch l = {.clock = 11 * SECOND, .correlation = 1, .epoch = 1, .name = 1000};
	struct rec_copy r = {.start = 12 * SECOND + REAL_AHEAD,
		.end = 12 * SECOND + 60 + REAL_AHEAD,
		.correlation = 1,
		.epoch = 1,
		.bytes = 64};
	const struct row_cell *c;
	struct batch b;
	bool first;

	if ((copy_calls[_i].launch & LAUNCH_TIMED) == 0)
		l.name = NAME_NONE;
	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_SYNC;
	start(2, 10 * SECOND);
	for (first = false;; first = true) { /* the record before its launch, and behind it */
		if (first)
			lane_put(&lane, REC_LAUNCH, copy_calls[_i].launch, P_A, &l, sizeof(l));
		drain(&lane, 13 * SECOND);
		lane_put(&gpu, REC_COPY, copy_calls[_i].record, COPY_D2H, &r, sizeof(r));
		drain(&gpu, 13 * SECOND);
		if (!first)
			lane_put(&lane, REC_LAUNCH, copy_calls[_i].launch, P_A, &l, sizeof(l));
		drain(&lane, 13 * SECOND);
		l.correlation = ++r.correlation;
		if (first)
			break;
	}
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_COPY_WAIT, "ROOT/a/cudaMemcpy");
	ck_assert_int_eq(c != NULL, copy_calls[_i].waited);
	if (c != NULL)
		ck_assert(c->count == 2 && c->sum_ns == 2ull * 1000 * LAUNCH_UNIT);
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_COPY_WAIT, "ROOT/a/cudaMemcpy"));
	ck_assert_uint_eq(cell_at(&b, 2, 0, CLASS_D2H, "ROOT/a/[memcpy DtoH]")->count, 2);
	batch_free(&b);
}
END_TEST

static void put_ended(uint64_t begin, uint64_t end, uint32_t corr)
{
	put_launch_ended(&lane, P_AB, begin, end, corr, 0);
	drain(&lane, 13 * SECOND);
}

/* The kernel before its launch's record or behind it, before its call is back or after. */
static const struct {
	bool behind;
	uint64_t start, delay;
} delays[] = {
	{true, 12 * SECOND + 700, 500},
	{false, 12 * SECOND + 700, 500},
	{true, 12 * SECOND + 100, 0},
};

START_TEST(launches_and_their_delays)
{
	const struct row_cell *c;
	struct batch b;

	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_QUEUE;
	start(2, 10 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SWITCHES, WANT_QUEUE);
	if (delays[_i].behind)
		put_ended(12 * SECOND, 12 * SECOND + 200, 5);
	put_kernel(&gpu, N_KERN, delays[_i].start, 50, 5, 0);
	drain(&gpu, 13 * SECOND);
	if (!delays[_i].behind)
		put_ended(12 * SECOND, 12 * SECOND + 200, 5);
	put_ended(12 * SECOND + 300, 12 * SECOND + 900, 6); /* its kernel never comes */
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_LAUNCH, "ROOT/a/b/[launch]");
	ck_assert(c != NULL && c->count == 2 && c->sum_ns == 800 && c->min_ns == 200);
	c = cell_at(&b, 1, 0, CLASS_LAUNCH_DELAY, "ROOT/a/b/[launch delay]");
	ck_assert(c != NULL && c->count == 1 && c->sum_ns == delays[_i].delay);
	ck_assert_uint_eq(f->session[0]->part[0]->counted[NOTE_EARLY], delays[_i].delay == 0);
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_LAUNCH, "ROOT/a/b/[launch]"));
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_LAUNCH_DELAY, "ROOT/a/b/[launch delay]"));
	batch_free(&b);
}
END_TEST

/* By its call's scope where that is in flight, else the program's; of the session's time only. */
START_TEST(overhead)
{
	const struct row_cell *c;
	struct batch b;
	uint32_t corr;

	tape_verb(&t, VERB_START, 1, 10 * SECOND)->switches = SWITCH_OVERHEAD;
	start(2, 10 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring) & WANT_SWITCHES, WANT_OVERHEAD);
	put_launch(&lane, P_AB, 11 * SECOND, 5, 0);
	drain(&lane, 13 * SECOND);
	for (corr = 0; corr < 7; corr++)
		put_overhead(&gpu, 6, 12 * SECOND, 70, corr);
	put_overhead(&gpu, 0, 12 * SECOND, 70, 0);
	put_overhead(&gpu, 0, 9 * SECOND, 0, 0);   /* before it */
	put_overhead(&gpu, 2, 12 * SECOND, 30, 8); /* before its launch is known */
	drain(&gpu, 13 * SECOND);
	put_launch(&lane, P_A, 11 * SECOND, 8, 0);
	drain(&lane, 13 * SECOND);
	put_scope(&lane, P_A, 14 * SECOND, 15 * SECOND);
	drain(&lane, 30 * SECOND); /* no launch comes to the others */
	b = collect();
	c = cell_at(&b, 1, 0, CLASS_BUFFER_FLUSH, "ROOT/a/[buffer flush]");
	ck_assert(c != NULL && c->count == 1 && c->sum_ns == 30);
	c = cell_at(&b, 1, 0, CLASS_LAZY_LOAD, "ROOT/a/b/[lazy load]");
	ck_assert(c != NULL && c->count == 1 && c->sum_ns == 70);
	c = cell_at(&b, 1, 0, CLASS_LAZY_LOAD, "ROOT/[lazy load]");
	ck_assert(c != NULL && c->count == 6 && c->sum_ns == 420);
	c = cell_at(&b, 1, 0, CLASS_OVERHEAD, "ROOT/[overhead]");
	ck_assert(c != NULL && c->count == 1 && c->sum_ns == 70);
	ck_assert_ptr_null(cell_at(&b, 2, 0, CLASS_LAZY_LOAD, "ROOT/[lazy load]"));
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

/* --- what a job is asked for */

static const struct want_case {
	const char *label;
	uint8_t cpu, gpu, context;
	const char *backend;
	uint32_t want;
} want_cases[] = {
	{"all", 0, 0, 0, "", WANT_SCOPES | WANT_METRICS | WANT_CPU_TIME | WANT_GPU},
	{"cpu off", 1, 0, 0, "cupti", WANT_SCOPES | WANT_METRICS | WANT_GPU},
	{"no backend", 0, 0, 0, "none", WANT_SCOPES | WANT_METRICS | WANT_CPU_TIME},
	{"armed", 0, 1, 0, "", WANT_SCOPES | WANT_METRICS | WANT_CPU_TIME | WANT_GPU_ARMED},
	{"auto", 0, 2, 0, "", WANT_SCOPES | WANT_METRICS | WANT_CPU_TIME},
	{"python", 0, 2, 1, "", WANT_SCOPES | WANT_METRICS | WANT_CPU_TIME | WANT_PYTHON},
};

START_TEST(wants)
{
	const struct want_case *c = &want_cases[_i];
	struct j_verb *v = tape_verb(&t, VERB_START, 1, 10 * SECOND);

	v->cpu = c->cpu;
	v->gpu = c->gpu;
	v->context = c->context;
	(void)snprintf(v->backend, sizeof(v->backend), "%s", c->backend);
	fold_take(f, &t);
	ck_assert_msg(
		fold_want(f, job.ring) == c->want, "%s: %x", c->label, fold_want(f, job.ring));
	verb(VERB_DEACTIVATE, 1, 11 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring), 0);
}
END_TEST

START_TEST(gpu_stays_on_for_what_is_in_flight)
{
	const uint8_t uuid[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	start(1, 10 * SECOND);
	put_launch(&lane, P_A, 11 * SECOND, 1, 0);
	drain(&lane, 11 * SECOND);
	verb(VERB_FINALIZE, 1, 12 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring), WANT_GPU);
	ck_assert(!fold_is_settled(f, uuid));
	put_kernel(&gpu, N_KERN, 13 * SECOND, 5, 1, 0);
	drain(&gpu, 14 * SECOND);
	ck_assert_uint_eq(fold_want(f, job.ring), 0);
	ck_assert(fold_is_settled(f, uuid));
}
END_TEST

/* A graph launch has as many records as it has: two more flushes say that it has them all, or the
 * end of the recording. */
START_TEST(graph_is_complete_when_the_gpu_goes_off)
{
	const uint8_t uuid[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

	start(1, 10 * SECOND);
	put_launch(&lane, P_A, 11 * SECOND, 1, LAUNCH_GRAPH);
	drain(&lane, 11 * SECOND);
	put_gpu_state(&gpu, 10 * SECOND, GPU_ON);
	put_kernel(&gpu, N_KERN, 11 * SECOND, 5, 1, GPU_FLAG_GRAPH);
	drain(&gpu, 12 * SECOND);
	verb(VERB_FINALIZE, 1, 12 * SECOND);
	ck_assert(!fold_is_settled(f, uuid));
	if (_i == 0) {
		put_gpu_state(&gpu, 12 * SECOND, GPU_NONE);
	} else {
		put_delivered(&gpu, 12 * SECOND, 0);
		put_delivered(&gpu, 12 * SECOND + 1, 0);
	}
	drain(&gpu, 13 * SECOND);
	ck_assert(fold_is_settled(f, uuid));
}
END_TEST

/* --- membership */

static const struct match_case {
	const char *label;
	uint32_t match, uid, pid;
	uint8_t fill; /* of ring and token */
	const char *command;
	bool in;
} match_cases[] = {
	{"all of the user", MATCH_USER, UID, 0, 0, "", true},
	{"all of another user", MATCH_USER, 7, 0, 0, "", false},
	{"root sees all", MATCH_USER, 0, 0, 0, "", true},
	{"pid", MATCH_PID, UID, 101, 0, "", true},
	{"another pid", MATCH_PID, UID, 102, 0, "", false},
	{"another user's pid", MATCH_PID, 7, 101, 0, "", false},
	{"nor with root's job of it", MATCH_PID, 0, 101, 0, "", false},
	{"pid 0 is nobody's", MATCH_PID, UID, 0, 0, "", false},
	{"token", MATCH_TOKEN, UID, 0, 0, "", false},
	{"ring", MATCH_RING, UID, 0, 1, "", true},
	{"another ring", MATCH_RING, UID, 0, 2, "", false},
	{"command", MATCH_COMMAND, UID, 0, 0, "*train*", true},
	{"another command", MATCH_COMMAND, UID, 0, 0, "train*", false},
	{"no such kind", 99, UID, 0, 0, "", false},
};

START_TEST(membership)
{
	const struct match_case *c = &match_cases[_i];
	struct j_verb *v = tape_verb(&t, VERB_START, 1, 10 * SECOND);
	uint8_t uuid[16];
	bool early, late;
	struct kit_process again = job;

	v->match = (uint8_t)c->match;
	v->uid = c->uid;
	v->pid = c->pid;
	memset(v->ring, c->fill, 16);
	(void)snprintf(v->command, sizeof(v->command), "%s", c->command);
	memset(uuid, 1, 16);
	fold_play(f, &t, 0, 1);
	early = fold_is_member(f, uuid, job.ring);
	fold_free(f); /* the same with the session there first */
	f = fold_of(NULL);
	tape_process(&t, &again);
	fold_take(f, &t);
	late = fold_is_member(f, uuid, job.ring);
	ck_assert_msg(early == c->in, "%s", c->label);
	ck_assert_msg(late == c->in, "%s: process after session", c->label);
}
END_TEST

static void ids_of(void *arg, const struct fold_process *p)
{
	int64_t *id = arg, none[1];
	const uint32_t n = fold_sessions_of(p, UID, id, 4);

	ck_assert_uint_eq(fold_sessions_of(p, -1, id, 4), n);
	ck_assert_uint_eq(fold_sessions_of(p, UID + 1, none, 1), 0);
	ck_assert_uint_eq(fold_sessions_of(p, -1, none, 1), n > 0);
	id[n] = 0;
}

START_TEST(a_process_knows_its_sessions)
{
	int64_t id[5];

	start(1, 10);
	start(2, 20);
	start(3, 30);
	fold_each_process(f, ids_of, id);
	ck_assert(id[0] == 1 && id[1] == 2 && id[2] == 3 && id[3] == 0);
	verb(VERB_DELETE, 2, 40);
	fold_each_process(f, ids_of, id);
	ck_assert(id[0] == 1 && id[1] == 3 && id[2] == 0);
	start(4, 50);
	verb(VERB_DELETE, 1, 60);
	verb(VERB_DELETE, 4, 70);
	fold_each_process(f, ids_of, id);
	ck_assert(id[0] == 3 && id[1] == 0);
}
END_TEST

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
	tcase_add_loop_test(c, join, 0, N(join_cases));
	tcase_add_test(c, sizes_of_a_kernel);
	tcase_add_test(c, launch_decides_the_session);
	tcase_add_test(c, every_call);
	tcase_add_loop_test(c, calls, 0, sizeof(call_cases) / sizeof(call_cases[0]));
	tcase_add_loop_test(c, copies_that_wait, 0, sizeof(copy_calls) / sizeof(copy_calls[0]));
	tcase_add_loop_test(c, launches_and_their_delays, 0, sizeof(delays) / sizeof(delays[0]));
	tcase_add_test(c, overhead);
	tcase_add_loop_test(c, python_stacks, 0, sizeof(python_cases) / sizeof(python_cases[0]));
	tcase_add_loop_test(c, what_cupti_held_at_the_end, 0, 2);
	tcase_add_test(c, end_closes_everything);
	tcase_add_test(c, job_session_is_exact);
	tcase_add_test(c, session_of_another_lane_is_known);
	tcase_add_loop_test(c, wants, 0, N(want_cases));
	tcase_add_test(c, gpu_stays_on_for_what_is_in_flight);
	tcase_add_loop_test(c, graph_is_complete_when_the_gpu_goes_off, 0, 2);
	tcase_add_loop_test(c, membership, 0, N(match_cases));
	tcase_add_test(c, a_process_knows_its_sessions);
	tcase_add_test(c, metrics);
	tcase_add_loop_test(c, captured_numbers, 0, 2);
	tcase_add_test(c, captured_while_inactive);
	tcase_add_test(c, bad_numbers_of_a_capture);
	suite_add_tcase(s, c);
	return s;
}
