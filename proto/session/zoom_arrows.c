/* SPDX-License-Identifier: MIT. zoom_arrows.c: from each launch to what it started on the GPU. */
#include <errno.h>
#include <stdlib.h>

#include "zoom_int.h"

struct arrows {
	struct zoom *w;
	const struct zoom_ask *a;
	bool *wanted;
	struct zoom_arrow *v;
	uint32_t n, cap;
	uint64_t seen, every; /* of so many one is kept */
	bool failed;
};

static bool is_within(const struct zoom_ask *a, uint64_t at)
{
	return at >= a->t0 && at < a->t1;
}

/* Too many: every second one goes, and of those that come so many more. */
static void thin(struct arrows *q)
{
	uint32_t i;

	for (i = 0; 2 * i < q->n; i++)
		q->v[i] = q->v[2 * i];
	q->n = i;
	q->every *= 2;
}

static void take(
	struct arrows *q, uint32_t chunk, const struct zoomed_track *t, const struct trace_item *v)
{
	const struct zoomed_lane *to = &q->w->lane[t->lane], *from;
	uint16_t depth;

	if (to->kind != ZOOM_STREAM || v->launched == ZOOM_NEVER || v->thread == ZOOM_NONE ||
		!q->wanted[t->lane] || !q->wanted[v->thread] ||
		(!is_within(q->a, v->launched) && !is_within(q->a, v->start)))
		return;
	if (q->seen++ % q->every != 0)
		return;
	if (q->n == ZOOM_ARROWS_MAX)
		thin(q);
	if (!ROOM_FOR(q->v, q->cap, q->n)) {
		q->failed = true;
		return;
	}
	from = &q->w->lane[v->thread];
	depth = trace_names_depth(&q->w->names, v->node);
	q->v[q->n++] = (struct zoom_arrow){.from_ns = v->launched,
		.to_ns = v->start,
		.from_lane = from->shown,
		.to_lane = to->shown,
		.from_depth = zoom_depth(from, depth > 0 ? depth - 1u : 0),
		.to_depth = zoom_depth(to, t->depth),
		.event = v->event == TRACE_NONE ? 0 : q->w->chunk[chunk].first_event + v->event};
}

int zoom_arrows(struct zoom *w, const struct zoom_ask *a, struct zoom_arrows *ret, struct err *e)
{
	struct arrows q = {.w = w, .a = a, .every = 1};
	struct gather_ask ask = {.t0 = a->t0, .t1 = a->t1};
	struct zoomed_gathered g = {.n = 0};
	uint32_t i, k;
	int r = zoom_check(a, e);

	*ret = (struct zoom_arrows){.n = 0};
	if (r < 0)
		return r;
	ask.merge_ns = (a->t1 - a->t0) / a->px;
	q.wanted = zoom_wanted(w, a->lane, a->n_lanes);
	r = q.wanted == NULL ? zoom_no_memory(e) : zoom_gather(w, &ask, &g, e);
	for (i = 0; i < g.n && r == 0; i++)
		for (k = 0; k < g.v[i].part.n; k++)
			take(&q, g.v[i].chunk, &g.v[i].part.track[g.v[i].part.item[k].track],
				&g.v[i].part.item[k]);
	zoom_gathered_fini(&g);
	free(q.wanted);
	if (r == 0 && q.failed)
		r = zoom_no_memory(e);
	*ret = (struct zoom_arrows){q.v, q.n, q.seen - q.n};
	if (r < 0)
		zoom_arrows_fini(ret);
	return r;
}

void zoom_arrows_fini(struct zoom_arrows *a)
{
	free(a->arrow);
	*a = (struct zoom_arrows){.n = 0};
}
