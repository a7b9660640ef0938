/* SPDX-License-Identifier: MIT. zoom_slices.c: what is in a window: each row of each lane, with what is
 * shorter than a pixel merged, and scopes projected onto the streams that their work ran on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "zoom_int.h"

#define SLICES_AT_WORK 65536u /* beyond: they are merged over twice the time */
#define NAMES_AT_WORK  4u

struct tally {
	uint32_t name, count;
};

struct row { /* the slice at hand, and those before it, in a list */
	struct zoom_slice at;
	struct tally tally[NAMES_AT_WORK]; /* the names that are most in it, about */
	uint64_t longest_ns;
	bool used, wide;
	uint32_t first, last; /* ZOOM_NONE: none */
};

struct slice {
	struct zoom_slice s;
	uint32_t next;
};

/* A row of a projected lane. */
struct cast {
	struct trace_item item;    /* count 0: none at hand */
	uint64_t key;              /* begin of the scope's instance; ZOOM_NEVER: not known */
	struct zoomed_opened open; /* what was found last, on this thread */
	uint32_t thread;
};

struct asking {
	struct zoom *w;
	const struct zoom_ask *a;
	bool *wanted;
	struct zoomed_gathered g;
	struct zoomed_scopes scopes;
	struct row *row; /* [w->n_rows] */
	struct cast *cast;
	uint32_t *main; /* of each process, its main thread's lane */
	struct slice *v;
	uint32_t n, cap;
	bool failed;
};

/* --- merging */

static void tally_add(struct row *r, uint32_t name, uint32_t count)
{
	uint32_t i, least = 0;

	for (i = 0; i < NAMES_AT_WORK; i++) {
		if (r->tally[i].count > 0 && r->tally[i].name == name) {
			r->tally[i].count = zoom_add32(r->tally[i].count, count);
			return;
		}
		if (r->tally[i].count < r->tally[least].count)
			least = i;
	}
	r->tally[least].name = name;
	r->tally[least].count = zoom_add32(r->tally[least].count, count);
}

static uint32_t tally_best(const struct row *r)
{
	uint32_t i, best = 0;

	for (i = 1; i < NAMES_AT_WORK; i++)
		if (r->tally[i].count > r->tally[best].count)
			best = i;
	return r->tally[best].name;
}

static void row_begin(struct row *r, const struct zoom_slice *s)
{
	r->at = *s;
	memset(r->tally, 0, sizeof(r->tally));
	r->tally[0] = (struct tally){s->name, s->count};
	r->longest_ns = s->count > 0 ? s->busy_ns / s->count : 0;
	r->used = true;
}

static void row_add(struct row *r, const struct zoom_slice *s)
{
	const uint64_t each = s->count > 0 ? s->busy_ns / s->count : 0;

	r->at.end_ns = s->end_ns > r->at.end_ns ? s->end_ns : r->at.end_ns;
	r->at.busy_ns += s->busy_ns;
	r->at.count = zoom_add32(r->at.count, s->count);
	r->at.event = 0;
	tally_add(r, s->name, s->count);
	r->at.name = tally_best(r);
	if (each > r->longest_ns) {
		r->longest_ns = each;
		r->at.longest = s->longest;
	}
}

static bool row_takes(const struct row *r, const struct zoom_slice *s, uint64_t merge_ns)
{
	const uint64_t end = s->end_ns > r->at.end_ns ? s->end_ns : r->at.end_ns;

	return s->start_ns >= r->at.start_ns && end - r->at.start_ns < merge_ns;
}

static void row_put(struct asking *q, struct row *r)
{
	if (!r->used)
		return;
	r->used = false;
	if (!ROOM_FOR(q->v, q->cap, q->n)) {
		q->failed = true;
		return;
	}
	q->v[q->n] = (struct slice){r->at, ZOOM_NONE};
	if (r->last == ZOOM_NONE)
		r->first = q->n;
	else
		q->v[r->last].next = q->n;
	r->last = q->n++;
}

