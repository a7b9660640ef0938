/* SPDX-License-Identifier: MIT. spark.c: a line of bars. */
#include "spark.h"

#include <stdlib.h>
#include <string.h>

void spark(struct text *t, const double *v, uint32_t n, double least, double most, bool utf8)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char ascii[] = "_.,-=+*#";
	uint32_t i;

	for (i = 0; i < n; i++) {
		/* Halves, since the whole range may be more than a double holds. */
		const double of =
			most > least ? (v[i] / 2 - least / 2) / (most / 2 - least / 2) : 0;
		const unsigned level = of > 0 ? of < 1 ? (unsigned)(of * 7.99) : 7 : 0;

		if (of > 1)
			text_str(t, utf8 ? "↑" : "^");
		else if (utf8)
			text_str(t, bars[level]);
		else
			text_char(t, ascii[level]);
	}
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double spark_top(const double *v, uint32_t n, double least, double most)
{
	double in_order[SPARK_MAX], high;

	if (n == 0 || n > SPARK_MAX)
		return most;
	memcpy(in_order, v, n * sizeof(*v));
	qsort(in_order, n, sizeof(*in_order), by_value);
	high = in_order[(4 * n + 4) / 5 - 1] - least;
	return high > 0 && in_order[n - 1] - least > 16 * high ? least + 2 * high : most;
}
