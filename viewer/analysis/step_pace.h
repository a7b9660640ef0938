/* SPDX-License-Identifier: MIT. step_pace.h: how long the steps of each process take, and which at its begin
 * are slow because libraries load, compile, tune and allocate. What is judged by steps is judged without
 * those: they come once, and a run of a day has no more of them than one of ten seconds. */
#ifndef PROTOND_VIEWER_STEP_PACE_H
#define PROTOND_VIEWER_STEP_PACE_H

#include "steps.h"

#define PACE_LEAST 10u /* steps of a process: fewer have no median to speak of */
#define PACE_SLOW  1.5 /* times the median */

static inline double step_ns(const struct step *s)
{
	return (double)(s->end_ns - s->begin_ns);
}

/* The median of n numbers, which are sorted; NAN of none. */
double pace_median(double *v, uint32_t n);
/* Of each process the median, and its first steps that take over PACE_SLOW times as long, a quarter of
 * them at most, as warm. -ENOMEM. */
int pace_mark(struct steps *s);
/* How many the warm ones of a process are at most: ranks run in step, and are taken to warm up as long. */
uint32_t pace_warm_most(const struct steps *s);
/* What the warm steps take over the median, all together. */
double pace_warm_ns(const struct steps *s);

#endif
