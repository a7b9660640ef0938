/* SPDX-License-Identifier: MIT. fold_durations.c: histograms of cells as they grow, wider and deeper,
 * over restarts, and on from what an older daemon stored. */
#include "fold_shop.h"
#include "part.h"
#include "process.h"
#include "state.h"

#include "fold_job.h" /* last: its globals */

#define ENTRY 16000u /* bytes of a lane in one entry */

static struct shop shop;
static uint64_t want[HIST_BUCKETS], wanted;

static void begin(void)
{
	setup();
	shop = (struct shop){0};
	memset(want, 0, sizeof(want));
	wanted = 0;
	start(1, 10);
}

static void end(void)
{
	shop_free(&shop);
	teardown();
}

static void flush(void)
{
	if (lane.n > 0)
		drain(&lane, 1ull << 50);
}

static void took(uint32_t path, uint64_t ns)
{
	put_scope(&lane, path, 20, 20 + ns);
	if (lane.n > ENTRY)
		flush();
	if (path != P_A)
		return;
	want[hist_bucket(ns)]++;
	wanted++;
}

/* Of P_A, the only one with changes. */
static void as_wanted(bool coarse)
{
	struct hist_counts h;
	struct batch b;
	uint32_t i;

	flush();
	b = collect();
	ck_assert_uint_eq(b.cell.n, 1);
	ck_assert_uint_eq(b.cell.row[0].count, wanted);
	batch_durations(&b, &b.cell.row[0], &h);
	ck_assert(h.coarse == coarse);
	for (i = 0; i < HIST_BUCKETS; i++)
		ck_assert_msg((i - h.first < h.n ? h.count[i] : 0) == want[i], "bucket %u", i);
	shop_put(&shop, &b);
}

/* What the store has of P_A. */
static struct batch stored(void)
{
	struct batch b;

	flush();
	b = collect();
	shop_put(&shop, &b);
	b = shop_load(&shop, true);
	ck_assert_uint_eq(b.cell.n, 1);
	return b;
}

/* Another daemon, which has that. Takes b. */
static void restart_of(struct batch *b)
{
	fold_free(f);
	f = fold_of(NULL);
	ck_assert_int_eq(fold_restore(f, b), 0);
	batch_free(b);
	tape_names(&t, job.ring, 2, sizeof(names) / sizeof(names[0]), names);
	tape_paths(&t, job.ring, 2, sizeof(paths) / sizeof(paths[0]), paths);
	fold_take(f, &t);
}

/* With these durations. NULL: with its own. */
static void restart(const struct hist_counts *h)
{
	struct batch b = stored();

	b.cell.row[0].count = wanted;
	if (h != NULL)
		ck_assert(batch_hist(&b, &b.cell.row[0], h));
	restart_of(&b);
}

/* A bucket's counter outgrows one byte and two; wider at every turn, and another daemon half-way. */
START_TEST(wider_and_deeper)
{
	uint32_t i;

	for (i = 1; i <= 200000; i++) {
		took(P_A, i % 3 == 0 ? 1000 : 1000 + i % (1 + i / 100));
		if (i == 300 || i == 100000) {
			as_wanted(false);
			took(P_A, 1000);
			restart(NULL);
		}
	}
	took(P_A, 3);
	took(P_A, 1ull << 40);
	as_wanted(false);
	ck_assert_uint_gt(want[hist_bucket(1000)], UINT16_MAX);
}
END_TEST

/* And four. */
START_TEST(more_than_32_bits)
{
	const uint32_t first = hist_bucket(1000), second = hist_bucket(2000);
	struct hist_counts h = {.n = 0};

	took(P_A, 1000);
	took(P_A, 2000);
	hist_reach(&h, first, second + 1);
	h.count[first] = want[first] = UINT32_MAX;
	h.count[second] = want[second] = 1;
	wanted = (uint64_t)UINT32_MAX + 1;
	restart(&h);
	took(P_A, 1000);
	as_wanted(false);
	took(P_A, 1000);
	took(P_A, 100);
	as_wanted(false);
}
END_TEST

