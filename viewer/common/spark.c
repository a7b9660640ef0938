/* SPDX-License-Identifier: MIT. spark.c: a line of bars. */
#include "spark.h"

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

		if (utf8)
			text_str(t, bars[level]);
		else
			text_char(t, ascii[level]);
	}
}
