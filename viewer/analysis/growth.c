/* SPDX-License-Identifier: MIT. growth.c: growth is told by two tests, so that no single number decides. Eight blocks of steps:
 * each one's least lies above that of the one before, by half of the mean rise or more, and the later half rises nearly as much
 * as the earlier: what varies, jumps or fills up fails. Mann and Kendall's over all steps: what a chance order could be fails. */
#include "growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS  128u /* more steps are taken together, by their least */
#define PAIRS   (POINTS * (POINTS - 1) / 2)
#define Z       4.5 /* of Mann and Kendall: by chance once in 300 000 */
#define EVEN    0.5
#define GOES_ON 0.7

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The least of points [from, to). */
static double least(const double *y, uint32_t from, uint32_t to)
{
	double v = y[from];

	for (; from < to; from++)
		v = y[from] < v ? y[from] : v;
	return v;
}

static bool rises_evenly(const double *y, uint32_t n)
{
	double block[GROWTH_BLOCKS], mean;
	uint32_t k;

	for (k = 0; k < GROWTH_BLOCKS; k++)
		block[k] = least(y, n * k / GROWTH_BLOCKS, n * (k + 1) / GROWTH_BLOCKS);
	mean = (block[GROWTH_BLOCKS - 1] - block[0]) / (GROWTH_BLOCKS - 1);
	for (k = 1; k < GROWTH_BLOCKS; k++)
		if (block[k] - block[k - 1] < EVEN * mean)
			return false;
	return mean > 0 && block[GROWTH_BLOCKS - 1] - block[GROWTH_BLOCKS / 2] >=
				   GOES_ON * (block[GROWTH_BLOCKS / 2 - 1] - block[0]);
}

/* Slopes of all pairs, and the score of their signs. */
static void slopes(const double *y, const double *x, uint32_t n, struct growth *g)
{
	static const double sure = 1.96;
	double *s = malloc(PAIRS * sizeof(*s)), sd, z;
	const uint32_t pairs = n * (n - 1) / 2;
	uint32_t i, k, m = 0;
	int64_t score = 0;

	if (s == NULL)
		return;
	for (i = 0; i < n; i++)
		for (k = i + 1; k < n; k++) {
			score += (y[k] > y[i]) - (y[k] < y[i]);
			s[m++] = (y[k] - y[i]) / (x[k] - x[i]);
		}
	qsort(s, m, sizeof(*s), by_value);
	sd = sqrt((double)n * (n - 1) * (2.0 * n + 5) / 18);
	z = ((double)score - 1) / sd;
	g->slope = (s[(pairs - 1) / 2] + s[pairs / 2]) / 2;
	k = (uint32_t)fmax(0, ((double)pairs - sure * sd) / 2);
	g->low = s[k < pairs ? k : pairs - 1];
	g->high = s[pairs - 1 - (k < pairs ? k : pairs - 1)];
	g->grows = z >= Z;
	free(s);
}

struct growth growth_of(const double *y, uint32_t n)
{
	struct growth g = {0};
	double point[POINTS], step[POINTS];
	uint32_t i, m = 0, at = 0, seen = 0, all = 0, width;

	for (i = 0; i < n; i++)
		all += isnan(y[i]) ? 0 : 1;
	if (all < GROWTH_WARM_UP + GROWTH_LEAST)
		return g;
	width = (all - GROWTH_WARM_UP + POINTS - 1) / POINTS;
	for (i = 0; i < n && m < POINTS; i++) {
		if (isnan(y[i]) || seen++ < GROWTH_WARM_UP)
			continue;
		if (m == 0 && at == 0)
			g.first = y[i];
		g.last = y[i];
		point[m] = at == 0 || y[i] < point[m] ? y[i] : point[m];
		step[m] = i;
		if (++at == width) {
			at = 0;
			m++;
		}
	}
	g.known = true;
	if (rises_evenly(point, m))
		slopes(point, step, m, &g);
	return g;
}
