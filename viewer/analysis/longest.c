/* SPDX-License-Identifier: MIT. longest.c: the longest path, in one sweep. */
#include "longest.h"

#include <stddef.h>

void longest_path(
	const struct longest *g, uint32_t label, double factor, double *ret, uint32_t *via)
{
	const struct longest_edge *e;
	uint32_t i, k, best;
	double at;

	for (i = 0; i < g->n; i++) {
		ret[i] = 0;
		best = LONGEST_NONE;
		for (k = g->first[i]; k < g->first[i + 1]; k++) {
			e = &g->edge[k];
			at = ret[e->from] + (e->label == label ? factor * e->ns : e->ns);
			if (best != LONGEST_NONE && at <= ret[i])
				continue;
			ret[i] = at;
			best = k;
		}
		if (via != NULL)
			via[i] = best;
	}
}