/* In one bucket beyond 32 bits, without a histogram, and then with one. */
START_TEST(one_bucket_beyond_32_bits)
{
	struct hist_counts h = {.n = 0};

	took(P_A, 1000);
	hist_reach(&h, hist_bucket(1000), hist_bucket(1000) + 1);
	wanted = want[h.first] = h.count[h.first] = 5ull << 32;
	restart(&h);
	took(P_A, 1000);
	as_wanted(false);
	took(P_A, 5);
	as_wanted(false);
}
END_TEST

/* Counts that stand where they are off by the least, not at the shortest and the longest. */
START_TEST(coarse_ones_go_on)
{
	struct hist_counts h;
	uint8_t wide[256] = {0};
	uint64_t ns;

	took(P_A, 100);
	took(P_A, 90000);
	wide[12] = 1;       /* bucket 3: from 96 ns on */
	wide[4 * 22] = 200; /* of 65 536 to 98 304 ns */
	hist_unpack_old(wide, sizeof(wide), 100, 90000, &h);
	memset(want, 0, sizeof(want));
	memcpy(want + h.first, h.count + h.first, h.n * sizeof(want[0]));
	wanted = 201;
	restart(&h);
	for (ns = 101; ns < 90000; ns += 700)
		took(P_A, ns);
	took(P_A, 100);
	took(P_A, 90000);
	as_wanted(true);
	took(P_A, 7);
	took(P_A, 1000000);
	as_wanted(true);
	took(P_A, 8);
	restart(NULL);
	took(P_A, 9);
	as_wanted(true);
}
END_TEST

/* Rows of a database that somebody changed: counted is what fits. */
START_TEST(odd_rows)
{
	struct hist_counts h = {.n = 0};
	struct batch b;

	took(P_A, 1000);
	b = stored();
	hist_reach(&h, 3, HIST_BUCKETS);
	h.count[3] = UINT64_MAX;
	h.count[HIST_BUCKETS - 1] = 255;
	ck_assert(batch_hist(&b, &b.cell.row[0], &h));
	b.cell.row[0].count = 17;
	b.cell.row[0].min_ns = 1ull << 62;
	b.cell.row[0].max_ns = _i == 0 ? 0 : 1ull << 40;
	restart_of(&b);
	took(P_A, 1ull << 45);
	took(P_A, 5);
	flush();
	b = collect();
	ck_assert_uint_eq(b.cell.row[0].count, 19);
	batch_free(&b);
}
END_TEST

static uint64_t tree_bytes(void)
{
	flush();
	return f->process[0]->tree_bytes;
}

/* What one cell has outgrown another one takes. */
START_TEST(outgrown_is_used_again)
{
	uint64_t least, ns, before;

	took(P_A, 1000);
	took(P_AB, 1000);
	took(P_CAP, 1000);
	before = tree_bytes();
	took(P_A, 1100);
	took(P_A, 2000);
	took(P_A, 9000);
	took(P_A, 90000);
	took(P_A, 900000);
	least = tree_bytes();
	ck_assert_uint_gt(least, before + HIST_LEAST);
	took(P_AB, 1100);
	took(P_CAP, 2000);
	ck_assert_uint_eq(tree_bytes(), least);
	for (ns = 1000; ns < 1000000; ns *= 2)
		took(P_CAP, ns);
	ck_assert_uint_gt(tree_bytes(), least);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("fold_durations");
	TCase *c = tcase_create("durations");

	tcase_add_checked_fixture(c, begin, end);
	tcase_add_test(c, wider_and_deeper);
	tcase_add_test(c, more_than_32_bits);
	tcase_add_test(c, one_bucket_beyond_32_bits);
	tcase_add_test(c, coarse_ones_go_on);
	tcase_add_loop_test(c, odd_rows, 0, 2);
	tcase_add_test(c, outgrown_is_used_again);
	suite_add_tcase(s, c);
	return s;
}
