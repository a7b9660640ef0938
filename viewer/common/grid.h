/* SPDX-License-Identifier: MIT. grid.h: a table that fits its line: columns as wide as what is in
 * them; where that is too much, names are cut and the least important columns left out, never a
 * number. */
#ifndef PROTOND_VIEWER_GRID_H
#define PROTOND_VIEWER_GRID_H

#include "term.h"

#define GRID_COLUMNS_MAX 56u

struct grid_column {
	const char *head;
	bool right;    /* numbers; else text */
	uint8_t least; /* a name is cut to so many columns before others leave, to 8 after; 0: never */
	uint8_t leaves; /* the column that leaves first has the highest; 0: it stays */
};

struct grid {
	const struct grid_column *column; /* [n], borrowed */
	uint32_t n;
	struct text cells; /* each ended by a NUL */
	uint32_t n_cells;
	struct text lines; /* below rows: the row's number, a blank, the words and a NUL, each */
	uint32_t n_lines;
	char left[256]; /* the heads that grid_print() left out, "min/us, class"; "": none */
};

void grid_init(struct grid *t, const struct grid_column *column, uint32_t n);
void grid_fini(struct grid *t);
/* The next cell, row by row. `name`: of a job, shown as term_name() does. */
void grid_cell(struct grid *t, const struct term *term, const char *name);
void grid_cell_fmt(struct grid *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Words below the last row. */
void grid_line(struct grid *t, const char *words);
void grid_print(struct text *out, const struct term *term, struct grid *t);

#endif
