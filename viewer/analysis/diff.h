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

/* The worst regression of this metric beyond `percent`: the total, or a node that both sides
 * have and whose share is above 1 % on one of them. *ret_node: PROFILE_NONE for the total. */
bool diff_gate(const struct diff *d, uint32_t metric, double percent, uint32_t *ret_node,
	double *ret_percent);

#endif
