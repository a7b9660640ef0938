/* SPDX-License-Identifier: MIT. sheet.c: a table as a screen, or as an envelope. */
#include "sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "part_tree.h"

static const struct {
	const char *unit, *type;
} envelopes[] = {
	[SHEET_TEXT] = {NULL, "string"},
	[SHEET_COUNT] = {NULL, "integer"},
	[SHEET_MS] = {"ns", "number"},
	[SHEET_US] = {"ns", "number"},
	[SHEET_PERCENT] = {NULL, "number"},
	[SHEET_BYTES] = {"bytes", "number"},
	[SHEET_NUMBER] = {NULL, "number"},
};

void sheet_open(struct sheet *s, struct run *run, const char *kind, const struct profile *p,
	const struct sheet_column *c, uint32_t n)
{
	sheet_open_with(s, run, kind, p, c, n, NULL);
}

void sheet_open_with(struct sheet *s, struct run *run, const char *kind, const struct profile *p,
	const struct sheet_column *c, uint32_t n, const char *members)
{
	struct envelope_column columns[GRID_COLUMNS_MAX];
	uint32_t i, k = 0, n_keys = 0;

	*s = (struct sheet){.run = run, .column = c, .n = n, .json = run_given(run, OPT_JSON)};
	for (i = 0; i < n && i < GRID_COLUMNS_MAX; i++) {
		if (c[i].key != NULL)
			columns[n_keys++] = (struct envelope_column){
				c[i].key, envelopes[c[i].as].unit, envelopes[c[i].as].type};
		if (c[i].head != NULL)
			s->shown[k++] = (struct grid_column){
				c[i].head, c[i].as != SHEET_TEXT, c[i].least, c[i].leaves};
	}
	if (s->json) {
		envelope_open(&run->out, kind, p);
		if (members != NULL) {
			text_char(&run->out, ',');
			text_str(&run->out, members);
		}
		envelope_columns(&run->out, columns, n_keys);
		return;
	}
	print_head(&run->out, p, &run->term);
	grid_init(&s->grid, s->shown, k);
}

/* The column of the next value. */
static const struct sheet_column *next(struct sheet *s)
{
	const struct sheet_column *c = &s->column[s->at];

	if (s->json && s->at == 0)
		envelope_row(&s->run->out);
	s->at = (s->at + 1) % s->n;
	return c;
}

void sheet_text(struct sheet *s, const char *v)
{
	const struct sheet_column *c = next(s);

	if (s->json && c->key != NULL)
		envelope_string(&s->run->out, v);
	else if (!s->json && c->head != NULL)
		grid_cell(&s->grid, &s->run->term, v != NULL ? v : "-");
}

static void show(struct grid *g, enum sheet_as as, double v)
{
	switch (as) {
	case SHEET_TEXT:
	case SHEET_COUNT:
		grid_cell_fmt(g, "%.0f", v);
		break;
	case SHEET_MS:
		grid_cell_fmt(g, "%.3f", v / 1e6);
		break;
	case SHEET_US:
		grid_cell_fmt(g, "%.1f", v / 1e3);
		break;
	case SHEET_PERCENT:
		grid_cell_fmt(g, "%.1f%%", 100 * v);
		break;
	case SHEET_BYTES:
		grid_cell_fmt(g, "%.2f", v / 1e6);
		break;
	case SHEET_NUMBER:
		grid_cell_fmt(g, "%.*f", v >= 1000 ? 0 : v >= 100 ? 1 : v >= 1 ? 2 : 4, v);
		break;
	}
}

void sheet_number(struct sheet *s, double v)
{
	const struct sheet_column *c = next(s);

	if (s->json && (c->as == SHEET_COUNT && fabs(v) < 9e15))
		envelope_integer(&s->run->out, (int64_t)v);
	else if (s->json)
		envelope_number(&s->run->out, v);
	else if (c->head != NULL && isnan(v))
		grid_cell_fmt(&s->grid, "-");
	else if (c->head != NULL)
		show(&s->grid, c->as, v);
}

void sheet_note(struct sheet *s, const char *fmt, ...)
{
	char words[320];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	if (s->json)
		warning_add(&s->run->warnings, "%s", words);
	else
		print_words(&s->notes, &s->run->term, "", words);
}

void sheet_close(struct sheet *s, const struct profile *p)
{
	struct run *run = s->run;

	if (s->json) {
		envelope_close(&run->out, &run->warnings);
		return;
	}
	if (s->grid.n_cells > 0)
		print_grid(&run->out, &run->term, &s->grid);
	if (s->notes.n > 0)
		text_add(&run->out, s->notes.s, s->notes.n);
	grid_fini(&s->grid);
	text_fini(&s->notes);
	print_why(&run->out, p, &run->term);
}

int sheet_source(struct run *run, sheet_read_fn *read, void *arg, struct profile **ret_p)
{
	struct source_options o = {.timeline = read, .arg = arg};
	struct source s;
	int r = run_source(run, run->o.args[0], true, ret_p);

	if (r == 0)
		r = run_names(run, *ret_p);
	return r == 0 ? run_source_by(run, run->o.args[0], &o, &s) : r;
}

int sheet_profile(struct run *run, struct profile **ret_p)
{
	struct source_options o = {.timeline = part_tree_read};
	struct source s;
	int r = run_source(run, run->o.args[0], true, ret_p);

	o.arg = r == 0 ? *ret_p : NULL;
	if (r == 0)
		r = run_names(run, *ret_p);
	/* A phase's tree is stored. */
	if (r == 0 && (run_given(run, OPT_WINDOW) || run_given(run, OPT_STEP) ||
			      run_given(run, OPT_SCOPE) || run_given(run, OPT_EVERY)))
		r = run_source_by(run, run->o.args[0], &o, &s);
	return r;
}
