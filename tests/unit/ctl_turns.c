/* SPDX-License-Identifier: MIT. ctl_turns.c: whose request is next: users in turn, their clients in
 * turn, a slice of time for all, and no request in the middle of another's answer. */
#include "quick.h"

#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "host_clock.h"

#define CLIENTS 8
#define RAN_MAX 64u

static uv_loop_t loop;
static struct clients all;
static verb_fn *verbs[WIRE_VERB_MAX];
static int end[CLIENTS]; /* ours, by who.pid */
static uint32_t ran[RAN_MAX], n_ran, n_kept;
static struct request *kept[RAN_MAX];
static uint64_t now_ns, costs_ns;
static uint32_t n_ticks, ran_at; /* the last one did */

/* Time passes where a request takes some. */
uint64_t mono_ns(void)
{
	return now_ns;
}

static void answer(struct request *q)
{
	ck_assert_uint_lt(n_ran, RAN_MAX);
	ran[n_ran++] = q->who.pid;
	ran_at = n_ticks;
	now_ns += costs_ns;
	(void)request_result(q);
	request_done(q, NULL);
}

static void keep(struct request *q)
{
	ck_assert_uint_lt(n_kept, RAN_MAX);
	kept[n_kept++] = q;
}

static void on_gone(struct clients *c)
{
	(void)c;
}

static void setup(void)
{
	int i;

	verbs[WIRE_hello] = verbs[WIRE_status] = answer;
	verbs[WIRE_sync] = keep;
	now_ns = costs_ns = n_ran = n_kept = 0;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	all = (struct clients){
		.loop = &loop, .verbs = verbs, .gone = on_gone, .fair.share = {RAN_MAX, RAN_MAX}};
	(void)uv_idle_init(&loop, &all.serve);
	for (i = 0; i < CLIENTS; i++)
		end[i] = -1;
}

static void teardown(void)
{
	int i;

	clients_close(&all);
	uv_close((uv_handle_t *)&all.serve, NULL);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_uint_eq(all.n, 0);
	ck_assert_ptr_null(all.fair.first);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	for (i = 0; i < CLIENTS; i++)
		if (end[i] >= 0)
			(void)close(end[i]);
}

static void say(int client, const char *method, int times)
{
	struct wire_buf b;

	for (; times > 0; times--) {
		wire_buf_init(&b, WIRE_REQUEST_MAX);
		wire_request(&b, 1, method);
		wire_map(&b);
		wire_close(&b);
		ck_assert_int_eq(wire_frame_end(&b), 0);
		ck_assert_int_eq(write(end[client], b.bytes, b.n), (ssize_t)b.n);
		wire_buf_free(&b);
	}
}

/* It has said hello. */
static void client(int number, uint32_t uid)
{
	const struct asker who = {.uid = uid, .pid = (uint32_t)number};
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	ck_assert_int_eq(client_new(&all, pair[0], &who), 0);
	end[number] = pair[1];
	say(number, "hello", 1);
	while (n_ran == 0)
		(void)uv_run(&loop, UV_RUN_ONCE);
	n_ran = 0;
}

static void run(uint32_t n)
{
	while (n_ran < n)
		(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(n_ran, n);
}

/* Three clients of one user with four requests each, and one of another with three. */
START_TEST(users_take_turns)
{
	uint32_t i, of_one[3] = {0};

	for (i = 0; i < 3; i++)
		client((int)i, 1000);
	client(3, 2000);
	ck_assert_uint_eq(fair_count(&all.fair, 1000), 3);
	ck_assert_uint_eq(fair_count(&all.fair, 3000), 0);
	for (i = 0; i < 3; i++)
		say((int)i, "status", 4);
	say(3, "status", 3);
	run(15);
	for (i = 0; i < 6; i += 2) /* either may be first */
		ck_assert_int_ne(ran[i] == 3, ran[i + 1] == 3);
	for (i = 0; i < 6; i++)
		of_one[ran[i] % 3] += ran[i] != 3;
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(of_one[i], 1);
	for (i = 6; i < 15; i += 3) { /* and so on, among those of the first */
		ck_assert_uint_ne(ran[i], ran[i + 1]);
		ck_assert_uint_ne(ran[i], ran[i + 2]);
		ck_assert_uint_ne(ran[i + 1], ran[i + 2]);
	}
}
END_TEST

START_TEST(a_turn_of_the_loop_is_for_a_slice_of_them)
{
	uint32_t before;

	client(0, 1000);
	say(0, "status", 9);
	costs_ns = 400000;
	while (n_ran == 0)
		(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(n_ran, 3); /* the third went over a millisecond */
	costs_ns = 50000000;
	for (before = n_ran; before < 9; before++) {
		ck_assert_uint_eq(n_ran, before);
		(void)uv_run(&loop, UV_RUN_ONCE); /* at least one */
	}
	ck_assert_uint_eq(n_ran, 9);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_NOWAIT), 1); /* the client's */
	ck_assert(!uv_is_active((uv_handle_t *)&all.serve));
}
END_TEST

