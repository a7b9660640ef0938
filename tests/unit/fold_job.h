/* SPDX-License-Identifier: MIT. fold_job.h: the job of several tests of the fold: its names and
 * paths, one lane of its own and one of the GPU's. */
#ifndef FOLD_JOB_H
#define FOLD_JOB_H

#include "fold_help.h"

/* Paths of these tests: 2 = a, 3 = a/b, 4 = a/op (an op), 5 = a/none (a state), 6 = a/none/op (an
 * op), 7 = cap, 8 = what was captured at the root. Names: 2.. in this order. */
static const char *const names[] = {"a", "b", "op", "kern", "ncclAllReduce", "m8 (inc)", "m8 (exc)",
	"tag (pty)", "job", "cap", "none"};
enum { N_A = 2, N_B, N_OP, N_KERN, N_NCCL, N_INC, N_EXC, N_PTY, N_JOB, N_CAP, N_NONE };
enum { P_A = 2, P_AB, P_OP, P_STATE, P_STATE_OP, P_CAP, P_AT_ROOT };
static const struct ring_path paths[] = {
	{PATH_ROOT, N_A, PATH_KIND_SCOPE, 1, 0},
	{P_A, N_B, PATH_KIND_SCOPE, 2, 0},
	{P_A, N_OP, PATH_KIND_OP, 2, 0},
	{P_A, N_NONE, PATH_KIND_STATE, 2, 0},
	{P_STATE, N_OP, PATH_KIND_OP, 3, 0},
	{PATH_ROOT, N_CAP, PATH_KIND_SCOPE, 1, 0},
	{PATH_ROOT, NAME_NONE, PATH_KIND_EXCEPT, 1, 0},
};

static struct fold *f;
static struct tape t;
static struct kit_process job;
static struct kit_lane lane, gpu;

HELP void setup_limits(const struct fold_limits *l)
{
	f = fold_of(l);
	job = kit_process(1);
	lane = (struct kit_lane){.lane = 0};
	gpu = (struct kit_lane){.lane = 3};
	tape_process(&t, &job);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	fold_take(f, &t);
}

HELP void setup(void)
{
	setup_limits(NULL);
}

HELP void teardown(void)
{
	tape_free(&t);
	fold_free(f);
}

HELP void start(uint8_t session, uint64_t ns)
{
	(void)tape_verb(&t, VERB_START, session, ns);
	fold_take(f, &t);
}

/* Anew, with ceilings, and recording from 10 ns on. */
HELP void start_small(const struct fold_limits *l)
{
	teardown();
	setup_limits(l);
	start(1, 10);
}

HELP void verb(uint32_t what, uint8_t session, uint64_t ns)
{
	(void)tape_verb(&t, what, session, ns);
	fold_take(f, &t);
}

HELP void drain(struct kit_lane *l, uint64_t ns)
{
	tape_lane(&t, job.ring, ns, l);
	fold_take(f, &t);
}

HELP struct batch collect(void)
{
	struct batch b = {0};

	ck_assert_int_eq(fold_collect(f, &b), 0);
	fold_seen(f, fold_round(f));
	return b;
}

/* Of an array that a loop test goes over. */
#define N(a) (int)(sizeof(a) / sizeof(a[0]))

#endif
