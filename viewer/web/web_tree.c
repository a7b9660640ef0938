/* SPDX-License-Identifier: MIT. web_tree.c: a session's tree in columns: its nodes depth first, each
 * with the size of what is below, so that the page needs no recursion. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "name_set.h"
#include "print_json.h"
#include "spread.h"
#include "tree_rows.h"
#include "web_ask.h"

struct tree {
	struct web_ask *a;
	struct text *t;
	const struct profile *p;
	struct view *v; /* which nodes are shown, and the metrics beside ours */
	struct costs c;
	struct name_set names;
	uint32_t *order, *place,
		*size; /* the shown nodes; [n_nodes]: where each stands, of how many */
	uint32_t n;
};

/* --- the order */

static int place_nodes(struct tree *w)
{
	const uint32_t n = w->p->n_nodes;
	uint32_t at = 0, up, i;

	w->order = malloc(n * sizeof(*w->order));
	w->place = malloc(n * sizeof(*w->place));
	w->size = malloc(n * sizeof(*w->size));
	if (w->order == NULL || w->place == NULL || w->size == NULL)
		return -ENOMEM;
	do {
		if (!w->v->keep[at])
			continue;
		w->place[at] = w->n;
		w->size[w->n] = 1;
		w->order[w->n++] = at;
	} while ((at = cost_next(w->p, at, &up)) != PROFILE_NONE);
	for (i = w->n; i-- > 1;)
		w->size[w->place[w->p->node[w->order[i]].parent]] += w->size[i];
	return 0;
}

/* --- what a node is */

