/* SPDX-License-Identifier: MIT. job_worker.c: tests of the agent's own thread: what it asks of a backend, and its lane.
 */
#include "lane_world.h"

static struct {
	_Atomic uint32_t starts, stops, flushes, forced, drains, waits;
	_Atomic uint64_t pending, launched;
	int fail;
	bool armed, take, refuses, exits;
	uint32_t given;
} b;

static int b_probe(struct backend_status *ret, struct backend_error *e)
{
	(void)e;
	*ret = (struct backend_status){.gpu = {.library_version = 26}};
	return 0;
}

static int b_start(bool armed, bool take, struct backend_error *e)
{
	b.starts++;
	b.take = take;
	b.armed = armed;
	if (b.fail != 0)
		*e = (struct backend_error){999, "no driver"};
	return b.fail;
}

static uint64_t b_flush(bool force)
{
	const struct rec_kernel k = {.hdr = REC_HDR(sizeof(k), REC_KERNEL, 0, 0, 0)};
	uint64_t n = 0;

	b.flushes++;
	b.forced += force;
	while (b.pending > 0 && n < 100 && agent_put_wait(&k, sizeof(k))) {
		b.pending--;
		n++;
	}
	return n;
}

static uint64_t b_stuck_flush(bool force)
{
	b.flushes++;
	b.forced += force;
	return 0;
}

static uint64_t b_pending(void)
{
	return b.pending;
}

static int b_stop(bool finalize, bool *ret_residual)
{
	b.stops++;
	*ret_residual = !finalize;
	return 0;
}

static bool b_give_back(void)
{
	b.given++;
	return !b.refuses;
}

static bool b_exit(uint32_t timeout_ms)
{
	(void)timeout_ms;
	return b.exits;
}

static uint64_t b_drain(void)
{
	b.drains++;
	return 0;
}

static struct backend b_table = {.term = &backend_terms[BACKEND_cupti],
	.probe = b_probe,
	.start = b_start,
	.flush = b_flush,
	.drain = b_drain,
	.pending = b_pending,
	.stop = b_stop,
	.give_back = b_give_back,
	.exit = b_exit};

static void backend_ready(void)
{
	A = t_new("a");
	t_open(&small, true);
	core.backend = &b_table;
}

START_TEST(gpu_states)
{
	backend_ready();
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_ARMED), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_ARMED);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_ON);
	ck_assert(!b.armed);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0); /* idempotent */
	ck_assert_uint_eq(b.starts, 2);
	b.pending = 250;
	ck_assert_int_eq(t_e->flush(5000), 0);
	ck_assert_uint_eq(b.pending, 0);
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_RESIDUAL);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_PAUSE), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_NONE);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_KERNEL], 250);
	ck_assert_uint_ge(t_v.n[REC_DELIVERED], 3);
	ck_assert_uint_eq(t_v.n[REC_GPU], 4);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

/* A pause by the process itself lets go at once and gives the cost back after; a resume may take.
 */
START_TEST(gpu_hints)
{
	backend_ready();
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert(!b.take);
	t_e->gpu_give_back(); /* nothing is paused */
	ck_assert_uint_eq(b.given, 0);
	t_e->gpu_hint(GPU_HINT_ASIDE);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU | WANT_GPU_PAUSE), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_RESIDUAL);
	b.refuses = true;
	t_e->gpu_give_back();
	ck_assert_uint_eq(t_gpu.state, GPU_RESIDUAL);
	b.refuses = false;
	t_e->gpu_give_back();
	ck_assert_uint_eq(t_gpu.state, GPU_NONE);
	ck_assert_uint_eq(b.given, 2);
	t_e->gpu_hint(GPU_HINT_TAKE);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert(b.take);
	t_e->gpu_hint(0);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_PAUSE), 0); /* the daemon's: all at once */
	ck_assert_uint_eq(t_gpu.state, GPU_NONE);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert(!b.take); /* it was for once */
}
END_TEST

START_TEST(gpu_that_cannot_start)
{
	backend_ready();
	b.fail = -ENODEV;
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(t_gpu.state, GPU_FAILED);
	ck_assert_int_eq(t_gpu.code, 999);
	ck_assert_str_eq(t_gpu.text, "no driver");
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(b.starts, 1); /* not again and again */
	pairs(3);
	balance(3);
}
END_TEST

