/* SPDX-License-Identifier: MIT. roofline.h: what a profile was told of flops and bytes, against the peaks of its GPU. The peaks are
 * Proton's (metrics_peak.h), the model Williams, Waterman and Patterson's (2009). */
#ifndef PROTOND_VIEWER_ROOFLINE_H
#define PROTOND_VIEWER_ROOFLINE_H

#include <stdbool.h>

#include "err.h"
#include "profile.h"

enum roofline_bound { BOUND_UNKNOWN, BOUND_COMPUTE, BOUND_MEMORY };
extern const char *const roofline_words[]; /* "", "compute", "memory" */

struct roofline_row {
	uint32_t node; /* that was told some; ROOT: all, and always the first */
	double flops;  /* of all widths, of it and all below it; 0: none told */
	double bytes;
	double ns; /* GPU work there: kernels, and copies */
	double compute_ns,
		memory_ns; /* that they would take at the peaks; NAN: not known, not told */
	enum roofline_bound bound;
	double util; /* the larger of both ÷ ns; NAN */
};

struct roofline {                 /* roofline_free() */
	struct roofline_row *row; /* ROOT, then the most GPU work first */
	uint32_t n;
	double mfu; /* flops at their peak ÷ the session's active time of the GPUs that worked; NAN */
	uint32_t gpus; /* that worked */
	bool unsized;  /* some flops have no width, and so no peak */
	const struct profile_device
		*device;  /* of nodes that name none; NULL: GPUs that differ, or none */
	struct err peaks; /* code not 0: why there are none */
};

/* Borrows p. -ENODATA: nothing was told flops or bytes. -ENOMEM. */
int roofline_new(const struct profile *p, struct roofline **ret);
void roofline_free(struct roofline *r); /* NULL is fine */

#endif
