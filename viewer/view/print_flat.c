/* SPDX-License-Identifier: MIT. print_flat.c: one row for each name, for a terminal and as JSON. */
#include <math.h>
#include <stdio.h>

#include "print_json.h"

/* How long one took, in the order of the columns. */
static void times(const struct flat_row *r, double ret_ns[5])
{
	ret_ns[0] = r->avg_ns;
	ret_ns[1] = r->min_ns;
	ret_ns[2] = r->p50_ns;
	ret_ns[3] = r->p99_ns;
	ret_ns[4] = r->max_ns;
}

static void print_config(struct text *t, const struct flat_row *r)
{
	const struct profile_config *c = r->config;
	char grid[48] = "-", block[48] = "-", more[24] = "";

	if (c != NULL) {
		snprintf(grid, sizeof(grid), "%u,%u,%u", c->grid[0], c->grid[1], c->grid[2]);
		snprintf(block, sizeof(block), "%u,%u,%u", c->block[0], c->block[1], c->block[2]);
	}
	if (r->configs > 1)
		snprintf(more, sizeof(more), "+%u", r->configs - 1);
	text_fmt(t, " %13s %11s %4u %7u %4s", grid, block, c == NULL ? 0 : c->registers,
		c == NULL ? 0 : c->static_shared + c->dynamic_shared, more);
}

void print_flat(struct text *t, const struct flat *f, const struct print_options *o)
{
	const struct flat_row *r;
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
		term_style(o->term, t, term_heat(r->share));
		if (isnan(r->share))
			text_fmt(t, "%6s", "-");
		else
			text_fmt(t, "%5.1f%%", r->share * 100);
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
	if (f->total_ns != 0)
		text_fmt(t, "share: of %.3f ms, the time of %s\n", f->total_ns / 1e6,
			f->is_cpu ? "the outermost scopes" : "all GPU work");
	if (f->has_hist)
		text_fmt(t, "%s\n", flat_accuracy(f));
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

void envelope_flat(struct text *t, const struct flat *f, const struct print_options *o)
{
	static const struct envelope_column columns[] = {{"name", "", "string"},
		{"display", "", "string"}, {"class", "", "string"}, {"paths", "", "integer"},
		{"count", "", "number"}, {"sum", "ns", "number"}, {"share", "%", "number"},
		{"avg", "ns", "number"}, {"min", "ns", "number"}, {"p50", "ns", "number"},
		{"p99", "ns", "number"}, {"max", "ns", "number"}, {"configs", "", "integer"},
		{"grid_x", "", "integer"}, {"grid_y", "", "integer"}, {"grid_z", "", "integer"},
		{"block_x", "", "integer"}, {"block_y", "", "integer"}, {"block_z", "", "integer"},
		{"registers", "", "integer"}, {"shared", "bytes", "integer"}};
	const struct flat_row *r;
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
		envelope_number(t, r->share * 100);
		times(r, ns);
		for (i = 0; i < 5; i++)
			envelope_number(t, ns[i]);
		envelope_integer(t, r->configs);
		if (o->wide)
			json_config(t, r->config);
	}
}