START_TEST(one_forced_flush_in_a_stall)
{
	backend_ready();
	b_table.flush = b_stuck_flush;
	b.pending = 1;
	core.flush_ms = 2;
	core.stall_ms = 50;
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(400), -ETIMEDOUT);
	ck_assert_uint_gt(b.flushes, 20);
	ck_assert_uint_eq(b.forced, 1);
}
END_TEST

/* As fast as records come, others launch. */
static uint64_t b_racing_flush(bool force)
{
	b.flushes++;
	b.forced += force;
	b.launched += 2;
	return 2;
}

static uint64_t b_launched(void)
{
	return b.launched;
}

START_TEST(a_flush_waits_for_what_was_launched_before_it)
{
	backend_ready();
	b_table.flush = b_racing_flush;
	b_table.launched = b_launched;
	b.pending = 5; /* for ever */
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(5000), 0);
	ck_assert_uint_ge(b.flushes, 3);
}
END_TEST

START_TEST(a_ring_drains)
{
	uint32_t flushes, drains;

	backend_ready();
	core.flush_ms = 3600000;
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(1000), 0); /* one flush is over, the next is far */
	drains = b.drains; /* a ring of flush() may be answered after the flush */
	agent_ring();
	ck_assert_int_eq(
		t_e->flush(1000), 0); /* which runs after the ring was answered, or with it */
	flushes = b.flushes;
	for (int i = 0; i < 1000 && b.drains == drains; i++) {
		agent_ring();
		agent_wait(&core.flush_done, atomic_load(&core.flush_done), 10);
	}
	ck_assert_uint_gt(b.drains, drains);
	ck_assert_uint_le(b.flushes, flushes + 1);
}
END_TEST

/* Then the daemon, which this is here, makes room. */
static void b_waits(void)
{
	b.waits++;
	(void)view_walk(&t_v, NULL, NULL);
}

START_TEST(the_backend_knows_that_a_record_waits)
{
	backend_ready();
	b_table.waits = b_waits;
	b.pending = 5000; /* a lane is full of 1 024 */
	ck_assert_int_eq(t_e->want(WANT_GPU), 0);
	while (b.pending > 0)
		ck_assert_int_eq(t_e->flush(10000), 0);
	ck_assert_uint_ge(b.waits, 3);
	(void)view_walk(&t_v, NULL, NULL);
	ck_assert_uint_eq(t_v.n[REC_KERNEL], 5000);
	ck_assert_uint_eq(view_dropped(&t_v), 0);
}
END_TEST

static void all_delivered_fn(void *arg, const struct view *v, uint32_t at, const uint64_t *rec)
{
	const struct rec_delivered *r = (const void *)rec;

	(void)v;
	(void)at;
	*(uint32_t *)arg += REC_TYPE(*rec) == REC_DELIVERED && r->pending == 0;
}

/* Where the last flush came back, it says that nothing is pending any more. */
START_TEST(the_exit_handler_ends)
{
	uint32_t all = 0;

	backend_ready();
	core.flush_ms = 3600000;
	b.exits = _i != 0;
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_int_eq(t_e->flush(1000), 0); /* one flush is over, the next is far */
	b.pending = 5;
	t_enter(A);
	(void)view_walk(&t_v, NULL, NULL);
	(*t_e->exit)();
	(void)view_walk(&t_v, all_delivered_fn, &all);
	ck_assert_uint_eq(all, b.exits);
	t_exit(); /* after the end: nothing, and no harm */
	t_enter(A);
	t_exit();
	ck_assert_int_eq(t_e->want(WANT_ALL), -ESHUTDOWN);
	balance(0);
}
END_TEST

static void worker(TCase *c)
{
	tcase_add_test(c, gpu_states);
	tcase_add_test(c, gpu_hints);
	tcase_add_test(c, gpu_that_cannot_start);
	tcase_add_test(c, one_forced_flush_in_a_stall);
	tcase_add_test(c, a_flush_waits_for_what_was_launched_before_it);
	tcase_add_test(c, a_ring_drains);
	tcase_add_test(c, the_backend_knows_that_a_record_waits);
	tcase_add_loop_test(c, the_exit_handler_ends, 0, 2);
}

Suite *suite(void)
{
	void (*const all[])(TCase *) = {worker, NULL};

	return t_suite("job_worker", all);
}
