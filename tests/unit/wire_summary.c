/* SPDX-License-Identifier: MIT. wire_summary.c: summaries of chunks: at every level each track's items are
 * its events, in order, none left out and none twice; what is written is read again, and damaged
 * bytes are refused or keep every place in range. */
#include "quick.h"
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "summary.h"

#define NODES   40u
#define THREADS 6u
#define STREAMS 5u

/* A chunk of our own, without bytes: what a reader would have of it. */
struct model {
	struct trace_chunk c;
	struct trace_thread thread[THREADS];
	struct trace_stream stream[STREAMS];
	struct trace_scope scope[TRACE_EVENTS_MAX];
	struct trace_op op[TRACE_EVENTS_MAX];
	uint16_t depth[NODES];
};
static struct model m;

/* Of all lengths; hardly any of some. */
static uint64_t any_length(uint32_t shape)
{
	return shape == 0   ? draw() >> (20 + below(44))
	       : shape == 1 ? 1000 + below(50)
	       : shape == 2 ? 0
			    : draw() >> below(64);
}

static void any_scopes(uint32_t n, uint32_t shape)
{
	uint64_t at[THREADS] = {0};
	uint32_t i;

	for (i = 0; i < n; i++) {
		const uint32_t thread = below(THREADS);
		const uint64_t length = any_length(shape), gap = shape == 3 ? draw() : below(500);

		m.scope[i] = (struct trace_scope){.begin = at[thread] + gap,
			.thread = thread,
			.node = below(NODES),
			.flags = below(20) == 0 ? TRACE_SPAN : 0};
		if (m.c.calls && below(10) == 0) {
			m.scope[i].flags = TRACE_CALL;
			m.scope[i].call.class = below(2) == 0 ? CLASS_STREAM_SYNC : CLASS_API;
		}
		m.scope[i].end = m.scope[i].begin + length;
		if (m.scope[i].end < m.scope[i].begin)
			m.scope[i].end = UINT64_MAX;
		at[thread] = below(4) == 0 ? m.scope[i].begin : m.scope[i].end;
	}
}

static void any_ops(uint32_t n, uint32_t shape)
{
	uint64_t at = 1700000000000000000u;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const bool launched = below(10) > 0;

		m.op[i] = (struct trace_op){.launched = launched ? at - below(5000) : 0,
			.start = at,
			.thread = launched ? below(THREADS) : TRACE_NONE,
			.node = below(NODES),
			.stream = below(STREAMS),
			.class = CLASS_COMPUTE,
			.config = TRACE_NONE,
			.flags = launched ? 0 : TRACE_UNLAUNCHED};
		m.op[i].end = at + any_length(shape == 3 ? 0 : shape);
		at += below(3) == 0 ? 0 : below(4000);
	}
}

static void any_chunk(uint32_t n)
{
	const uint32_t shape = below(4), scopes = below(3) == 0 ? n : below(n + 1);
	uint32_t i;

	memset(&m, 0, sizeof(m));
	m.c.n[TRACE_N_NODES] = NODES;
	m.c.n[TRACE_N_THREADS] = THREADS;
	m.c.n[TRACE_N_STREAMS] = STREAMS;
	m.c.n[TRACE_N_SCOPES] = scopes;
	m.c.n[TRACE_N_OPS] = n - scopes;
	m.c.thread = m.thread;
	m.c.stream = m.stream;
	m.c.calls = below(2) == 0;
	m.c.scope = m.scope;
	m.c.op = m.op;
	for (i = 0; i < THREADS; i++)
		m.thread[i] =
			(struct trace_thread){100 + i / 2, TRACE_NONE}; /* two places, one tid */
	for (i = 0; i < STREAMS; i++)
		m.stream[i] = (struct trace_stream){0, i, 7 + i / 2}; /* two contexts, one stream */
	for (i = 0; i < NODES; i++)
		m.depth[i] = (uint16_t)below(4);
	any_scopes(scopes, shape);
	any_ops(n - scopes, shape);
}

/* --- the law */

static void is_event(const struct trace_item *v)
{
	const uint32_t scopes = m.c.n[TRACE_N_SCOPES];
	const struct trace_op *o = &m.op[v->event < scopes ? 0 : v->event - scopes];
	const struct trace_scope *s = &m.scope[v->event < scopes ? v->event : 0];

	ck_assert_uint_eq(v->count, 1);
	if (v->event < scopes) {
		ck_assert(v->start == s->begin && v->end == s->end && v->node == s->node);
		ck_assert_uint_eq(v->thread, TRACE_NONE);
		return;
	}
	ck_assert(v->start == o->start && v->end == o->end && v->node == o->node);
	ck_assert(v->thread == TRACE_NONE ? (o->flags & TRACE_UNLAUNCHED) != 0
					  : v->launched == o->launched);
}

/* No two tracks are one thread's depth, or one stream's row. */
static void are_different(const struct trace_track *a, const struct trace_track *b)
{
	ck_assert(a->kind != b->kind || a->row != b->row ||
		  (a->kind == TRACK_STREAM ? m.stream[a->place].stream != m.stream[b->place].stream
					   : m.thread[a->place].tid != m.thread[b->place].tid));
}

