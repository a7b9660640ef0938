/* SPDX-License-Identifier: MIT. runs.c: a merge sort of the runs that are there: pieces that are in order. */
#include "runs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RUN_MEAN 8u /* shorter ones are not worth it */

struct sorting {
	size_t bytes, n_runs;
	int (*order)(const void *, const void *);
	const char **end; /* [n_runs]: of each run */
};

/* The end of the run that begins at `at`. */
static const char *run_end(const struct sorting *s, const char *at, const char *end)
{
	for (at += s->bytes; at < end && s->order(at - s->bytes, at) <= 0; at += s->bytes)
		;
	return at;
}

/* false: too many runs, or no memory for them. */
static bool find_runs(struct sorting *s, const char *v, size_t n)
{
	const char *const end = v + n * s->bytes, **grown, *at;
	size_t cap = 0;

	for (at = v; at < end; s->n_runs++) {
		if (s->n_runs == cap) {
			cap = cap == 0 ? 64 : cap * 2;
			grown = cap > n / RUN_MEAN + 64 ? NULL
							: realloc(s->end, cap * sizeof(*grown));
			if (grown == NULL)
				return false;
			s->end = grown;
		}
		at = s->end[s->n_runs] = run_end(s, at, end);
	}
	return true;
}

/* [a, b) and [b, end) into one; of equals the former's first. What stands together moves together. */
static void merge(const struct sorting *s, char *to, const char *a, const char *b, const char *end)
{
	const char *const middle = b, *from;
	bool more = a < middle && b < end, first = more && s->order(a, b) <= 0;

	for (; more; first = !first) {
		const char **at = first ? &a : &b, *const stop = first ? middle : end;

		from = *at;
		do
			*at += s->bytes;
		while (*at < stop && (s->order(a, b) <= 0) == first);
		more = *at < stop;
		memcpy(to, from, (size_t)(*at - from));
		to += *at - from;
	}
	memcpy(to, a, (size_t)(middle - a));
	memcpy(to + (middle - a), b, (size_t)(end - b));
}

/* Each two neighbours into one: half as many. */
static void merge_pairs(struct sorting *s, const char *from, char *to)
{
	const char *begin = from, *middle, *end;
	size_t i, n = 0;

	for (i = 0; i < s->n_runs; i += 2) {
		middle = s->end[i];
		end = i + 1 < s->n_runs ? s->end[i + 1] : middle;
		merge(s, to + (begin - from), begin, middle, end);
		s->end[n++] = to + (end - from);
		begin = end;
	}
	s->n_runs = n;
}

void runs_sort(void *v, size_t n, size_t bytes, int (*order)(const void *, const void *))
{
	struct sorting s = {.bytes = bytes, .order = order};
	bool good = n < 2 || find_runs(&s, v, n);
	char *other = good && s.n_runs > 1 ? malloc(n * bytes) : NULL, *at = v, *to = other, *swap;

	while (other != NULL && s.n_runs > 1) {
		merge_pairs(&s, at, to);
		swap = at;
		at = to;
		to = swap;
	}
	if (at == other && other != NULL)
		memcpy(v, other, n * bytes);
	if (s.n_runs > 1 || !good)
		qsort(v, n, bytes, order);
	free(other);
	free(s.end);
}
