/* SPDX-License-Identifier: MIT. trace_tracks.c: a chunk's scopes and operations in tracks.
 *
 * First groups (a thread's depth, its tasks, its calls that wait, a stream), sorted by counting, for in
 * each of them events come nearly in order; then what overlaps in all but the first goes into rows. */
#include "trace_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "trace_rows.h"

struct making {
	const struct trace_chunk *c;
	const uint16_t *depth;
	struct trace_track *group;
	uint32_t n_groups, cap_groups, *of; /* of[event]: its group */
	struct table by_key;
	uint32_t *thread, *stream; /* place → first place of the same tid; of the same stream */
	struct trace_tracks t;
	uint32_t cap_tracks;
};

/* --- groups */

struct group_key {
	const struct making *m;
	struct trace_track want;
};

static bool group_same(const void *arg, uint32_t at)
{
	const struct group_key *k = arg;
	const struct trace_track *g = &k->m->group[at];

	return g->kind == k->want.kind && g->place == k->want.place && g->row == k->want.row;
}

static int group_of(struct making *m, struct trace_track want, uint32_t *ret)
{
	const struct group_key key = {m, want};
	const uint32_t hash =
		table_mix((uint64_t)want.place << 8 | want.kind, (uint64_t)want.row + 1);
	int r;

	*ret = table_find(&m->by_key, hash, group_same, &key);
	if (*ret != TABLE_NONE)
		return 0;
	if (!ROOM_FOR(m->group, m->cap_groups, m->n_groups))
		return -ENOMEM;
	r = table_add(&m->by_key, hash, m->n_groups);
	if (r < 0)
		return r == -ENOSPC ? -EBADMSG : r;
	m->group[m->n_groups] = want;
	*ret = m->n_groups++;
	return 0;
}

/* Events of a thread and depth often follow each other. */
static int scope_groups(struct making *m)
{
	const struct trace_chunk *c = m->c;
	struct trace_track want, last = {.kind = TRACK_KINDS};
	uint32_t i, group = 0;
	int r = 0;

	for (i = 0; i < c->n[TRACE_N_SCOPES] && r == 0; i++) {
		const struct trace_scope *s = &c->scope[i];
		const uint8_t kind = (s->flags & TRACE_SPAN) != 0 ? TRACK_TASKS
				     : trace_is_sync(s)           ? TRACK_SYNCS
								  : TRACK_THREAD;

		want = (struct trace_track){.kind = kind,
			.place = m->thread[s->thread],
			.row = kind == TRACK_THREAD ? m->depth[s->node] : 0};
		if (want.kind != last.kind || want.place != last.place || want.row != last.row)
			r = group_of(m, want, &group);
		last = want;
		m->of[i] = group;
		if (r == 0)
			m->group[group].n++;
	}
	return r;
}

static int op_groups(struct making *m)
{
	const struct trace_chunk *c = m->c;
	uint32_t i, group, *of = m->of + c->n[TRACE_N_SCOPES];
	int r = 0;

	for (i = 0; i < c->n[TRACE_N_OPS] && r == 0; i++) {
		r = group_of(m,
			(struct trace_track){
				.kind = TRACK_STREAM, .place = m->stream[c->op[i].stream]},
			&group);
		of[i] = group;
		if (r == 0)
			m->group[group].n++;
	}
	return r;
}

/* --- which places are one thread, one stream */

static int same_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	const int r = (x[0] > y[0]) - (x[0] < y[0]);

	return r != 0 ? r : (x[1] > y[1]) - (x[1] < y[1]);
}

/* pair[i]: {what it is, its place}. */
static void first_places(uint64_t (*pair)[2], uint32_t n, uint32_t *first)
{
	uint32_t i;

	qsort(pair, n, sizeof(*pair), same_order);
	for (i = 0; i < n; i++)
		first[pair[i][1]] = i > 0 && pair[i][0] == pair[i - 1][0] ? first[pair[i - 1][1]]
									  : (uint32_t)pair[i][1];
}

