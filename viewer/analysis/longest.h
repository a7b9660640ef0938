/* SPDX-License-Identifier: MIT. longest.h: the longest path through a graph whose edges all lead on: what bounds the end. Pure. */
#ifndef PROTOND_VIEWER_LONGEST_H
#define PROTOND_VIEWER_LONGEST_H

#include <stdint.h>

#define LONGEST_NONE UINT32_MAX

struct longest_edge {
	uint32_t from; /* a node before the one that it leads to */
	uint32_t label;
	double ns; /* 0 or more */
};

struct longest {
	uint32_t n; /* nodes; the first is where all begins */
	const uint32_t *
		first; /* [n + 1]: a node's edges, of those that lead to it, are [first[i], first[i + 1]) */
	const struct longest_edge *edge;
};

/* How far each node is from where it begins, with the edges of `label` (LONGEST_NONE: of none) taking `factor` of their time.
 * ret[n]; via[n], or NULL: the edge that bounds it, LONGEST_NONE: none. Of equals the first. */
void longest_path(
	const struct longest *g, uint32_t label, double factor, double *ret, uint32_t *via);

#endif
