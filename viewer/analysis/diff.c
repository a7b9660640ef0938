/* SPDX-License-Identifier: MIT. diff.c: two profiles on one tree, matched by path of names. */
#include "diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_LEAST 0.01 /* a node below this share on both sides is not judged */

/* Finds union nodes by (parent, name). Siblings of one name are matched in order: they form a
 * ring, and the index points to the one taken last. */
struct index {
	uint32_t *slot; /* node + 1; 0 empty */
	uint32_t *twin; /* [nodes]: the next node of that parent and name; of the last, the first */
	uint32_t cap;   /* of slot; power of two */
};

static uint32_t hash(uint32_t parent, const char *name)
{
	uint64_t h = 0xcbf29ce484222325u ^ parent;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return (uint32_t)(h ^ h >> 32);
}

static int index_new(struct index *x, uint32_t nodes)
{
	x->cap = 64;
	while (x->cap / 2 < nodes)
		x->cap *= 2;
	x->slot = calloc(x->cap, sizeof(*x->slot));
	x->twin = malloc(nodes * sizeof(*x->twin));
	return x->slot == NULL || x->twin == NULL ? -ENOMEM : 0;
}

/* The first node of that parent and name that `side` has not taken; else a new one. */
static uint32_t take(struct diff *d, struct index *x, uint32_t parent,
	const struct profile_node *like, uint8_t side)
{
	uint32_t at = hash(parent, like->name) & (x->cap - 1), last = PROFILE_NONE, node;

	for (; x->slot[at] != 0; at = (at + 1) & (x->cap - 1)) {
		last = x->slot[at] - 1;
		if (d->p->node[last].parent == parent &&
			strcmp(d->p->node[last].name, like->name) == 0)
			break;
		last = PROFILE_NONE;
	}
	node = last != PROFILE_NONE ? x->twin[last] : PROFILE_NONE;
	if (node == PROFILE_NONE || (d->side[node] & side) != 0) {
		node = profile_add_node(d->p, parent, like->name, like->kind);
		if (node == PROFILE_NONE)
			return node;
		d->p->node[node].class = like->class;
		x->twin[node] = last != PROFILE_NONE ? x->twin[last] : node;
		if (last != PROFILE_NONE)
			x->twin[last] = node;
	}
	x->slot[at] = node + 1;
	d->side[node] |= side;
	return node;
}

/* One side's kept nodes; map: its node → union node. */
static int add_side(
	struct diff *d, struct index *x, const struct view *v, uint32_t *map, uint8_t side)
{
	const struct profile *p = v->p;
	uint32_t i;

