/* SPDX-License-Identifier: MIT. view_streams.c: streams side by side, against a program that looks at every ns, and a made session
 * whose numbers are known. */
#include <string.h>

#include "quick.h"
#include "streams.h"

#define OPS   40u
#define TIME  120u
#define GPUS  2u
#define LINES 3u

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % n);
}

struct made {
	struct event_op op[OPS];
	struct span span[3];
	struct events e;
};

static void settle(struct made *m, uint32_t spans)
{
	m->e.op = m->op;
	m->e.spans.of.v = m->span;
	m->e.spans.of.n = spans;
}

static void make_any(struct made *m)
{
	uint64_t at = below(20);
	uint32_t i, spans = 1 + below(3);

	*m = (struct made){.e = {.n_ops = below(OPS + 1)}};
	for (i = 0; i < m->e.n_ops; i++) {
		m->op[i] = (struct event_op){
			.start_ns = below(TIME), .device = below(GPUS), .stream = below(LINES)};
		m->op[i].end_ns = m->op[i].start_ns + 1 + below(20);
	}
	for (i = 0; i < spans; i++) {
		m->span[i] = (struct span){at, at + 1 + below(50)};
		at = m->span[i].end + 1 + below(10);
	}
	settle(m, spans);
}

static bool asked(const struct made *m, uint64_t ns)
{
	uint32_t i;

	for (i = 0; i < m->e.spans.of.n; i++)
		if (ns >= m->span[i].begin && ns < m->span[i].end)
			return true;
	return false;
}

/* Bits of the streams of a GPU that work at a ns. */
static uint32_t working(const struct made *m, uint32_t gpu, uint64_t ns)
{
	uint32_t i, ret = 0;

	for (i = 0; i < m->e.n_ops && asked(m, ns); i++)
		if (m->op[i].device == gpu && ns >= m->op[i].start_ns && ns < m->op[i].end_ns)
			ret |= 1u << m->op[i].stream;
	return ret;
}

/* Of the streams of a mask; one: it is one stream, which is alone when no other works. */
static struct streams_row brute(const struct made *m, uint32_t gpu, uint32_t mask)
{
	struct streams_row r = {.gpu = gpu};
	const bool one = (mask & (mask - 1)) == 0;
	uint64_t ns, first = UINT64_MAX, last = 0, gap = 0;

	for (ns = 0; ns < TIME + 100; ns++) {
		const uint32_t all = working(m, gpu, ns), of = all & mask;

		r.sum_ns += (uint64_t)__builtin_popcount(of);
		if (of == 0)
			continue;
		first = first == UINT64_MAX ? ns : first;
		last = ns;
		r.busy_ns++;
		r.alone_ns += (all & (all - 1)) == 0 && (!one || all == mask);
	}
	for (ns = first; first != UINT64_MAX && ns <= last; ns++) {
		const uint32_t of = working(m, gpu, ns) & mask;

		r.span_ns += asked(m, ns);
		gap += of == 0 && asked(m, ns);
		if (of == 0 && ns < last)
			continue;
		r.gaps += gap > 0;
		r.longest_ns = gap > r.longest_ns ? gap : r.longest_ns;
		gap = 0;
	}
	return r;
}

static void same(const struct streams_row *a, const struct streams_row *b)
{
	ck_assert_uint_eq(a->busy_ns, b->busy_ns);
	ck_assert_uint_eq(a->alone_ns, b->alone_ns);
	ck_assert_uint_eq(a->sum_ns, b->sum_ns);
	ck_assert_uint_eq(a->span_ns, b->span_ns);
	ck_assert_uint_eq(a->gaps, b->gaps);
	ck_assert_uint_eq(a->longest_ns, b->longest_ns);
}

START_TEST(each_ns)
{
	struct streams_row want;
	struct streams s;
	struct made m;
	uint32_t round, i, k, rows = 0;

	for (round = 0; round < 3000; round++) {
		make_any(&m);
		s = (struct streams){0};
		ck_assert_int_eq(streams_add(&s, &m.e), 0);
		for (i = 0; i < s.n; i++) {
			want = brute(&m, s.row[i].gpu,
				s.row[i].streams > 0 ? (1u << LINES) - 1 : 1u << s.row[i].stream);
			same(&s.row[i], &want);
			ck_assert(i == 0 ? s.row[i].streams > 0
					 : (s.row[i].gpu > s.row[i - 1].gpu) ==
						   (s.row[i].streams > 0));
			rows++;
		}
		for (i = 0, k = 0; i < GPUS * LINES; i++)
			k += brute(&m, i / LINES, 1u << i % LINES).busy_ns > 0;
		for (i = 0; i < GPUS; i++)
			k += brute(&m, i, (1u << LINES) - 1).busy_ns > 0;
		ck_assert_uint_eq(s.n, k);
		streams_fini(&s);
	}
	ck_assert_uint_gt(rows, 3000);
}
END_TEST

/* Streams 1 and 2 of a GPU: [10, 30), [40, 60) and [20, 50); 10 of nothing before, 40 behind. */
START_TEST(two_streams)
{
	struct made m = {.e = {.n_ops = 3}};
	struct streams s = {0};
	const struct streams_row *all, *one, *two;

	m.op[0] = (struct event_op){.start_ns = 10, .end_ns = 30, .stream = 1};
	m.op[1] = (struct event_op){.start_ns = 20, .end_ns = 50, .stream = 2};
	m.op[2] = (struct event_op){.start_ns = 40, .end_ns = 60, .stream = 1};
	m.span[0] = (struct span){0, 100};
	settle(&m, 1);
	ck_assert_int_eq(streams_add(&s, &m.e), 0);
	ck_assert_uint_eq(s.n, 3);
	all = &s.row[0];
	one = &s.row[1];
	two = &s.row[2];
	ck_assert(all->streams == 2 && all->busy_ns == 50 && all->sum_ns == 70 && all->gaps == 0);
	ck_assert(all->alone_ns == 30 && all->window_ns == 50); /* where the process has events */
	ck_assert(one->stream == 1 && one->busy_ns == 40 && one->alone_ns == 20);
	ck_assert(one->span_ns == 50 && one->gaps == 1 && one->longest_ns == 10 && one->ops == 2);
	ck_assert(two->busy_ns == 30 && two->alone_ns == 10 && two->span_ns == 30);
	streams_fini(&s);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("streams");
	TCase *t = tcase_create("streams");

	tcase_add_test(t, each_ns);
	tcase_add_test(t, two_streams);
	suite_add_tcase(s, t);
	return s;
}
