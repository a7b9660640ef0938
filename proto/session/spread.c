/* SPDX-License-Identifier: MIT. spread.c: durations of several nodes together. */
#include "spread.h"

#include <math.h>

void spread_init(struct spread *s)
{
	s->n = s->max_ns = 0;
	s->min_ns = UINT64_MAX;
	s->h.first = s->h.n = 0;
	s->h.coarse = false;
}

void spread_add(struct spread *s, const struct profile *p, uint32_t node)
{
	const struct profile_durations *d = p->durations != NULL ? &p->durations[node] : NULL;

	if (d == NULL || d->n == 0)
		return;
	s->n += d->n;
	s->min_ns = d->min_ns < s->min_ns ? d->min_ns : s->min_ns;
	s->max_ns = d->max_ns > s->max_ns ? d->max_ns : s->max_ns;
	hist_reach(&s->h, d->first, d->first + d->n_buckets);
	for (uint32_t i = 0; i < d->n_buckets; i++)
		s->h.count[d->first + i] += d->count[i];
	s->h.coarse |= d->coarse;
}

double spread_quantile(const struct spread *s, double q)
{
	uint64_t n = 0;
	double v;

	for (uint32_t i = 0; i < s->h.n; i++)
		n += s->h.count[s->h.first + i];
	if (n == 0 || n != s->n)
		return (double)NAN;
	v = hist_quantile(&s->h, q);
	return spread_known(s) ? fmin(fmax(v, (double)s->min_ns), (double)s->max_ns) : v;
}
