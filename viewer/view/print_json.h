/* SPDX-License-Identifier: MIT. print_json.h: the one envelope of all JSON that protonview prints.
 * No I/O: all goes to a text. */
#ifndef PROTOND_VIEWER_PRINT_JSON_H
#define PROTOND_VIEWER_PRINT_JSON_H

#include "print.h"

/* The envelope:
 * {"protond":"1","kind","data":{"session","columns":[...],"rows":[[...]...]},"warnings":[...]}. */
struct envelope_column {
	const char *name, *unit, *type; /* type: "string", "integer", "number", "boolean" */
};
void envelope_open(
	struct text *t, const char *kind, const struct profile *p); /* p NULL: session null */
void envelope_session(struct text *t, const struct profile *p);     /* that member alone */
void envelope_columns(struct text *t, const struct envelope_column *c, uint32_t n);
void envelope_row(struct text *t);                   /* begins a row */
void envelope_string(struct text *t, const char *s); /* the next value in it; NULL: null */
void envelope_integer(struct text *t, int64_t v);
void envelope_boolean(struct text *t, bool v);
void envelope_number(struct text *t, double v);
void envelope_rows_end(struct text *t);
void envelope_close(struct text *t, const struct warnings *w); /* the rows, and all */
/* {"iterations_per_sec", "samples_per_sec", "tokens_per_sec", "flops_per_sec", "mfu"}; null: not told. */
void envelope_throughput(struct text *t, const struct throughput *h);
/* Other envelopes, with "data": {key: value}, or "error" in place of data. */
void envelope_data(struct text *t, const char *kind, const char *key, const char *value,
	const struct warnings *w);
void envelope_error(
	struct text *t, const char *kind, int code, const char *words, const struct warnings *w);
void envelope_flat(struct text *t, const struct flat *f, const struct print_options *o);
void envelope_tree(struct text *t, const struct view *v, const struct print_options *o);
void envelope_metrics(struct text *t, const struct profile *p); /* for -l */
void envelope_diff(struct text *t, const struct diff *d, const struct print_options *o);

#endif
