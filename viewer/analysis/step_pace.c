/* SPDX-License-Identifier: MIT. step_pace.c: medians of steps, and the slow ones at the begin. */
#include "step_pace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double pace_median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n == 0 ? (double)NAN : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

int pace_mark(struct steps *s)
{
	double *v = malloc((s->n + (size_t)1) * sizeof(*v));
	uint32_t first, end, i;

	if (v == NULL)
		return -ENOMEM;
	for (i = 0; i < s->n_processes; i++)
		s->process[i].median_ns = (double)NAN;
	for (first = 0; first < s->n; first = end) {
		double median;

		for (end = first; end < s->n && s->step[end].process == s->step[first].process;
			end++) {
			v[end - first] = step_ns(&s->step[end]);
			s->step[end].warm = false;
		}
		if (end - first < PACE_LEAST)
			continue;
		median = pace_median(v, end - first);
		s->process[s->step[first].process].median_ns = median;
		for (i = first;
			i < first + (end - first) / 4 && step_ns(&s->step[i]) > PACE_SLOW * median;
			i++)
			s->step[i].warm = true;
	}
	free(v);
	return 0;
}

uint32_t pace_warm_most(const struct steps *s)
{
	uint32_t i, most = 0;

	for (i = 0; i < s->n; i++)
		if (s->step[i].warm && s->step[i].number > most)
			most = s->step[i].number;
	return most;
}

double pace_warm_ns(const struct steps *s)
{
	double ns = 0;
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->step[i].warm)
			ns += step_ns(&s->step[i]) - s->process[s->step[i].process].median_ns;
	return ns;
}
