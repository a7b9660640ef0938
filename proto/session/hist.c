/* SPDX-License-Identifier: MIT. hist.c: quantiles of a log-bucket histogram of durations. */
#include <math.h>

#include "profile.h"

double hist_middle(uint32_t bucket)
{
	/* Bucket halves of an octave [2^o, 2^(o+1)): the geometric middles of [1, 1.5) and [1.5,
	 * 2). */
	return ldexp(sqrt(bucket & 1 ? 3.0 : 1.5), (int)(bucket / 2 + 5));
}

double hist_quantile(const uint32_t hist[HIST_BUCKETS], double q)
{
	uint64_t n = 0, seen = 0;
	double rank;
	uint32_t b;

	for (b = 0; b < HIST_BUCKETS; b++)
		n += hist[b];
	if (n == 0)
		return (double)NAN;
	rank = ceil(q * (double)n);
	for (b = 0; b < HIST_BUCKETS - 1; b++) {
		seen += hist[b];
		if ((double)seen >= rank && seen > 0)
			break;
	}
	return hist_middle(b);
}
