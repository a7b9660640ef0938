/* SPDX-License-Identifier: MIT. filter.h: which nodes of a view stay. */
#ifndef PROTOND_VIEWER_FILTER_H
#define PROTOND_VIEWER_FILTER_H

#include "metrics.h"

/* Python's re.match() on the name: anchored at its start. A filter changes which nodes are
 * shown, never a value. -EINVAL: the pattern is wrong, or takes too long to match a name. */
int filter_include(struct view *v, const char *pattern, struct err *e); /* paths through a match */
int filter_exclude(
	struct view *v, const char *pattern, struct err *e); /* without matches and below */

/* Nodes whose first metric is at least the threshold, and their ancestors. "0.5", or "1%" of the
 * whole. */
int filter_threshold(struct view *v, const char *text, struct err *e);

/* Keeps so many nodes besides ROOT, those with the highest first metric, and their ancestors.
 * -ENOMEM. */
int filter_rows(struct view *v, uint32_t rows, uint32_t *ret_hidden);

/* How many kept nodes lie below the first `depth` generations; *ret_deepest: how many
 * generations there are. */
uint32_t filter_cut(const struct view *v, uint32_t depth, uint32_t *ret_deepest);
bool filter_is_empty(const struct view *v);

#endif
