/* SPDX-License-Identifier: MIT. clock.h: the ring clock, read inline on the hot paths. The engine's
 * files include it; a backend asks agent_clock(). */
#ifndef PROTOND_AGENT_CLOCK_H
#define PROTOND_AGENT_CLOCK_H

#include "agent.h"
#include "core.h"
#include "record.h"

void agent_clock_open(void); /* which clock the ring has: of this process, before all else */
uint32_t agent_tsc_khz(void);
void agent_clock_record(struct rec_clock *ret); /* tightest of 20 brackets */

static inline uint64_t agent_tsc(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc(); /* <x86intrin.h> is half a second of each compiler that meets it */
#else
	return agent_monotonic_ns();
#endif
}

static inline uint64_t agent_clock_inline(void)
{
	return likely(HOT->tsc != 0) ? agent_tsc() : agent_monotonic_ns();
}

#endif
