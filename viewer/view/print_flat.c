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
static const struct flat_column {
	struct grid_column it;
	enum { ALWAYS, OF_SCOPES, OF_GPU, OF_KINDS, WIDE } when;
} flat_columns[] = {{{"share", true, 0, 0}, ALWAYS}, {{"sum/ms", true, 0, 0}, ALWAYS},
	{{"self/ms", true, 0, 2}, OF_SCOPES}, {{"count", true, 0, 0}, ALWAYS},
	{{"avg/us", true, 0, 3}, ALWAYS}, {{"min/us", true, 0, 12}, ALWAYS},
	{{"p50/us", true, 0, 10}, ALWAYS}, {{"p99/us", true, 0, 1}, ALWAYS},
	{{"max/us", true, 0, 9}, ALWAYS}, {{"class", false, 0, 11}, OF_GPU},
	{{"names", true, 0, 8}, OF_KINDS}, {{"grid", true, 0, 4}, WIDE},
	{{"block", true, 0, 5}, WIDE}, {{"regs", true, 0, 6}, WIDE}, {{"shared", true, 0, 7}, WIDE},
	{{"more", true, 0, 8}, WIDE}};
#define FLAT_COLUMNS (sizeof(flat_columns) / sizeof(flat_columns[0]))

static uint32_t choose_columns(const struct flat *f, const struct print_options *o,
	struct grid_column ret[FLAT_COLUMNS + 1])
{
	static const char *const head[] = {[FLAT_BY_name] = "kernel",
		[FLAT_BY_family] = "family",
		[FLAT_BY_class] = "class",
		[FLAT_BY_call] = "call"};
	const bool names = f->by == FLAT_BY_name;
	const bool shown[] = {[ALWAYS] = true,
		[OF_SCOPES] = f->is_cpu,
		[OF_GPU] = names && !f->is_cpu,
		[OF_KINDS] = !names,
		[WIDE] = names && o->wide};
	uint32_t n = 0, i;

	for (i = 0; i < FLAT_COLUMNS; i++)
		if (shown[flat_columns[i].when])
			ret[n++] = flat_columns[i].it;
	ret[n++] = (struct grid_column){f->is_cpu ? "scope" : head[f->by], false, 24, 0};
	return n;
}

static void number_cell(struct grid *t, double v)
{
	if (isnan(v))
		grid_cell_fmt(t, "-");
	else
		grid_cell_fmt(t, "%.3f", v);
}

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

static void flat_cells(struct grid *t, const struct flat *f, const struct flat_row *r,
	const struct print_options *o)
{
	char buf[1024];
	double ns[5];
	uint32_t i;

	if (isnan(r->share))
		grid_cell_fmt(t, "-");
	else
		grid_cell_fmt(t, "%.1f%%", r->share * 100);
	number_cell(t, r->sum_ns / 1e6);
	if (f->is_cpu)
		number_cell(t, r->self_ns / 1e6);
	grid_cell_fmt(t, "%.0f", r->count);
	times(r, ns);
	for (i = 0; i < 5; i++)
		number_cell(t, ns[i] / 1e3);
	if (f->by != FLAT_BY_name)
		grid_cell_fmt(t, "%u", r->names);
	else if (!f->is_cpu)
		grid_cell_fmt(t, "%s", class_word(r->class));
	if (o->wide && f->by == FLAT_BY_name)
		config_cells(t, r);
	grid_cell(t, o->term,
		names_show(o->names, frame_format(o->format, r->name, buf, sizeof(buf))));
}

static void flat_notes(struct text *t, const struct flat *f, const struct print_options *o)
{
	char words[256];

	if (o->rows > 0 && f->n > o->rows)
		text_fmt(t, "(%u more row%s; -n 0 shows all)\n", (unsigned)(f->n - o->rows),
			f->n - o->rows == 1 ? "" : "s");
	if (f->total_ns != 0) {
		snprintf(words, sizeof(words), "of %.3f ms, the time of %s", f->total_ns / 1e6,
			f->is_cpu               ? "the outermost scopes"
			: f->by == FLAT_BY_call ? "all these calls"
						: "all GPU work");
		print_words(t, o->term, "share: ", words);
	}
	if (f->has_hist)
		print_words(t, o->term, "", flat_accuracy(f));
}

void print_flat(struct text *t, const struct flat *f, const struct print_options *o)
{
	struct grid_column columns[FLAT_COLUMNS + 1];
	const uint32_t n = choose_columns(f, o, columns);
	struct term term = *o->term;
	struct grid table;
	char words[sizeof(table.left) + 60];
	uint32_t i;

	grid_init(&table, columns, n);
	for (i = 0; i < f->n && (o->rows == 0 || i < o->rows); i++)
		flat_cells(&table, f, &f->row[i], o);
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
		{"display", "", "string"}, {"class", "", "string"}, {"names", "", "integer"},
		{"paths", "", "integer"}, {"count", "", "number"}, {"sum", "ns", "number"},
		{"self", "ns", "number"}, {"share", "%", "number"}, {"avg", "ns", "number"},
		{"min", "ns", "number"}, {"p50", "ns", "number"}, {"p99", "ns", "number"},
		{"max", "ns", "number"}, {"configs", "", "integer"}, {"grid_x", "", "integer"},
		{"grid_y", "", "integer"}, {"grid_z", "", "integer"}, {"block_x", "", "integer"},
		{"block_y", "", "integer"}, {"block_z", "", "integer"},
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
		envelope_string(t, f->by != FLAT_BY_family ? class_word(r->class) : "");
		envelope_integer(t, r->names);
		envelope_integer(t, r->paths);
		envelope_number(t, r->count);
		envelope_number(t, r->sum_ns);
		envelope_number(t, r->self_ns);
		envelope_number(t, r->share * 100);
		times(r, ns);
		for (i = 0; i < 5; i++)
			envelope_number(t, ns[i]);
		envelope_integer(t, r->configs);
		if (o->wide)
			json_config(t, r->config);
	}
}
