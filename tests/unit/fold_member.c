/* SPDX-License-Identifier: MIT. fold_member.c: what a job is asked for, and which jobs are in a session. */
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

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

Suite *suite(void)
{
	Suite *s = suite_create("fold_member");
	TCase *c = tcase_create("members");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, wants, 0, N(want_cases));
	tcase_add_test(c, gpu_stays_on_for_what_is_in_flight);
	tcase_add_loop_test(c, graph_is_complete_when_the_gpu_goes_off, 0, 2);
	tcase_add_loop_test(c, membership, 0, N(match_cases));
	tcase_add_test(c, a_process_knows_its_sessions);
	suite_add_tcase(s, c);
	return s;
}
