/* SPDX-License-Identifier: MIT. fold_timeline.c: what of a timeline is kept: chunks that are full,
 * the one that grows, ceilings of size, of age and of what waits, and going on after a restart. */
#include "engine.h"
#include "process.h"
#include "state.h"
#include "trace.h"

#include "fold_job.h"

#define CHUNK ((uint32_t)TRACE_EVENTS_MAX)

static uint64_t at;

static void begin(void)
{
	struct j_verb *v = tape_verb(&t, VERB_START, 1, 10 * SECOND);

	v->data = SESSION_TRACE;
	fold_take(f, &t);
	at = 20 * SECOND;
}

/* n scopes, one after the other. */
static void scopes(uint32_t n)
{
	for (; n > 0; n--) {
		put_scope(&lane, P_AB, at, at + 10);
		at += 20;
		if (lane.n > 30000)
			drain(&lane, at);
	}
	drain(&lane, at);
}

static const struct row_trace *row(const struct batch *b, uint32_t number)
{
	const struct row_trace *found = NULL;
	uint32_t i;

	for (i = 0; i < b->trace.n; i++) {
		if (b->trace.row[i].number != number)
			continue;
		ck_assert_ptr_null(found);
		found = &b->trace.row[i];
	}
	ck_assert_msg(found != NULL, "no row of chunk %u", number);
	return found;
}

static void is_chunk(const struct row_trace *r, uint64_t first, uint32_t events, bool kept)
{
	struct trace_chunk c;
	struct err e;

	ck_assert_uint_eq(r->first, first);
	ck_assert_uint_eq(r->events, events);
	ck_assert_int_eq(r->bytes != NULL, kept);
	if (!kept)
		return;
	ck_assert_int_eq(trace_chunk_read(r->bytes, r->n, &c, &e), 0);
	ck_assert_uint_eq(c.n[TRACE_N_SCOPES], events);
	ck_assert_uint_eq(c.scope[0].begin, 20 * SECOND + first * 20);
	trace_chunk_fini(&c);
}

START_TEST(a_chunk_grows_until_it_is_full)
{
	struct batch b;

	begin();
	scopes(100);
	b = collect();
	ck_assert_uint_eq(b.trace.n, 1);
	is_chunk(row(&b, 0), 0, 100, true);
	batch_free(&b);
	b = collect(); /* nothing more came */
	ck_assert_uint_eq(b.trace.n, 0);
	batch_free(&b);
	scopes(2 * CHUNK);
	b = collect();
	ck_assert_uint_eq(b.trace.n, 3);
	is_chunk(row(&b, 0), 0, CHUNK, true);
	is_chunk(row(&b, 1), CHUNK, CHUNK, true);
	is_chunk(row(&b, 2), 2 * CHUNK, 100, true);
	batch_free(&b);
	tape_end(&t, job.ring, at, END_EXITED, 0);
	fold_take(f, &t);
	b = collect();
	is_chunk(row(&b, 2), 2 * CHUNK, 100, true);
	batch_free(&b);
}
END_TEST

START_TEST(over_a_size_the_oldest_leave)
{
	struct batch b;

	teardown();
	setup_limits(&(struct fold_limits){.trace_bytes = 1});
	begin();
	scopes(2 * CHUNK + 5);
	b = collect(); /* chunk 0 left before it was ever stored */
	ck_assert_uint_eq(b.trace.n, 3);
	is_chunk(row(&b, 0), 0, CHUNK, false);
	is_chunk(row(&b, 1), CHUNK, CHUNK, true);
	is_chunk(row(&b, 2), 2 * CHUNK, 5, true);
	batch_free(&b);
	scopes(CHUNK);
	b = collect(); /* the newest full one stays, and the one that grows */
	ck_assert_uint_eq(b.trace.n, 3);
	is_chunk(row(&b, 1), CHUNK, CHUNK, false);
	is_chunk(row(&b, 2), 2 * CHUNK, CHUNK, true);
	is_chunk(row(&b, 3), 3 * CHUNK, 5, true);
	batch_free(&b);
}
END_TEST

