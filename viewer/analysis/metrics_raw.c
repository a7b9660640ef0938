/* SPDX-License-Identifier: MIT. metrics_raw.c: what a name stands for in a profile: a metric of its
 * own, or one that the view computes of these. docs/metrics.md has the rules. */
#include "metrics_raw.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"

double *raw_numbers_new(uint32_t n)
{
	double *v = malloc((n + (size_t)1) * sizeof(*v));
	uint32_t i;

	for (i = 0; v != NULL && i < n; i++)
		v[i] = (double)NAN;
	return v;
}

/* --- names */

/* Inclusive ones first, as Proton looks. */
uint32_t raw_find(const struct profile *p, const char *name)
{
	char lower[256], bare[256];
	uint32_t i, pass;

	snprintf(lower, sizeof(lower), "%s", name);
	for (i = 0; lower[i] != '\0'; i++)
		lower[i] = (char)tolower((unsigned char)lower[i]);
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < p->n_metrics; i++) {
			if ((p->metric[i].kind == KIND_INCLUSIVE) != (pass == 0))
				continue;
			metric_bare(p->metric[i].name, bare, sizeof(bare));
			if (strcmp(lower, p->metric[i].name) == 0 || strcmp(lower, bare) == 0)
				return i;
		}
	}
	return PROFILE_NONE;
}

bool raw_time_is_cpu(const struct profile *p)
{
	return raw_find(p, "cpu_time") != PROFILE_NONE && raw_find(p, "time") == PROFILE_NONE &&
	       raw_find(p, "copy_time") == PROFILE_NONE;
}

/* The one or two raw metrics behind a name; [1] PROFILE_NONE: one. */
static void find_parts(const struct profile *p, const char *name, uint32_t at[2])
{
	const bool is_time = strcmp(name, GPU_TIME) == 0;

	at[1] = PROFILE_NONE;
	if (!is_time && strcmp(name, GPU_COUNT) != 0) {
		at[0] = raw_find(p, name);
		return;
	}
	at[0] = raw_find(p, is_time ? "time" : "count");
	at[1] = raw_find(p, is_time ? "copy_time" : "copies");
	if (at[0] != PROFILE_NONE)
		return;
	at[0] = at[1];
	at[1] = PROFILE_NONE;
}

/* What a name is computed of: itself, or the time that self_… takes apart. */
struct meaning {
	uint32_t at[2];
	uint32_t element; /* of at[0], a list; PROFILE_NONE: a number */
	bool is_self, is_cpu;
};

/* "v[1]" of a file, which has a list v: the list, and which element. */
static uint32_t find_element(const struct profile *p, const char *name, uint32_t *ret_k)
{
	const char *open = strrchr(name, '[');
	char list[256], *end;
	unsigned long k;
	uint32_t at;

	if (open == NULL || !isdigit((unsigned char)open[1]))
		return PROFILE_NONE;
	k = strtoul(open + 1, &end, 10);
	if (end[0] != ']' || end[1] != '\0' || k >= PROFILE_NONE)
		return PROFILE_NONE;
	snprintf(list, sizeof(list), "%.*s", (int)(open - name), name);
	at = raw_find(p, list);
	if (at == PROFILE_NONE || strcmp(metric_shape(p, at), "list") != 0)
		return PROFILE_NONE;
	*ret_k = (uint32_t)k;
	return at;
}

static struct meaning meaning_of(const struct profile *p, const char *name)
{
	struct meaning m = {.element = PROFILE_NONE};
	const bool is_self = strncmp(name, SELF, strlen(SELF)) == 0;

	find_parts(p, name, m.at);
	if (m.at[0] == PROFILE_NONE)
		m.at[0] = find_element(p, name, &m.element);
	if (m.at[0] == PROFILE_NONE && is_self) {
		name += strlen(SELF);
		m.is_self = strcmp(name, "time") == 0 || strcmp(name, GPU_TIME) == 0 ||
			    strcmp(name, "cpu_time") == 0;
		if (m.is_self)
			find_parts(p, name, m.at);
	}
	m.is_cpu = strcmp(name, "time") == 0 && raw_time_is_cpu(p);
	if (m.is_cpu || (m.is_self && strcmp(name, "cpu_time") == 0)) {
		m.at[0] = raw_find(p, "cpu_time");
		m.is_cpu = true;
	}
	return m;
}

bool raw_has(const struct profile *p, const char *name)
{
	return meaning_of(p, name).at[0] != PROFILE_NONE;
}

/* --- numbers */

