/* SPDX-License-Identifier: MIT. web_tree.c: a tree in columns. */
#include "web_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "family.h"
#include "print_json.h"
#include "spread.h"
#include "tree_rows.h"

/* --- the order */

int web_tree_new(struct web_ask *a, const struct view *v, struct web_tree *ret)
{
	uint32_t at = 0, up;

	*ret = (struct web_tree){.a = a,
		.p = v->p,
		.keep = v->keep,
		.order = malloc(v->p->n_nodes * sizeof(uint32_t))};
	if (ret->order == NULL)
		return -ENOMEM;
	do
		if (ret->keep[at])
			ret->order[ret->n++] = at;
	while ((at = cost_next(ret->p, at, &up)) != PROFILE_NONE);
	return 0;
}

void web_tree_free(struct web_tree *w)
{
	free(w->order);
	name_set_fini(&w->names);
	name_set_fini(&w->families);
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

/* Found once for each name: a tree has many nodes of few. */
static void put_families(struct web_tree *w)
{
	uint32_t *of = calloc(w->names.n + (size_t)1, sizeof(*of)), i, name;
	struct text *t = &w->a->to->body;
	const struct profile_node *node;

	json_in(t, "family", '[');
	for (i = 0; i < w->n && of != NULL; i++) {
		node = &w->p->node[w->order[i]];
		name = name_set_add(&w->names, node->name);
		if (name >= w->names.n)
			continue;
		if (of[name] == 0)
			of[name] =
				1 + name_set_add(&w->families, family_of(node->name, node->class));
		json_f64(t, of[name] - 1);
	}
	json_close(t, ']');
	t->failed |= of == NULL;
	free(of);
}

void web_tree_nodes(struct web_tree *w)
{
	struct text *t = &w->a->to->body;
	const struct profile_node *node;
	uint32_t i;

	json_in(t, "node", '{');
	EACH(w, "name", name_set_add(&w->names, node->name));
	EACH(w, "kind", node->kind);
	EACH(w, "class", gpu_class_known(node->class));
	EACH(w, "depth", node->depth);
	put_families(w);
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
	uint32_t i;

	web_names(w->a, &w->names);
	put_words(t, "kinds", kind_word, sizeof(node_kind_words) / sizeof(*node_kind_words));
	put_words(t, "classes", class_word, CLASS_MAX);
	json_in(t, "families", '[');
	for (i = 0; i < w->families.n; i++)
		json_str(t, w->families.name[i]);
	json_close(t, ']');
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

/* "gpu_time_self": there is a "gpu_time", which is its sum over all below. */
static size_t self_of(const char *name)
{
	const size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, "_self") == 0 ? n - 5 : 0;
}

static void put_metric(struct text *t, const struct column *c, size_t base)
{
	json_open(t, '{');
	json_key(t, "name");
	text_fmt(t, "\"%.*s\"", (int)base, c->name);
	json_key_str(t, "unit", c->unit);
	json_key_bool(t, "inclusive", true);
	json_key_str(t, "self", c->name);
	json_close(t, '}');
}

void web_tree_metrics(struct web_tree *w, const struct view *v)
{
	struct text *t = &w->a->to->body;
	const struct column *c;

	for (c = v->col; c < v->col + v->n_columns; c++) {
		if (is_empty(w, c->v))
			continue;
		if (self_of(c->name) > 0) {
			put_metric(t, c, self_of(c->name));
			continue;
		}
		json_open(t, '{');
		json_key_str(t, "name", c->name);
		json_key_str(t, "unit", c->unit);
		json_key_bool(t, "inclusive", c->inclusive);
		json_key_str(t, "self", NULL);
		json_close(t, '}');
	}
}

void web_tree_columns(struct web_tree *w, const struct view *v, double *const *of)
{
	struct text *t = &w->a->to->body;
	uint32_t c, i;

	for (c = 0; c < v->n_columns; c++) {
		if (is_empty(w, of[c]))
			continue;
		json_in(t, v->col[c].name, '[');
		for (i = 0; i < w->n; i++)
			json_f64(t, of[c][w->order[i]]);
		json_close(t, ']');
	}
}

static int add_cost(
	struct view *v, const struct costs *c, const char *name, const char *unit, enum cost k)
{
	struct column like = {.inclusive = false};
	uint32_t i;
	double *to;
	int r;

	snprintf(like.name, sizeof(like.name), "%s", name);
	snprintf(like.unit, sizeof(like.unit), "%s", unit);
	r = view_add_column(v, &like, &to);
	for (i = 0; r == 0 && i < v->p->n_nodes; i++)
		to[i] = (double)c->self[i][k];
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
	r = add_cost(v, &c, "gpu_time_self", "ns", COST_gpu_time);
	if (r == 0)
		r = add_cost(v, &c, "cpu_time_self", "ns", COST_cpu_time);
	if (r == 0)
		r = add_cost(v, &c, "count_self", "", COST_count);
	if (r == 0)
		r = add_cost(v, &c, "calls", "", COST_calls);
	if (r == 0 && c.n == COST_N)
		r = add_cost(v, &c, "sample_time_self", "ns", COST_sample_time);
	if (r == 0 && c.n == COST_N)
		r = add_cost(v, &c, "cpu_samples_self", "", COST_cpu_samples);
	if (r == 0)
		r = add_spreads(v);
	*ret_main = cost_names[c.main];
	costs_free(&c);
	return r;
}

/* --- the answer */

/* web_costs() has them by their short names. */
static bool is_cost(const char *metric)
{
	return strcmp(metric, "sample_time (ns)") == 0 || strcmp(metric, "cpu_samples") == 0;
}

/* The metrics that are not among ours: a job's own, and what is made of them. */
static int derive_more(struct web_ask *a, struct view *v)
{
	const struct profile *p = v->p;
	uint32_t i, left = 0;
	struct err e;

	(void)view_derive(v, "util", &e); /* -ENOENT, -ENOTSUP: it has none */
	for (i = 0; i < p->n_metrics; i++) {
		if (rows_has(p->metric[i].name) || is_cost(p->metric[i].name) ||
			strcmp(metric_shape(p, i), "number") != 0 ||
			strchr(p->metric[i].name, ',') != NULL)
			continue;
		if (v->n_columns == VIEW_COLUMNS_MAX)
			left++;
		else if (view_derive(v, p->metric[i].name, &e) == -ENOMEM)
			return -ENOMEM;
	}
	if (left > 0)
		warning_add(&a->run->warnings,
			"%u more metrics are not shown; `protonview tree -m M` shows any", left);
	return 0;
}

/* The numbers of a view's own columns. */
static void put_values(struct web_tree *w, const struct view *v)
{
	double *of[VIEW_COLUMNS_MAX];
	uint32_t c;

	for (c = 0; c < v->n_columns; c++)
		of[c] = v->col[c].v;
	web_tree_columns(w, v, of);
}

static void put_tree(
	struct web_tree *w, const struct view *ours, const struct view *more, const char *main)
{
	struct text *t = &w->a->to->body;

	text_char(t, '{');
	web_tree_nodes(w);
	json_close(t, '}');
	web_tree_words(w);
	json_key_str(t, "main", main);
	json_in(t, "metrics", '[');
	web_tree_metrics(w, ours);
	web_tree_metrics(w, more);
	json_close(t, ']');
	json_in(t, "values", '{');
	put_values(w, ours);
	put_values(w, more);
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
		put_tree(&w, ours, more, main);
	web_tree_free(&w);
	view_free(ours);
	view_free(more);
	return r < 0 ? err_set(&a->run->e, r, "out of memory") : 0;
}
