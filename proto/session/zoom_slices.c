/* SPDX-License-Identifier: MIT. zoom_slices.c: what is in a window: each row of each lane, with what is
 * shorter than a pixel merged, and scopes projected onto the streams that their work ran on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "project.h"
#include "zoom_int.h"

#define SLICES_AT_WORK 65536u /* beyond: they are merged over twice the time */
#define NAMES_AT_WORK  4u
#define CASTS          16u /* of one row: of more threads at once the scopes fall apart */
#define CASTS_OWN      4u  /* of each thread, for work that overlaps */
#define FOUND          64u

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

struct cast { /* a scope in a row of a projected lane */
	struct projected of;
	uint64_t start, end, work; /* work: the last that is in it, by number */
	bool used;
};

struct found { /* what was open at a depth of a thread */
	uint32_t thread, depth;
	struct zoomed_opened open;
};

struct asking {
	struct zoom *w;
	const struct zoom_ask *a;
	bool *wanted;
	struct zoomed_gathered g;
	struct zoomed_scopes scopes;
	struct row *row;           /* [w->n_rows] */
	struct cast *cast;         /* [w->n_rows * CASTS] */
	struct found found[FOUND]; /* by depth and thread, the last ones */
	struct projected *above;   /* of the work at hand */
	bool *runs;                /* [w->n_lanes]: it has had any */
	uint64_t work;
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
	struct zoom_slice s;
	uint32_t i;

