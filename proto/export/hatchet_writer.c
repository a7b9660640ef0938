/* SPDX-License-Identifier: MIT. hatchet_writer.c: what the two writers of .hatchet share. */
#include "hatchet_writer.h"

#include <stdlib.h>
#include <string.h>

uint32_t hatchet_elements(
	const struct hatchet_writer *w, const struct hatchet_column *c, uint32_t node)
{
	uint32_t n = 0;

	while (n < c->n && profile_value(w->p, node, w->element[c->first + n])->type != VALUE_NONE)
		n++;
	return n;
}

bool hatchet_has(const struct hatchet_writer *w, const struct hatchet_column *c, uint32_t node)
{
	return hatchet_elements(w, c, node) > 0 || (node == 0 && c->hint);
}

/* "v[7] (bytes)" → 7, how long "v" is, and where " (bytes)" begins; false: no such name. */
struct element {
	uint32_t k;
	size_t base;
	const char *rest;
};

static bool element_read(const char *name, struct element *ret)
{
	const char *open = strchr(name, '['), *at;

	if (open == NULL || open == name || (open[1] == '0' && open[2] != ']'))
		return false;
	*ret = (struct element){.base = (size_t)(open - name)};
	for (at = open + 1; *at >= '0' && *at <= '9' && ret->k < PROFILE_METRICS_MAX; at++)
		ret->k = ret->k * 10 + (uint32_t)(*at - '0');
	ret->rest = at + 1;
	return at > open + 1 && *at == ']' && (at[1] == '\0' || at[1] == ' ');
}

/* The metric of the same vector with this number. */
static uint32_t find_element(
	const struct profile *p, const char *name, const struct element *of, uint32_t k)
{
	struct element e;
	uint32_t i;

	for (i = 0; i < p->n_metrics; i++)
		if (element_read(p->metric[i].name, &e) && e.k == k && e.base == of->base &&
			memcmp(p->metric[i].name, name, e.base) == 0 &&
			strcmp(e.rest, of->rest) == 0)
			return i;
	return PROFILE_NONE;
}

/* Whether each node has the first so many of its elements, or none. */
static bool has_no_gaps(const struct hatchet_writer *w, const struct hatchet_column *c)
{
	uint32_t node, i;

	for (node = 0; node < w->p->n_nodes; node++)
		for (i = hatchet_elements(w, c, node); i < c->n; i++)
			if (profile_value(w->p, node, w->element[c->first + i])->type != VALUE_NONE)
				return false;
	return true;
}

/* The vector that this metric is the first element of; 0: it is none; -ENOMEM. */
static int take_vector(struct hatchet_writer *w, uint32_t metric, uint32_t first)
{
	const struct profile *p = w->p;
	const char *name = p->metric[metric].name;
	struct hatchet_column *c = &w->column[w->n_columns];
	struct element e;
	uint32_t at = metric;

	if (!element_read(name, &e) || e.k != 0)
		return 0;
	*c = (struct hatchet_column){.first = first};
	for (; at != PROFILE_NONE && c->n < PROFILE_METRICS_MAX - first; c->n++) {
		w->element[first + c->n] = at;
		at = find_element(p, name, &e, c->n + 1);
	}
	c->owned = malloc(strlen(name) + 1);
	if (c->owned == NULL)
		return -ENOMEM;
	memcpy(c->owned, name, e.base);
	memcpy(c->owned + e.base, e.rest, strlen(e.rest) + 1);
	c->name = c->owned;
	if (profile_find_metric(p, c->owned) == PROFILE_NONE && has_no_gaps(w, c)) {
		w->n_columns++;
		return (int)c->n;
	}
	free(c->owned);
	return 0;
}

static bool is_summed(const struct profile *p, uint32_t metric)
{
	bool summed = p->metric[metric].kind == KIND_INCLUSIVE;
	uint32_t n;

	for (n = 0; n < p->n_nodes && summed; n++)
		summed = profile_value(p, n, metric)->type < VALUE_STR;
	return summed;
}

static int by_name(const void *a, const void *b)
{
	const struct hatchet_column *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* What every kernel has, in the order that Proton writes it in where order is not by name. */
static const char *const fixed[] = {"time (ns)", "count", "device_id", "device_type"};
#define FIXED (sizeof(fixed) / sizeof(*fixed))

static size_t fixed_place(const char *name)
{
	size_t i = 0;

	while (i < FIXED && strcmp(fixed[i], name) != 0)
		i++;
	return i;
}

static int by_place(const void *a, const void *b)
{
	const struct hatchet_column *x = a, *y = b;
	const size_t i = fixed_place(x->name), j = fixed_place(y->name);

	return i != j ? (i > j) - (i < j) : by_name(a, b);
}

void hatchet_fixed_first(struct hatchet_writer *w)
{
	if (w->n_columns > 1)
		qsort(w->column, w->n_columns, sizeof(*w->column), by_place);
}

static int find_columns(struct hatchet_writer *w)
{
	const struct profile *p = w->p;
	bool taken[PROFILE_METRICS_MAX] = {false};
	uint32_t i, used = 0;
	int n;

	for (i = 0; i < p->n_metrics; i++) {
		n = taken[i] ? 0 : take_vector(w, i, used);
		if (n < 0)
			return n;
		for (; n > 0; n--)
			taken[w->element[used++]] = true;
	}
	for (i = 0; i < p->n_metrics; i++) {
		if (taken[i])
			continue;
		w->column[w->n_columns++] = (struct hatchet_column){
			.name = p->metric[i].name, .first = used, .n = 1, .hint = is_summed(p, i)};
		w->element[used++] = i;
	}
	if (w->n_columns > 1)
		qsort(w->column, w->n_columns, sizeof(*w->column), by_name);
	return 0;
}

void hatchet_writer_free(struct hatchet_writer *w)
{
	uint32_t i;

	for (i = 0; i < w->n_columns; i++)
		free(w->column[i].owned);
	text_fini(&w->out);
	free(w);
}

struct hatchet_writer *hatchet_writer_new(const struct profile *p)
{
	struct hatchet_writer *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->p = p;
	if (find_columns(w) == 0)
		return w;
	hatchet_writer_free(w);
	return NULL;
}

static int by_device(const void *a, const void *b)
{
	const struct profile_device *x = *(const struct profile_device *const *)a;
	const struct profile_device *y = *(const struct profile_device *const *)b;
	int r = strcmp(x->type, y->type);

	return r != 0 ? r : strcmp(x->id, y->id);
}

const struct profile_device **hatchet_devices(const struct profile *p)
{
	const struct profile_device **order = calloc(p->n_devices + 1u, sizeof(*order));
	uint32_t i;

	for (i = 0; order != NULL && i < p->n_devices; i++)
		order[i] = &p->device[i];
	if (order != NULL)
		qsort(order, p->n_devices, sizeof(*order), by_device);
	return order;
}
