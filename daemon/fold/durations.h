/* SPDX-License-Identifier: MIT. durations.h: how long the events of a cell took: shortest, longest,
 * and a histogram (hist.h) as narrow as they are. Of tree.c, restore.c and collect.c. */
#ifndef PROTOND_DURATIONS_H
#define PROTOND_DURATIONS_H

#include "cells.h"
#include "hist.h"

struct part;

/* What the inline half leaves to do: a duration shorter or longer than all before; the counter of a
 * bucket that came round to 0. */
void durations_reach(struct part *part, struct cell *c, uint64_t ns);
void durations_deepen(struct part *part, struct cell *c, uint32_t at);

/* The duration of an event that is counted already. */
static inline void durations_add(struct part *part, struct cell *c, uint64_t ns)
{
	struct hist *h;
	uint32_t at;

	if (ns < c->min_ns || ns > c->max_ns)
		durations_reach(part, c, ns);
	h = c->hist;
	if (h == NULL)
		return;
	at = hist_bucket(ns) - h->first;
	if (at >= h->n) /* not known */
		return;
	if (h->depth == 0       ? ++h->count[at] == 0
		: h->depth == 1 ? ++((uint16_t *)hist_counters(h))[at] == 0
		: h->depth == 2 ? ++((uint32_t *)hist_counters(h))[at] == 0
				: ++((uint64_t *)hist_counters(h))[at] == 0)
		durations_deepen(part, c, at);
}

/* Those of a sum, which are counted already. */
struct sum_part;
void durations_sum(struct part *part, struct cell *c, const struct sum_part *s);

/* For restore: of a cell whose count, min_ns and max_ns stand. */
void durations_put(struct part *part, struct cell *c, const struct hist_counts *from);
/* For collect. */
void durations_get(const struct cell *c, struct hist_counts *ret);

#endif
