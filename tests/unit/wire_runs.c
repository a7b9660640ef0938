/* SPDX-License-Identifier: MIT. wire_runs.c: what is nearly in order is sorted as qsort() would, with fewer comparisons. */
#include "runs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "quick.h"

#define N 5000u

struct item {
	uint32_t key, place, more[3]; /* of no power of two */
};

static size_t compared;

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	compared++;
	return (x->key > y->key) - (x->key < y->key);
}

static uint32_t draw(uint64_t *x)
{
	*x = *x * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*x >> 33);
}

/* So many pieces, each in order; few keys, so that many are equal. 0: none of them is, all fall. */
static void fill(struct item *v, uint32_t n, uint32_t pieces)
{
	uint64_t x = n * 31 + pieces;
	uint32_t i, key = 0;

	for (i = 0; i < n; i++) {
		if (pieces > 0 && i % ((n + pieces - 1) / pieces) == 0)
			key = draw(&x) % 50;
		key += pieces > 0 ? draw(&x) % 3 : 0;
		v[i] = (struct item){.key = pieces > 0 ? key : n - i, .place = i, .more = {i}};
	}
}

static const struct {
	uint32_t n, pieces;
	size_t most; /* comparisons; 0: as they come */
} cases[] = {{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {2, 2, 0}, {3, 0, 0}, {N, 1, N}, {N, 2, 2 * N},
	{N, 3, 3 * N}, {N, 7, 4 * N}, {N, 64, 7 * N}, {N, 65, 8 * N}, {N, 2500, 0}, {N, N, 0},
	{N, 0, 0}, {129, 64, 0}, {129, 65, 0}};

START_TEST(sorted)
{
	static struct item v[N], seen[N];
	const uint32_t n = cases[_i].n;
	uint32_t i;

	fill(v, n, cases[_i].pieces);
	memcpy(seen, v, sizeof(v));
	compared = 0;
	runs_sort(v, n, sizeof(*v), by_key);
	ck_assert(cases[_i].most == 0 || compared <= cases[_i].most);
	for (i = 0; i < n; i++) {
		ck_assert(i == 0 || v[i - 1].key < v[i].key ||
			  (v[i - 1].key == v[i].key && v[i - 1].place < v[i].place));
		ck_assert(memcmp(&v[i], &seen[v[i].place], sizeof(*v)) == 0);
	}
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("runs");
	TCase *t = tcase_create("all");

	tcase_add_loop_test(t, sorted, 0, (int)(sizeof(cases) / sizeof(*cases)));
	suite_add_tcase(s, t);
	return s;
}
