/* SPDX-License-Identifier: MIT. web_tree.h: a tree in columns: its nodes depth first, each with the
 * size of what is below, so that the page needs no recursion. For web_*.c. */
#ifndef PROTOND_WEB_WEB_TREE_H
#define PROTOND_WEB_WEB_TREE_H

#include "name_set.h"
#include "web_ask.h"

struct web_tree {
	struct web_ask *a;
	const struct profile *p;
	const uint8_t *keep; /* which nodes are shown */
	struct name_set names;
	uint32_t *order, *place,
		*size; /* the shown nodes; [n_nodes]: where each stands; of how many */
	uint32_t n;
};

int web_tree_new(struct web_ask *a, const struct view *v, struct web_tree *ret); /* -ENOMEM */
void web_tree_free(struct web_tree *w);
/* "node":{…}; open: further columns of nodes follow. */
void web_tree_nodes(struct web_tree *w);
void web_tree_words(struct web_tree *w); /* "names", "kinds", "classes" */
/* What a column is called and is; and "name":[…] of the shown nodes. A column in which nothing stands is
 * left out of both. v: [n_nodes]. */
void web_tree_metric(struct web_tree *w, const struct column *c, const double *v);
void web_tree_column(struct web_tree *w, const char *name, const double *v);

/* What each node costs, by itself and with all below it, and how long its calls took: WEB_COSTS
 * columns. -ENOMEM. */
#define WEB_COSTS 11u
int web_costs(struct view *v, const char **ret_main);

#endif
