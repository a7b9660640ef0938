/* SPDX-License-Identifier: MIT. store_bench.c: what a cell costs that changed, 10 000 of them in
 * one transaction.
 *
 * Usage: store_bench [DIRECTORY [ROUNDS]]. Two databases in DIRECTORY (/tmp), each with one
 * session: of these 10 000 cells and no other, and of 100 000, of which each transaction takes 10
 * 000 at random. Wall time from store_submit() until the store says done, so with what SQLite
 * writes and with its checkpoints; medians of the rounds (15).
 *
 * Built with -Itests/unit -Idaemon -Iproto/abi -Iproto/wire and the daemon's archive.
 */
#include <time.h>

#include "store_help.h"

#define CHANGED   10000u
#define ALL       100000u
#define ROUND_MAX 1000u

static void die(const char *words)
{
	(void)fprintf(stderr, "store_bench: %s\n", words);
	exit(1);
}

static void on_done(void *arg, int r, const struct err *e)
{
	if (r < 0 || e->code != 0)
		die(e->text);
	*(bool *)arg = true;
}

/* Returns the seconds until all of it is stored. */
static double submit(struct store *s, struct batch *b)
{
	struct timespec from, to;
	bool done = false;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	store_submit(s, b, on_done, &done);
	while (!done)
		(void)uv_run(&test_loop, UV_RUN_ONCE);
	(void)clock_gettime(CLOCK_MONOTONIC, &to);
	return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
}

/* A cell as of this round: durations in four buckets of the histogram. */
static void change(struct batch *b, uint32_t node, uint32_t round)
{
	struct row_cell *c = test_cell(b, 1, node);
	static struct hist_counts h;
	uint64_t ns;

	h.n = 0;
	c->count += round * 4;
	c->min_ns = 5000;
	c->max_ns = 40000;
	for (ns = c->min_ns; ns <= c->max_ns; ns *= 2) {
		hist_reach(&h, hist_bucket(ns), hist_bucket(ns) + 1);
		h.count[hist_bucket(ns)] += round;
		c->sum_ns += ns * round;
	}
	if (!batch_hist(b, c, &h))
		die("out of memory");
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The cells of `nodes` nodes are there; CHANGED of them change in each round. */
static void measure(uint32_t nodes, uint32_t rounds)
{
	uint32_t *node = calloc(nodes, sizeof(*node)), round, i, at, swap;
	uint64_t random = 88172645463325252u;
	double us[ROUND_MAX];
	struct batch b = {0};
	struct store *s;
	struct err e;

	if (node == NULL || store_open(test_db, &test_loop, &s, &e) < 0)
		die(node == NULL ? "out of memory" : e.text);
	test_whole(&b, 1, 1, 1, nodes + 1);
	(void)submit(s, &b);
	for (i = 0; i < nodes; i++)
		node[i] = i + 1;
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < CHANGED; i++) {
			random ^= random << 13; /* Marsaglia's xorshift */
			random ^= random >> 7;
			random ^= random << 17;
			at = i + (uint32_t)(random % (nodes - i));
			swap = node[i];
			node[i] = node[at];
			node[at] = swap;
			change(&b, node[i], round + 1);
		}
		us[round] = submit(s, &b) * 1e6 / CHANGED;
	}
	store_close(s);
	(void)uv_run(&test_loop, UV_RUN_DEFAULT); /* its handle is given back */
	free(node);
	qsort(us, rounds, sizeof(us[0]), by_value);
	(void)printf("store, %u cells of %u in one transaction: median %.2f us a cell, "
		     "least %.2f, most %.2f (%u rounds)\n",
		CHANGED, nodes, us[rounds / 2], us[0], us[rounds - 1], rounds);
}

int main(int argc, char **argv)
{
	static const uint32_t nodes[] = {CHANGED, ALL};
	const char *dir = argc > 1 ? argv[1] : "/tmp";
	uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 15, i;

	if (rounds < 1 || rounds > ROUND_MAX) {
		(void)fprintf(stderr, "usage: store_bench [DIRECTORY [ROUNDS]]\n");
		return 2;
	}
	if (uv_loop_init(&test_loop) < 0)
		die("no event loop");
	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		(void)snprintf(test_dir, sizeof(test_dir), "%.40s/store_bench.XXXXXX", dir);
		if (mkdtemp(test_dir) == NULL)
			die("cannot make a directory there");
		(void)snprintf(test_db, sizeof(test_db), "%s/protond.db", test_dir);
		measure(nodes[i], rounds);
		test_remove(test_dir);
	}
	return 0;
}
