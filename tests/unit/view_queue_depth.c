/* SPDX-License-Identifier: MIT. view_queue_depth.c: launches outstanding on streams, against a program that
 * looks at every pair. */
#include <string.h>

#include "queue_depth.h"
#include "quick.h"

Suite *suite(void);

#define OPS     300u
#define STREAMS 3u

static uint64_t seed = 1;

static uint64_t below(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* Many at the same ns, ends before their launch, and launches of several operations. */
static uint32_t make(struct queue_op v[OPS])
{
	const uint32_t n = (uint32_t)below(OPS + 1);
	const uint64_t span = below(2) == 0 ? 40 : 4000, length = 1 + below(1000);
	uint32_t i;

	for (i = 0; i < n; i++) {
		v[i] = (struct queue_op){.launch_ns = 100 + below(span),
			.stream = (uint32_t)below(STREAMS),
			.tid = 1,
			.correlation = i};
		if (i > 0 && below(4) == 0) {
			v[i].launch_ns = v[i - 1].launch_ns;
			v[i].correlation = v[i - 1].correlation;
		}
		v[i].end_ns = v[i].launch_ns + below(length) - below(3);
	}
	return n;
}

static bool same_launch(const struct queue_op *a, const struct queue_op *b)
{
	return a->stream == b->stream && a->correlation == b->correlation;
}

/* Whether v[k] is the first of its launch on that stream, and when that is done. */
static bool is_launch(const struct queue_op *v, uint32_t n, uint32_t k, uint64_t *ret_end)
{
	uint32_t i;

	*ret_end = 0;
	for (i = 0; i < n; i++) {
		if (!same_launch(&v[i], &v[k]))
			continue;
		if (i < k)
			return false;
		*ret_end = v[i].end_ns > *ret_end ? v[i].end_ns : *ret_end;
	}
	if (*ret_end <= v[k].launch_ns)
		*ret_end = v[k].launch_ns + 1;
	return true;
}

static struct queue_depth_row brute(const struct queue_op *v, uint32_t n, uint32_t stream)
{
	struct queue_depth_row row = {.stream = stream};
	uint32_t i, k, depth;
	uint64_t mine, end;

	for (i = 0; i < n; i++) {
		if (v[i].stream != stream || !is_launch(v, n, i, &mine))
			continue;
		for (depth = k = 0; k < n; k++)
			depth += v[k].stream == stream && is_launch(v, n, k, &end) &&
				 (v[k].launch_ns < v[i].launch_ns ||
					 (v[k].launch_ns == v[i].launch_ns &&
						 v[k].correlation < v[i].correlation)) &&
				 end > v[i].launch_ns;
		row.launches++;
		row.sum += depth;
		row.max = depth > row.max ? depth : row.max;
	}
	return row;
}

START_TEST(as_every_pair_has_it)
{
	struct queue_op v[OPS], sorted[OPS];
	struct queue_depth_row want;
	struct queue_depth d = {0};
	uint32_t n, i, stream;

	seed = (uint64_t)_i + 1;
	n = make(v);
	memcpy(sorted, v, sizeof(*v) * n);
	ck_assert_int_eq(queue_depth_add(&d, sorted, n), 0);
	for (stream = i = 0; stream < STREAMS; stream++) {
		want = brute(v, n, stream);
		if (want.launches == 0)
			continue;
		ck_assert_uint_lt(i, d.n);
		ck_assert_uint_eq(d.row[i].stream, stream);
		ck_assert_uint_eq(d.row[i].launches, want.launches);
		ck_assert_uint_eq(d.row[i].sum, want.sum);
		ck_assert_uint_eq(d.row[i].max, want.max);
		ck_assert_uint_eq(d.row[i].full, 0);
		i++;
	}
	ck_assert_uint_eq(i, d.n);
	queue_depth_fini(&d);
}
END_TEST

/* So many launches that the last two find the queue full. */
START_TEST(full)
{
	static struct queue_op v[QUEUE_FULL + 2];
	struct queue_depth d = {0};
	uint32_t i;

	for (i = 0; i < QUEUE_FULL + 2; i++)
		v[i] = (struct queue_op){.launch_ns = i, .end_ns = 1000000, .correlation = i};
	ck_assert_int_eq(queue_depth_add(&d, v, QUEUE_FULL + 2), 0);
	ck_assert_uint_eq(d.n, 1);
	ck_assert_uint_eq(d.row[0].max, QUEUE_FULL + 1);
	ck_assert_uint_eq(d.row[0].full, 2);
	queue_depth_fini(&d);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_queue_depth");
	TCase *t = tcase_create("depth");

	tcase_add_loop_test(t, as_every_pair_has_it, 0, 20);
	tcase_add_test(t, full);
	suite_add_tcase(s, t);
	return s;
}
