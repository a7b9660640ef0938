/* SPDX-License-Identifier: MIT. print_flat.c: one row for each name, over all the paths it stands
 * on: what runs on the GPU, else the scopes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

struct row {
	const char *name;
	uint8_t class;
	uint32_t paths, configs;
	double count, sum_ns;
	uint64_t min_ns, max_ns;
	const struct profile_config *config; /* the most frequent one; NULL: not known */
	uint32_t *hist;                      /* [HIST_BUCKETS], NULL: not known */
};

struct flat {
	const struct profile *p;
	struct row *row;
	uint32_t n;
	double total_ns; /* of scopes: of those that stand in no other */
	bool is_cpu, has_hist;
	uint32_t *hist;  /* of all rows */
	uint32_t *of;    /* [n_nodes]: row, PROFILE_NONE */
	uint32_t *index; /* by name: row + 1 */
	uint32_t cap;
};

/* Which metrics make a row: GPU work has two pairs, kernels and copies. */
struct pair {
	uint32_t time, count;
};

static double number(const struct profile *p, uint32_t node, uint32_t metric)
{
	double v =
		metric == PROFILE_NONE ? (double)NAN : value_number(profile_value(p, node, metric));

	return isnan(v) ? 0 : v;
}

static bool has(const struct profile *p, uint32_t node, uint32_t metric)
{
	return metric != PROFILE_NONE && !isnan(value_number(profile_value(p, node, metric)));
}

