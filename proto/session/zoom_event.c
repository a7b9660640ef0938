/* SPDX-License-Identifier: MIT. zoom_event.c: the details of one event, what is in a box by name, and the
 * next event of a name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "zoom_int.h"

/* --- one event */

static uint32_t chunk_of(const struct zoom *w, uint32_t event)
{
	uint32_t low = 0, high = w->n_chunks, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (w->chunk[mid].first_event <= event)
			low = mid + 1;
		else
			high = mid;
	}
	return low == 0 ? ZOOM_NONE : low - 1;
}

static void op_details(struct zoom *w, const struct zoomed_chunk *k, const struct trace_chunk *c,
	const struct trace_op *o, struct zoom_event *ret)
{
	const struct trace_stream *s = &c->stream[o->stream];
	const struct trace_config *g = o->config != TRACE_NONE ? &c->config[o->config] : NULL;

	ret->is_op = true;
	ret->segment = o->segment;
	ret->class = o->class;
	ret->flags = o->flags;
	ret->context = s->context;
	ret->stream = s->stream;
	ret->device = w->show[ret->lane].device;
	ret->bytes = o->bytes;
	ret->launched = (o->flags & TRACE_UNLAUNCHED) == 0;
	ret->thread_lane = ZOOM_NONE;
	if (ret->launched) {
		ret->correlation = o->correlation;
		ret->thread_lane = w->lane[k->thread[o->thread]].shown;
		ret->launch_ns = trace_time_ring(&w->time, &w->process[k->process].p, o->launched);
	}
	if (g == NULL)
		return;
	ret->configured = true;
	memcpy(ret->grid, g->grid, sizeof(ret->grid));
	memcpy(ret->block, g->block, sizeof(ret->block));
	ret->registers = g->registers;
	ret->static_shared = g->static_shared;
	ret->dynamic_shared = g->dynamic_shared;
}

static int path_of(struct zoom *w, struct zoom_event *ret, struct err *e)
{
	uint32_t i, n, swap;

	if (w->path == NULL)
		w->path = calloc(TRACE_DEPTH_MAX, sizeof(*w->path));
	if (w->path == NULL)
		return zoom_no_memory(e);
	n = trace_names_path(&w->names, ret->name, w->path);
	for (i = 0; i < n / 2; i++) {
		swap = w->path[i];
		w->path[i] = w->path[n - 1 - i];
		w->path[n - 1 - i] = swap;
	}
	ret->path = w->path;
	ret->n_path = n;
	return 0;
}

static int no_event(uint32_t event, struct err *e)
{
	return err_set(e, -ENOENT, "no event %u in this timeline", event);
}

/* Where and when it is: as in the answer it was shown in. */
static int find_item(
	struct zoom *w, uint32_t chunk, uint32_t at, struct zoom_event *ret, struct err *e)
{
	const struct zoomed_lane *l;
	struct zoomed_part p;
	uint32_t i;
	int r;

	w->asked++;
	r = zoom_part(w, chunk, ZOOM_EVENTS, &p, e);
	for (i = 0; r == 0 && i < p.n; i++) {
		if (p.item[i].event != at)
			continue;
		l = &w->lane[p.track[p.item[i].track].lane];
		*ret = (struct zoom_event){.lane = l->shown,
			.depth = zoom_depth(l, p.track[p.item[i].track].depth),
			.name = p.item[i].node,
			.start_ns = p.item[i].start,
			.end_ns = p.item[i].end};
		return 0;
	}
	return r < 0 ? r : no_event(w->chunk[chunk].first_event + at, e);
}

int zoom_event(struct zoom *w, uint32_t event, struct zoom_event *ret, struct err *e)
{
	const uint32_t chunk = chunk_of(w, event);
	struct trace_chunk c;
	uint32_t at, scopes;
	int r;

	if (chunk == ZOOM_NONE || event - w->chunk[chunk].first_event >= w->chunk[chunk].events)
		return no_event(event, e);
	at = event - w->chunk[chunk].first_event;
	scopes = w->chunk[chunk].n[TRACE_N_SCOPES];
	r = find_item(w, chunk, at, ret, e);
	if (r == 0)
		r = zoom_read_chunk(w, chunk, &c, e);
	if (r < 0)
		return r;
	if (at >= scopes) {
		op_details(w, &w->chunk[chunk], &c, &c.op[at - scopes], ret);
	} else {
		ret->segment = c.scope[at].segment;
		ret->flags = c.scope[at].flags;
	}
	trace_chunk_fini(&c);
	return path_of(w, ret, e);
}

