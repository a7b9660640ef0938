/* SPDX-License-Identifier: MIT. fold_calls.c: calls of the vendor's library, their waits, and what launches took. */
#include "part.h"
#include "session.h"
#include "state.h"

#include "fold_job.h"

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

Suite *suite(void)
{
	Suite *s = suite_create("fold_calls");
	TCase *c = tcase_create("calls");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, calls, 0, sizeof(call_cases) / sizeof(call_cases[0]));
	tcase_add_test(c, every_call);
	tcase_add_loop_test(c, copies_that_wait, 0, sizeof(copy_calls) / sizeof(copy_calls[0]));
	tcase_add_loop_test(c, launches_and_their_delays, 0, sizeof(delays) / sizeof(delays[0]));
	tcase_add_test(c, overhead);
	suite_add_tcase(s, c);
	return s;
}
