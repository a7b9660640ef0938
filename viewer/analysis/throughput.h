/* SPDX-License-Identifier: MIT. throughput.h: steps, samples, tokens and flops a second, and MFU: of what steps were told
 * (step_rates.h), against the peaks of the GPUs that worked (metrics_peak.h). */
#ifndef PROTOND_VIEWER_THROUGHPUT_H
#define PROTOND_VIEWER_THROUGHPUT_H

#include "profile.h"
#include "steps.h"

/* Of all processes together; NAN: not told. */
struct throughput {
	double iterations, samples, tokens, flops; /* a second */
	double mfu; /* flops at their peaks, of the time of the GPUs that worked; NAN: see why */
	struct err why; /* code not 0: why flops were told, and there is no mfu */
};

void throughput_of(const struct profile *p, const struct step_rates *r, struct throughput *ret);
/* As step_rates_load(), of steps that were read; process: its place in s->process, or UINT32_MAX: all of them. */
void throughput_rates(const struct steps *s, uint32_t process, struct step_rates *ret);

#endif
