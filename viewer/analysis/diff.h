/* SPDX-License-Identifier: MIT. diff.h: two profiles on one tree, matched by path of names. */
#ifndef PROTOND_VIEWER_DIFF_H
#define PROTOND_VIEWER_DIFF_H

#include "metrics.h"

struct diff {
	struct profile *p; /* the union tree: after's nodes, then those that only before has */
	struct view *view; /* on p: after - before, a node missing on one side counting as 0 */
	double *before[VIEW_COLUMNS_MAX], *after[VIEW_COLUMNS_MAX]; /* [n_nodes], NAN: not there */
	double before_total[VIEW_COLUMNS_MAX], after_total[VIEW_COLUMNS_MAX];
	uint8_t *side; /* [n_nodes]: SIDE_ bits */
};
#define SIDE_BEFORE 1u
#define SIDE_AFTER  2u

/* Both views carry the same metrics in the same order. */
int diff_new(const struct view *before, const struct view *after, struct diff **ret); /* -ENOMEM */
void diff_free(struct diff *d);

/* The change in percent of before; NAN: undefined. */
double diff_percent(double before, double after);

enum diff_fault { DIFF_FINE, DIFF_WORSE, DIFF_NEW, DIFF_UNRELATED };

struct diff_verdict {
	uint32_t node;  /* PROFILE_NONE: the total */
	double percent; /* of itself before; DIFF_NEW: of the total before */
};

/* The worst regression of this metric beyond `percent`: the total, or a node whose share is above
 * 1 % on one side. One that only `after` has is as bad as its share of what the total was.
 * DIFF_UNRELATED: no node but the root is in both. */
enum diff_fault diff_gate(
	const struct diff *d, uint32_t metric, double percent, struct diff_verdict *ret);

#endif
