/* SPDX-License-Identifier: MIT. order.c: the kept nodes of a view in the order in which they are
 * shown. */
#include "order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct child {
	uint32_t node;
	double value;
	const char *name;
};

static int by_value(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	if (isnan(x->value) || isnan(y->value)) {
		if (isnan(x->value) != isnan(y->value))
			return isnan(x->value) ? 1 : -1;
	} else if (x->value != y->value) {
		return x->value < y->value ? 1 : -1;
	}
	return (x->node > y->node) - (x->node < y->node);
}

static int by_name(const void *a, const void *b)
{
	const struct child *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r != 0 ? r : (x->node > y->node) - (x->node < y->node);
}

/* What a node costs: its value, or, where a scope has none of its own, what its children cost. */
static double *costs_new(const struct view *v)
{
	const uint32_t n = v->p->n_nodes;
	double *cost = malloc(n * sizeof(*cost)), *inside = calloc(n, sizeof(*inside));
	uint32_t i;

	for (i = n; cost != NULL && inside != NULL && i-- > 0;) {
		cost[i] = v->n_columns > 0 && v->keep[i] ? v->col[0].v[i] : (double)NAN;
		if (isnan(cost[i]) && inside[i] > 0)
			cost[i] = inside[i];
		if (i > 0 && !isnan(cost[i]))
			inside[v->p->node[i].parent] += cost[i];
	}
	if (inside == NULL) {
		free(cost);
		cost = NULL;
	}
	free(inside);
	return cost;
}

/* Links the kept children of one node; cost: NULL as they were seen; buf has room for all of them. */
static void link_children(const struct view *v, const double *cost, enum order_sort sort,
	uint32_t parent, struct child *buf, struct order *o)
{
	const struct profile_node *node = v->p->node;
	uint32_t at, n = 0, i;

	for (at = node[parent].first_child; at != PROFILE_NONE; at = node[at].next_sibling)
		if (v->keep[at])
			buf[n++] = (struct child){.node = at,
				.value = cost != NULL ? cost[at] : 0,
				.name = node[at].name};
	if (cost != NULL && n > 1)
		qsort(buf, n, sizeof(*buf), sort == SORT_NAME ? by_name : by_value);
	o->first[parent] = n > 0 ? buf[0].node : PROFILE_NONE;
	for (i = 0; i < n; i++)
		o->next[buf[i].node] = i + 1 < n ? buf[i + 1].node : PROFILE_NONE;
}

int order_new(const struct view *v, enum order_sort sort, struct order **ret)
{
	uint32_t n = v->p->n_nodes, i;
	struct order *o = calloc(1, sizeof(*o));
	struct child *buf = malloc(n * sizeof(*buf));
	double *cost = sort != SORT_SEEN ? costs_new(v) : NULL;

	if (o != NULL) {
		o->first = malloc(n * sizeof(*o->first));
		o->next = malloc(n * sizeof(*o->next));
	}
	if (o == NULL || buf == NULL || (cost == NULL && sort != SORT_SEEN) || o->first == NULL ||
		o->next == NULL) {
		order_free(o);
		free(buf);
		free(cost);
		return -ENOMEM;
	}
	o->next[0] = PROFILE_NONE;
	for (i = 0; i < n; i++) {
		if (v->keep[i])
			link_children(v, cost, sort, i, buf, o);
		else
			o->first[i] = ORDER_DROPPED;
	}
	free(buf);
	free(cost);
	*ret = o;
	return 0;
}

static int by_first_metric(const void *a, const void *b, void *key)
{
	const double *v = key;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	double x = v[i], y = v[j];

	if (isnan(x) || isnan(y))
		return isnan(x) != isnan(y) ? (isnan(x) ? 1 : -1) : (i > j) - (i < j);
	return x != y ? (x < y ? 1 : -1) : (i > j) - (i < j);
}

uint32_t *order_by_value(const struct view *v, uint32_t *ret_n)
{
	uint32_t *row = malloc(v->p->n_nodes * sizeof(*row)), i;

	*ret_n = 0;
	for (i = 0; i < v->p->n_nodes && row != NULL; i++)
		if (v->keep[i])
			row[(*ret_n)++] = i;
	if (row != NULL)
		qsort_r(row, *ret_n, sizeof(*row), by_first_metric, v->col[0].v);
	return row;
}

void order_free(struct order *o)
{
	if (o == NULL)
		return;
	free(o->first);
	free(o->next);
	free(o);
}
