/* SPDX-License-Identifier: MIT. growth.h: whether numbers of one step after the other grow without an
 * end, or only vary, jump or fill up. Pure. */
#ifndef PROTOND_VIEWER_GROWTH_H
#define PROTOND_VIEWER_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#define GROWTH_WARM_UP 4u /* steps that are not looked at: allocators, optimizers and caches fill */
#define GROWTH_LEAST   16u /* behind those: fewer say nothing */
#define GROWTH_BLOCKS  8u

struct growth {
	bool known, grows; /* below: of what grows */
	double slope;      /* a step: the median of the slopes of all pairs (Theil, Sen) */
	double low, high;  /* within which it lies with 95 % (Sen) */
	double first, last;
};

/* NAN: that step has none. */
struct growth growth_of(const double *y, uint32_t n);

#endif
