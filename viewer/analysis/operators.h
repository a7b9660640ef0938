/* SPDX-License-Identifier: MIT. operators.h: operators of PyTorch (op_terms.h), a row for each name and
 * dimensions of its inputs, over all the paths it stands on. */
#ifndef PROTOND_VIEWER_OPERATORS_H
#define PROTOND_VIEWER_OPERATORS_H

#include "metrics.h"

/* What is a row: a name with its dimensions; a name; a name with its dimensions in the scopes that it
 * stands in, or in its call stack where that was recorded. */
#define OPERATORS_BY(X) X(shape) X(name) X(stack)
enum operators_by {
#define X(word) OPERATORS_BY_##word,
	OPERATORS_BY(X)
#undef X
};
#define OPERATORS_BY_WORDS "shape name stack"

struct operator_row {
	const char *name;  /* without dimensions */
	const char *dims;  /* NULL: not known, or not told apart */
	const char *stack; /* "a/b/c", or frames with ; between; NULL: not told apart */
	uint32_t paths;
	double calls;
	double cpu_ns, gpu_ns; /* with the operators inside; of one that stands in itself once */
	double cpu_self_ns, gpu_self_ns; /* without; */
	double flops, bytes;             /* as gpu_ns; 0: not known */
	double kernels;                  /* operations of a GPU, in it alone */
};

struct operators {
	struct operator_row *row; /* by gpu_self_ns, or cpu_self_ns where there is no GPU time */
	uint32_t n;
	double gpu_ns, cpu_ns;  /* of all rows: sums of self */
	bool has_gpu, has_dims; /* of some row */
	struct arena *arena;    /* the rows' texts */
};

int operators_by(const char *word); /* -EINVAL */
/* Of the view's nodes. Borrows nothing. -ENOMEM; -ENODATA: there are none. */
int operators_new(const struct view *v, enum operators_by by, struct operators **ret);
void operators_free(struct operators *o); /* NULL is fine */
/* A row's operations a second by its GPU time, else its CPU time; NAN: not known. */
double operator_rate(const struct operators *o, const struct operator_row *r, double what);

#endif
