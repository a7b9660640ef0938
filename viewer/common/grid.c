/* SPDX-License-Identifier: MIT. grid.c: a table that fits its line. */
#include "grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define GAP        2u
#define NAME_LEAST 8u

void grid_init(struct grid *t, const struct grid_column *column, uint32_t n)
{
	*t = (struct grid){.column = column, .n = n};
}

void grid_fini(struct grid *t)
{
	text_fini(&t->cells);
	text_fini(&t->lines);
}

void grid_cell(struct grid *t, const struct term *term, const char *name)
{
	term_name(term, &t->cells, name, 0);
	text_char(&t->cells, '\0');
	t->n_cells++;
}

void grid_cell_fmt(struct grid *t, const char *fmt, ...)
{
	char cell[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cell, sizeof(cell), fmt, ap);
	va_end(ap);
	text_add(&t->cells, cell, strlen(cell) + 1);
	t->n_cells++;
}

void grid_line(struct grid *t, const char *words)
{
	text_fmt(&t->lines, "%u ", t->n_cells / t->n);
	text_add(&t->lines, words, strlen(words) + 1);
	t->n_lines++;
}

/* --- widths */

struct fit {
	uint32_t width[GRID_COLUMNS_MAX]; /* 0: left out */
	uint32_t most[GRID_COLUMNS_MAX];  /* what is in it */
};

static void measure(const struct grid *t, struct fit *f)
{
	const char *s = t->cells.s;
	uint32_t i, w;

	for (i = 0; i < t->n; i++)
		f->most[i] = term_width(t->column[i].head);
	for (i = 0; i < t->n_cells; i++, s += strlen(s) + 1) {
		w = term_width(s);
		if (w > f->most[i % t->n])
			f->most[i % t->n] = w;
	}
}

static uint32_t least_of(const struct grid *t, const struct fit *f, uint32_t i)
{
	const uint32_t least = t->column[i].least;

	return least > 0 && least < f->most[i] ? least : f->most[i];
}

/* The columns as narrow as they may be. */
static uint32_t narrow(const struct grid *t, struct fit *f)
{
	uint32_t i, sum = 0;

	for (i = 0; i < t->n; i++) {
		if (f->width[i] == 0)
			continue;
		f->width[i] = least_of(t, f, i);
		sum += f->width[i] + (sum > 0 ? GAP : 0);
	}
	return sum;
}

/* Takes away the column that leaves first. */
static bool leave(struct grid *t, struct fit *f)
{
	uint32_t i, worst = t->n;
	const size_t n = strlen(t->left);

	for (i = 0; i < t->n; i++)
		if (f->width[i] > 0 && t->column[i].leaves > 0 &&
			(worst == t->n || t->column[i].leaves > t->column[worst].leaves))
			worst = i;
	if (worst == t->n)
		return false;
	f->width[worst] = 0;
	snprintf(
		t->left + n, sizeof(t->left) - n, "%s%s", n > 0 ? ", " : "", t->column[worst].head);
	return true;
}

static void fit(struct grid *t, uint32_t line, struct fit *f)
{
	uint32_t i, sum, more;

	for (i = 0; i < t->n; i++)
		f->width[i] = f->most[i];
	if (line == 0)
		return;
	do {
		sum = narrow(t, f);
	} while (sum > line && leave(t, f));
	for (i = 0; i < t->n && sum > line; i++) { /* nothing else may leave */
		if (t->column[i].least == 0 || f->width[i] <= NAME_LEAST)
			continue;
		more = f->width[i] - NAME_LEAST;
		more = more < sum - line ? more : sum - line;
		f->width[i] -= more;
		sum -= more;
	}
	for (i = 0; i < t->n && sum < line; i++) {
		if (f->width[i] == 0)
			continue;
		more = f->most[i] - f->width[i];
		more = more < line - sum ? more : line - sum;
		f->width[i] += more;
		sum += more;
	}
}

/* --- rows */

static void spaces(struct text *out, uint32_t n)
{
	while (n-- > 0)
		text_char(out, ' ');
}

/* cell, of `column`; the last one of a line is not padded. */
static void put(struct text *out, const struct term *term, const struct grid *t,
	const struct fit *f, uint32_t column, const char *cell)
{
	const size_t from = out->n;
	const uint32_t w = term_width(cell), width = f->width[column];
	uint32_t i, last = column;

	for (i = column + 1; i < t->n; i++)
		last = f->width[i] > 0 ? i : last;
	if (t->column[column].right)
		spaces(out, w < width ? width - w : 0);
	if (w > width)
		term_name(term, out, cell, width);
	else
		text_str(out, cell);
	if (last != column)
		spaces(out, width + GAP - term_line_width(out, from));
}

#define LINE_INDENT 6

/* The lines below so many rows; *at: the next one, of *left. */
static void put_lines(
	struct text *out, const struct term *term, const char **at, uint32_t *left, uint32_t rows)
{
	char *words;
	size_t from;

	for (; *left > 0 && strtoul(*at, &words, 10) == rows; (*left)--) {
		from = out->n;
		text_fmt(out, "%*s%s", LINE_INDENT, "", words + 1);
		term_wrap(term, out, from, LINE_INDENT);
		text_char(out, '\n');
		*at += strlen(*at) + 1;
	}
}

void grid_print(struct text *out, const struct term *term, struct grid *t)
{
	struct fit f = {.width = {0}};
	const char *s = t->cells.s, *line = t->lines.s;
	uint32_t i, column, lines = t->n_lines;

	if (t->cells.failed || t->lines.failed) {
		out->failed = true;
		return;
	}
	measure(t, &f);
	fit(t, term->width, &f);
	term_style(term, out, STYLE_BOLD);
	for (column = 0; column < t->n; column++)
		if (f.width[column] > 0)
			put(out, term, t, &f, column, t->column[column].head);
	term_style(term, out, STYLE_PLAIN);
	text_char(out, '\n');
	for (i = 0; i < t->n_cells; i++, s += strlen(s) + 1) {
		column = i % t->n;
		if (f.width[column] > 0)
			put(out, term, t, &f, column, s);
		if (column + 1 < t->n)
			continue;
		text_char(out, '\n');
		put_lines(out, term, &line, &lines, i / t->n + 1);
	}
}
