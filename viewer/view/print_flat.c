/* SPDX-License-Identifier: MIT. print_flat.c: one row for each name, for a terminal and as JSON. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grid.h"
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

/* As they leave a line that is too short: what tells the least leaves first. */
static const struct grid_column flat_columns[] = {{"share", true, 0, 0}, {"sum/ms", true, 0, 0},
	{"count", true, 0, 0}, {"avg/us", true, 0, 2}, {"min/us", true, 0, 6},
	{"p50/us", true, 0, 4}, {"p99/us", true, 0, 1}, {"max/us", true, 0, 3},
	{"class", false, 0, 5}, {"kernel", false, 24, 0}};
static const struct grid_column wide_columns[] = {{"share", true, 0, 0}, {"sum/ms", true, 0, 0},
	{"count", true, 0, 0}, {"avg/us", true, 0, 2}, {"min/us", true, 0, 11},
	{"p50/us", true, 0, 9}, {"p99/us", true, 0, 1}, {"max/us", true, 0, 8},
	{"class", false, 0, 10}, {"grid", true, 0, 3}, {"block", true, 0, 4}, {"regs", true, 0, 5},
	{"shared", true, 0, 6}, {"more", true, 0, 7}, {"kernel", false, 24, 0}};
#define NAME_OF(columns) (sizeof(columns) / sizeof((columns)[0]) - 1)

static void config_cells(struct grid *t, const struct flat_row *r)
{
	const struct profile_config *c = r->config;

	if (c == NULL) {
		grid_cell_fmt(t, "-");
		grid_cell_fmt(t, "-");
		grid_cell_fmt(t, "-");
		grid_cell_fmt(t, "-");
	} else {
		grid_cell_fmt(t, "%u,%u,%u", c->grid[0], c->grid[1], c->grid[2]);
		grid_cell_fmt(t, "%u,%u,%u", c->block[0], c->block[1], c->block[2]);
		grid_cell_fmt(t, "%u", c->registers);
		grid_cell_fmt(t, "%u", c->static_shared + c->dynamic_shared);
	}
	if (r->configs > 1)
		grid_cell_fmt(t, "+%u", r->configs - 1);
	else
		grid_cell_fmt(t, "%s", "");
}

static void flat_cells(struct grid *t, const struct flat_row *r, const struct print_options *o)
{
	char buf[1024];
	double ns[5];
	uint32_t i;

	if (isnan(r->share))
		grid_cell_fmt(t, "-");
	else
		grid_cell_fmt(t, "%.1f%%", r->share * 100);
	grid_cell_fmt(t, "%.3f", r->sum_ns / 1e6);
	grid_cell_fmt(t, "%.0f", r->count);
	times(r, ns);
	for (i = 0; i < 5; i++) {
		if (isnan(ns[i]))
			grid_cell_fmt(t, "-");
		else
			grid_cell_fmt(t, "%.3f", ns[i] / 1e3);
	}
	grid_cell_fmt(t, "%s", class_word(r->class));
	if (o->wide)
		config_cells(t, r);
	grid_cell(t, o->term,
		names_show(o->names, frame_format(o->format, r->name, buf, sizeof(buf))));
}

static void flat_notes(struct text *t, const struct flat *f, const struct print_options *o)
{
	char words[256];

	if (o->rows > 0 && f->n > o->rows)
		text_fmt(t, "(%u more rows; -n 0 shows all)\n", (unsigned)(f->n - o->rows));
	if (f->total_ns != 0) {
		snprintf(words, sizeof(words), "of %.3f ms, the time of %s", f->total_ns / 1e6,
			f->is_cpu ? "the outermost scopes" : "all GPU work");
		print_words(t, o->term, "share: ", words);
	}
	if (f->has_hist)
		print_words(t, o->term, "", flat_accuracy(f));
}

void print_flat(struct text *t, const struct flat *f, const struct print_options *o)
{
	struct grid_column columns[NAME_OF(wide_columns) + 1];
	const uint32_t n = o->wide ? NAME_OF(wide_columns) : NAME_OF(flat_columns);
	struct term term = *o->term;
	struct grid table;
	char words[160];
	uint32_t i;

	memcpy(columns, o->wide ? wide_columns : flat_columns, (n + 1) * sizeof(columns[0]));
	columns[n].head = f->is_cpu ? "scope" : "kernel";
	grid_init(&table, columns, n + 1);
	for (i = 0; i < f->n && (o->rows == 0 || i < o->rows); i++)
		flat_cells(&table, &f->row[i], o);
	term.width = o->full ? 0 : term.width;
	grid_print(t, &term, &table);
	if (table.left[0] != '\0') {
		snprintf(words, sizeof(words), "%s; COLUMNS=200 or --full-names shows all",
			table.left);
		print_words(t, o->term, "not in this width: ", words);
	}
	flat_notes(t, f, o);
	grid_fini(&table);
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
