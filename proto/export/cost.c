/* SPDX-License-Identifier: MIT. cost.c: what each node of a tree costs. */
#include "cost.h"

#include <stdlib.h>

#define SUM_MAX ((uint64_t)INT64_MAX) /* what every format can write */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > SUM_MAX - b ? SUM_MAX : a + b;
}

/* A file may hold any number. */
static uint64_t whole(const struct profile *p, uint32_t node, uint32_t metric)
{
	const struct value *v = metric == PROFILE_NONE ? NULL : profile_value(p, node, metric);

	if (v == NULL)
		return 0;
	if (v->type == VALUE_I64)
		return v->i > 0 ? (uint64_t)v->i : 0;
	if (v->type == VALUE_U64)
		return v->u < SUM_MAX ? v->u : SUM_MAX;
	if (v->type == VALUE_F64)
		return !(v->f > 0) ? 0 : v->f < 9e18 ? (uint64_t)v->f : SUM_MAX;
	return 0;
}

/* What a scope's time holds of the scopes inside it, through nodes that have none. */
static void take_from_parent(const struct profile *p, uint32_t cpu, uint32_t node, struct costs *c)
{
	const uint64_t inside = whole(p, node, cpu);
	uint32_t at = p->node[node].parent;
	uint64_t *own;

	while (at != PROFILE_NONE && whole(p, at, cpu) == 0)
		at = p->node[at].parent;
	if (at == PROFILE_NONE)
		return;
	own = &c->self[at][COST_cpu_time];
	*own = *own > inside ? *own - inside : 0;
}

static void fill(const struct profile *p, struct costs *c)
{
	const uint32_t time = profile_find_metric(p, "time (ns)"),
		       copy = profile_find_metric(p, "copy_time (ns)"),
		       count = profile_find_metric(p, "count"),
		       copies = profile_find_metric(p, "copies"),
		       cpu = profile_find_metric(p, "cpu_time (ns)"),
		       calls = profile_find_metric(p, "calls"),
		       sampled = profile_find_metric(p, "sample_time (ns)"),
		       samples = profile_find_metric(p, "cpu_samples");
	uint32_t i;

	for (i = 0; i < p->n_nodes; i++) {
		c->self[i][COST_gpu_time] = add(whole(p, i, time), whole(p, i, copy));
		c->self[i][COST_count] = add(whole(p, i, count), whole(p, i, copies));
		c->self[i][COST_cpu_time] = whole(p, i, cpu);
		c->self[i][COST_calls] = whole(p, i, calls);
		c->self[i][COST_sample_time] = whole(p, i, sampled);
		c->self[i][COST_cpu_samples] = whole(p, i, samples);
	}
	for (i = 1; i < p->n_nodes; i++)
		if (whole(p, i, cpu) > 0)
			take_from_parent(p, cpu, i, c);
	for (i = p->n_nodes; i-- > 0;) {
		for (unsigned k = 0; k < COST_N; k++)
			c->all[i][k] = add(c->all[i][k], c->self[i][k]);
		if (i > 0)
			for (unsigned k = 0; k < COST_N; k++)
				c->all[p->node[i].parent][k] =
					add(c->all[p->node[i].parent][k], c->all[i][k]);
	}
	c->n = c->all[0][COST_cpu_samples] > 0 ? COST_N : COST_sample_time;
	c->main = c->all[0][COST_gpu_time] > 0 ? COST_gpu_time
		  : c->n == COST_N             ? COST_sample_time
					       : COST_cpu_time;
}

int costs_new(const struct profile *p, struct costs *ret)
{
	*ret = (struct costs){calloc(p->n_nodes, sizeof(*ret->self)),
		calloc(p->n_nodes, sizeof(*ret->all)), COST_gpu_time, COST_N};
	if (ret->self == NULL || ret->all == NULL) {
		costs_free(ret);
		return -ENOMEM;
	}
	fill(p, ret);
	return 0;
}

void costs_free(struct costs *c)
{
	free(c->self);
	free(c->all);
	*c = (struct costs){0};
}

uint32_t cost_next(const struct profile *p, uint32_t at, uint32_t *ret_up)
{
	*ret_up = 0;
	if (p->node[at].first_child != PROFILE_NONE)
		return p->node[at].first_child;
	while (p->node[at].next_sibling == PROFILE_NONE) {
		++*ret_up;
		at = p->node[at].parent;
		if (at == PROFILE_NONE)
			return PROFILE_NONE;
	}
	++*ret_up;
	return p->node[at].next_sibling;
}