static int find_places(struct making *m)
{
	const uint32_t n_threads = m->c->n[TRACE_N_THREADS], n_streams = m->c->n[TRACE_N_STREAMS];
	const uint32_t most = n_threads > n_streams ? n_threads : n_streams;
	uint64_t(*pair)[2] = calloc((size_t)most + 1, sizeof(*pair));
	uint32_t i;

	m->thread = calloc((size_t)n_threads + 1, sizeof(*m->thread));
	m->stream = calloc((size_t)n_streams + 1, sizeof(*m->stream));
	if (pair == NULL || m->thread == NULL || m->stream == NULL) {
		free(pair);
		return -ENOMEM;
	}
	for (i = 0; i < n_threads; i++) {
		pair[i][0] = m->c->thread[i].tid;
		pair[i][1] = i;
	}
	first_places(pair, n_threads, m->thread);
	for (i = 0; i < n_streams; i++) {
		pair[i][0] = (uint64_t)m->c->stream[i].device << 32 | m->c->stream[i].stream;
		pair[i][1] = i;
	}
	first_places(pair, n_streams, m->stream);
	free(pair);
	return 0;
}

/* --- items */

static void scope_items(struct making *m)
{
	const struct trace_chunk *c = m->c;
	uint32_t i;

	for (i = 0; i < c->n[TRACE_N_SCOPES]; i++) {
		const struct trace_scope *s = &c->scope[i];
		struct trace_track *g = &m->group[m->of[i]];

		m->t.item[g->first + g->n++] = (struct trace_item){.start = s->begin,
			.end = s->end,
			.busy = s->end - s->begin,
			.count = 1,
			.node = s->node,
			.longest = s->node,
			.event = i,
			.thread = TRACE_NONE};
	}
}

static void op_items(struct making *m)
{
	const struct trace_chunk *c = m->c;
	const uint32_t n_scopes = c->n[TRACE_N_SCOPES];
	uint32_t i;

	for (i = 0; i < c->n[TRACE_N_OPS]; i++) {
		const struct trace_op *o = &c->op[i];
		struct trace_track *g = &m->group[m->of[n_scopes + i]];

		m->t.item[g->first + g->n++] = (struct trace_item){.start = o->start,
			.end = o->end,
			.busy = o->end - o->start,
			.launched = o->launched,
			.count = 1,
			.node = o->node,
			.longest = o->node,
			.event = n_scopes + i,
			.thread = o->thread == TRACE_NONE ? TRACE_NONE : m->thread[o->thread]};
	}
}

struct key {
	uint64_t start; /* since the first */
	uint32_t at;
};

/* By one byte of their start; those that have it alike stay as they are. */
static void sort_by_byte(const struct key *from, struct key *to, uint32_t n, uint32_t shift)
{
	uint32_t at[257] = {0}, i;

	for (i = 0; i < n; i++)
		at[(from[i].start >> shift & 255) + 1]++;
	for (i = 1; i < 257; i++)
		at[i] += at[i - 1];
	for (i = 0; i < n; i++)
		to[at[from[i].start >> shift & 255]++] = from[i];
}

static bool sort_items(struct trace_item *v, uint32_t n)
{
	struct trace_item *old = reallocarray(NULL, n, sizeof(*old));
	struct key *a = reallocarray(NULL, n, 2 * sizeof(*a)), *b = a + n, *swap, *keys = a;
	uint64_t low = UINT64_MAX, high = 0;
	uint32_t i, shift;

	if (old != NULL && a != NULL) {
		for (i = 0; i < n; i++) {
			low = v[i].start < low ? v[i].start : low;
			high = v[i].start > high ? v[i].start : high;
		}
		for (i = 0; i < n; i++)
			a[i] = (struct key){v[i].start - low, i};
		for (shift = 0; shift < 64 && (high - low) >> shift != 0; shift += 8) {
			sort_by_byte(a, b, n, shift);
			swap = a;
			a = b;
			b = swap;
		}
		memcpy(old, v, n * sizeof(*old));
		for (i = 0; i < n; i++)
			v[i] = old[a[i].at];
	}
	free(keys);
	free(old);
	return old != NULL && keys != NULL;
}

/* Most come in order. */
static bool sort_group(struct trace_item *v, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && v[i - 1].start <= v[i].start)
		i++;
	return i >= n || sort_items(v, n);
}

/* --- rows */