	map[0] = 0;
	d->side[0] |= side;
	for (i = 1; i < p->n_nodes; i++) {
		map[i] = PROFILE_NONE;
		if (!v->keep[i])
			continue;
		map[i] = take(d, x, map[p->node[i].parent], &p->node[i], side);
		if (map[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int fill(struct diff *d, const struct view *v, const uint32_t *map, double **out)
{
	uint32_t c, i;

	for (c = 0; c < v->n_columns; c++) {
		out[c] = malloc(d->p->n_nodes * sizeof(*out[c]));
		if (out[c] == NULL)
			return -ENOMEM;
		for (i = 0; i < d->p->n_nodes; i++)
			out[c][i] = (double)NAN;
		for (i = 0; i < v->p->n_nodes; i++)
			if (map[i] != PROFILE_NONE)
				out[c][map[i]] = v->col[c].v[i];
	}
	return 0;
}

static int subtract(struct diff *d, const struct view *before, const struct view *after)
{
	uint32_t c, i;
	double *delta;
	int r;

	r = view_new(d->p, &d->view);
	if (r < 0)
		return r;
	memset(d->view->keep, 1, d->p->n_nodes);
	for (c = 0; c < after->n_columns && c < before->n_columns; c++) {
		r = view_add_column(d->view, &after->col[c], &delta);
		if (r < 0)
			return r;
		for (i = 0; i < d->p->n_nodes; i++) {
			double a = d->after[c][i], b = d->before[c][i];

			if (!isnan(a) || !isnan(b))
				delta[i] = (isnan(a) ? 0 : a) - (isnan(b) ? 0 : b);
		}
		d->before_total[c] = view_total(before, c);
		d->after_total[c] = view_total(after, c);
	}
	return 0;
}

int diff_new(const struct view *before, const struct view *after, struct diff **ret)
{
	uint32_t nodes = before->p->n_nodes + after->p->n_nodes;
	uint32_t *b = malloc(before->p->n_nodes * sizeof(*b)),
		 *a = malloc(after->p->n_nodes * sizeof(*a));
	struct diff *d = calloc(1, sizeof(*d));
	struct index x = {0};
	int r = -ENOMEM;

	if (d != NULL) {
		d->p = profile_new();
		d->side = calloc(nodes, 1);
	}
	if (a == NULL || b == NULL || d == NULL || d->p == NULL || d->side == NULL ||
		index_new(&x, nodes) < 0)
		goto out;
	r = add_side(d, &x, after, a, SIDE_AFTER);
	if (r == 0)
		r = add_side(d, &x, before, b, SIDE_BEFORE);
	if (r == 0)
		r = fill(d, after, a, d->after);
	if (r == 0)
		r = fill(d, before, b, d->before);
	if (r == 0)
		r = subtract(d, before, after);
out:
	free(a);
	free(b);
	free(x.slot);
	free(x.twin);
	if (r < 0)
		diff_free(d);
	else
		*ret = d;
	return r;
}

void diff_free(struct diff *d)
{
	uint32_t c;

	if (d == NULL)
		return;
	for (c = 0; c < VIEW_COLUMNS_MAX; c++) {
		free(d->before[c]);
		free(d->after[c]);
	}
	view_free(d->view);
	free(d->side);
	profile_free(d->p);
	free(d);
}

double diff_percent(double before, double after)
{
	if (isnan(before) || isnan(after) || before <= 0)
		return (double)NAN;
	return (after / before - 1) * 100;
}

static bool weighs(const struct diff *d, uint32_t metric, uint32_t node)
{
	return d->before[metric][node] > SHARE_LEAST * d->before_total[metric] ||
	       d->after[metric][node] > SHARE_LEAST * d->after_total[metric];
}

static bool is_unrelated(const struct diff *d)
{
	bool one[SIDE_BEFORE + SIDE_AFTER] = {false};
	uint32_t i;

	for (i = 1; i < d->p->n_nodes; i++) {
		if (d->side[i] == (SIDE_BEFORE | SIDE_AFTER))
			return false;
		one[d->side[i]] = true;
	}
	return one[SIDE_BEFORE] && one[SIDE_AFTER];
}

/* A total that was nothing and is something now is worse than any percentage. */
static double total_change(const struct diff *d, uint32_t metric)
{
	const double before = d->before_total[metric], after = d->after_total[metric];

	return before == 0 && after > 0 ? HUGE_VAL : diff_percent(before, after);
}

/* How much worse a node is; NAN: not to be judged. */
static double node_change(const struct diff *d, uint32_t metric, uint32_t node)
{
	const double before = d->before[metric][node], after = d->after[metric][node];

	if (d->view->col[metric].more_is_better)
		return -diff_percent(before, after);
	if (!weighs(d, metric, node))
		return (double)NAN;
	if (d->side[node] == SIDE_AFTER)
		return d->before_total[metric] > 0 ? after / d->before_total[metric] * 100
						   : (double)NAN; /* the total says it */
	return diff_percent(before, after);
}

enum diff_fault diff_gate(
	const struct diff *d, uint32_t metric, double percent, struct diff_verdict *ret)
{
	const bool rate = d->view->col[metric].more_is_better;
	double worst = percent, change;
	uint32_t i;

	*ret = (struct diff_verdict){.node = PROFILE_NONE};
	if (is_unrelated(d))
		return DIFF_UNRELATED;
	change = rate ? (double)NAN : total_change(d, metric); /* rates do not add up */
	if (change > worst)
		worst = change;
	for (i = 0; i < d->p->n_nodes; i++) {
		change = node_change(d, metric, i);
		if (!(change > worst))
			continue;
		worst = change;
		ret->node = i;
	}
	if (!(worst > percent))
		return DIFF_FINE;
	ret->percent = rate ? -worst : worst;
	return ret->node != PROFILE_NONE && d->side[ret->node] == SIDE_AFTER ? DIFF_NEW
									     : DIFF_WORSE;
}
