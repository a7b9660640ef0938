/* SPDX-License-Identifier: MIT. operators.c: operators of PyTorch, a row for each. */
#include "operators.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "op_terms.h"
#include "table.h"
#include "text.h"

#define FLOPS 4u /* metrics of them, by width */

/* A node's own values become those of its subtree. */
struct sums {
	double gpu_ns, gpu_self_ns, flops, bytes, kernels;
	double cpu_ns,
		cpu_inside_ns; /* of scopes: with what is inside; of operators right inside */
};

struct work {
	const struct view *v;
	const struct profile *p;
	struct sums *sums; /* [n_nodes] */
	uint32_t *of;      /* [n_nodes]: row, or PROFILE_NONE */
	struct operators *o;
	uint32_t cap;
	struct table rows;
	enum operators_by by;
	uint32_t time, copy_time, count, copies, cpu_time, calls, flops[FLOPS], bytes, stack, mark;
};

static double number(const struct profile *p, uint32_t node, uint32_t metric)
{
	const double v = metric == PROFILE_NONE ? 0 : value_number(profile_value(p, node, metric));

	return isnan(v) ? 0 : v;
}

static bool is_operator(const struct work *w, uint32_t node)
{
	if (w->p->node[node].kind != NODE_SCOPE)
		return false;
	return operator_bytes(w->p->node[node].name) > 0 ||
	       (w->mark != PROFILE_NONE && profile_value(w->p, node, w->mark)->type != VALUE_NONE);
}

/* --- sums, from the leaves up --------------------------------------------------------------- */

static void read_node(struct work *w, uint32_t node)
{
	struct sums *s = &w->sums[node];
	uint32_t i;

	s->gpu_ns = number(w->p, node, w->time) + number(w->p, node, w->copy_time);
	s->gpu_self_ns = s->gpu_ns;
	s->kernels = number(w->p, node, w->count) + number(w->p, node, w->copies);
	s->cpu_ns = number(w->p, node, w->cpu_time);
	for (i = 0; i < FLOPS; i++)
		s->flops += number(w->p, node, w->flops[i]);
	s->bytes = number(w->p, node, w->bytes);
}

static void add_up(struct work *w)
{
	uint32_t i, parent;

	for (i = 0; i < w->p->n_nodes; i++)
		if (w->v->keep[i])
			read_node(w, i);
	for (i = w->p->n_nodes - 1; i > 0; i--) {
		struct sums *s = &w->sums[i], *up;

		parent = w->p->node[i].parent;
		up = &w->sums[parent];
		up->gpu_ns += s->gpu_ns;
		up->flops += s->flops;
		up->bytes += s->bytes;
		if (is_operator(w, i)) {
			up->cpu_inside_ns += s->cpu_ns;
			continue;
		}
		up->gpu_self_ns += s->gpu_self_ns;
		up->kernels += s->kernels;
		up->cpu_inside_ns += s->cpu_inside_ns; /* of a scope between two of them */
	}
}

/* --- rows ------------------------------------------------------------------------------------- */