/* --- what is in a box */

static int sum_order(const void *a, const void *b)
{
	const struct zoom_sum *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void sum_add(struct zoom_sum *s, const struct trace_item *v)
{
	const uint64_t length = v->end - v->start;

	s->min_ns = s->count == 0 || length < s->min_ns ? length : s->min_ns;
	s->max_ns = length > s->max_ns ? length : s->max_ns;
	s->total_ns = load_sum(s->total_ns, length);
	s->count++;
}

static bool touches(const struct trace_item *v, uint64_t t0, uint64_t t1)
{
	return v->start < t1 && (v->end > t0 || v->start == t0);
}

static void sum_part(const struct zoom_ask *a, const bool *wanted, const struct zoomed_part *p,
	struct zoom_sum *of)
{
	uint32_t i;

	for (i = 0; i < p->n; i++)
		if (wanted[p->track[p->item[i].track].lane] && touches(&p->item[i], a->t0, a->t1))
			sum_add(&of[p->item[i].node], &p->item[i]);
}

static void sum_rest(struct zoom_sums *s, const struct zoom_sum *of, uint32_t n)
{
	uint32_t i;

	s->rest.name = ZOOM_NONE;
	for (i = ZOOM_SUMS_MAX; i < n; i++) {
		if (s->rest_names++ == 0 || of[i].min_ns < s->rest.min_ns)
			s->rest.min_ns = of[i].min_ns;
		s->rest.max_ns = of[i].max_ns > s->rest.max_ns ? of[i].max_ns : s->rest.max_ns;
		s->rest.total_ns = load_sum(s->rest.total_ns, of[i].total_ns);
		s->rest.count += of[i].count;
	}
}

/* of[node] become one for each name, in order of size; returns how many. */
static uint32_t sums_by_name(const struct zoom *w, struct zoom_sum *of, uint32_t n);

/* Chunk by chunk, so that a box of any size takes no more memory. */
static int sum_chunks(struct zoom *w, const struct zoom_ask *a, const bool *wanted,
	struct zoom_sum *of, struct err *e)
{
	struct zoomed_part p;
	uint32_t i;
	int r = 0;

	for (i = 0; i < w->n_chunks && r == 0; i++) {
		if (w->chunk[i].t0 >= a->t1 || w->chunk[i].t1 < a->t0)
			continue;
		w->asked++;
		r = zoom_part(w, i, ZOOM_EVENTS, &p, e);
		if (r == 0)
			sum_part(a, wanted, &p, of);
	}
	return r;
}

struct by_text {
	const char *text;
	struct zoom_sum s;
};

static int text_order(const void *a, const void *b)
{
	return strcmp(((const struct by_text *)a)->text, ((const struct by_text *)b)->text);
}

static uint32_t sums_by_name(const struct zoom *w, struct zoom_sum *of, uint32_t n)
{
	struct by_text *v = calloc((size_t)n + 1, sizeof(*v));
	uint32_t i, k = 0, m = 0;

	for (i = 0; i < n && v != NULL; i++)
		if (of[i].count > 0)
			v[k++] = (struct by_text){w->names.v[i].name, of[i]};
	if (k > 1)
		qsort(v, k, sizeof(*v), text_order);
	for (i = 0; i < k; i++) {
		struct zoom_sum *last = m > 0 ? &of[m - 1] : NULL;

		if (last == NULL || strcmp(v[i].text, v[i - 1].text) != 0) {
			of[m++] = v[i].s;
			continue;
		}
		last->count += v[i].s.count;
		last->total_ns = load_sum(last->total_ns, v[i].s.total_ns);
		last->min_ns = v[i].s.min_ns < last->min_ns ? v[i].s.min_ns : last->min_ns;
		last->max_ns = v[i].s.max_ns > last->max_ns ? v[i].s.max_ns : last->max_ns;
	}
	free(v);
	if (m > 1)
		qsort(of, m, sizeof(*of), sum_order);
	return v == NULL ? ZOOM_NONE : m;
}

int zoom_sums(struct zoom *w, const struct zoom_ask *a, struct zoom_sums *ret, struct err *e)
{
	struct zoom_sum *of = calloc((size_t)w->names.n + 1, sizeof(*of));
	bool *wanted = zoom_wanted(w, a->lane, a->n_lanes);
	const uint32_t n_nodes = w->names.n;
	uint32_t i, n = 0;
	int r = zoom_check(a, e);

	*ret = (struct zoom_sums){.n = 0};
	if (r == 0 && (of == NULL || wanted == NULL))
		r = zoom_no_memory(e);
	if (r == 0)
		r = sum_chunks(w, a, wanted, of, e);
	for (i = 0; r == 0 && i < n_nodes; i++)
		of[i].name = i;
	if (r == 0)
		n = sums_by_name(w, of, n_nodes);
	if (n == ZOOM_NONE)
		r = zoom_no_memory(e);
	free(wanted);
	if (r < 0) {
		free(of);
		return r;
	}
	sum_rest(ret, of, n);
	ret->sum = of;
	ret->n = n < ZOOM_SUMS_MAX ? n : ZOOM_SUMS_MAX;
	return 0;
}

void zoom_sums_fini(struct zoom_sums *s)
{
	free(s->sum);
	*s = (struct zoom_sums){.n = 0};
}

/* --- search */

struct finding {
	struct zoom *w;
	const struct zoom_find *f;
	bool *wanted, *named; /* by lane; by node */
	struct zoom_slice *best;
	bool found;
};

static bool is_nearer(const struct finding *q, uint64_t at)
{
	if (q->f->back)
		return at < q->f->from_ns && (!q->found || at > q->best->start_ns);
	return at > q->f->from_ns && (!q->found || at < q->best->start_ns);
}

static bool may_have(const struct finding *q, const struct zoomed_chunk *k)
{
	uint32_t i;

	if (k->t0 > k->t1 || (q->f->back ? k->t0 >= q->f->from_ns : k->t1 <= q->f->from_ns) ||
		(q->found && (q->f->back ? k->t1 < q->best->start_ns : k->t0 > q->best->start_ns)))
		return false;
	for (i = 0; i < k->n[TRACE_N_NODES]; i++)
		if (q->named[k->node[i]])
			return true;
	return false;
}

static void find_in(struct finding *q, uint32_t chunk, const struct zoomed_part *p)
{
	const struct trace_item *v = p->item;
	const struct zoomed_lane *l;
	uint32_t i;

	for (i = 0; i < p->n; i++, v++) {
		const struct zoomed_track *t = &p->track[v->track];

		if (!q->named[v->node] || !q->wanted[t->lane] || !is_nearer(q, v->start))
			continue;
		l = &q->w->lane[t->lane];
		q->found = true;
		*q->best = (struct zoom_slice){.start_ns = v->start,
			.end_ns = v->end,
			.busy_ns = v->busy,
			.count = 1,
			.name = v->node,
			.longest = v->node,
			.event = q->w->chunk[chunk].first_event + v->event,
			.lane = l->shown,
			.depth = zoom_depth(l, t->depth)};
	}
}

/* The nearest chunks come first: those behind them are then hardly ever read. */
static int find_all(struct finding *q, struct err *e)
{
	struct zoomed_part p;
	uint32_t i, at;
	int r = 0;

	for (i = 0; i < q->w->n_chunks && r == 0; i++) {
		at = q->f->back ? q->w->n_chunks - 1 - i : i;
		if (!may_have(q, &q->w->chunk[at]))
			continue;
		q->w->asked++;
		r = zoom_part(q->w, at, ZOOM_EVENTS, &p, e);
		if (r == 0)
			find_in(q, at, &p);
	}
	return r;
}

int zoom_find(struct zoom *w, const struct zoom_find *f, struct zoom_slice *ret, struct err *e)
{
	struct finding q = {.w = w,
		.f = f,
		.wanted = zoom_wanted(w, f->lane, f->n_lanes),
		.named = calloc((size_t)w->names.n + 1, sizeof(*q.named)),
		.best = ret};
	bool any = false;
	uint32_t i;
	int r = 0;

	if (q.wanted == NULL || q.named == NULL)
		r = zoom_no_memory(e);
	for (i = 0; r == 0 && i < w->names.n; i++) {
		q.named[i] = strcasestr(w->names.v[i].name, f->part) != NULL;
		any |= q.named[i];
	}
	if (r == 0 && any)
		r = find_all(&q, e);
	free(q.wanted);
	free(q.named);
	if (r < 0)
		return r;
	return q.found ? 0
		       : err_set(e, -ENOENT, "nothing %s that is called '%.100s'",
				 f->back ? "before" : "behind", f->part);
}