/* All again, merged over twice the time. */
static void squeeze(struct asking *q)
{
	struct slice *old = q->v;
	uint32_t i, k;

	q->g.merge_ns *= 2;
	q->g.coarse = true;
	q->v = NULL;
	q->n = q->cap = 0;
	for (i = 0; i < q->w->n_rows; i++) {
		struct row *r = &q->row[i], fresh = {.first = ZOOM_NONE, .last = ZOOM_NONE};

		for (k = r->first; k != ZOOM_NONE; k = old[k].next) {
			if (fresh.used && row_takes(&fresh, &old[k].s, q->g.merge_ns)) {
				row_add(&fresh, &old[k].s);
				continue;
			}
			row_put(q, &fresh);
			row_begin(&fresh, &old[k].s);
		}
		row_put(q, &fresh);
		r->first = fresh.first;
		r->last = fresh.last;
	}
	free(old);
}

static void take(struct asking *q, uint32_t lane, uint32_t depth, const struct zoom_slice *s)
{
	const struct zoomed_lane *l = &q->w->lane[lane];
	struct row *r = &q->row[l->first_row + zoom_depth(l, depth)];
	struct zoom_slice mine = *s;

	if (s->start_ns >= q->a->t1 || (s->end_ns <= q->a->t0 && s->start_ns != q->a->t0))
		return;
	mine.lane = l->shown;
	mine.depth = zoom_depth(l, depth);
	if (r->used && row_takes(r, &mine, q->g.merge_ns)) {
		row_add(r, &mine);
		return;
	}
	row_put(q, r);
	row_begin(r, &mine);
	if (q->n > SLICES_AT_WORK && q->g.merge_ns < UINT64_MAX / 4)
		squeeze(q);
}

static struct zoom_slice slice_of(
	const struct asking *q, uint32_t chunk, const struct trace_item *v)
{
	return (struct zoom_slice){.start_ns = v->start,
		.end_ns = v->end,
		.busy_ns = v->busy,
		.count = v->count,
		.name = v->node,
		.longest = v->longest,
		.event = v->event == TRACE_NONE ? 0 : q->w->chunk[chunk].first_event + v->event};
}

static void take_part(struct asking *q, const struct gathered_part *g)
{
	const struct trace_item *v = g->part.item;
	uint32_t i;

	for (i = 0; i < g->part.n; i++, v++) {
		const struct zoomed_track *t = &g->part.track[v->track];
		struct zoom_slice s;

		if (!q->wanted[t->lane] || v->start >= q->a->t1 || v->end < q->a->t0)
			continue;
		s = slice_of(q, g->chunk, v);
		take(q, t->lane, t->depth, &s);
	}
}

static void take_bursts(struct asking *q)
{
	const struct zoomed_burst *b = q->w->burst;
	struct zoom_slice s;

	for (; b < q->w->burst + q->w->n_bursts; b++) {
		if (!q->wanted[b->lane])
			continue;
		s = (struct zoom_slice){.start_ns = b->start,
			.end_ns = b->end,
			.busy_ns = b->end - b->start,
			.count = zoom_add32(0, b->n),
			.name = ZOOM_NONE,
			.longest = ZOOM_NONE};
		take(q, b->lane, 0, &s);
	}
}

/* --- scopes projected onto streams */

static void cast_put(struct asking *q, uint32_t lane, uint32_t depth, struct cast *c)
{
	const struct zoom_slice s = {.start_ns = c->item.start,
		.end_ns = c->item.end,
		.busy_ns = c->item.end - c->item.start,
		.count = c->item.count,
		.name = c->item.node,
		.longest = c->item.node};

	if (c->item.count > 0)
		take(q, lane, depth, &s);
	c->item.count = 0;
}

/* A thread without scopes of its own is in the main thread's. */
static struct zoomed_opened opened(
	struct asking *q, struct cast *c, const struct trace_item *v, uint32_t depth)
{
	const uint32_t main = q->main[q->w->lane[v->thread].process];

	if (c->thread == v->thread && c->open.from <= v->launched && v->launched <= c->open.to)
		return c->open;
	c->thread = v->thread;
	c->open = zoom_opened(&q->scopes, v->thread, depth, v->launched);
	if (c->open.what == OPEN_NONE && main != v->thread && main != ZOOM_NONE)
		c->open = zoom_opened(&q->scopes, main, depth, v->launched);
	return c->open;
}