struct row_key {
	const struct work *w;
	const char *name, *dims, *stack;
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_row(const void *arg, uint32_t at)
{
	const struct row_key *k = arg;
	const struct operator_row *r = &k->w->o->row[at];

	return strcmp(r->name, k->name) == 0 && same_text(r->dims, k->dims) &&
	       same_text(r->stack, k->stack);
}

static uint32_t hash_text(uint32_t h, const char *s)
{
	for (; s != NULL && *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return table_mix(h, s != NULL);
}

/* The scopes above that are no operators, outermost first. */
static void put_scopes(struct text *t, const struct work *w, uint32_t node)
{
	const uint32_t parent = w->p->node[node].parent;

	if (node == 0)
		return;
	put_scopes(t, w, parent);
	if (is_operator(w, node))
		return;
	if (t->n > 0)
		text_char(t, '/');
	text_str(t, w->p->node[node].name);
}

static const char *stack_of(const struct work *w, uint32_t node, struct text *t)
{
	const struct value *v =
		w->stack != PROFILE_NONE ? profile_value(w->p, node, w->stack) : NULL;

	if (v != NULL && v->type == VALUE_STR)
		return v->s;
	t->n = 0;
	put_scopes(t, w, w->p->node[node].parent);
	text_char(t, '\0');
	return t->failed ? "" : t->s;
}

static int row_add(struct work *w, const struct row_key *k, uint32_t hash, uint32_t *ret)
{
	struct operators *o = w->o;
	struct operator_row row = {.name = arena_text(o->arena, k->name, strlen(k->name)),
		.dims = k->dims != NULL ? arena_text(o->arena, k->dims, strlen(k->dims)) : NULL,
		.stack =
			k->stack != NULL ? arena_text(o->arena, k->stack, strlen(k->stack)) : NULL};
	int r = 0;

	if (row.name == NULL || (row.dims == NULL) != (k->dims == NULL) ||
		(row.stack == NULL) != (k->stack == NULL) || !ROOM_FOR(o->row, w->cap, o->n))
		return -ENOMEM;
	*ret = o->n;
	o->row[o->n++] = row;
	r = table_add(&w->rows, hash, *ret);
	return r == -ENOSPC ? 0 : r; /* names that were made to meet: rows of their own */
}

static int row_of(struct work *w, uint32_t node, struct text *t, struct text *own, uint32_t *ret)
{
	const char *name = w->p->node[node].name;
	struct row_key k = {.w = w,
		.dims = w->by == OPERATORS_BY_name ? NULL : operator_dims(name),
		.stack = w->by == OPERATORS_BY_stack ? stack_of(w, node, t) : NULL};
	const size_t bytes = operator_bytes(name);
	uint32_t hash;

	own->n = 0;
	text_add(own, name, bytes > 0 ? bytes : strlen(name));
	text_char(own, '\0');
	if (own->failed || t->failed)
		return -ENOMEM;
	k.name = own->s;
	hash = hash_text(hash_text(hash_text(2166136261u, k.name), k.dims), k.stack);
	*ret = table_find(&w->rows, hash, same_row, &k);
	return *ret != TABLE_NONE ? 0 : row_add(w, &k, hash, ret);
}

/* One that stands in itself: its time is in the outer one's already. */
static bool is_in_itself(const struct work *w, uint32_t node)
{
	uint32_t at = w->p->node[node].parent;

	while (at != 0 && w->of[at] != w->of[node])
		at = w->p->node[at].parent;
	return at != 0;
}

static void row_fill(struct work *w, uint32_t node)
{
	const struct sums *s = &w->sums[node];
	struct operator_row *r = &w->o->row[w->of[node]];
	const double self = s->cpu_ns > s->cpu_inside_ns ? s->cpu_ns - s->cpu_inside_ns : 0;

	r->paths++;
	r->calls += number(w->p, node, w->calls);
	r->cpu_self_ns += self;
	r->gpu_self_ns += s->gpu_self_ns;
	r->kernels += s->kernels;
	w->o->cpu_ns += self;
	w->o->gpu_ns += s->gpu_self_ns;
	w->o->has_dims |= r->dims != NULL;
	if (is_in_itself(w, node))
		return;
	r->cpu_ns += s->cpu_ns;
	r->gpu_ns += s->gpu_ns;
	r->flops += s->flops;
	r->bytes += s->flops > 0 ? s->bytes : 0;
}

static int rows(struct work *w)
{
	struct text t = {0}, own = {0};
	uint32_t i;
	int r = 0;

	w->of[0] = PROFILE_NONE;
	for (i = 1; i < w->p->n_nodes && r == 0; i++) {
		w->of[i] = PROFILE_NONE;
		if (!w->v->keep[i] || !is_operator(w, i))
			continue;
		r = row_of(w, i, &t, &own, &w->of[i]);
		if (r == 0)
			row_fill(w, i);
	}
	text_fini(&t);
	text_fini(&own);
	return r;
}

static int by_self(const void *a, const void *b)
{
	const struct operator_row *x = a, *y = b;

	if (x->gpu_self_ns != y->gpu_self_ns)
		return x->gpu_self_ns < y->gpu_self_ns ? 1 : -1;
	if (x->cpu_self_ns != y->cpu_self_ns)
		return x->cpu_self_ns < y->cpu_self_ns ? 1 : -1;
	if (strcmp(x->name, y->name) != 0)
		return strcmp(x->name, y->name);
	return strcmp(x->dims != NULL ? x->dims : "", y->dims != NULL ? y->dims : "");
}

/* --- ------------------------------------------------------------------------------------------ */

static void find_metrics(struct work *w)
{
	static const char *const flops[FLOPS] = {"flops8", "flops16", "flops32", "flops64"};
	uint32_t i;

	w->time = profile_find_metric(w->p, "time (ns)");
	w->copy_time = profile_find_metric(w->p, "copy_time (ns)");
	w->count = profile_find_metric(w->p, "count");
	w->copies = profile_find_metric(w->p, "copies");
	w->cpu_time = profile_find_metric(w->p, "cpu_time (ns)");
	w->calls = profile_find_metric(w->p, "calls");
	w->bytes = profile_find_metric(w->p, "bytes");
	w->stack = profile_find_metric(w->p, "Call stack");
	w->mark = profile_find_metric(w->p, OP_MARK);
	for (i = 0; i < FLOPS; i++)
		w->flops[i] = profile_find_metric(w->p, flops[i]);
}

static int work_run(struct work *w)
{
	int r;

	w->sums = calloc(w->p->n_nodes, sizeof(*w->sums));
	w->of = calloc(w->p->n_nodes, sizeof(*w->of));
	w->o->arena = arena_new();
	if (w->sums == NULL || w->of == NULL || w->o->arena == NULL)
		return -ENOMEM;
	find_metrics(w);
	add_up(w);
	r = rows(w);
	if (r == 0 && w->o->n == 0)
		return -ENODATA;
	w->o->has_gpu = w->o->gpu_ns > 0;
	if (r == 0)
		qsort(w->o->row, w->o->n, sizeof(*w->o->row), by_self);
	return r;
}

int operators_new(const struct view *v, enum operators_by by, struct operators **ret)
{
	struct work w = {.v = v, .p = v->p, .by = by, .o = calloc(1, sizeof(*w.o))};
	int r = w.o != NULL ? work_run(&w) : -ENOMEM;

	free(w.sums);
	free(w.of);
	table_fini(&w.rows);
	if (r < 0) {
		operators_free(w.o);
		w.o = NULL;
	}
	*ret = w.o;
	return r;
}

void operators_free(struct operators *o)
{
	if (o == NULL)
		return;
	free(o->row);
	arena_free(o->arena);
	free(o);
}

int operators_by(const char *word)
{
#define X(name)                       \
	if (strcmp(word, #name) == 0) \
		return OPERATORS_BY_##name;
	OPERATORS_BY(X)
#undef X
	return -EINVAL;
}

double operator_rate(const struct operators *o, const struct operator_row *r, double what)
{
	const double ns = o->has_gpu ? r->gpu_ns : r->cpu_ns;

	return what > 0 && ns > 0 ? what * 1e9 / ns : (double)NAN;
}