/* A second session of the same user, and one of another's. */
START_TEST(what_lives_is_in_its_users_share)
{
	enum { N = 12 };
	struct kit_process other = kit_process(2);
	struct kit_lane theirs = {.lane = 0};
	struct j_verb *v;
	struct batch b;
	uint64_t kept[3] = {0}, one;
	uint32_t i;

	begin();
	scopes(CHUNK + 5);
	b = collect();
	one = row(&b, 0)->n;
	batch_free(&b);
	teardown();
	setup_limits(&(struct fold_limits){.trace_bytes_per_uid = 5 * one + one / 2});
	begin();
	v = tape_verb(&t, VERB_START, 2, 10 * SECOND);
	v->data = SESSION_TRACE;
	other.uid = UID + 1;
	tape_process(&t, &other);
	tape_names(&t, other.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, other.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	v = tape_verb(&t, VERB_START, 3, 10 * SECOND);
	v->data = SESSION_TRACE;
	v->uid = UID + 1;
	fold_take(f, &t);
	for (i = 0; i < 4 * CHUNK + 1; i++) { /* he comes first, and has less than his share */
		put_scope(&theirs, P_AB, at + i * 20, at + i * 20 + 10);
		if (theirs.n > 30000 || i == 4 * CHUNK) {
			tape_lane(&t, other.ring, at + i * 20, &theirs);
			fold_take(f, &t);
		}
	}
	scopes(N * CHUNK + 1);
	b = collect();
	for (i = 0; i < b.trace.n; i++) {
		ck_assert_int_le(b.trace.row[i].session, 3);
		kept[b.trace.row[i].session - 1] +=
			b.trace.row[i].bytes != NULL && b.trace.row[i].events == CHUNK;
	}
	ck_assert_uint_eq(kept[0] + kept[1], 5);
	ck_assert_uint_le(kept[0] > kept[1] ? kept[0] - kept[1] : kept[1] - kept[0], 1);
	ck_assert_uint_eq(kept[2], 4);
	batch_free(&b);
}
END_TEST

START_TEST(over_an_age_the_oldest_leave)
{
	struct batch b;

	teardown();
	setup_limits(&(struct fold_limits){.trace_ns = 5 * SECOND});
	begin();
	scopes(CHUNK + 1);
	b = collect();
	is_chunk(row(&b, 0), 0, CHUNK, true);
	batch_free(&b);
	at = 20 * SECOND + (CHUNK + 1) * 20;
	tape_anchor(&t, RING_CLOCK_MONOTONIC, 40 * SECOND, 40 * SECOND, 40 * SECOND + REAL_AHEAD);
	fold_take(f, &t);
	scopes(CHUNK);
	b = collect();
	is_chunk(row(&b, 0), 0, CHUNK, false);
	is_chunk(row(&b, 1), CHUNK, CHUNK, true);
	batch_free(&b);
}
END_TEST

/* The store takes nothing: what waits for it has a ceiling, and the gap can be told. Who has less
 * than an even share of that waits all the same. */
START_TEST(what_waits_has_a_ceiling)
{
	uint64_t *const own = _i == 0 ? &f->process[0]->user->sealed : NULL;
	struct batch b;

	begin();
	scopes(CHUNK + 1); /* one full chunk waits */
	f->sealed_bytes += 64u << 20;
	if (own != NULL)
		*own += 64u << 20;
	scopes(CHUNK);
	f->sealed_bytes -= 64u << 20;
	if (own != NULL)
		*own -= 64u << 20;
	scopes(CHUNK);
	b = collect();
	ck_assert_uint_eq(b.trace.n, 4);
	is_chunk(row(&b, 0), 0, CHUNK, true);
	is_chunk(row(&b, 1), CHUNK, CHUNK, own == NULL);
	is_chunk(row(&b, 2), 2 * CHUNK, CHUNK, true);
	is_chunk(row(&b, 3), 3 * CHUNK, 1, true);
	ck_assert_uint_eq(f->sealed_bytes, 0);
	batch_free(&b);
}
END_TEST

START_TEST(one_session_keeps_one_and_another_does_not)
{
	struct batch b;

	begin();
	start(2, 10 * SECOND);
	scopes(10);
	b = collect();
	ck_assert_uint_eq(b.trace.n, 1);
	ck_assert_int_eq(b.trace.row[0].session, 1);
	ck_assert_uint_eq(cell_at(&b, 2, 0, CLASS_CPU, "ROOT/a/b")->count, 10);
	batch_free(&b);
}
END_TEST

/* What a restart finds stored stays; the next chunk begins behind it. */
START_TEST(goes_on_behind_what_is_stored)
{
	struct fold *again;
	struct batch b, more = {0};
	uint32_t i;

	begin();
	scopes(CHUNK + 7);
	b = collect();
	again = fold_of(NULL);
	for (i = 0; i < b.trace.n; i++) { /* as store_load() gives them */
		free(b.trace.row[i].bytes);
		b.trace.row[i].bytes = NULL;
	}
	ck_assert_int_eq(fold_restore(again, &b), 0);
	batch_free(&b);
	fold_free(f);
	f = again;
	tape_names(&t, job.ring, 2, N(names), names);
	tape_paths(&t, job.ring, 2, N(paths), paths);
	fold_take(f, &t);
	scopes(3);
	ck_assert_int_eq(fold_collect(f, &more), 0);
	ck_assert_uint_eq(more.trace.n, 1);
	is_chunk(row(&more, 2), CHUNK + 7, 3, true);
	batch_free(&more);
}
END_TEST

static void put_owner(uint32_t tid, uint32_t generation)
{
	struct rec_thread r = {.clock = at, .tid = tid, .generation = generation};

	lane_put(&lane, REC_THREAD, 0, NAME_NONE, &r, sizeof(r));
}

/* As the lane's header says it when it is drained. */
static void drain_as(uint32_t tid, uint32_t generation)
{
	struct j_lane *j = tape_add(&t, J_LANE, job.ring, at, sizeof(*j) + lane.n);

	*j = (struct j_lane){lane.lane, lane.n, lane.from, generation, tid};
	memcpy(j + 1, lane.bytes, lane.n);
	lane.from += lane.n;
	lane.n = 0;
}

/* The header of a lane is its next owner's already when the last records of the one before are
 * drained. */
START_TEST(scopes_are_their_threads)
{
	static const uint32_t owner[] = {100, 200};
	struct trace_chunk c;
	struct batch b;
	struct err e;
	uint32_t i;

	begin();
	put_owner(owner[0], 1);
	put_scope(&lane, P_AB, at, at + 10);
	drain_as(owner[0], 1);
	put_scope(&lane, P_AB, at + 20, at + 30);
	drain_as(owner[1], 2);
	put_owner(owner[1], 2);
	put_scope(&lane, P_AB, at + 40, at + 50);
	drain_as(owner[1], 2);
	fold_take(f, &t);
	b = collect();
	ck_assert_uint_eq(b.trace.n, 1);
	ck_assert_int_eq(trace_chunk_read(b.trace.row[0].bytes, b.trace.row[0].n, &c, &e), 0);
	ck_assert_uint_eq(c.n[TRACE_N_SCOPES], 3);
	for (i = 0; i < 3; i++)
		ck_assert_uint_eq(c.thread[c.scope[i].thread].tid, owner[i == 2]);
	trace_chunk_fini(&c);
	batch_free(&b);
}
END_TEST

/* The first record of a graph brings its launch, also where records came before it. */
START_TEST(a_launch_comes_once)
{
	struct trace_chunk c;
	struct batch b;
	struct err e;
	uint32_t i, firsts = 0;

	begin();
	for (i = 0; i < 3; i++)
		put_kernel(&gpu, N_KERN, at + 40 + i, 1, 7, GPU_FLAG_GRAPH);
	drain(&gpu, at + 50);
	put_launch(&lane, P_AB, at + 20, 7, LAUNCH_GRAPH);
	drain(&lane, at + 60);
	b = collect();
	ck_assert_uint_eq(b.trace.n, 1);
	ck_assert_int_eq(trace_chunk_read(b.trace.row[0].bytes, b.trace.row[0].n, &c, &e), 0);
	ck_assert_uint_eq(c.n[TRACE_N_OPS], 3);
	for (i = 0; i < 3; i++)
		firsts += (c.op[i].flags & TRACE_MORE) == 0;
	ck_assert_uint_eq(firsts, 1);
	trace_chunk_fini(&c);
	batch_free(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_timeline");
	TCase *c = tcase_create("chunks");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, a_chunk_grows_until_it_is_full);
	tcase_add_test(c, over_a_size_the_oldest_leave);
	tcase_add_test(c, what_lives_is_in_its_users_share);
	tcase_add_test(c, over_an_age_the_oldest_leave);
	tcase_add_loop_test(c, what_waits_has_a_ceiling, 0, 2);
	tcase_add_test(c, one_session_keeps_one_and_another_does_not);
	tcase_add_test(c, goes_on_behind_what_is_stored);
	tcase_add_test(c, scopes_are_their_threads);
	tcase_add_test(c, a_launch_comes_once);
	suite_add_tcase(s, c);
	return s;
}
