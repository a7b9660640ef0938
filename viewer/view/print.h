/* SPDX-License-Identifier: MIT. print.h: profiles as screens and as JSON. No I/O: all goes to a
 * text. */
#ifndef PROTOND_VIEWER_PRINT_H
#define PROTOND_VIEWER_PRINT_H

#include "diff.h"
#include "filter.h"
#include "metrics.h"
#include "name.h"
#include "term.h"
#include "text.h"

/* Words beside the result: on stderr, or in the envelope's "warnings". */
struct warnings {
	uint32_t n;
	char text[16][256];
};
void warning_add(struct warnings *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum print_sort { SORT_SEEN, SORT_VALUE, SORT_NAME };

struct print_options {
	const struct term *term;
	enum frame_format format;
	enum print_sort sort;
	uint32_t depth; /* generations shown */
	uint32_t rows;  /* of flat and sorted; 0: all */
	bool wide;      /* flat: launch configurations */
	bool full;      /* names are not cut */
	struct names *names;
	/* Takes what a large tree has so far and empties the text; NULL: it all stays in it. */
	void (*flush)(void *arg, struct text *t);
	void *flush_arg;
};

/* A frame's name by the options, cut to what is left of the line that begins at t->s + line. */
void print_name(struct text *t, const char *name, size_t line, const struct print_options *o);

/* What the tree is worth; nothing for a source that says nothing (.hatchet). */
void print_head(struct text *t, const struct profile *p, const struct term *term);
void print_why(struct text *t, const struct profile *p, const struct term *term); /* last lines */

int print_tree(struct text *t, const struct view *v, const struct print_options *o); /* -ENOMEM */
int print_sorted(struct text *t, const struct view *v, const struct print_options *o);
/* A tree for each of the first n metrics, all in the order of the first. */
int print_diff(struct text *t, const struct diff *d, uint32_t n, const struct print_options *o);

/* One row for each name on the GPU (else for each scope), over all paths. */
struct flat;
int flat_new(const struct view *v, struct flat **ret); /* -ENOMEM; -ENODATA: no times at all */
void flat_free(struct flat *f);
int flat_print(struct text *t, const struct flat *f, const struct print_options *o);
void flat_json(struct text *t, const struct flat *f, const struct print_options *o);

/* The envelope:
 * {"protond":"1","kind","session","columns":[...],"rows":[[...]...],"warnings":[...]}. */
struct envelope_column {
	const char *name, *unit, *type; /* type: "string", "integer", "number" */
};
void envelope_open(
	struct text *t, const char *kind, const struct profile *p); /* p NULL: session null */
void envelope_columns(struct text *t, const struct envelope_column *c, uint32_t n);
void envelope_row(struct text *t);                   /* begins a row */
void envelope_string(struct text *t, const char *s); /* the next value in it; NULL: null */
void envelope_integer(struct text *t, int64_t v);
void envelope_number(struct text *t, double v);
void envelope_close(struct text *t, const struct warnings *w);
void envelope_tree(struct text *t, const struct view *v, const struct print_options *o);
void envelope_metrics(struct text *t, const struct profile *p); /* for -l */
void envelope_diff(struct text *t, const struct diff *d, const struct print_options *o);

const char *class_word(uint8_t class); /* "compute", "h2d" */
const char *kind_word(uint8_t kind);   /* "scope", "kernel" */

#endif
