/* SPDX-License-Identifier: MIT. step_pace.h: how long the steps of each process take, and which at its begin
 * are slow because libraries load, compile, tune and allocate. What is judged by steps is judged without
 * those: they come once, and a run of a day has no more of them than one of ten seconds. */
#ifndef PROTOND_VIEWER_STEP_PACE_H
#define PROTOND_VIEWER_STEP_PACE_H

#include "step_rates.h"
#include "steps.h"

#define PACE_MADS   5.0
#define PACE_NORMAL 1.4826 /* a median deviation is this many times smaller than a normal one */

static inline double step_ns(const struct step *s)
{
	return s->of > 1 ? s->took_ns / s->of : (double)(s->end_ns - s->begin_ns);
}

/* Of each process the median, beyond which limit a step is slow, and its first steps that are no measure (step_rates.h) as
 * warm. -ENOMEM. */
int pace_mark(struct steps *s);
/* How many the warm ones of a process are at most: ranks run in step, and are taken to warm up as long. */
uint32_t pace_warm_most(const struct steps *s);
/* Whether it takes much longer than those of its process: over STEP_WARM_SLOW times the median, and over PACE_MADS
 * deviations more than it. */
static inline bool pace_is_slow(const struct steps *all, const struct step *s)
{
	return !s->warm && !s->cut && step_ns(s) > all->process[s->process].limit_ns;
}
/* What the warm steps take over the median, all together. */
double pace_warm_ns(const struct steps *s);

#endif
