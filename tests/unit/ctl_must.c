/* SPDX-License-Identifier: MIT. ctl_must.c: verbs that break the contract of a request
 * (request.h) end the daemon with words, each in a process of its own. */
#include "ctl_fake.h"

#include "rpc.h"

static verb_fn *verbs[WIRE_VERB_MAX];

/* Answers hello as ever, and status as the test has it. */
static void ask_status(verb_fn *broken)
{
	struct rpc_reply reply;
	char path[128];
	struct rpc *r;
	struct err e;

	memcpy(verbs, verb_table, sizeof(verbs));
	verbs[WIRE_status] = broken;
	fake_start_with(verbs);
	ck_assert_msg(rpc_open_at(fake.dir, &r, &e) == 0, "%s", e.text);
	(void)snprintf(path, sizeof(path), "%s/control.sock", fake.dir);
	(void)unlink(path); /* nobody will, later */
	(void)rmdir(fake.dir);
	(void)rpc_begin(r, "status");
	(void)rpc_call(r, 5000, &reply, &e);
	(void)pthread_join(fake_thread, NULL); /* the loop does not end by itself */
}

static void answers_twice(struct request *q)
{
	(void)request_result(q);
	request_done(q, NULL);
	(void)request_result(q);
	request_done(q, NULL);
}

static void refuses_after_answering(struct request *q)
{
	(void)request_result(q);
	request_done(q, NULL);
	request_wrong(q, "too late", "");
}

static void opens_the_result_twice(struct request *q)
{
	(void)request_result(q);
	(void)request_result(q);
}

static void *elsewhere(void *arg)
{
	struct request *q = arg;

	(void)request_result(q);
	request_done(q, NULL);
	return NULL;
}

static void answers_on_another_thread(struct request *q)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, elsewhere, q), 0);
	(void)pthread_join(t, NULL);
}

static void takes_another_for_a_request(struct request *q)
{
	static struct request none;

	(void)q;
	(void)request_of(&none);
}

static verb_fn *const broken[] = {answers_twice, refuses_after_answering, opens_the_result_twice,
	answers_on_another_thread, takes_another_for_a_request};

START_TEST(a_broken_verb_ends_the_daemon)
{
	ask_status(broken[_i]);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("ctl_must");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test_raise_signal(t, a_broken_verb_ends_the_daemon, SIGABRT, 0,
		(int)(sizeof(broken) / sizeof(broken[0])));
	suite_add_tcase(s, t);
	return s;
}
