/* SPDX-License-Identifier: MIT. ring_clock.h: what the ring clock is in nanoseconds. For the loop.
 * Any thread. */
#ifndef PROTOND_DAEMON_RING_CLOCK_H
#define PROTOND_DAEMON_RING_CLOCK_H

#include "journal.h"

struct clock_source {
	uint64_t (*clock)(void);
	uint64_t (*mono)(void);
	int64_t (*real)(void);
};
extern const struct clock_source clock_tsc, clock_mono;
/* Tightest of 20 brackets. */
void clock_anchor(const struct clock_source *s, uint32_t ring_clock, struct j_anchor *ret);

#endif
