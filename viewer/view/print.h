/* SPDX-License-Identifier: MIT. print.h: profiles as screens and as JSON. No I/O: all goes to a
 * text. */
#ifndef PROTOND_VIEWER_PRINT_H
#define PROTOND_VIEWER_PRINT_H

#include "diff.h"
#include "flat.h"
#include "frame.h"
#include "grid.h"
#include "metrics.h"
#include "name.h"
#include "order.h"
#include "term.h"
#include "text.h"
#include "throughput.h"

/* Words beside the result: on stderr, or in the envelope's "warnings". */
struct warnings {
	uint32_t n;
	char text[16][256];
};
void warning_add(struct warnings *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct print_options {
	const struct term *term;
	enum frame_format format;
	enum order_sort sort;
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

/* A paragraph that fits the line; its later lines begin under its words. */
void print_words(struct text *t, const struct term *term, const char *before, const char *words);
/* As grid_print(), and which columns have no room. */
void print_grid(struct text *t, const struct term *term, struct grid *g);

/* What the driver and the vendor's profiling library did for themselves; other: kinds that only a newer one
 * knows. */
struct overhead_sums {
	double driver_ns, ours_ns, other_ns;
};
bool overhead_read(const struct profile *p, struct overhead_sums *ret); /* false: not recorded */
/* "81.2 steps/s, 1300 samples/s, 42100 tokens/s, 1.20 TFLOP/s, MFU 41.0%", as far as it was told. */
void print_rates(struct text *t, const struct throughput *h, const char *between);
/* A line of it for the head, of all of a session; nothing where it has no steps. */
void print_steps(struct text *t, const struct profile *p, const struct term *term);
/* The head: what the tree is worth; nothing for a .hatchet file, which does not say. */
void print_head(struct text *t, const struct profile *p, const struct term *term);
void print_why(struct text *t, const struct profile *p, const struct term *term); /* last lines */

int print_tree(struct text *t, const struct view *v, const struct print_options *o); /* -ENOMEM */
int print_sorted(struct text *t, const struct view *v, const struct print_options *o);
/* A tree for each of the first n metrics, all in the order of the first. */
int print_diff(struct text *t, const struct diff *d, uint32_t n, const struct print_options *o);

void print_metrics(struct text *t, const struct profile *p, const struct term *term); /* for -l */

/* A row for each name. */
void print_flat(struct text *t, const struct flat *f, const struct print_options *o);

const char *class_word(uint8_t class); /* "compute", "h2d" */
const char *kind_word(uint8_t kind);   /* "scope", "kernel" */

#endif
