/* SPDX-License-Identifier: MIT. tree_rows.h: a tree as tables, for csv.c and json.c: a row a node, and a
 * row a kernel's name. docs/exports.md has the columns. No I/O. */
#ifndef PROTOND_EXPORT_TREE_ROWS_H
#define PROTOND_EXPORT_TREE_ROWS_H

#include "profile.h"
#include "text.h"

/* Who writes a table down: first all columns, then row by row as many values. */
struct rows {
	struct text out;
	const struct rows_form *form;
	bool any, in_row; /* columns or rows; values of this row */
	bool fixed;       /* a node's further metrics are left out */
	void *arg;        /* the form's */
};

struct rows_form {
	/* unit: "" none; type: "string", "integer" or "number" */
	void (*column)(struct rows *r, const char *name, const char *unit, const char *type);
	void (*begin)(struct rows *r); /* a row */
	void (*text)(struct rows *r, const char *s);
	void (*number)(struct rows *r, const struct value *v); /* NONE, I64, U64 or F64 */
	void (*heads_end)(struct rows *r);
	void (*rows_end)(struct rows *r);
};

extern const struct rows_form rows_csv, rows_json; /* csv.c, json.c: to out */

/* Whether a metric has columns of its own among a node's: "time (ns)", "count", ... */
bool rows_has(const char *metric);

typedef int rows_fn(const struct profile *p, struct rows *r);
/* -ENOMEM, -EFBIG. */
rows_fn rows_nodes, rows_kernels;

#endif