	for (i = 0; i < q->w->n_bursts; i++) {
		const struct zoomed_burst *b = &q->w->burst[i];

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

/* What is open in a row of a projected lane: of threads that take turns on the stream, each its own. */
static struct cast *casts_of(struct asking *q, uint32_t lane, uint32_t row)
{
	return &q->cast[(size_t)CASTS * (q->w->lane[lane].first_row + row)];
}

static void cast_put(struct asking *q, uint32_t lane, struct cast *c)
{
	const struct zoom_slice s = {.start_ns = c->start,
		.end_ns = c->end,
		.busy_ns = c->end - c->start,
		.count = 1,
		.name = c->of.node,
		.longest = c->of.node};

	if (c->used)
		take(q, lane, trace_names_depth(&q->w->names, c->of.node), &s);
	c->used = false;
}

/* Of a scope that was merged with others it is not known which it was: each launch is one. */
static bool find_open(void *arg, uint32_t thread, uint32_t node, uint64_t at, struct projected *ret)
{
	struct asking *q = arg;
	const uint32_t depth = trace_names_depth(&q->w->names, node);
	struct found *f = &q->found[(depth * 7 + thread) % FOUND];

	if (thread == ZOOM_NONE)
		return false;
	if (f->thread != thread || f->depth != depth || at < f->open.from || at > f->open.to)
		*f = (struct found){thread, depth, zoom_opened(&q->scopes, thread, depth, at)};
	if (f->open.what == OPEN_NONE || (f->open.what == OPEN_ONE && f->open.node != node))
		return false;
	ret->key = f->open.what == OPEN_ONE ? f->open.from : at;
	ret->thread = thread;
	return true;
}

/* The one of this scope, else a place for it: of the thread's, or of all, the one that was over first.
 * A stream does a thread's work in order, so of its others those that were over before this are over. */
static struct cast *cast_for(
	struct asking *q, uint32_t lane, const struct projected *x, uint64_t start)
{
	const uint32_t depth = trace_names_depth(&q->w->names, x->node);
	struct cast *c = casts_of(q, lane, zoom_depth(&q->w->lane[lane], depth)), *own = NULL,
		    *free_one = NULL, *oldest = c, *at;
	uint32_t n_own = 0;

	for (at = c; at < c + CASTS; at++) {
		if (at->used && projected_alike(&at->of, x))
			return at;
		if (at->used && at->of.thread == x->thread && at->end <= start)
			cast_put(q, lane, at);
		if (!at->used) {
			free_one = free_one == NULL ? at : free_one;
			continue;
		}
		oldest = at->end < oldest->end ? at : oldest;
		if (at->of.thread != x->thread)
			continue;
		own = own == NULL || at->end < own->end ? at : own;
		n_own++;
	}
	at = n_own >= CASTS_OWN ? own : free_one != NULL ? free_one : oldest;
	cast_put(q, lane, at);
	return at;
}

/* Runs that this work does not stand in are over. */
static void end_runs(struct asking *q, uint32_t lane, uint64_t now)
{
	const struct zoomed_lane *l = &q->w->lane[lane];
	struct cast *c = casts_of(q, lane, 0);
	uint32_t i;

	for (i = 0; i < l->rows * CASTS; i++)
		if (c[i].used && c[i].of.as == PROJECTED_RUN && c[i].work != now)
			cast_put(q, lane, &c[i]);
}

static void cast_op(struct asking *q, uint32_t lane, const struct trace_item *v)
{
	const struct projecting p = {.names = &q->w->names,
		.node = v->node,
		.thread = v->thread,
		.main = q->main[q->w->lane[v->thread].process],
		.launched = v->launched,
		.find = find_open,
		.arg = q};
	const uint32_t n = project_scopes(&p, q->above);
	uint32_t i;

	q->work++;
	for (i = 0; i < n; i++) {
		struct cast *c = cast_for(q, lane, &q->above[i], v->start);

		if (!c->used)
			*c = (struct cast){.of = q->above[i], .start = v->start, .used = true};
		c->start = v->start < c->start ? v->start : c->start;
		c->end = v->end > c->end ? v->end : c->end;
		c->work = q->work;
		q->runs[lane] |= c->of.as == PROJECTED_RUN;
	}
	if (q->runs[lane])
		end_runs(q, lane, q->work);
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
	uint32_t i;

	for (i = 1; i < n && by_start(&v[i - 1], &v[i]) <= 0; i++)
		;
	if (i < n)
		qsort(v, n, sizeof(*v), by_start);
	for (i = 0; i < n; i++)
		if (v[i]->launched != ZOOM_NEVER && v[i]->thread != ZOOM_NONE)
			cast_op(q, lane, v[i]);
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

static void find_mains(struct asking *q)
{
	const struct zoom *w = q->w;
	uint32_t i;

	for (i = 0; i < w->l.n_processes; i++)
		q->main[i] = ZOOM_NONE;
	for (i = 0; i < w->n_lanes; i++)
		if (w->lane[i].kind == ZOOM_THREAD &&
			w->lane[i].number == w->process[w->lane[i].process].p.pid)
			q->main[w->lane[i].process] = i;
}

static void cast_rest(struct asking *q, uint32_t lane)
{
	struct cast *c = casts_of(q, lane, 0);
	uint32_t i;

	for (i = 0; i < q->w->lane[lane].rows * CASTS; i++)
		cast_put(q, lane, &c[i]);
}

static int cast_all(struct asking *q, const uint32_t *projected, struct err *e)
{
	const struct trace_item **room;
	uint32_t i, most = 0;
	int r = zoom_scopes(q->w, &q->g, &q->scopes, e);

	for (i = 0; i < q->g.n; i++)
		most = q->g.v[i].part.n > most ? q->g.v[i].part.n : most;
	room = calloc((size_t)most + 1, sizeof(*room));
	q->cast = calloc((size_t)q->w->n_rows + 1, CASTS * sizeof(*q->cast));
	q->main = calloc((size_t)q->w->l.n_processes + 1, sizeof(*q->main));
	q->runs = calloc((size_t)q->w->n_lanes + 1, sizeof(*q->runs));
	q->above = calloc(TRACE_DEPTH_MAX, sizeof(*q->above));
	if (r == 0 && (room == NULL || q->cast == NULL || q->main == NULL || q->runs == NULL ||
			      q->above == NULL))
		r = zoom_no_memory(e);
	for (i = 0; i < FOUND; i++)
		q->found[i].thread = ZOOM_NONE;
	if (r == 0)
		find_mains(q);
	for (i = 0; r == 0 && i < q->g.n; i++)
		cast_part(q, &q->g.v[i], projected, room);
	for (i = 0; r == 0 && i < q->w->n_lanes; i++)
		if (projected[i] != ZOOM_NONE)
			cast_rest(q, projected[i]);
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
	free(q.runs);
	free(q.above);
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
