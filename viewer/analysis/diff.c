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

bool diff_gate(const struct diff *d, uint32_t metric, double percent, uint32_t *ret_node,
	double *ret_percent)
{
	bool rate = d->view->col[metric].more_is_better, found = false;
	double worst = percent, change;
	uint32_t i;

	/* A total that was nothing and is something now is worse than any percentage. */
	change = diff_percent(d->before_total[metric], d->after_total[metric]);
	if (isnan(change) && d->before_total[metric] == 0 && d->after_total[metric] > 0)
		change = HUGE_VAL;
	for (i = 0; i <= d->p->n_nodes; i++) {
		if (i > 0) {
			if (!weighs(d, metric, i - 1) && !rate)
				continue;
			change = diff_percent(d->before[metric][i - 1], d->after[metric][i - 1]);
		} else if (rate) {
			continue; /* rates do not add up to a total */
		}
		if (rate)
			change = -change;
		if (!(change > worst))
			continue;
		worst = change;
		*ret_node = i == 0 ? PROFILE_NONE : i - 1;
		*ret_percent = rate ? -change : change;
		found = true;
	}
	return found;
}
