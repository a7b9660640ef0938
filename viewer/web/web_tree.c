/* SPDX-License-Identifier: MIT. web_tree.c: a tree in columns. */
#include "web_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "print_json.h"
#include "spread.h"
#include "tree_rows.h"

/* --- the order */

int web_tree_new(struct web_ask *a, const struct view *v, struct web_tree *ret)
{
	const uint32_t n = v->p->n_nodes;
	struct web_tree w = {.a = a, .p = v->p, .keep = v->keep};
	uint32_t at = 0, up, i;

	w.order = malloc(n * sizeof(*w.order));
	w.place = malloc(n * sizeof(*w.place));
	w.size = malloc(n * sizeof(*w.size));
	*ret = w;
	if (w.order == NULL || w.place == NULL || w.size == NULL)
		return -ENOMEM;
	do {
		if (!w.keep[at])
			continue;
		w.place[at] = w.n;
		w.size[w.n] = 1;
		w.order[w.n++] = at;
	} while ((at = cost_next(w.p, at, &up)) != PROFILE_NONE);
	for (i = w.n; i-- > 1;)
		w.size[w.place[w.p->node[w.order[i]].parent]] += w.size[i];
	ret->n = w.n;
	return 0;
}

void web_tree_free(struct web_tree *w)
{
	free(w->order);
	free(w->place);
	free(w->size);
	name_set_fini(&w->names);
	*w = (struct web_tree){0};
}

/* --- what a node is */

#define EACH(w, key, value)                                  \
	do {                                                 \
		json_in(t, key, '[');                        \
		for (i = 0; i < (w)->n; i++) {               \
			node = &(w)->p->node[(w)->order[i]]; \
			json_f64(t, (double)(value));        \
		}                                            \
		json_close(t, ']');                          \
	} while (0)

void web_tree_nodes(struct web_tree *w)
{
	struct text *t = &w->a->to->body;
	const struct profile_node *node;
	uint32_t i;

	json_in(t, "node", '{');
	EACH(w, "name", name_set_add(&w->names, node->name));
	EACH(w, "kind", node->kind);
	EACH(w, "class", gpu_class_known(node->class));
	EACH(w, "parent", i == 0 ? -1 : (int64_t)w->place[node->parent]);
	EACH(w, "size", w->size[i]);
}

static void put_words(struct text *t, const char *key, const char *(*word)(uint8_t), uint32_t n)
{
	uint32_t i;

	json_in(t, key, '[');
	for (i = 0; i < n; i++)
		json_str(t, word((uint8_t)i));
	json_close(t, ']');
}

void web_tree_words(struct web_tree *w)
{
	struct text *t = &w->a->to->body;

	web_names(w->a, &w->names);
	put_words(t, "kinds", kind_word, sizeof(node_kind_words) / sizeof(*node_kind_words));
	put_words(t, "classes", class_word, CLASS_MAX);
}

void web_names(struct web_ask *a, const struct name_set *names)
{
	struct text *t = &a->to->body;
	const char *shown;
	uint32_t i;

	json_in(t, "names", '[');
	for (i = 0; i < names->n; i++)
		json_str(t, names_show(a->run->print.names, names->name[i]));
	json_close(t, ']');
	json_in(t, "recorded", '{');
	for (i = 0; i < names->n; i++) {
		shown = names_show(a->run->print.names, names->name[i]);
		if (strcmp(shown, names->name[i]) == 0)
			continue;
		json_next(t);
		text_fmt(t, "\"%u\":", i);
		text_json(t, names->name[i]);
	}
	json_close(t, '}');
}

/* --- its numbers */

static bool is_empty(const struct web_tree *w, const double *v)
{
	uint32_t i;

	for (i = 0; i < w->n; i++)
		if (v[w->order[i]] > 0 || v[w->order[i]] < 0)
			return false;
	return true;
}

void web_tree_metric(struct web_tree *w, const struct column *c, const double *v)
{
	struct text *t = &w->a->to->body;

	if (is_empty(w, v))
		return;
	json_open(t, '{');
	json_key_str(t, "name", c->name);
	json_key_str(t, "unit", c->unit);
	json_key_bool(t, "inclusive", c->inclusive);
	json_close(t, '}');
}

void web_tree_column(struct web_tree *w, const char *name, const double *v)
{
	struct text *t = &w->a->to->body;
	uint32_t i;

	if (is_empty(w, v))
		return;
	json_in(t, name, '[');
	for (i = 0; i < w->n; i++)
		json_f64(t, v[w->order[i]]);
	json_close(t, ']');
}

static int add_cost(struct view *v, const char *name, const char *unit, uint64_t (*of)[COST_N],
	enum cost k, bool all)
{
	struct column like = {.inclusive = all};
	uint32_t i;
	double *to;
	int r;