static uint32_t row_of(struct flat *f, const char *name)
{
	uint32_t h = 2166136261u, at;
	const char *s;

	for (s = name; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	for (at = h & (f->cap - 1); f->index[at] != 0; at = (at + 1) & (f->cap - 1))
		if (strcmp(f->row[f->index[at] - 1].name, name) == 0)
			return f->index[at] - 1;
	f->row[f->n] = (struct row){.name = name, .min_ns = UINT64_MAX};
	f->index[at] = ++f->n;
	return f->n - 1;
}

/* inside: in a scope that has a row; its time holds this one's. */
static void add_node(
	struct flat *f, const struct view *v, uint32_t node, const struct pair *pairs, bool inside)
{
	const struct profile *p = v->p;
	struct row *row;
	uint32_t i;

	for (i = 0; i < 2 && !has(p, node, pairs[i].time) && !has(p, node, pairs[i].count); i++)
		;
	if (i == 2 || !v->keep[node])
		return;
	f->of[node] = row_of(f, p->node[node].name);
	row = &f->row[f->of[node]];
	row->paths++;
	row->class = f->is_cpu ? CLASS_CPU : p->node[node].class;
	if (!f->is_cpu && row->class == CLASS_CPU)
		row->class = gpu_class_of_leaf(row->name); /* a .hatchet file has no classes */
	for (i = 0; i < 2; i++) {
		row->sum_ns += number(p, node, pairs[i].time);
		row->count += number(p, node, pairs[i].count);
		f->total_ns += f->is_cpu && inside ? 0 : number(p, node, pairs[i].time);
	}
	/* A node with GPU work keeps durations of that alone. */
	if (f->is_cpu && p->node[node].class != CLASS_CPU)
		return;
	if (p->span != NULL && p->span[node].min_ns < row->min_ns)
		row->min_ns = p->span[node].min_ns;
	if (p->span != NULL && p->span[node].max_ns > row->max_ns)
		row->max_ns = p->span[node].max_ns;
}

static void add_hists(struct flat *f)
{
	const struct profile *p = f->p;
	uint32_t i, b, *to;

	for (i = 0; i < p->n_nodes; i++) {
		if (f->of[i] == PROFILE_NONE || (f->is_cpu && p->node[i].class != CLASS_CPU))
			continue;
		to = f->hist + (size_t)f->of[i] * HIST_BUCKETS;
		for (b = 0; b < HIST_BUCKETS; b++)
			to[b] += p->hist[(size_t)i * HIST_BUCKETS + b];
	}
	for (i = 0; i < f->n; i++)
		f->row[i].hist = f->hist + (size_t)i * HIST_BUCKETS;
}

static void add_configs(struct flat *f)
{
	const struct profile_config *c;
	struct row *row;
	uint32_t i;

	for (i = 0; i < f->p->n_configs; i++) {
		c = &f->p->config[i];
		if (f->of[c->node] == PROFILE_NONE || f->is_cpu)
			continue;
		row = &f->row[f->of[c->node]];
		row->configs++;
		if (row->config == NULL || c->count > row->config->count)
			row->config = c;
	}
}

static int by_sum(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->sum_ns != y->sum_ns)
		return x->sum_ns < y->sum_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void choose(const struct profile *p, struct flat *f, struct pair pairs[2])
{
	pairs[0] =
		(struct pair){profile_find_metric(p, "time (ns)"), profile_find_metric(p, "count")};
	pairs[1] = (struct pair){
		profile_find_metric(p, "copy_time (ns)"), profile_find_metric(p, "copies")};
	if (pairs[0].time != PROFILE_NONE || pairs[1].time != PROFILE_NONE)
		return;
	f->is_cpu = true;
	pairs[0] = (struct pair){
		profile_find_metric(p, "cpu_time (ns)"), profile_find_metric(p, "calls")};
}

static int fill(struct flat *f, const struct view *v, const struct pair *pairs)
{
	uint8_t *inside = calloc(v->p->n_nodes, 1);
	uint32_t i, parent;

	if (inside == NULL)
		return -ENOMEM;
	f->of[0] = PROFILE_NONE; /* a .hatchet's ROOT has zeros that are hints, not work */
	for (i = 1; i < v->p->n_nodes; i++) {
		parent = v->p->node[i].parent;
		inside[i] = inside[parent] || f->of[parent] != PROFILE_NONE;
		f->of[i] = PROFILE_NONE;
		add_node(f, v, i, pairs, inside[i]);
	}
	free(inside);
	if (v->p->hist != NULL) {
		f->hist = calloc((size_t)f->n * HIST_BUCKETS + 1, sizeof(*f->hist));
		if (f->hist == NULL)
			return -ENOMEM;
		add_hists(f);
		f->has_hist = true;
	}
	add_configs(f);
	qsort(f->row, f->n, sizeof(*f->row), by_sum);
	return 0;
}

int flat_new(const struct view *v, struct flat **ret)
{
	struct flat *f = calloc(1, sizeof(*f));
	struct pair pairs[2];
	uint32_t n = v->p->n_nodes;
	int r = -ENOMEM;

	if (f == NULL)
		return -ENOMEM;
	f->p = v->p;
	choose(v->p, f, pairs);
	for (f->cap = 64; f->cap / 2 < n; f->cap *= 2)
		;
	f->row = calloc(n, sizeof(*f->row));
	f->of = malloc(n * sizeof(*f->of));
	f->index = calloc(f->cap, sizeof(*f->index));
	if (f->row != NULL && f->of != NULL && f->index != NULL)
		r = pairs[0].time == PROFILE_NONE && pairs[1].time == PROFILE_NONE
			    ? -ENODATA
			    : fill(f, v, pairs);
	if (r < 0)
		flat_free(f);
	else
		*ret = f;
	return r;
}

void flat_free(struct flat *f)
{
	if (f == NULL)
		return;
	free(f->row);
	free(f->of);
	free(f->index);
	free(f->hist);
	free(f);
}

/* A quantile lies between the shortest and the longest, which are exact. */
static double quantile(const struct row *r, double q)
{
	double v = r->hist == NULL ? (double)NAN : hist_quantile(r->hist, q);

	if (r->min_ns > r->max_ns)
		return v;
	v = v < (double)r->min_ns ? (double)r->min_ns : v;
	return v > (double)r->max_ns ? (double)r->max_ns : v;
}

/* NAN: nothing took any time. */
static double share(const struct flat *f, const struct row *r)
{
	return f->total_ns != 0 ? r->sum_ns / f->total_ns : (double)NAN;
}

static void times(const struct row *r, double ret_ns[5])
{
	bool span = r->min_ns <= r->max_ns;

	ret_ns[0] = r->count > 0 ? r->sum_ns / r->count : (double)NAN;
	ret_ns[1] = span ? (double)r->min_ns : (double)NAN;
	ret_ns[2] = quantile(r, 0.5);
	ret_ns[3] = quantile(r, 0.99);
	ret_ns[4] = span ? (double)r->max_ns : (double)NAN;
}

static void print_config(struct text *t, const struct row *r)
{
	const struct profile_config *c = r->config;
	char grid[48] = "-", block[48] = "-", more[24] = "";

	if (c != NULL) {
		(void)snprintf(grid, sizeof(grid), "%u,%u,%u", c->grid[0], c->grid[1], c->grid[2]);
		(void)snprintf(
			block, sizeof(block), "%u,%u,%u", c->block[0], c->block[1], c->block[2]);
	}
	if (r->configs > 1)
		(void)snprintf(more, sizeof(more), "+%u", r->configs - 1);
	text_fmt(t, " %13s %11s %4u %7u %4s", grid, block, c == NULL ? 0 : c->registers,
		c == NULL ? 0 : c->static_shared + c->dynamic_shared, more);
}

int flat_print(struct text *t, const struct flat *f, const struct print_options *o)
{
	const struct row *r;
	double ns[5];
	size_t line;
	uint32_t i;

	term_style(o->term, t, STYLE_BOLD);
	text_fmt(t, "%6s %12s %10s %10s %10s %10s %10s %10s %-7s", "share", "sum/ms", "count",
		"avg/us", "min/us", "p50/us", "p99/us", "max/us", "class");
	if (o->wide)
		text_fmt(t, " %13s %11s %4s %7s %4s", "grid", "block", "regs", "shared", "more");
	text_fmt(t, " %s\n", f->is_cpu ? "scope" : "kernel");
	term_style(o->term, t, STYLE_PLAIN);
	for (r = f->row; r < f->row + f->n && (o->rows == 0 || r < f->row + o->rows); r++) {
		line = t->n;
		term_style(o->term, t, term_heat(share(f, r)));
		if (isnan(share(f, r)))
			text_fmt(t, "%6s", "-");
		else
			text_fmt(t, "%5.1f%%", share(f, r) * 100);
		text_fmt(t, " %12.3f", r->sum_ns / 1e6);
		term_style(o->term, t, STYLE_PLAIN);
		text_fmt(t, " %10.0f", r->count);
		times(r, ns);
		for (i = 0; i < 5; i++) {
			if (isnan(ns[i]))
				text_fmt(t, " %10s", "-");
			else
				text_fmt(t, " %10.3f", ns[i] / 1e3);
		}
		text_fmt(t, " %-7s", class_word(r->class));
		if (o->wide)
			print_config(t, r);
		text_char(t, ' ');
		print_name(t, r->name, line, o);
	}
	if (r < f->row + f->n)
		text_fmt(t, "(%u more rows; -n 0 shows all)\n", (unsigned)(f->row + f->n - r));
	if (f->has_hist)
		text_str(t, "p50 and p99 are within 19% of the true value, from 32 ns on\n");
	return 0;
}

static void json_config(struct text *t, const struct profile_config *c)
{
	static const struct profile_config none;
	uint32_t i;

	if (c == NULL)
		c = &none;
	for (i = 0; i < 3; i++)
		envelope_integer(t, c->grid[i]);
	for (i = 0; i < 3; i++)
		envelope_integer(t, c->block[i]);
	envelope_integer(t, c->registers);
	envelope_integer(t, (int64_t)c->static_shared + c->dynamic_shared);
}

void flat_json(struct text *t, const struct flat *f, const struct print_options *o)
{
	static const struct envelope_column columns[] = {{"name", "", "string"},
		{"display", "", "string"}, {"class", "", "string"}, {"paths", "", "integer"},
		{"count", "", "number"}, {"sum", "ns", "number"}, {"share", "%", "number"},
		{"avg", "ns", "number"}, {"min", "ns", "number"}, {"p50", "ns", "number"},
		{"p99", "ns", "number"}, {"max", "ns", "number"}, {"configs", "", "integer"},
		{"grid_x", "", "integer"}, {"grid_y", "", "integer"}, {"grid_z", "", "integer"},
		{"block_x", "", "integer"}, {"block_y", "", "integer"}, {"block_z", "", "integer"},
		{"registers", "", "integer"}, {"shared", "bytes", "integer"}};
	const struct row *r;
	const char *name;
	char buf[1024];
	double ns[5];
	uint32_t i;

	envelope_columns(t, columns, sizeof(columns) / sizeof(columns[0]) - (o->wide ? 0 : 8));
	for (r = f->row; r < f->row + f->n && (o->rows == 0 || r < f->row + o->rows); r++) {
		envelope_row(t);
		name = frame_format(o->format, r->name, buf, sizeof(buf));
		envelope_string(t, name);
		envelope_string(t, names_show(o->names, name));
		envelope_string(t, class_word(r->class));
		envelope_integer(t, r->paths);
		envelope_number(t, r->count);
		envelope_number(t, r->sum_ns);
		envelope_number(t, share(f, r) * 100);
		times(r, ns);
		for (i = 0; i < 5; i++)
			envelope_number(t, ns[i]);
		envelope_integer(t, r->configs);
		if (o->wide)
			json_config(t, r->config);
	}
}
