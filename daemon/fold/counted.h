/* SPDX-License-Identifier: MIT. counted.h: what a CPU counts in scopes: which sessions have it, and what a job says
 * that it could not count. */
#ifndef PROTOND_COUNTED_H
#define PROTOND_COUNTED_H

#include <stdbool.h>
#include <stdint.h>

#include "part.h"
#include "record.h"

/* flags: of METRIC, or of TOTAL without SUM_SURPLUS. */
static inline bool counted_is_good(uint8_t flags)
{
	const uint8_t more = flags & (uint8_t)~METRIC_TYPE_BITS;

	return more == 0 || ((flags & METRIC_TYPE_BITS) == METRIC_U64 &&
				    (more & ~METRIC_SCALED) == METRIC_COUNTED);
}

static inline bool counted_is_for(const struct part *part, uint8_t flags)
{
	return (flags & METRIC_COUNTED) == 0 || (part->switches & SWITCH_COUNTERS) != 0;
}

/* A note of each session that has the switch, now or later. False: it breaks a law. */
bool counted_said(struct process *p, const struct rec_counters *r);
void counted_tell(struct part *part); /* its session may have the switch from now on */

#endif
