/* SPDX-License-Identifier: MIT. guess.c: which known word somebody may have meant. */
#include "guess.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX     31u /* longer ones are far from everything */
#define DISTANCE_MAX 2u

/* How many letters to add, drop, change or swap. */
static size_t distance(const char *a, const char *b)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];
	const size_t n = strlen(a), m = strlen(b);
	size_t i, j, best;

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (i = 0; i <= n; i++) {
		for (j = 0; j <= m; j++) {
			if (i == 0 || j == 0) {
				d[i][j] = i + j;
				continue;
			}
			best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
			best = d[i - 1][j] + 1 < best ? d[i - 1][j] + 1 : best;
			best = d[i][j - 1] + 1 < best ? d[i][j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[n][m];
}

void guess_try(struct guess *g, const char *known)
{
	const size_t d = distance(g->word, known);

	if (d > DISTANCE_MAX || 3 * d > strlen(g->word) || (g->best[0] != '\0' && d >= g->least))
		return;
	g->least = d;
	snprintf(g->best, sizeof(g->best), "%s", known);
	snprintf(g->question, sizeof(g->question), "; did you mean '%s'?", known);
}
