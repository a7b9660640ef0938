/* SPDX-License-Identifier: MIT. tree_rows.c: a tree as tables: docs/exports.md names the columns. */
#include "tree_rows.h"

#include <math.h>
#include <stdlib.h>

#include "cost.h"
#include "export_format.h"
#include "name_set.h"
#include "spread.h"

static void put_u64(struct rows *r, uint64_t v)
{
	r->form->number(r, &(struct value){.type = VALUE_U64, .u = v});
}

static void put_none(struct rows *r)
{
	r->form->number(r, &(struct value){.type = VALUE_NONE});
}

/* Nanoseconds; NAN: not known. */
static void put_ns(struct rows *r, double ns)
{
	if (isnan(ns))
		put_none(r);
	else
		put_u64(r, (uint64_t)ns);
}

#define SPREAD_COLUMNS(X) X("min", "ns") X("p50", "ns") X("p99", "ns") X("max", "ns")

static void put_spread(struct rows *r, const struct spread *s)
{
	const bool known = spread_known(s);

	put_ns(r, known ? (double)s->min_ns : (double)NAN);
	put_ns(r, spread_quantile(s, 0.5));
	put_ns(r, spread_quantile(s, 0.99));
	put_ns(r, known ? (double)s->max_ns : (double)NAN);
}

/* --- a row a node */

/* clang-format off */
#define NODE_COLUMNS(X) /* name, unit, type */                                     \
	X("node", "", "integer")     X("parent", "", "integer") X("depth", "", "integer")  \
	X("kind", "", "string")        X("class", "", "string")                                \
	X("name", "", "string")        X("path", "", "string")                                 \
	X("gpu_time", "ns", "integer") X("gpu_time_self", "ns", "integer")                 \
	X("cpu_time", "ns", "integer") X("cpu_time_self", "ns", "integer")                 \
	X("count", "", "integer")    X("calls", "", "integer")
/* clang-format on */

bool rows_has(const char *metric)
{
	static const char *const told[] = {
		"time (ns)", "count", "copy_time (ns)", "copies", "cpu_time (ns)", "calls"};

	for (unsigned i = 0; i < sizeof(told) / sizeof(*told); i++)
		if (strcmp(metric, told[i]) == 0)
			return true;
	return false;
}

/* "bytes (B)" is bytes, in B. */
static int put_metric_column(struct rows *r, const struct profile *p, uint32_t metric)
{
	const char *name = p->metric[metric].name, *open = strstr(name, " (");
	const size_t n = strlen(name);
	struct text t = {0};
	uint32_t i = 0;
	char *s;

	while (i < p->n_nodes && profile_value(p, i, metric)->type != VALUE_STR)
		i++;
	if (open != NULL && name[n - 1] == ')') {
		text_add(&t, name, (size_t)(open - name));
		text_char(&t, '\0');
		text_add(&t, open + 2, n - (size_t)(open - name) - 3);
	} else {
		text_str(&t, name);
		text_char(&t, '\0');
	}
	if (text_take(&t, &s, &(size_t){0}) < 0)
		return -ENOMEM;
	r->form->column(r, s, s + strlen(s) + 1, i < p->n_nodes ? "string" : "number");
	free(s);
	return 0;
}

static int node_columns(const struct profile *p, struct rows *r)
{
#define X(name, unit, type) r->form->column(r, (name), (unit), (type));
	NODE_COLUMNS(X)
#undef X
#define X(name, unit) r->form->column(r, (name), (unit), "integer");
	SPREAD_COLUMNS(X)
#undef X
	for (uint32_t i = 0; i < p->n_metrics && !r->fixed; i++)
		if (!rows_has(p->metric[i].name) && put_metric_column(r, p, i) < 0)
			return -ENOMEM;
	r->form->heads_end(r);
	return 0;
}

static void put_metric(struct rows *r, const struct value *v)
{
	if (v->type == VALUE_STR)
		r->form->text(r, v->s);
	else if (v->type == VALUE_VECTOR)
		put_none(r); /* a file's; ours are told apart by element */
	else
		r->form->number(r, v);
}

static void put_node(const struct profile *p, const struct costs *c, uint32_t at, const char *path,
	struct rows *r)
{
	const struct profile_node *n = &p->node[at];
	struct spread s;

	r->form->begin(r);
	put_u64(r, at);
	if (at == 0)
		put_none(r);
	else
		put_u64(r, n->parent);
	put_u64(r, n->depth);
	r->form->text(r, node_kind_words[n->kind]);
	r->form->text(r, gpu_classes[gpu_class_known(n->class)].word);
	r->form->text(r, n->name);
	r->form->text(r, path);
	put_u64(r, c->all[at][COST_gpu_time]);
	put_u64(r, c->self[at][COST_gpu_time]);
	put_u64(r, c->all[at][COST_cpu_time]);
	put_u64(r, c->self[at][COST_cpu_time]);
	put_u64(r, c->all[at][COST_count]);
	put_u64(r, c->self[at][COST_calls]);
	spread_init(&s);
	spread_add(&s, p, at);
	put_spread(r, &s);
	for (uint32_t i = 0; i < p->n_metrics && !r->fixed; i++)
		if (!rows_has(p->metric[i].name))
			put_metric(r, profile_value(p, at, i));
}

static int each_node(const struct profile *p, const struct costs *c, size_t *end, struct text *path,
	struct rows *r)
{
	uint32_t at = 0, up;

	do {
		const uint32_t depth = p->node[at].depth;

		path->n = depth > 1 ? end[depth - 1] : 0;
		if (depth > 1)
			text_char(path, '/');
		if (depth > 0)
			text_str(path, p->node[at].name);
		end[depth] = path->n;
		text_char(path, '\0');
		if (path->failed || r->out.failed)
			return -ENOMEM;
		if (r->out.n + path->n > EXPORT_TEXT_MAX)
			return -EFBIG;
		put_node(p, c, at, path->s, r);
	} while ((at = cost_next(p, at, &up)) != PROFILE_NONE);
	return 0;
}

