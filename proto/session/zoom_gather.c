/* SPDX-License-Identifier: MIT. zoom_gather.c: which chunks a window needs, and each at which level: as
 * fine as its pixels, or coarser where reading that would take too long. */
#include <errno.h>
#include <stdlib.h>

#include "zoom_int.h"

/* About: nanoseconds for an item. What a question may take is well below what it promises. */
#define COST_READ       40000u /* a chunk, however small */
#define COST_READ_EVENT 60u    /* read, unpacked and sorted */
#define COST_READ_ITEM  90u    /* of a lowest level */
#define COST_LOOK       10u    /* at hand */
#define COST_MAX        12000000u

/* Whether a chunk shows anything in [t0, t1); *ret_exact: what its highest resident level has of it
 * are events alone, such as the one long scope that ends in it. */
static bool shows(const struct zoomed_chunk *k, uint64_t t0, uint64_t t1, bool *ret_exact)
{
	const struct zoomed_part *p = k->n_levels > 1 ? &k->level[1] : &k->level[0];
	bool any = false;
	uint32_t i;

	*ret_exact = false;
	if (k->t0 >= t1 || k->t1 < t0)
		return false;
	if (p->item == NULL)
		return true;
	*ret_exact = true;
	for (i = 0; i < p->n; i++) {
		if (p->item[i].start >= t1 || p->item[i].end < t0)
			continue;
		any = true;
		*ret_exact &= p->item[i].count == 1;
	}
	return any;
}

/* The coarsest level that is as fine as this; else the events. */
static uint8_t level_for(const struct zoomed_chunk *k, uint64_t merge_ns)
{
	uint32_t level = k->n_levels;

	while (level > 0 && zoom_width(k, (uint8_t)(level - 1)) > merge_ns)
		level--;
	return level > 0 ? (uint8_t)(level - 1) : ZOOM_EVENTS;
}

struct need {
	uint32_t chunk;
	uint8_t exact; /* the level that shows it exactly; ZOOM_EVENTS: none */
};

struct needs {
	struct need *v;
	uint32_t n, cap;
};

static uint8_t level_of(const struct zoom *w, const struct need *n, uint64_t merge_ns)
{
	return n->exact != ZOOM_EVENTS ? n->exact : level_for(&w->chunk[n->chunk], merge_ns);
}

static uint64_t cost_of(const struct zoom *w, const struct needs *needs, uint64_t merge_ns)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < needs->n; i++) {
		const struct zoomed_chunk *k = &w->chunk[needs->v[i].chunk];
		const uint8_t level = level_of(w, &needs->v[i], merge_ns);
		const uint64_t n = level == ZOOM_EVENTS ? k->events : k->level[level].n;

		sum += n * COST_LOOK;
		if (!zoom_is_at_hand(w, needs->v[i].chunk, level))
			sum += COST_READ +
			       n * (level == ZOOM_EVENTS ? COST_READ_EVENT : COST_READ_ITEM);
	}
	return sum;
}

static int find_needs(struct zoom *w, uint64_t t0, uint64_t t1, bool events, struct needs *ret)
{
	uint32_t i;
	bool exact;

	for (i = 0; i < w->n_chunks; i++) {
		if (!shows(&w->chunk[i], t0, t1, &exact))
			continue;
		if (!ROOM_FOR(ret->v, ret->cap, ret->n))
			return -ENOMEM;
		ret->v[ret->n++] = (struct need){i, !exact || events           ? ZOOM_EVENTS
						    : w->chunk[i].n_levels > 1 ? 1
									       : 0};
	}
	return 0;
}

/* From when on the GPU work of [t0, t1) was launched. */
static uint64_t launched_from(const struct zoom *w, const struct needs *n, uint64_t t0, uint64_t t1)
{
	uint64_t from = t0;
	uint32_t i, j;

	for (i = 0; i < n->n; i++) {
		const struct zoomed_chunk *k = &w->chunk[n->v[i].chunk];
		const struct zoomed_part *p = k->n_levels > 1 ? &k->level[1] : &k->level[0];

		if (k->launch0 >= from)
			continue;
		if (p->item == NULL)
			from = k->launch0;
		for (j = 0; p->item != NULL && j < p->n; j++)
			if (p->item[j].launched < from && p->item[j].start < t1 &&
				p->item[j].end >= t0)
				from = p->item[j].launched;
	}
	return from;
}

static int read_parts(struct zoom *w, const struct needs *needs, struct zoomed_gathered *g,
	bool events, struct err *e)
{
	uint32_t i;
	int r = 0;

	g->v = calloc((size_t)needs->n + 1, sizeof(*g->v));
	if (g->v == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < needs->n && r == 0; i++) {
		struct gathered_part *p = &g->v[g->n++];

		p->chunk = needs->v[i].chunk;
		r = zoom_part(w, p->chunk,
			events ? ZOOM_EVENTS : level_of(w, &needs->v[i], g->merge_ns), &p->part, e);
	}
	return r;
}

int zoom_gather(
	struct zoom *w, const struct gather_ask *a, struct zoomed_gathered *ret, struct err *e)
{
	struct needs needs = {.n = 0};
	uint64_t from = a->t0;
	int r;

	*ret = (struct zoomed_gathered){.merge_ns = a->merge_ns > 0 ? a->merge_ns : 1};
	w->asked++;
	r = find_needs(w, a->t0, a->t1, a->events, &needs);
	if (r == 0 && a->launches) {
		from = launched_from(w, &needs, a->t0, a->t1);
		needs.n = 0;
		r = find_needs(w, from, a->t1, a->events, &needs);
	}
	while (r == 0 && !a->events && cost_of(w, &needs, ret->merge_ns) > COST_MAX &&
		ret->merge_ns < (a->t1 - a->t0) / 8) {
		ret->merge_ns *= 2;
		ret->coarse = true;
	}
	r = r < 0 ? zoom_no_memory(e) : read_parts(w, &needs, ret, a->events, e);
	free(needs.v);
	return r;
}

void zoom_gathered_fini(struct zoomed_gathered *g)
{
	free(g->v);
	*g = (struct zoomed_gathered){.n = 0};
}
