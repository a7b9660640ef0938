/* SPDX-License-Identifier: MIT. zoom_event.c: the details of one event, and the next event of a name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gpu_terms.h"
#include "zoom_int.h"

_Static_assert(sizeof(((struct zoom_event *)0)->object_name) == GPU_LABEL_BYTES, "a name");

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

/* Of a GPU of the process; device ZOOM_NONE: of any. */
static void object_name(const struct zoom *w, uint32_t process, uint32_t device, uint64_t object,
	char ret[GPU_LABEL_BYTES])
{
	const struct zoomed_process *p = &w->process[process];
	uint32_t i;

	ret[0] = '\0';
	for (i = 0; i < p->n_gpus && ret[0] == '\0'; i++)
		if (device == ZOOM_NONE || p->gpu[i].device == device)
			gpu_object_name(p->gpu[i].streams, object, ret);
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
	object_name(w, k->process, s->device, GPU_CONTEXT(s->context), ret->object_name);
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

static int sync_details(struct zoom *w, uint32_t chunk, const struct trace_scope *s,
	struct zoom_event *ret, struct err *e)
{
	ret->is_sync = true;
	ret->class = s->call.class;
	ret->correlation = s->call.correlation;
	ret->stream = s->call.stream;
	ret->cuda_event = s->call.event;
	if (s->call.event != 0)
		object_name(w, w->chunk[chunk].process, ZOOM_NONE, GPU_EVENT(s->call.event),
			ret->object_name);
	return zoom_sync(w, chunk, s, ret, e);
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

int zoom_event(struct zoom *w, uint32_t event, struct zoom_event *ret, struct err *e)
{
	const uint32_t chunk = chunk_of(w, event);
	struct zoom_place place;
	struct trace_chunk c;
	uint32_t at, scopes;
	int r;

	if (chunk == ZOOM_NONE || event - w->chunk[chunk].first_event >= w->chunk[chunk].events)
		return no_event(event, e);
	at = event - w->chunk[chunk].first_event;
	scopes = w->chunk[chunk].n[TRACE_N_SCOPES];
	r = zoom_place_of(w, chunk, at, &place, e);
	if (r == 0)
		r = zoom_read_chunk(w, chunk, trace_chunk_read, &c, e);
	if (r < 0)
		return r;
	*ret = (struct zoom_event){.lane = place.lane,
		.depth = place.depth,
		.name = place.name,
		.start_ns = place.start_ns,
		.end_ns = place.end_ns};
	if (at >= scopes) {
		op_details(w, &w->chunk[chunk], &c, &c.op[at - scopes], ret);
	} else {
		ret->segment = c.scope[at].segment;
		ret->flags = c.scope[at].flags;
		if (trace_is_sync(&c.scope[at]))
			r = sync_details(w, chunk, &c.scope[at], ret, e);
	}
	trace_chunk_fini(&c);
	return r < 0 ? r : path_of(w, ret, e);
}

/* --- search */

struct finding {
	struct zoom *w;
	const struct zoom_find *f;
	bool *wanted, *named; /* by lane; by node */
	struct zoom_slice *best;
	bool found;
};

/* a before b. */
static bool is_before(uint64_t a_ns, uint32_t a, uint64_t b_ns, uint32_t b)
{
	return a_ns != b_ns ? a_ns < b_ns : a < b;
}

static bool is_nearer(const struct finding *q, uint64_t at, uint32_t event)
{
	const struct zoom_slice *b = q->best;
	/* Without an event all that begin then are behind us. */
	const uint32_t from = q->f->event != 0 || q->f->back ? q->f->event : UINT32_MAX;

	if (q->f->back)
		return is_before(at, event, q->f->from_ns, from) &&
		       (!q->found || is_before(b->start_ns, b->event, at, event));
	return is_before(q->f->from_ns, from, at, event) &&
	       (!q->found || is_before(at, event, b->start_ns, b->event));
}

static bool may_have(const struct finding *q, const struct zoomed_chunk *k)
{
	uint32_t i;

	if (k->t0 > k->t1 || (q->f->back ? k->t0 > q->f->from_ns : k->t1 < q->f->from_ns) ||
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

		if (!q->named[v->node] || !q->wanted[t->lane] ||
			!is_nearer(q, v->start, q->w->chunk[chunk].first_event + v->event))
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
		q.named[i] = f->whole ? strcmp(w->names.v[i].name, f->part) == 0
				      : strcasestr(w->names.v[i].name, f->part) != NULL;
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