int rows_nodes(const struct profile *p, struct rows *r)
{
	size_t end[PROFILE_DEPTH_MAX + 2];
	struct text path = {0};
	struct costs c;
	int ret = costs_new(p, &c);

	if (ret == 0)
		ret = node_columns(p, r);
	if (ret == 0)
		ret = each_node(p, &c, end, &path, r);
	costs_free(&c);
	text_fini(&path);
	r->form->rows_end(r);
	return ret;
}

/* --- a row a kernel */

struct kernel {
	const char *name;
	uint32_t first, configs; /* node + 1; kernels.next has the others */
	uint8_t class;
	uint64_t count, ns;
	const struct profile_config *config; /* the most frequent one; NULL: not known */
};

struct kernels {
	const struct profile *p;
	struct costs c;
	struct name_set names;
	struct kernel *k;
	uint32_t cap, *next, *of; /* [n_nodes]: another node of the same + 1; kernel + 1 */
};

/* clang-format off */
#define KERNEL_COLUMNS(X) /* name, unit, type */                               \
	X("name", "", "string")          X("class", "", "string")                          \
	X("count", "", "integer")      X("gpu_time", "ns", "integer")                  \
	X("configs", "", "integer")                                                    \
	X("grid_x", "", "integer")     X("grid_y", "", "integer")  X("grid_z", "", "integer")  \
	X("block_x", "", "integer")    X("block_y", "", "integer") X("block_z", "", "integer") \
	X("registers", "", "integer")  X("static_shared", "bytes", "integer")          \
	X("dynamic_shared", "bytes", "integer")
/* clang-format on */

static bool is_gpu_work(const struct kernels *w, uint32_t node)
{
	return gpu_class_is_work(w->p->node[node].class) || w->c.self[node][COST_count] > 0 ||
	       w->c.self[node][COST_gpu_time] > 0;
}

static int take_node(struct kernels *w, uint32_t node)
{
	const uint32_t at = name_set_add(&w->names, w->p->node[node].name);
	struct kernel *k;

	if (at == TABLE_NONE || !ZEROED_FOR(w->k, w->cap, w->names.n))
		return -ENOMEM;
	k = &w->k[at];
	k->name = w->p->node[node].name;
	k->class = w->p->node[node].class != CLASS_CPU ? w->p->node[node].class
						       : gpu_class_of_leaf(k->name);
	k->count += w->c.self[node][COST_count];
	k->ns += w->c.self[node][COST_gpu_time];
	w->next[node] = k->first;
	k->first = node + 1;
	w->of[node] = at + 1;
	return 0;
}

static void take_configs(struct kernels *w)
{
	for (uint32_t i = 0; i < w->p->n_configs; i++) {
		const struct profile_config *c = &w->p->config[i];
		struct kernel *k = w->of[c->node] > 0 ? &w->k[w->of[c->node] - 1] : NULL;

		if (k == NULL)
			continue;
		k->configs++;
		if (k->config == NULL || c->count > k->config->count)
			k->config = c;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void put_config(struct rows *r, const struct profile_config *c)
{
	const uint32_t *const three[] = {c != NULL ? c->grid : NULL, c != NULL ? c->block : NULL};

	for (unsigned i = 0; i < 6; i++)
		if (c == NULL)
			put_none(r);
		else
			put_u64(r, three[i / 3][i % 3]);
	if (c == NULL) {
		put_none(r);
		put_none(r);
		put_none(r);
		return;
	}
	put_u64(r, c->registers);
	put_u64(r, c->static_shared);
	put_u64(r, c->dynamic_shared);
}

static void put_kernel(struct kernels *w, const struct kernel *k, struct rows *r)
{
	struct spread s;

	spread_init(&s);
	for (uint32_t at = k->first; at != 0; at = w->next[at - 1])
		spread_add(&s, w->p, at - 1);
	r->form->begin(r);
	r->form->text(r, k->name);
	r->form->text(r, gpu_classes[k->class].word);
	put_u64(r, k->count);
	put_u64(r, k->ns);
	put_u64(r, k->configs);
	put_config(r, k->config);
	put_spread(r, &s);
}

static int find_kernels(struct kernels *w)
{
	w->next = calloc(w->p->n_nodes, sizeof(*w->next));
	w->of = calloc(w->p->n_nodes, sizeof(*w->of));
	if (w->next == NULL || w->of == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->p->n_nodes; i++)
		if (is_gpu_work(w, i) && take_node(w, i) < 0)
			return -ENOMEM;
	take_configs(w);
	if (w->names.n > 1)
		qsort(w->k, w->names.n, sizeof(*w->k), by_time);
	return 0;
}

int rows_kernels(const struct profile *p, struct rows *r)
{
	struct kernels w = {.p = p};
	int ret = costs_new(p, &w.c);

	if (ret == 0)
		ret = find_kernels(&w);
#define X(name, unit, type) r->form->column(r, (name), (unit), (type));
	KERNEL_COLUMNS(X)
#undef X
#define X(name, unit) r->form->column(r, (name), (unit), "integer");
	SPREAD_COLUMNS(X)
#undef X
	r->form->heads_end(r);
	for (uint32_t i = 0; ret == 0 && i < w.names.n; i++)
		put_kernel(&w, &w.k[i], r);
	r->form->rows_end(r);
	costs_free(&w.c);
	name_set_fini(&w.names);
	free(w.k);
	free(w.next);
	free(w.of);
	return ret;
}
