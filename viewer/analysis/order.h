/* SPDX-License-Identifier: MIT. order.h: the kept nodes of a view in the order in which they are
 * shown. */
#ifndef PROTOND_VIEWER_ORDER_H
#define PROTOND_VIEWER_ORDER_H

#include "metrics.h"

#define ORDER_DROPPED (PROFILE_NONE - 1)

enum order_sort { SORT_SEEN, SORT_VALUE, SORT_NAME };

struct order {
	uint32_t *first, *next; /* [n_nodes]; PROFILE_NONE: no child, no later sibling */
};

/* SORT_SEEN: siblings as they were first seen; SORT_VALUE: by the first metric. -ENOMEM. */
int order_new(const struct view *v, enum order_sort sort, struct order **ret);
void order_free(struct order *o); /* NULL is fine */

/* The kept nodes by their first metric, the highest first; the caller's. NULL: out of memory. */
uint32_t *order_by_value(const struct view *v, uint32_t *ret_n);

#endif
