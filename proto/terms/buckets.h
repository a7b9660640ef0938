/* SPDX-License-Identifier: MIT. buckets.h: which bucket of a histogram a duration is in, for the job that
 * sums and for whoever reads; hist.h says why these. */
#ifndef PROTOND_TERMS_BUCKETS_H
#define PROTOND_TERMS_BUCKETS_H

#include <stdint.h>

#define HIST_SUB     17u
#define HIST_TOP     (UINT64_MAX >> 5) /* the longest duration that is told from longer ones */
#define HIST_BUCKETS ((58u - 4u) * HIST_SUB + 2 * HIST_SUB)

_Static_assert(HIST_BUCKETS <= UINT16_MAX, "16 bits name a bucket");

static inline uint32_t hist_bucket(uint64_t ns)
{
	const uint64_t d = ns < HIST_TOP ? ns : HIST_TOP;
	const uint32_t octave = 63u - (uint32_t)__builtin_clzll(d | 16);

	return (octave - 4) * HIST_SUB + (uint32_t)(d * HIST_SUB >> octave);
}

#endif