/* As turn.c has it: another one at once. */
static void tick(uv_idle_t *h)
{
	n_ticks++;
	(void)uv_idle_stop(h);
	(void)uv_idle_start(h, tick);
}

/* One user's requests never end, and the rings' work does not either. */
START_TEST(a_request_does_not_wait_for_a_tick)
{
	static uv_idle_t rings; /* closed with the loop */
	uint32_t heard;

	client(0, 1000);
	client(1, 2000);
	say(0, "status", 9);
	costs_ns = 50000000;
	(void)uv_idle_init(&loop, &rings);
	(void)uv_idle_start(&rings, tick);
	while (n_ran < 2)
		(void)uv_run(&loop, UV_RUN_NOWAIT);
	say(1, "status", 1);
	(void)uv_run(&loop, UV_RUN_NOWAIT); /* it is heard at the end of that */
	heard = n_ticks;
	while (ran[n_ran - 1] != 1)
		(void)uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_eq(ran_at, heard);
	uv_close((uv_handle_t *)&rings, NULL);
}
END_TEST

/* Sixteen are under way and three wait behind them. */
START_TEST(an_answer_runs_no_request)
{
	client(0, 1000);
	say(0, "sync", 16);
	say(0, "status", 3);
	while (n_kept < 16)
		(void)uv_run(&loop, UV_RUN_ONCE);
	(void)uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_eq(n_ran, 0);
	(void)request_result(kept[0]);
	request_done(kept[0], NULL);
	ck_assert_uint_eq(n_ran, 0);
	run(3);
	for (; n_kept > 1; n_kept--)
		request_wrong(kept[n_kept - 1], "enough", "");
}
END_TEST

START_TEST(whoever_leaves_while_he_waits_takes_his_requests_along)
{
	client(0, 1000);
	client(1, 1000);
	client(2, 2000);
	say(0, "status", 2);
	say(1, "status", 2);
	costs_ns = 50000000;
	(void)uv_run(&loop, UV_RUN_ONCE); /* both wait */
	ck_assert_uint_eq(n_ran, 0);
	(void)close(end[0]);
	(void)close(end[1]);
	end[0] = end[1] = -1;
	say(2, "status", 2);
	while (all.n > 1)
		(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(fair_count(&all.fair, 1000), 0);
	while (n_ran == 0 || ran[n_ran - 1] != 2)
		(void)uv_run(&loop, UV_RUN_ONCE);
	ck_assert_uint_eq(fair_count(&all.fair, 2000), 1);
}
END_TEST

/* A quarter of eight. */
START_TEST(a_user_begins_no_more_than_his_share)
{
	all.fair.share = share_of(8, false);
	client(0, 1000);
	client(1, 1000);
	client(2, 2000);
	say(0, "sync", 2);
	while (n_kept < 2)
		(void)uv_run(&loop, UV_RUN_ONCE);
	(void)close(end[0]);
	end[0] = -1;
	while (all.n > 2)
		(void)uv_run(&loop, UV_RUN_ONCE);
	say(1, "status", 2); /* what he who left has begun is the user's still */
	say(2, "status", 3);
	run(3);
	(void)uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_eq(n_ran, 3);
	ck_assert_int_eq(ran[0] == 2 && ran[1] == 2 && ran[2] == 2, true);
	request_wrong(kept[0], "enough", "");
	run(5);
	request_wrong(kept[1], "enough", "");
	ck_assert_uint_eq(all.fair.begun, 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("ctl_turns");
	TCase *t = tcase_create("turns");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, users_take_turns);
	tcase_add_test(t, a_request_does_not_wait_for_a_tick);
	tcase_add_test(t, a_turn_of_the_loop_is_for_a_slice_of_them);
	tcase_add_test(t, an_answer_runs_no_request);
	tcase_add_test(t, a_user_begins_no_more_than_his_share);
	tcase_add_test(t, whoever_leaves_while_he_waits_takes_his_requests_along);
	return s;
}
