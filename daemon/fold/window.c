/* SPDX-License-Identifier: MIT. window.c: when a session was active, and where its segments begin.
 */
#include "window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"

void window_fini(struct window *w)
{
	free(w->active);
	free(w->segment);
	*w = (struct window){0};
}

static uint64_t length_ns(struct clockmap *m, const struct interval *v)
{
	uint64_t from = clockmap_ns(m, v->begin), to = clockmap_ns(m, v->end);

	return to > from ? to - from : 0;
}

int window_open(struct window *w, struct clockmap *m, uint64_t clock, uint32_t most,
	uint64_t *ret_forgotten)
{
	struct interval *last = w->n_active > 0 ? &w->active[w->n_active - 1] : NULL;
	const uint32_t quarter = w->n_active / 4;
	uint64_t before = 0;

	if (last != NULL && last->end == WINDOW_OPEN)
		return 0;
	if (last != NULL) {
		clock = clock < last->end ? last->end : clock;
		before = last->before_ns + length_ns(m, last);
	}
	if (w->n_active >= most) {
		w->n_active -= quarter;
		memmove(w->active, w->active + quarter, w->n_active * sizeof(*w->active));
		*ret_forgotten += quarter;
	}
	if (!ROOM_FOR(w->active, w->cap_active, w->n_active))
		return -ENOMEM;
	w->active[w->n_active++] = (struct interval){clock, WINDOW_OPEN, before};
	return 0;
}

void window_close(struct window *w, uint64_t clock)
{
	struct interval *last = w->n_active > 0 ? &w->active[w->n_active - 1] : NULL;

	if (last != NULL && last->end == WINDOW_OPEN)
		last->end = clock < last->begin    ? last->begin
			    : clock == WINDOW_OPEN ? WINDOW_OPEN - 1
						   : clock;
}

int window_segment_add(struct window *w, uint64_t clock)
{
	uint32_t quarter = WINDOW_SEGMENTS_MAX / 4;

	if (w->n_segments > 0 && clock < w->segment[w->n_segments - 1])
		clock = w->segment[w->n_segments - 1];
	if (w->n_segments == WINDOW_SEGMENTS_MAX) {
		w->n_segments -= quarter;
		memmove(w->segment, w->segment + quarter, w->n_segments * sizeof(*w->segment));
		w->first_segment += quarter;
	}
	if (!ROOM_FOR(w->segment, w->cap_segments, w->n_segments))
		return -ENOMEM;
	w->segment[w->n_segments++] = clock;
	return 0;
}

uint32_t window_segment_find(const struct window *w, uint64_t clock)
{
	uint32_t low = 0, high = w->n_segments, mid;

	while (low < high) { /* the first that begins after clock */
		mid = low + (high - low) / 2;
		if (w->segment[mid] > clock)
			high = mid;
		else
			low = mid + 1;
	}
	return w->first_segment + (low > 0 ? low - 1 : 0);
}

/* The last interval that begins at or before clock; NULL. */
static const struct interval *interval_at(const struct window *w, uint64_t clock)
{
	uint32_t low = 0, high = w->n_active, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (w->active[mid].begin > clock)
			high = mid;
		else
			low = mid + 1;
	}
	return low > 0 ? &w->active[low - 1] : NULL;
}

bool window_had(const struct window *w, uint64_t clock)
{
	const struct interval *v = interval_at(w, clock);

	return v != NULL && clock < v->end;
}

uint64_t window_active_ns(const struct window *w, struct clockmap *m, uint64_t clock)
{
	const struct interval *v = interval_at(w, clock);
	struct interval part;

	if (v == NULL) /* it lies before all that is kept */
		return w->n_active > 0 ? w->active[0].before_ns : 0;
	part = (struct interval){v->begin, clock < v->end ? clock : v->end, 0};
	return v->before_ns + length_ns(m, &part);
}