static void put_node_columns(struct tree *w)
{
	uint32_t i;

	json_in(w->t, "node", '{');
	json_in(w->t, "name", '[');
	for (i = 0; i < w->n; i++)
		json_u64(w->t, name_set_add(&w->names, w->p->node[w->order[i]].name));
	json_close(w->t, ']');
	json_in(w->t, "kind", '[');
	for (i = 0; i < w->n; i++)
		json_u64(w->t, w->p->node[w->order[i]].kind);
	json_close(w->t, ']');
	json_in(w->t, "class", '[');
	for (i = 0; i < w->n; i++)
		json_u64(w->t, gpu_class_known(w->p->node[w->order[i]].class));
	json_close(w->t, ']');
	json_in(w->t, "parent", '[');
	for (i = 0; i < w->n; i++)
		json_i64(w->t, i == 0 ? -1 : (int64_t)w->place[w->p->node[w->order[i]].parent]);
	json_close(w->t, ']');
	json_in(w->t, "size", '[');
	for (i = 0; i < w->n; i++)
		json_u64(w->t, w->size[i]);
	json_close(w->t, ']');
	json_close(w->t, '}');
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

static void put_words(struct text *t, const char *key, const char *(*word)(uint8_t), uint32_t n)
{
	uint32_t i;

	json_in(t, key, '[');
	for (i = 0; i < n; i++)
		json_str(t, word((uint8_t)i));
	json_close(t, ']');
}

/* --- its numbers */

static void put_metric(
	struct text *t, const char *name, const char *unit, bool inclusive, const char *self)
{
	json_open(t, '{');
	json_key_str(t, "name", name);
	json_key_str(t, "unit", unit);
	json_key_bool(t, "inclusive", inclusive);
	json_key_str(t, "self", self);
	json_close(t, '}');
}

/* clang-format off */
#define SPREADS(X) X(min) X(p50) X(p99) X(max)
/* clang-format on */

static void put_metrics(struct tree *w)
{
	uint32_t i;

	json_in(w->t, "metrics", '[');
	put_metric(w->t, "gpu_time", "ns", true, "gpu_time_self");
	put_metric(w->t, "cpu_time", "ns", true, "cpu_time_self");
	put_metric(w->t, "count", "", true, "count_self");
	put_metric(w->t, "calls", "", false, NULL);
#define X(name) put_metric(w->t, #name, "ns", false, NULL);
	SPREADS(X)
#undef X
	for (i = 0; i < w->v->n_columns; i++)
		put_metric(
			w->t, w->v->col[i].name, w->v->col[i].unit, w->v->col[i].inclusive, NULL);
	json_close(w->t, ']');
	json_key_str(w->t, "main", cost_names[w->c.main]);
}

static void put_cost(struct tree *w, const char *name, uint64_t (*of)[COST_N], enum cost k)
{
	uint32_t i;

	json_in(w->t, name, '[');
	for (i = 0; i < w->n; i++)
		json_u64(w->t, of[w->order[i]][k]);
	json_close(w->t, ']');
}

/* Whole nanoseconds; NAN: null. */
static void put_ns(struct text *t, double ns)
{
	json_next(t);
	if (isnan(ns))
		text_str(t, "null");
	else
		text_fmt(t, "%.0f", ns);
}

/* Four columns at once, so that each node's durations are added up once. */
static void put_spreads(struct tree *w)
{
	struct text column[4] = {{0}};
	struct spread s;
	uint32_t i, k = 0;

	for (i = 0; i < w->n; i++) {
		spread_init(&s);
		spread_add(&s, w->p, w->order[i]);
		put_ns(&column[0], spread_known(&s) ? (double)s.min_ns : (double)NAN);
		put_ns(&column[1], spread_quantile(&s, 0.5));
		put_ns(&column[2], spread_quantile(&s, 0.99));
		put_ns(&column[3], spread_known(&s) ? (double)s.max_ns : (double)NAN);
	}
#define X(name)                                   \
	json_in(w->t, #name, '[');                \
	text_add(w->t, column[k].s, column[k].n); \
	w->t->failed |= column[k].failed;         \
	text_fini(&column[k++]);                  \
	json_close(w->t, ']');
	SPREADS(X)
#undef X
}

static void put_values(struct tree *w)
{
	uint32_t i, c;

	json_in(w->t, "values", '{');
	put_cost(w, "gpu_time", w->c.all, COST_gpu_time);
	put_cost(w, "gpu_time_self", w->c.self, COST_gpu_time);
	put_cost(w, "cpu_time", w->c.all, COST_cpu_time);
	put_cost(w, "cpu_time_self", w->c.self, COST_cpu_time);
	put_cost(w, "count", w->c.all, COST_count);
	put_cost(w, "count_self", w->c.self, COST_count);
	put_cost(w, "calls", w->c.self, COST_calls);
	put_spreads(w);
	for (c = 0; c < w->v->n_columns; c++) {
		json_in(w->t, w->v->col[c].name, '[');
		for (i = 0; i < w->n; i++)
			json_f64(w->t, w->v->col[c].v[w->order[i]]);
		json_close(w->t, ']');
	}
	json_close(w->t, '}');
}

/* The metrics that are not among ours: a job's own, and rates made of them. */
static int derive_more(struct tree *w)
{
	const struct profile *p = w->p;
	uint32_t i, left = 0;
	struct err e;
	int r;

	if (profile_find_metric(p, "bytes") != PROFILE_NONE ||
		profile_find_metric(p, "flops8") != PROFILE_NONE ||
		profile_find_metric(p, "flops16") != PROFILE_NONE ||
		profile_find_metric(p, "flops32") != PROFILE_NONE ||
		profile_find_metric(p, "flops64") != PROFILE_NONE)
		(void)view_derive(w->v, "util", &e); /* a device without figures has none */
	for (i = 0; i < p->n_metrics; i++) {
		if (rows_has(p->metric[i].name) || strcmp(metric_shape(p, i), "number") != 0 ||
			strchr(p->metric[i].name, ',') != NULL)
			continue;
		if (w->v->n_columns == VIEW_COLUMNS_MAX) {
			left++;
			continue;
		}
		r = view_derive(w->v, p->metric[i].name, &e);
		if (r == -ENOMEM)
			return r;
	}
	if (left > 0)
		warning_add(&w->a->run->warnings,
			"%u more metrics are not shown; protonview tree -m shows any", left);
	return 0;
}

static void put_all(struct tree *w)
{
	text_char(w->t, '{');
	put_node_columns(w);
	web_names(w->a, &w->names);
	put_words(w->t, "kinds", kind_word, sizeof(node_kind_words) / sizeof(*node_kind_words));
	put_words(w->t, "classes", class_word, CLASS_MAX);
	put_metrics(w);
	put_values(w);
	web_warnings(w->a);
	text_char(w->t, '}');
}

int web_tree(struct web_ask *a)
{
	struct tree w = {.a = a, .t = &a->to->body};
	int r = web_profile(a, &w.p);

	if (r < 0)
		return r;
	r = view_new(w.p, &w.v);
	if (r == 0)
		r = costs_new(w.p, &w.c);
	if (r == 0)
		r = place_nodes(&w);
	if (r == 0)
		r = derive_more(&w);
	if (r == 0)
		put_all(&w);
	free(w.order);
	free(w.place);
	free(w.size);
	name_set_fini(&w.names);
	costs_free(&w.c);
	view_free(w.v);
	return r < 0 ? err_set(&a->run->e, r, "out of memory") : 0;
}
