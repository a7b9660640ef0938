/* SPDX-License-Identifier: MIT. clockmap.h: what a ring's clock is in nanoseconds of
 * CLOCK_MONOTONIC: straight pieces between anchors, and beyond them at the slope of the last ones.
 * Pure.
 *
 * Whatever a job says its clock is, the results lie in [0, CLOCK_NS_MAX]. */
#ifndef PROTOND_CLOCKMAP_H
#define PROTOND_CLOCKMAP_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_NS_MAX (UINT64_MAX >> 2)

__extension__ typedef __int128 i128; /* products of ticks and slopes */

struct anchor {
	uint64_t clock, mono_ns, real_ns, error_ns;
};

#define ANCHORS_BACK_MAX 16u

/* By clock, strictly growing. `v` belongs to the owner; full, the older half is thinned out. */
struct anchors {
	struct anchor *v;
	uint32_t n, cap;
	uint32_t changes; /* so that a clockmap knows when its piece is stale */
	uint32_t back[ANCHORS_BACK_MAX],
		n_back; /* places before which real time went back; the newest of them */
};

/* Adds at the end. One that goes back in time is of another boot: what was there is forgotten. One
 * at the same clock or instant as the last is ignored. */
void anchors_add(struct anchors *a, const struct anchor *x);
/* The place of the anchor nearest to this real time, where the clock was set back in the last piece that had it; 0: no
 * anchor. */
uint32_t anchors_near(const struct anchors *a, uint64_t real_ns);
/* CLOCK_REALTIME − CLOCK_MONOTONIC there; 0: no anchor. */
int64_t anchors_offset(const struct anchors *a, uint64_t real_ns);

struct clockmap {                      /* zero-initialise, then clockmap_use() */
	const struct anchors *anchors; /* NULL: the clock is CLOCK_MONOTONIC */
	uint32_t changes;
	uint32_t khz;                /* slope while there is one anchor only; 0: 1 GHz */
	uint64_t low, width;         /* the piece in hand holds for [low, low + width) */
	uint64_t clock0, ns0, slope; /* ns = ns0 + (clock − clock0) × slope / 2^32 */
};

void clockmap_use(struct clockmap *m, const struct anchors *a, uint32_t khz);
void clockmap_find(struct clockmap *m, uint64_t clock);        /* the piece for this clock */
uint64_t clockmap_clock(struct clockmap *m, uint64_t mono_ns); /* the other way round */

static inline uint64_t clockmap_ns(struct clockmap *m, uint64_t clock)
{
	i128 ns;

	if (clock - m->low >= m->width)
		clockmap_find(m, clock);
	if (clock >= m->clock0) {
		ns = (i128)(clock - m->clock0) * (i128)m->slope >> 32;
		return ns > (i128)(CLOCK_NS_MAX - m->ns0) ? CLOCK_NS_MAX : m->ns0 + (uint64_t)ns;
	}
	ns = (i128)(m->clock0 - clock) * (i128)m->slope >> 32;
	return ns > (i128)m->ns0 ? 0 : m->ns0 - (uint64_t)ns;
}

#endif
