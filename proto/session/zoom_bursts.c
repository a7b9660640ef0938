/* SPDX-License-Identifier: MIT. zoom_bursts.c: events of a thread that were summed, and are in the tree
 * alone: when that was, and how many, in a lane beside the thread's. All are kept in memory. */
#include "zoom_int.h"

#define BURSTS_MAX (1u << 18) /* over: a lane's further ones are its last */

uint32_t zoom_add32(uint32_t a, uint64_t b)
{
	return b < UINT32_MAX - a ? a + (uint32_t)b : UINT32_MAX;
}

/* The last one of a lane. NULL: none. */
static struct zoomed_burst *last_of(struct zoom *w, uint32_t lane)
{
	uint32_t i = w->n_bursts;

	while (i > 0 && w->burst[i - 1].lane != lane)
		i--;
	return i > 0 ? &w->burst[i - 1] : NULL;
}

static int put(struct zoom *w, const struct zoomed_burst *b, struct err *e)
{
	struct zoomed_burst *last = w->n_bursts >= BURSTS_MAX ? last_of(w, b->lane) : NULL;

	if (w->n_bursts >= BURSTS_MAX) {
		last = last != NULL ? last : &w->burst[w->n_bursts - 1];
		last->end = b->end > last->end ? b->end : last->end;
		last->n += b->n;
		return 0;
	}
	if (!ROOM_FOR(w->burst, w->cap_bursts, w->n_bursts))
		return zoom_no_memory(e);
	w->burst[w->n_bursts++] = *b;
	return 0;
}

/* A sum that is older than its chunk says of its next events only that they came after its last. */
static int add(struct zoom *w, const struct zoomed_chunk *k, const struct trace_chunk *c,
	const struct trace_burst *b, struct err *e)
{
	struct trace_process *p = &w->process[k->process].p;
	struct zoomed_burst new = {.start = trace_time_ring(&w->time, p, b->begin),
		.end = trace_time_ring(&w->time, p, b->end),
		.n = b->n,
		.lane = zoom_lane_of(w, (struct zoomed_lane){.process = k->process,
						.device = ZOOM_NONE,
						.number = c->thread[b->thread].tid,
						.kind = ZOOM_SUMMED})};
	struct zoomed_lane *lane;

	if (new.lane == ZOOM_NONE)
		return zoom_no_memory(e);
	w->summed += b->n;
	lane = &w->lane[new.lane];
	if (lane->kind != ZOOM_SUMMED) /* there are too many lanes */
		return 0;
	new.start = new.start > lane->until ? new.start : lane->until;
	new.end = new.end > new.start ? new.end : new.start;
	lane->until = new.end;
	lane->of = k->thread[b->thread];
	lane->events += b->n;
	w->t0 = new.start < w->t0 ? new.start : w->t0;
	w->t1 = new.end > w->t1 ? new.end : w->t1;
	return put(w, &new, e);
}

int zoom_add_bursts(
	struct zoom *w, const struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < c->n_bursts && r == 0; i++)
		r = add(w, k, c, &c->burst[i], e);
	return r;
}
