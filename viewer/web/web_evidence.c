/* SPDX-License-Identifier: MIT. web_evidence.c: where in a timeline a verdict can be seen. */
#include "web_evidence.h"

#include <string.h>

#include "bottlenecks.h"
#include "zoom.h"

#define STEPS_AROUND \
	2u /* of what is of no place: so many before and behind the one in the middle */
#define WIDEST       200u /* times what it is about is looked at, at most */
#define WIDEST_ALONE 20u  /* where no step says how much */

/* The longest piece of that name in the window; what was merged counts by its most frequent name. */
static bool find_longest(struct zoom *z, const char *name, struct evidence *ret)
{
	const struct zoom_ask ask = {.t0 = ret->t0, .t1 = ret->t1, .px = ZOOM_PX_MAX};
	const struct zoom_lane *lane;
	struct zoom_tile tile;
	struct err e = {0};
	uint32_t i, n_lanes;

	ret->from = ret->to = 0;
	if (zoom_slices(z, &ask, &tile, &e) < 0)
		return false;
	lane = zoom_lanes(z, &n_lanes);
	for (i = 0; i < tile.n; i++) {
		const struct zoom_slice *s = &tile.slice[i];

		if (s->name == ZOOM_NONE || s->lane >= n_lanes ||
			lane[s->lane].kind == ZOOM_PROJECTED ||
			s->end_ns - s->start_ns <= ret->to - ret->from ||
			strcmp(zoom_name(z, s->name), name) != 0)
			continue;
		ret->from = s->start_ns;
		ret->to = s->end_ns;
	}
	zoom_tile_fini(&tile);
	return ret->to > ret->from;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The step that the rule named, else the one in the middle of the first process'; of what has no place those around it, too. */
static bool in_steps(const struct facts *f, const struct verdict *v, struct evidence *ret)
{
	const struct steps *s = f->step;
	uint32_t n = 0, at, around;

	if (s == NULL || s->n == 0)
		return false;
	while (n < s->n && s->step[n].process == s->step[0].process)
		n++;
	at = v->step > 0 && v->step <= s->n ? v->step - 1 : n / 2;
	around = v->step == 0 && (v->node == PROFILE_NONE || v->node == 0) ? STEPS_AROUND : 0;
	ret->t0 = s->step[at < around ? 0 : at - around].begin_ns;
	ret->t1 = s->step[at + around < n || around == 0 ? at + around : n - 1].end_ns;
	if (v->step > 0 && ret->t1 > ret->t0) { /* with a little of what is beside it */
		const uint64_t pad = (ret->t1 - ret->t0) / 4;

		ret->from = ret->t0;
		ret->to = ret->t1;
		ret->t0 = less(ret->t0, pad);
		ret->t1 += pad;
	}
	return ret->t1 > ret->t0;
}

void evidence_find(
	struct zoom *z, const struct facts *f, const struct verdict *v, struct evidence *ret)
{
	const char *name;
	uint64_t most, widest;
	bool has_steps;

	*ret = (struct evidence){0};
	if (v->view == VIEW_series ||
		v->view == VIEW_summary) /* readings and counts: seen elsewhere */
		return;
	has_steps = in_steps(f, v, ret);
	if (v->node == PROFILE_NONE || v->node == 0) {
		if (!has_steps)
			*ret = (struct evidence){0};
		return;
	}
	name = f->p->node[v->node].name;
	widest = WIDEST;
	if (!has_steps || !find_longest(z, name, ret)) {
		widest = WIDEST_ALONE;
		zoom_range(z, &ret->t0, &ret->t1);
		if (ret->t1 <= ret->t0 || !find_longest(z, name, ret)) {
			*ret = (struct evidence){0};
			return;
		}
	}
	/* So near that it is more than a hair's breadth. */
	most = ret->to - ret->from;
	most = most < UINT64_MAX / widest ? most * widest : UINT64_MAX;
	if (ret->t1 - ret->t0 > most) {
		const uint64_t mid = ret->from + (ret->to - ret->from) / 2, t0 = ret->t0;

		ret->t0 = less(mid, most / 2) > t0 ? mid - most / 2 : t0;
		ret->t1 = ret->t1 - ret->t0 > most ? ret->t0 + most : ret->t1;
	}
}