/* An operation in one of the scopes above it. */
static void cast_op(struct asking *q, uint32_t lane, const struct trace_item *v, uint32_t scope)
{
	const struct zoomed_lane *l = &q->w->lane[lane];
	const uint32_t depth = trace_names_depth(&q->w->names, scope);
	struct cast *c = &q->cast[l->first_row + zoom_depth(l, depth)];
	struct zoomed_opened o = {OPEN_NONE, 0, 0, 0};
	uint64_t key;

	if (v->launched != ZOOM_NEVER && v->thread != ZOOM_NONE)
		o = opened(q, c, v, depth);
	key = o.what == OPEN_ONE && o.node == scope ? o.from : ZOOM_NEVER;
	if (c->item.count > 0 && c->item.node == scope && c->key == key && o.what != OPEN_SHORT) {
		c->item.end = v->end > c->item.end ? v->end : c->item.end;
		return;
	}
	cast_put(q, lane, depth, c);
	c->item = (struct trace_item){.start = v->start, .end = v->end, .count = 1, .node = scope};
	c->key = key;
}

static int by_start(const void *a, const void *b)
{
	const struct trace_item *x = *(const struct trace_item *const *)a,
				*y = *(const struct trace_item *const *)b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The operations of a stream in a part, by start: its rows stand one behind the other. */
static void cast_stream(struct asking *q, const struct trace_item **v, uint32_t n, uint32_t lane)
{
	const struct known *known;
	uint32_t i, at, steps;

	for (i = 1; i < n && by_start(&v[i - 1], &v[i]) <= 0; i++)
		;
	if (i < n)
		qsort(v, n, sizeof(*v), by_start);
	for (i = 0; i < n; i++) {
		steps = 0;
		known = q->w->names.v;
		for (at = known[v[i]->node].parent; at != PROFILE_NONE && steps < TRACE_DEPTH_MAX;
			at = known[at].parent, steps++)
			if (trace_names_timed(&q->w->names, at))
				cast_op(q, lane, v[i], at);
	}
}

/* projected[lane]: the lane of a stream's scopes, if it is wanted. */
static void cast_part(struct asking *q, const struct gathered_part *g, const uint32_t *projected,
	const struct trace_item **room)
{
	const struct zoomed_part *p = &g->part;
	uint32_t i = 0, n, lane;

	while (i < p->n) {
		lane = p->track[p->item[i].track].lane;
		for (n = 0; i + n < p->n && p->track[p->item[i + n].track].lane == lane; n++)
			room[n] = &p->item[i + n];
		if (projected[lane] != ZOOM_NONE)
			cast_stream(q, room, n, projected[lane]);
		i += n;
	}
}

static int cast_all(struct asking *q, const uint32_t *projected, struct err *e)
{
	const struct trace_item **room;
	uint32_t i, most = 0;
	int r = zoom_scopes(q->w, &q->g, &q->scopes, e);

	for (i = 0; i < q->g.n; i++)
		most = q->g.v[i].part.n > most ? q->g.v[i].part.n : most;
	room = calloc((size_t)most + 1, sizeof(*room));
	q->cast = calloc((size_t)q->w->n_rows + 1, sizeof(*q->cast));
	q->main = calloc((size_t)q->w->l.n_processes + 1, sizeof(*q->main));
	if (r == 0 && (room == NULL || q->cast == NULL || q->main == NULL))
		r = zoom_no_memory(e);
	for (i = 0; r == 0 && i < q->w->l.n_processes; i++)
		q->main[i] = ZOOM_NONE;
	for (i = 0; r == 0 && i < q->w->n_lanes; i++)
		if (q->w->lane[i].kind == ZOOM_THREAD &&
			q->w->lane[i].number == q->w->process[q->w->lane[i].process].p.pid)
			q->main[q->w->lane[i].process] = i;
	for (i = 0; r == 0 && i < q->w->n_rows; i++)
		q->cast[i].thread = ZOOM_NONE;
	for (i = 0; r == 0 && i < q->g.n; i++)
		cast_part(q, &q->g.v[i], projected, room);
	for (i = 0; r == 0 && i < q->w->n_lanes; i++)
		for (uint32_t k = 0; projected[i] != ZOOM_NONE && k < q->w->lane[projected[i]].rows;
			k++)
			cast_put(q, projected[i], k,
				&q->cast[q->w->lane[projected[i]].first_row + k]);
	free(room);
	return r;
}

static int project(struct asking *q, struct err *e)
{
	uint32_t *projected = calloc((size_t)q->w->n_lanes + 1, sizeof(*projected));
	uint32_t i;
	int r;

	if (projected == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < q->w->n_lanes; i++)
		projected[i] = ZOOM_NONE;
	for (i = 0; i < q->w->n_lanes; i++)
		if (q->w->lane[i].kind == ZOOM_PROJECTED && q->wanted[i])
			projected[q->w->lane[i].of] = i;
	r = cast_all(q, projected, e);
	free(projected);
	return r;
}

/* --- the answer */

static bool wants_projected(const struct asking *q)
{
	uint32_t i;

	for (i = 0; i < q->w->n_lanes; i++)
		if (q->wanted[i] && q->w->lane[i].kind == ZOOM_PROJECTED)
			return true;
	return false;
}

static int slice_order(const void *a, const void *b)
{
	const struct zoom_slice *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int answer(struct asking *q, struct zoom_tile *ret, struct err *e)
{
	const uint32_t most =
		q->a->most == 0 || q->a->most > ZOOM_SLICES_MAX ? ZOOM_SLICES_MAX : q->a->most;
	uint32_t i, k;

	for (i = 0; i < q->w->n_rows; i++)
		row_put(q, &q->row[i]);
	while (q->n > most && !q->failed && q->g.merge_ns < q->a->t1 - q->a->t0)
		squeeze(q);
	ret->slice = reallocarray(NULL, (size_t)q->n + 1, sizeof(*ret->slice));
	if (q->failed || ret->slice == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < q->w->n_rows; i++)
		for (k = q->row[i].first; k != ZOOM_NONE && ret->n < most; k = q->v[k].next)
			ret->slice[ret->n++] = q->v[k].s;
	for (i = 1; i < ret->n && slice_order(&ret->slice[i - 1], &ret->slice[i]) <= 0; i++)
		;
	if (i < ret->n) /* chunks do not come quite in order */
		qsort(ret->slice, ret->n, sizeof(*ret->slice), slice_order);
	ret->merge_ns = q->g.merge_ns;
	ret->coarse = q->g.coarse || ret->n < q->n;
	return 0;
}

static int ask(struct asking *q, struct zoom_tile *ret, struct err *e)
{
	struct gather_ask a = {
		.t0 = q->a->t0, .t1 = q->a->t1, .merge_ns = (q->a->t1 - q->a->t0) / q->a->px};
	uint32_t i;
	int r;

	q->wanted = zoom_wanted(q->w, q->a->lane, q->a->n_lanes);
	q->row = calloc((size_t)q->w->n_rows + 1, sizeof(*q->row));
	if (q->wanted == NULL || q->row == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < q->w->n_rows; i++)
		q->row[i].first = q->row[i].last = ZOOM_NONE;
	a.launches = wants_projected(q);
	r = zoom_gather(q->w, &a, &q->g, e);
	for (i = 0; r == 0 && i < q->g.n; i++)
		take_part(q, &q->g.v[i]);
	if (r == 0)
		take_bursts(q);
	if (r == 0 && a.launches)
		r = project(q, e);
	return r < 0 ? r : answer(q, ret, e);
}

int zoom_slices(struct zoom *w, const struct zoom_ask *a, struct zoom_tile *ret, struct err *e)
{
	struct asking q = {.w = w, .a = a};
	int r = zoom_check(a, e);

	*ret = (struct zoom_tile){.n = 0};
	if (r == 0)
		r = ask(&q, ret, e);
	zoom_gathered_fini(&q.g);
	zoom_scopes_fini(&q.scopes);
	free(q.wanted);
	free(q.row);
	free(q.cast);
	free(q.main);
	free(q.v);
	if (r < 0)
		zoom_tile_fini(ret);
	return r;
}

void zoom_tile_fini(struct zoom_tile *t)
{
	free(t->slice);
	*t = (struct zoom_tile){.n = 0};
}