/* Every event is in one track, which is its thread's and depth's, or its stream's, and those of a
 * track go on in time. */
static void are_tracks(const struct trace_tracks *t)
{
	static bool seen[2 * TRACE_EVENTS_MAX];
	uint32_t i, k, n = 0;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < t->n_tracks; i++) {
		const struct trace_track *track = &t->track[i];

		for (k = 0; k < i; k++)
			are_different(track, &t->track[k]);
		for (k = track->first; k < track->first + track->n; k++, n++) {
			const struct trace_item *v = &t->item[k];

			is_event(v);
			ck_assert(!seen[v->event] && v->track == i);
			seen[v->event] = true;
			if (v->event < m.c.n[TRACE_N_SCOPES]) {
				const struct trace_scope *s = &m.scope[v->event];

				ck_assert_uint_eq(
					m.thread[track->place].tid, m.thread[s->thread].tid);
				ck_assert((s->flags & TRACE_SPAN) != 0 ? track->kind == TRACK_TASKS
					  : trace_is_sync(s)
						  ? track->kind == TRACK_SYNCS
						  : track->kind == TRACK_THREAD &&
							    track->row == m.depth[s->node]);
			} else {
				ck_assert_uint_eq(track->kind, TRACK_STREAM);
				ck_assert_uint_eq(m.stream[track->place].stream,
					m.stream[m.op[v->event - m.c.n[TRACE_N_SCOPES]].stream]
						.stream);
			}
			ck_assert(k == track->first || t->item[k - 1].start <= v->start);
		}
	}
	ck_assert_uint_eq(n, m.c.n[TRACE_N_SCOPES] + m.c.n[TRACE_N_OPS]);
	ck_assert_uint_eq(n, t->n_items);
}

/* An item is the next `count` events of its track. */
static void is_sum(const struct trace_item *v, const struct trace_item *e)
{
	uint64_t busy = 0, longest = 0, end = 0;
	uint32_t times[NODES] = {0}, most = 0, i;
	const struct trace_item *launched = NULL;
	bool longest_is = false;

	for (i = 0; i < v->count; i++) {
		busy += e[i].busy;
		end = e[i].end > end ? e[i].end : end;
		longest = e[i].busy > longest ? e[i].busy : longest;
		times[e[i].node]++;
		most = times[e[i].node] > most ? times[e[i].node] : most;
		if (launched == NULL && e[i].thread != TRACE_NONE)
			launched = &e[i];
	}
	for (i = 0; i < v->count; i++)
		longest_is |= e[i].node == v->longest && e[i].busy == longest;
	ck_assert(v->start == e[0].start && v->end == end && v->busy == busy);
	ck_assert_msg(longest_is, "the longest is not of that name");
	ck_assert_uint_eq(times[v->node], most);
	ck_assert(launched == NULL
			  ? v->thread == TRACE_NONE
			  : v->thread == launched->thread && v->launched == launched->launched);
	if (v->count == 1)
		ck_assert_uint_eq(v->event, e[0].event);
}

static void level_is(const struct summary *s, uint32_t level, const struct trace_tracks *t)
{
	const struct summary_level *l = &s->level[level];
	uint32_t i, at = 0, k = 0, width, n;
	const struct trace_track *track;

	for (i = 0; i < s->n_tracks; i++) {
		track = &t->track[i];
		width = (track->kind == TRACK_STREAM ? s->ns : s->ticks) + SUMMARY_FACTOR * level;
		for (n = 0; k < l->n && l->item[k].track == i; n += l->item[k++].count) {
			const struct trace_item *e = &t->item[track->first + n];

			ck_assert(n + l->item[k].count <= track->n);
			is_sum(&l->item[k], e);
			/* what is as long as the width stands alone */
			for (at = 0; l->item[k].count > 1 && at < l->item[k].count; at++)
				ck_assert(e[at].busy >> width == 0 &&
					  e[at].start >> width == e[0].start >> width);
		}
		ck_assert_uint_eq(n, track->n);
	}
	ck_assert_uint_eq(k, l->n);
}

static void same(const struct summary *a, const struct summary *b)
{
	uint32_t i, k;

	ck_assert(a->n_levels == b->n_levels && a->n_tracks == b->n_tracks && a->ns == b->ns &&
		  a->ticks == b->ticks);
	for (i = 0; i < a->n_levels; i++) {
		ck_assert_uint_eq(a->level[i].n, b->level[i].n);
		for (k = 0; k < a->level[i].n; k++) {
			struct trace_item x = a->level[i].item[k], y = b->level[i].item[k];

			x.launched = x.thread == TRACE_NONE ? 0 : x.launched;
			y.launched = y.thread == TRACE_NONE ? 0 : y.launched;
			ck_assert_mem_eq(&x, &y, sizeof(x));
		}
	}
}

