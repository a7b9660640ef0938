/* SPDX-License-Identifier: MIT. launches.c: kernels by how they were launched. */
#include "launches.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "table.h"

#define LOW 0.25 /* of an SM's warps: too few to hide what they wait for */

struct adding {
	const struct profile *p;
	struct launches *to;
	struct table rows;
	uint32_t cap;
	uint32_t time, count; /* metrics */
};

struct row_key {
	const struct launches *l;
	const char *name;
	const struct profile_config *c;
};

static bool same_config(const struct profile_config *a, const struct profile_config *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return memcmp(a->grid, b->grid, sizeof(a->grid)) == 0 &&
	       memcmp(a->block, b->block, sizeof(a->block)) == 0 && a->registers == b->registers &&
	       a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared;
}

static bool row_is(const void *arg, uint32_t at)
{
	const struct row_key *k = arg;
	const struct launches_row *r = &k->l->row[at];

	return strcmp(r->name, k->name) == 0 && same_config(r->config, k->c);
}

static uint32_t hash_of(const char *name, const struct profile_config *c)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *name != '\0'; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	if (c == NULL)
		return table_mix(h, 0);
	h = table_mix(h, (uint64_t)c->grid[0] << 32 | c->block[0]);
	h = table_mix(h, (uint64_t)c->grid[1] << 32 | c->block[1]);
	h = table_mix(h, (uint64_t)c->grid[2] << 32 | c->block[2]);
	return table_mix(h, (uint64_t)c->registers << 32 | (c->static_shared + c->dynamic_shared));
}

/* config NULL: not known. */
static int add(
	struct adding *a, uint32_t node, const struct profile_config *c, double count, double ns)
{
	struct launches *l = a->to;
	const struct profile_node *n = &a->p->node[node];
	const struct row_key k = {l, n->name, c};
	const uint32_t hash = hash_of(n->name, c);
	uint32_t at = table_find(&a->rows, hash, row_is, &k);

	if (at == TABLE_NONE) {
		at = l->n;
		if (!ROOM_FOR(l->row, a->cap, l->n) || table_add(&a->rows, hash, at) == -ENOMEM)
			return -ENOMEM;
		l->row[l->n++] =
			(struct launches_row){.name = n->name, .class = n->class, .config = c};
	}
	l->row[at].count += count;
	l->row[at].ns += ns;
	return 0;
}

static double number(const struct adding *a, uint32_t node, uint32_t metric)
{
	const double v = metric == PROFILE_NONE ? (double)NAN
						: value_number(profile_value(a->p, node, metric));

	return isnan(v) ? 0 : v;
}

/* A node's configurations are [from, to). What more it was launched has none. */
static int add_node(struct adding *a, uint32_t node, uint32_t from, uint32_t to)
{
	const struct profile_config *c = a->p->config;
	const double count = number(a, node, a->count), ns = number(a, node, a->time);
	double known = 0, whole;
	uint32_t i;
	int r = 0;

	for (i = from; i < to; i++)
		known += (double)c[i].count;
	whole = known > count ? known : count;
	for (i = from; i < to && r == 0; i++)
		r = add(a, node, &c[i], (double)c[i].count, ns * (double)c[i].count / whole);
	if (r == 0 && known < whole)
		r = add(a, node, NULL, whole - known, ns * (whole - known) / whole);
	a->to->shared_out |= to - from + (known < whole) > 1;
	return r;
}

static int add_nodes(struct adding *a)
{
	const struct profile *p = a->p;
	uint32_t i, from = 0, to;
	int r = 0;

	for (i = 1; i < p->n_nodes && r == 0; i++) {
		for (; from < p->n_configs && p->config[from].node < i; from++)
			;
		for (to = from; to < p->n_configs && p->config[to].node == i; to++)
			;
		if (p->node[i].kind == NODE_KERNEL && (to > from || number(a, i, a->count) > 0))
			r = add_node(a, i, from, to);
	}
	return r;
}

static void judge_row(struct launches *l, struct launches_row *r)
{
	l->count += r->count;
	l->ns += r->ns;
	if (r->ns < LAUNCHES_SMALL_NS * r->count) {
		l->small += r->count;
		l->small_ns += r->ns;
	}
	r->has_occupancy = l->device != NULL && r->config != NULL &&
			   occupancy_of(l->device, r->config, &r->occupancy) &&
			   r->occupancy.blocks > 0;
	if (!r->has_occupancy)
		return;
	l->low_ns += r->occupancy.share < LOW ? r->ns : 0;
	l->tail_ns += r->ns * r->occupancy.tail;
}

static int by_time(const void *a, const void *b)
{
	const struct launches_row *x = a, *y = b;
	const int r = strcmp(x->name, y->name);

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (r != 0 || x->config == NULL || y->config == NULL)
		return r;
	return x->config < y->config ? -1 : x->config > y->config;
}

int launches_new(const struct profile *p, struct launches **ret)
{
	struct adding a = {.p = p,
		.to = calloc(1, sizeof(*a.to)),
		.time = profile_find_metric(p, "time (ns)"),
		.count = profile_find_metric(p, "count")};
	int r = a.to != NULL ? add_nodes(&a) : -ENOMEM;
	uint32_t i;

	table_fini(&a.rows);
	if (r == 0 && a.to->n == 0)
		r = -ENODATA;
	if (r < 0) {
		launches_free(a.to);
		return r;
	}
	a.to->device = occupancy_device(p);
	qsort(a.to->row, a.to->n, sizeof(*a.to->row), by_time);
	for (i = 0; i < a.to->n; i++)
		judge_row(a.to, &a.to->row[i]);
	*ret = a.to;
	return 0;
}

void launches_free(struct launches *l)
{
	if (l == NULL)
		return;
	free(l->row);
	free(l);
}
