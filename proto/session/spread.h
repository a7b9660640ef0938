/* SPDX-License-Identifier: MIT. spread.h: how long something took, over several nodes: the shortest,
 * the longest, and quantiles of their histograms. Pure. */
#ifndef PROTOND_SESSION_SPREAD_H
#define PROTOND_SESSION_SPREAD_H

#include "hist.h"
#include "profile.h"

struct spread {
	uint64_t n;              /* durations; some may be in no histogram */
	uint64_t min_ns, max_ns; /* max < min: not known */
	struct hist_counts h;
};

void spread_init(struct spread *s);
/* Those of a node; p may have none. */
void spread_add(struct spread *s, const struct profile *p, uint32_t node);
static inline bool spread_known(const struct spread *s)
{
	return s->min_ns <= s->max_ns;
}
/* NAN: not known, also where the histograms lack some. Between the shortest and the longest, which
 * are exact. */
double spread_quantile(const struct spread *s, double q);

#endif
