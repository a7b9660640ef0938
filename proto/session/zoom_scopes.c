/* SPDX-License-Identifier: MIT. zoom_scopes.c: which scope of a thread was open at an instant, at a depth:
 * that is which instance of it GPU work was launched in. */
#include <stdlib.h>

#include "zoom_int.h"

static int stretch_order(const void *a, const void *b)
{
	const struct zoomed_stretch *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return (x->item->start > y->item->start) - (x->item->start < y->item->start);
}

/* The items of a track stand together. */
static bool add_part(const struct zoom *w, const struct zoomed_part *p, struct zoomed_scopes *s)
{
	uint32_t i = 0, n;

	for (; i < p->n; i += n) {
		const uint32_t track = p->item[i].track;
		const struct zoomed_track *t = &p->track[track];

		for (n = 1; i + n < p->n && p->item[i + n].track == track; n++)
			;
		if (w->lane[t->lane].kind != ZOOM_THREAD)
			continue;
		if (!ROOM_FOR(s->v, s->cap, s->n))
			return false;
		s->v[s->n++] = (struct zoomed_stretch){t->lane, t->depth, n, &p->item[i]};
	}
	return true;
}

int zoom_scopes(const struct zoom *w, const struct zoomed_gathered *g, struct zoomed_scopes *ret,
	struct err *e)
{
	uint32_t i;

	*ret = (struct zoomed_scopes){.n = 0};
	for (i = 0; i < g->n; i++)
		if (!add_part(w, &g->v[i].part, ret))
			return zoom_no_memory(e);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), stretch_order);
	return 0;
}

void zoom_scopes_fini(struct zoomed_scopes *s)
{
	free(s->v);
	*s = (struct zoomed_scopes){.n = 0};
}

/* The last stretch that begins at or before this. */
static const struct zoomed_stretch *stretch_at(
	const struct zoomed_scopes *s, uint32_t lane, uint32_t depth, uint64_t at)
{
	const struct trace_item edge = {.start = at};
	const struct zoomed_stretch key = {.lane = lane, .depth = depth, .item = &edge};
	uint32_t low = 0, high = s->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (stretch_order(&s->v[mid], &key) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || s->v[low - 1].lane != lane || s->v[low - 1].depth != depth)
		return NULL;
	return &s->v[low - 1];
}

struct zoomed_opened zoom_opened(
	const struct zoomed_scopes *s, uint32_t lane, uint32_t depth, uint64_t at)
{
	const struct zoomed_stretch *t = stretch_at(s, lane, depth, at);
	const struct trace_item *v;
	uint32_t low = 0, high, mid;

	if (t == NULL)
		return (struct zoomed_opened){OPEN_NONE, at, at, 0};
	high = t->n;
	while (low < high) {
		mid = low + (high - low) / 2;
		if (t->item[mid].start <= at)
			low = mid + 1;
		else
			high = mid;
	}
	v = &t->item[low - 1]; /* the stretch begins at or before `at` */
	if (at <= v->end)
		return (struct zoomed_opened){
			v->count == 1 ? OPEN_ONE : OPEN_SHORT, v->start, v->end, v->node};
	return (struct zoomed_opened){OPEN_NONE, at, at, 0};
}
