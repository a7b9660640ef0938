/* SPDX-License-Identifier: MIT. window.h: when a session was active, and where its segments begin,
 * in the clock of one process's ring, so that an event is judged by its raw stamp.
 * Owns both lists. */
#ifndef PROTOND_WINDOW_H
#define PROTOND_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "clockmap.h"

#define WINDOW_ACTIVE_MAX   16384u /* beyond, the oldest quarter is forgotten */
#define WINDOW_ACTIVE_LEAST 256u   /* without room for more */
#define WINDOW_SEGMENTS_MAX \
	4096u /* beyond, the oldest quarter is: late events go to the oldest kept */
#define WINDOW_OPEN UINT64_MAX

struct interval {
	uint64_t begin, end; /* [begin, end) in the ring's clock; end WINDOW_OPEN: still active */
	uint64_t before_ns;  /* active time before this interval */
};

struct window {
	struct interval *active; /* disjoint, growing; only the last may be open */
	uint64_t *segment;       /* where segment first_segment + i begins, growing */
	uint32_t n_active, cap_active, n_segments, cap_segments;
	uint32_t first_segment;
};

void window_fini(struct window *w);
/* Does nothing if it is open. If there are `most` intervals, the oldest quarter is forgotten and
 * added to *ret_forgotten. -ENOMEM. */
int window_open(struct window *w, struct clockmap *m, uint64_t clock, uint32_t most,
	uint64_t *ret_forgotten);
void window_close(struct window *w, uint64_t clock);      /* does nothing if it is not open */
int window_segment_add(struct window *w, uint64_t clock); /* the next one begins; -ENOMEM */
/* The slow cases of the two below. */
uint32_t window_segment_find(const struct window *w, uint64_t clock);
bool window_had(const struct window *w, uint64_t clock);
uint64_t window_active_ns(
	const struct window *w, struct clockmap *m, uint64_t clock); /* up to clock */

static inline bool window_is_open(const struct window *w)
{
	return w->n_active > 0 && w->active[w->n_active - 1].end == WINDOW_OPEN;
}

/* Was it active at this instant? */
static inline bool window_has(const struct window *w, uint64_t clock)
{
	const struct interval *last;

	if (w->n_active == 0)
		return false;
	last = &w->active[w->n_active - 1];
	return clock >= last->begin ? clock < last->end : window_had(w, clock);
}

static inline uint32_t window_segment(const struct window *w, uint64_t clock)
{
	if (w->n_segments == 0)
		return 0;
	if (clock >= w->segment[w->n_segments - 1])
		return w->first_segment + w->n_segments - 1;
	return window_segment_find(w, clock);
}

/* Nanoseconds of [begin, end) in which it was active. */
static inline uint64_t window_overlap(
	const struct window *w, struct clockmap *m, uint64_t begin, uint64_t end)
{
	const struct interval *last;
	uint64_t to, from;

	if (w->n_active == 0)
		return 0;
	last = &w->active[w->n_active - 1];
	if (begin >= last->begin && end <= last->end) {
		to = clockmap_ns(m, end);
		from = clockmap_ns(m, begin);
	} else {
		to = window_active_ns(w, m, end);
		from = window_active_ns(w, m, begin);
	}
	return to > from ? to - from : 0;
}

#endif