	snprintf(like.name, sizeof(like.name), "%s", name);
	snprintf(like.unit, sizeof(like.unit), "%s", unit);
	r = view_add_column(v, &like, &to);
	for (i = 0; r == 0 && i < v->p->n_nodes; i++)
		to[i] = (double)of[i][k];
	return r;
}

static int add_spreads(struct view *v)
{
	static const char *const names[] = {"min", "p50", "p99", "max"};
	struct column like = {.unit = "ns"};
	struct spread s;
	double *to[4];
	uint32_t i, k;

	for (k = 0; k < 4; k++) {
		snprintf(like.name, sizeof(like.name), "%s", names[k]);
		if (view_add_column(v, &like, &to[k]) < 0)
			return -ENOMEM;
	}
	for (i = 0; i < v->p->n_nodes; i++) {
		spread_init(&s);
		spread_add(&s, v->p, i);
		if (!spread_known(&s))
			continue;
		to[0][i] = (double)s.min_ns;
		to[1][i] = round(spread_quantile(&s, 0.5));
		to[2][i] = round(spread_quantile(&s, 0.99));
		to[3][i] = (double)s.max_ns;
	}
	return 0;
}

int web_costs(struct view *v, const char **ret_main)
{
	struct costs c;
	int r = costs_new(v->p, &c);

	if (r < 0)
		return r;
	r = add_cost(v, "gpu_time", "ns", c.all, COST_gpu_time, true);
	if (r == 0)
		r = add_cost(v, "gpu_time_self", "ns", c.self, COST_gpu_time, false);
	if (r == 0)
		r = add_cost(v, "cpu_time", "ns", c.all, COST_cpu_time, true);
	if (r == 0)
		r = add_cost(v, "cpu_time_self", "ns", c.self, COST_cpu_time, false);
	if (r == 0)
		r = add_cost(v, "count", "", c.all, COST_count, true);
	if (r == 0)
		r = add_cost(v, "count_self", "", c.self, COST_count, false);
	if (r == 0)
		r = add_cost(v, "calls", "", c.self, COST_calls, false);
	if (r == 0)
		r = add_spreads(v);
	*ret_main = cost_names[c.main];
	costs_free(&c);
	return r;
}

/* --- the answer */

/* The metrics that are not among ours: a job's own, and what is made of them. */
static int derive_more(struct web_ask *a, struct view *v)
{
	const struct profile *p = v->p;
	uint32_t i, left = 0;
	struct err e;

	(void)view_derive(v, "util", &e); /* -ENOENT, -ENOTSUP: it has none */
	for (i = 0; i < p->n_metrics; i++) {
		if (rows_has(p->metric[i].name) || strcmp(metric_shape(p, i), "number") != 0 ||
			strchr(p->metric[i].name, ',') != NULL)
			continue;
		if (v->n_columns == VIEW_COLUMNS_MAX)
			left++;
		else if (view_derive(v, p->metric[i].name, &e) == -ENOMEM)
			return -ENOMEM;
	}
	if (left > 0)
		warning_add(&a->run->warnings,
			"%u more metrics are not shown; protonview tree -m shows any", left);
	return 0;
}

static void put_tree(struct web_tree *w, const struct view *const views[2], const char *main)
{
	struct text *t = &w->a->to->body;
	uint32_t i, k;

	text_char(t, '{');
	web_tree_nodes(w);
	json_close(t, '}');
	web_tree_words(w);
	json_key_str(t, "main", main);
	json_in(t, "metrics", '[');
	for (k = 0; k < 2; k++)
		for (i = 0; i < views[k]->n_columns; i++)
			web_tree_metric(w, &views[k]->col[i], views[k]->col[i].v);
	json_close(t, ']');
	json_in(t, "values", '{');
	for (k = 0; k < 2; k++)
		for (i = 0; i < views[k]->n_columns; i++)
			web_tree_column(w, views[k]->col[i].name, views[k]->col[i].v);
	json_close(t, '}');
	web_warnings(w->a);
	text_char(t, '}');
}

int web_tree(struct web_ask *a)
{
	struct view *ours = NULL, *more = NULL;
	struct web_tree w = {0};
	const struct profile *p;
	const char *main;
	int r = web_profile(a, &p);

	if (r < 0)
		return r;
	r = view_new(p, &ours);
	if (r == 0)
		r = view_new(p, &more);
	if (r == 0)
		r = web_costs(ours, &main);
	if (r == 0)
		r = derive_more(a, more);
	if (r == 0)
		r = web_tree_new(a, ours, &w);
	if (r == 0)
		put_tree(&w, (const struct view *const[2]){ours, more}, main);
	web_tree_free(&w);
	view_free(ours);
	view_free(more);
	return r < 0 ? err_set(&a->run->e, r, "out of memory") : 0;
}
