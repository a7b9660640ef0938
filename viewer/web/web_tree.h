/* SPDX-License-Identifier: MIT. web_tree.h: a tree in columns: its nodes depth first, each with its
 * depth, so that neither side needs recursion. For web_*.c. */
#ifndef PROTOND_WEB_WEB_TREE_H
#define PROTOND_WEB_WEB_TREE_H

#include "name_set.h"
#include "web_ask.h"

struct web_tree {
	struct web_ask *a;
	const struct profile *p;
	const uint8_t *keep; /* which nodes are shown */
	struct name_set names;
	uint32_t *order; /* the shown nodes, depth first */
	uint32_t n;
	struct name_set families; /* what kinds of work they do */
};

int web_tree_new(struct web_ask *a, const struct view *v, struct web_tree *ret); /* -ENOMEM */
void web_tree_free(struct web_tree *w);
/* "node":{…}; open: further columns of nodes follow. */
void web_tree_nodes(struct web_tree *w);
void web_tree_words(struct web_tree *w); /* "names", "kinds", "classes" */
/* What the columns of a view are; and "name":[…] of the shown nodes, of other numbers of the same
 * columns: of[c] is [n_nodes]. A column in which nothing stands is left out of both, and one that is the
 * sum of another over all that is below is left to whoever reads it. */
void web_tree_metrics(struct web_tree *w, const struct view *v);
void web_tree_columns(struct web_tree *w, const struct view *v, double *const *of);

/* What each node costs by itself ("gpu_time_self"), and how long its calls took, as columns.
 * *ret_main: the metric to look at first. -ENOMEM. */
int web_costs(struct view *v, const char **ret_main);

#endif