static void own_numbers(const struct view *v, uint32_t metric, uint32_t element, double *out)
{
	const struct value *value;
	uint32_t i;

	for (i = 0; i < v->p->n_nodes; i++) {
		value = profile_value(v->p, i, metric);
		out[i] = (double)NAN;
		if (v->keep[i] && value->type == VALUE_VECTOR && element < value->n)
			out[i] = value->v[element];
		else if (v->keep[i])
			out[i] = value_number(value);
	}
}

static void add(double *to, double more)
{
	if (!isnan(more))
		*to = isnan(*to) ? more : *to + more;
}

/* To the sums of the subtrees. */
static void sum_up(const struct profile *p, double *v)
{
	uint32_t i;

	for (i = p->n_nodes - 1; i > 0; i--)
		add(&v[p->node[i].parent], v[i]);
}

/* A scope's time holds what is inside it; a node that has none gets its children's. self: without
 * the children's. inside: NANs. */
static void sum_scopes(const struct profile *p, double *v, double *inside, bool self)
{
	uint32_t i;

	for (i = p->n_nodes; i-- > 0;) {
		const double all = isnan(v[i]) ? inside[i] : v[i];

		if (i > 0)
			add(&inside[p->node[i].parent], all);
		if (!self)
			v[i] = all;
		else if (v[i] > inside[i])
			v[i] -= inside[i];
		else if (v[i] <= inside[i]) /* scopes of other threads may stand below */
			v[i] = 0;
	}
}

static bool is_work(const struct profile_node *node)
{
	return node->kind == NODE_KERNEL || node->kind == NODE_COPY || node->kind == NODE_SET;
}

/* What a scope launched itself, not in a scope below it. */
static void add_launched(const struct profile *p, double *v)
{
	uint32_t i;

	for (i = p->n_nodes - 1; i > 0; i--)
		if (is_work(&p->node[i]) && !is_work(&p->node[p->node[i].parent]))
			add(&v[p->node[i].parent], v[i]);
}

static double sum_of(const double *v, uint32_t n)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		sum += isnan(v[i]) ? 0 : v[i];
	return sum;
}

/* Of a metric as the profile has it. */
static void plain_numbers(struct raw *r, const struct profile *p)
{
	r->inclusive = p->metric[r->metric].kind == KIND_INCLUSIVE;
	if (r->inclusive)
		sum_up(p, r->v);
	r->whole = r->inclusive ? r->v[0] : sum_of(r->v, p->n_nodes);
}

/* "time" where nothing ran on a GPU. */
static void scope_numbers(struct raw *r, const struct profile *p, double *inside)
{
	sum_scopes(p, r->v, inside, false);
	r->inclusive = true;
	r->whole = r->v[0];
}

static void self_numbers(struct raw *r, const struct profile *p, double *inside)
{
	if (r->is_cpu)
		sum_scopes(p, r->v, inside, true);
	r->whole = sum_of(r->v, p->n_nodes);
	if (!r->is_cpu)
		add_launched(p, r->v);
}

int raw_new(const struct view *v, const char *name, struct raw *ret)
{
	const struct meaning m = meaning_of(v->p, name);
	const uint32_t n = v->p->n_nodes;
	const bool is_two = m.at[1] != PROFILE_NONE, is_scopes = m.is_self || m.is_cpu;
	double *more, *inside;
	uint32_t i;

	if (m.at[0] == PROFILE_NONE)
		return -ENOENT;
	*ret = (struct raw){.v = raw_numbers_new(n),
		.metric = m.at[0],
		.is_computed = m.is_self || m.is_cpu || m.element != PROFILE_NONE,
		.is_cpu = m.is_cpu};
	more = is_two ? raw_numbers_new(n) : NULL;
	inside = is_scopes ? raw_numbers_new(n) : NULL;
	if (ret->v != NULL && (more != NULL || !is_two) && (inside != NULL || !is_scopes)) {
		own_numbers(v, m.at[0], m.element, ret->v);
		if (is_two)
			own_numbers(v, m.at[1], PROFILE_NONE, more);
		for (i = 0; i < n && is_two; i++)
			add(&ret->v[i], more[i]);
		if (m.is_self)
			self_numbers(ret, v->p, inside);
		else if (m.is_cpu)
			scope_numbers(ret, v->p, inside);
		else
			plain_numbers(ret, v->p);
	} else {
		free(ret->v);
		ret->v = NULL;
	}
	free(more);
	free(inside);
	return ret->v != NULL ? 0 : -ENOMEM;
}