START_TEST(sums)
{
	struct trace_tracks t;
	struct summary s, again;
	uint32_t i, n;
	void *bytes;

	seed = 1 + (uint64_t)_i * 7919;
	any_chunk(1 + below(_i % 4 == 0 ? TRACE_EVENTS_MAX - 1 : 3000));
	ck_assert_int_eq(trace_tracks_make(&m.c, m.depth, &t), 0);
	are_tracks(&t);
	ck_assert_int_eq(summary_make(&m.c, &t, _i % 2 == 0 ? 2.4 : 1, 0, &s), 0);
	ck_assert(s.n_levels >= 1 && s.n_levels <= SUMMARY_LEVELS_MAX);
	for (i = 0; i < s.n_levels; i++)
		level_is(&s, i, &t);
	ck_assert_int_eq(summary_seal(&s, &bytes, &n), 0);
	ck_assert_int_eq(summary_read(bytes, n, &m.c, 0, &again), 0);
	same(&s, &again);
	summary_fini(&again);
	for (i = 0; i < n; i += 1 + n / 50) { /* cut anywhere, it is refused */
		void *cut = malloc(i + 1);

		memcpy(cut, bytes, i);
		ck_assert_int_eq(summary_read(cut, i, &m.c, 0, &again), -EBADMSG);
		free(cut);
	}
	((char *)bytes)[3] = '1'; /* of before: its tracks have calls where scopes are */
	ck_assert_int_eq(summary_read(bytes, n, &m.c, 0, &again), m.c.calls ? -EBADMSG : 0);
	if (!m.c.calls)
		summary_fini(&again);
	free(bytes);
	summary_fini(&s);
	trace_tracks_fini(&t);
}
END_TEST

/* At most a tenth of its chunk, or a quarter of a small one, whatever that is; and of what is too small none. */
START_TEST(sizes)
{
	struct summary s;
	uint32_t n, of;
	void *bytes;

	seed = 77 + (uint64_t)_i;
	any_chunk(SUMMARY_EVENTS_MIN - 1);
	ck_assert_int_eq(summary_of(&m.c, m.depth, 1, SIZE_MAX, &bytes, &n), 0);
	ck_assert(bytes == NULL && n == 0);
	any_chunk(SUMMARY_EVENTS_MIN);
	for (of = 1; of < 1u << 14; of *= 2) {
		ck_assert_int_eq(summary_of(&m.c, m.depth, 2.1, of, &bytes, &n), 0);
		ck_assert(n <= of / SUMMARY_SMALL_PART && (bytes != NULL) == (n > 0));
		free(bytes);
	}
	ck_assert_uint_gt(n, 0);
	any_chunk(TRACE_EVENTS_MAX);
	for (of = 1; of < 1u << 20; of *= 2) {
		ck_assert_int_eq(summary_of(&m.c, m.depth, 2.1, of, &bytes, &n), 0);
		ck_assert(n <= of / SUMMARY_PART && (bytes != NULL) == (n > 0));
		if (bytes == NULL)
			continue;
		ck_assert_int_eq(summary_read(bytes, n, &m.c, 0, &s), 0);
		summary_fini(&s);
		free(bytes);
	}
	ck_assert_int_eq(summary_of(&m.c, m.depth, 2.1, SIZE_MAX, &bytes, &n), 0);
	ck_assert_ptr_nonnull(bytes);
	free(bytes);
}
END_TEST

/* --- allocations fail */

static uint32_t until_none; /* so many succeed; 0: all */

void *__real_malloc(size_t n), *__real_calloc(size_t n, size_t each),
	*__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n), *__wrap_calloc(size_t n, size_t each),
	*__wrap_realloc(void *p, size_t n);

static bool refused(void)
{
	return until_none > 0 && --until_none == 0;
}

void *__wrap_malloc(size_t n)
{
	return refused() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t each)
{
	return refused() ? NULL : __real_calloc(n, each);
}

void *__wrap_realloc(void *p, size_t n)
{
	return refused() ? NULL : __real_realloc(p, n);
}

/* Whichever allocation fails, nothing of what was there before is taken for a track, and nothing is left. */
START_TEST(without_memory)
{
	struct trace_tracks t;
	uint32_t n, at = 0;
	void *bytes;
	int r;

	seed = 5;
	any_chunk(SUMMARY_EVENTS_MIN);
	do {
		memset(&t, 0x5a, sizeof(t));
		until_none = ++at;
		r = trace_tracks_make(&m.c, m.depth, &t);
		until_none = 0;
		ck_assert(r == 0 || (r == -ENOMEM && t.track == NULL && t.item == NULL &&
					    t.n_tracks == 0 && t.n_items == 0));
		trace_tracks_fini(&t);
	} while (r < 0);
	ck_assert_uint_gt(at, 5);
	at = 0;
	do {
		until_none = ++at;
		r = summary_of(&m.c, m.depth, 1, SIZE_MAX, &bytes, &n);
		until_none = 0;
		ck_assert(r == 0 || (r == -ENOMEM && bytes == NULL && n == 0));
		free(bytes);
	} while (r < 0);
	ck_assert_uint_gt(at, 8);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("summary");
	TCase *tc = tcase_create("summary");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, sums, 0, rounds(60));
	tcase_add_loop_test(tc, sizes, 0, 8);
	tcase_add_test(tc, without_memory);
	suite_add_tcase(s, tc);
	return s;
}