/* The items of each track one behind the other, which stay in order. */
static bool sort_by_track(struct making *m, struct trace_item *v, uint32_t n, uint32_t from)
{
	struct trace_item *old = reallocarray(NULL, n, sizeof(*old));
	uint32_t i, at = (uint32_t)(v - m->t.item);

	if (old == NULL)
		return false;
	memcpy(old, v, n * sizeof(*old));
	for (i = from; i < m->t.n_tracks; i++) {
		m->t.track[i].first = at;
		at += m->t.track[i].n;
		m->t.track[i].n = 0;
	}
	for (i = 0; i < n; i++) {
		struct trace_track *t = &m->t.track[old[i].track];

		m->t.item[t->first + t->n++] = old[i];
	}
	free(old);
	return true;
}

/* A track for a further row. */
static bool add_row(struct making *m, const struct trace_track *g, uint32_t row)
{
	if (!ROOM_FOR(m->t.track, m->cap_tracks, m->t.n_tracks))
		return false;
	m->t.track[m->t.n_tracks] = *g;
	m->t.track[m->t.n_tracks].row = (uint16_t)row;
	m->t.track[m->t.n_tracks++].n = 0;
	return true;
}

/* The rows of a group become tracks. */
static int split_rows(struct making *m, const struct trace_track *g)
{
	struct trace_item *v = m->t.item + g->first;
	const uint32_t before = m->t.n_tracks;
	struct lane_set set = {.n = 0};
	uint32_t i, row = 0;
	bool good = true;

	for (i = 0; i < g->n && good; i++) {
		good = lane_place(&set, v[i].start, v[i].end, &row);
		if (good && before + row == m->t.n_tracks)
			good = add_row(m, g, row);
		if (!good)
			break;
		v[i].track = before + row;
		m->t.track[before + row].n++;
	}
	free(set.end);
	if (good && m->t.n_tracks > before + 1)
		good = sort_by_track(m, v, g->n, before);
	return good ? 0 : -ENOMEM;
}

static int one_track(struct making *m, const struct trace_track *g)
{
	uint32_t i;

	if (!ROOM_FOR(m->t.track, m->cap_tracks, m->t.n_tracks))
		return -ENOMEM;
	for (i = 0; i < g->n; i++)
		m->t.item[g->first + i].track = m->t.n_tracks;
	m->t.track[m->t.n_tracks++] = *g;
	return 0;
}

/* --- */

static int make(struct making *m)
{
	struct trace_track *g;
	uint32_t i, at = 0;
	int r = find_places(m);

	m->t.n_items = m->c->n[TRACE_N_SCOPES] + m->c->n[TRACE_N_OPS];
	m->of = calloc((size_t)m->t.n_items + 1, sizeof(*m->of));
	m->t.item = reallocarray(NULL, (size_t)m->t.n_items + 1, sizeof(*m->t.item));
	if (r < 0 || m->of == NULL || m->t.item == NULL)
		return -ENOMEM;
	r = scope_groups(m);
	if (r == 0)
		r = op_groups(m);
	if (r < 0)
		return r;
	for (i = 0; i < m->n_groups; i++) {
		m->group[i].first = at;
		at += m->group[i].n;
		m->group[i].n = 0;
	}
	scope_items(m);
	op_items(m);
	for (i = 0; i < m->n_groups && r == 0; i++) {
		g = &m->group[i];
		if (!sort_group(m->t.item + g->first, g->n))
			return -ENOMEM;
		r = g->kind == TRACK_THREAD ? one_track(m, g) : split_rows(m, g);
	}
	return r;
}

int trace_tracks_make(const struct trace_chunk *c, const uint16_t *depth, struct trace_tracks *ret)
{
	struct making m = {.c = c, .depth = depth};
	const int r = make(&m);

	table_fini(&m.by_key);
	free(m.group);
	free(m.of);
	free(m.thread);
	free(m.stream);
	if (r < 0)
		trace_tracks_fini(&m.t);
	*ret = m.t;
	return r;
}

void trace_tracks_fini(struct trace_tracks *t)
{
	free(t->track);
	free(t->item);
	*t = (struct trace_tracks){.n_items = 0};
}
