/* SPDX-License-Identifier: MIT. wire_parts.c: parts of windows of a timeline, of which not all is there, of a
 * session that was not always active: they add up to the time in which it was. */
#include "quick.h"

#include <stdlib.h>
#include <string.h>

#include "parts.h"

Suite *suite(void);

static struct parts p;
static struct timeline w;
static struct span active[2];

static void op(uint32_t device, uint8_t class, uint64_t begin, uint64_t end, uint64_t launched)
{
	const struct trace_op o = {
		.class = class, .flags = launched == 0 ? TRACE_UNLAUNCHED : (uint8_t)0};
	const struct trace_stream s = {.device = device};

	ck_assert(parts_op(&p, &(struct timeline_op){.op = &o,
				       .stream = &s,
				       .start_ns = begin,
				       .end_ns = end,
				       .launch_ns = launched}));
}

/* Two GPUs. Active from 1 000 to 5 000 and from 8 000 on. */
static void setup(void)
{
	memset(&p, 0, sizeof(p));
	memset(&w, 0, sizeof(w));
	active[0] = (struct span){1000, 5000};
	active[1] = (struct span){8000, UINT64_MAX};
	parts_process(&p);
	op(7, CLASS_COMPUTE, 2000, 3000, 1500);
	op(7, CLASS_COMM, 2500, 3500, 1600);
	op(7, CLASS_COMPUTE, 4000, 9000, 3800); /* runs on while nothing records */
	op(9, CLASS_H2D, 2000, 2100, 1);
	op(7, CLASS_H2D, 9500, 10000, 0);
	op(7, CLASS_H2D, 9500, 9500, 0); /* of no length */
	parts_seen(&p, 12000);
}

static void teardown(void)
{
	p.active.v = NULL;
	parts_fini(&p);
}

static uint64_t window(const struct parts_gpu *g, uint64_t begin, uint64_t end, uint64_t part[])
{
	uint64_t all, sum = 0;
	uint32_t k;

	memset(part, 0, PART_MAX * sizeof(*part));
	p.active = (struct parts_spans){.v = active, .n = 2};
	all = parts_window(&p, g, &(struct span){begin, end}, part);
	for (k = 0; k < PART_MAX; k++)
		sum += part[k];
	ck_assert_uint_eq(all, sum);
	return all;
}

START_TEST(whole)
{
	uint64_t part[PART_MAX];

	ck_assert(parts_settle(&p, &w));
	ck_assert(p.n_gpus == 2 && p.gpu[0].works.n == 4 && p.gpu[1].works.n == 1);
	ck_assert_uint_eq(window(&p.gpu[0], 0, 20000, part), 4000 + 4000);
	ck_assert_uint_eq(part[PART_COMPUTE], 1000 + 1000 + 1000);
	ck_assert_uint_eq(part[PART_COMM], 500);
	ck_assert_uint_eq(part[PART_COPY], 500);
	ck_assert_uint_eq(part[PART_LAUNCH], 200);
	ck_assert_uint_eq(part[PART_UNKNOWN], 500);
	ck_assert_uint_eq(part[PART_HOST], 1000 + 300 + 2000);
	ck_assert_uint_eq(window(&p.gpu[0], 5000, 8000, part), 0);
	ck_assert_uint_eq(window(&p.gpu[1], 2050, 8001, part), 2951);
	ck_assert(part[PART_COPY] == 50 && part[PART_HOST] == 2901);
	ck_assert(works_before(&p.gpu[0].works, 2000) == 0 &&
		  works_before(&p.gpu[0].works, 2001) == 1);
	ck_assert_uint_eq(works_before(&p.gpu[0].works, 9501), 4);
}
END_TEST

/* What left the timeline, and what had no room, is not said to be idle. */
START_TEST(not_whole)
{
	uint64_t part[PART_MAX];

	p.n_work = PARTS_WORK_MAX;
	op(7, CLASS_COMPUTE, 9700, 9800, 1);
	op(7, CLASS_COMPUTE, 9200, 9300, 1);
	w.events = 1;
	ck_assert(parts_settle(&p, &w) && p.known_ns == 9200 && p.gpu[0].works.n == 4);
	(void)window(&p.gpu[0], 0, 20000, part);
	ck_assert_uint_eq(
		part[PART_UNKNOWN], (2000 - 1000) + (12000 - 9000)); /* from 9 000 on, too */
	ck_assert_uint_eq(part[PART_COMPUTE], 3000);
	(void)window(&p.gpu[0], 1100, 1200, part);
	ck_assert_uint_eq(part[PART_UNKNOWN], 100);
	(void)window(&p.gpu[0], 9400, 9900, part);
	ck_assert_uint_eq(part[PART_UNKNOWN], 500);
}
END_TEST

START_TEST(gpus_together)
{
	uint64_t part[PART_MAX];

	teardown();
	p.together = true;
	parts_process(&p);
	op(1, CLASS_H2D, 1000, 3000, 1);
	op(2, CLASS_COMPUTE, 2000, 4000, 1);
	ck_assert(parts_settle(&p, &w) && p.n_gpus == 1);
	ck_assert_uint_eq(window(&p.gpu[0], 1500, 4500, part), 3000);
	ck_assert(part[PART_COPY] == 500 && part[PART_COMPUTE] == 2000 && part[PART_HOST] == 500);
}
END_TEST

#define WORKS 150000u

/* As records come: near where they belong, a buffer of a thread far behind now and then; `again`: all of them twice over, the
 * second time from the start, so that they are in two runs. */
static uint32_t any_works(struct works *to, struct busy_work *all, bool again)
{
	uint64_t begin = 1u << 20;
	uint32_t i;

	srand(7);
	for (i = 0; i < WORKS; i++) {
		const uint64_t at = begin + (uint64_t)rand() % 40000, n = (uint64_t)rand() % 900,
			       delay = (uint64_t)rand() % (i % 50 == 0 ? 1u << 20 : 300);

		all[i] = (struct busy_work){at, at + 1 + (i % 1000 == 0 ? n << 10 : n),
			i % 7 == 0 ? 0 : at - delay + 100, (enum gpu_part)(i % 3)};
		begin += again && i == WORKS / 2 ? -(begin - (1u << 20)) : (uint64_t)rand() % 1200;
		ck_assert(works_add(to, &all[i]));
	}
	ck_assert(works_settle(to));
	busy_order(all, WORKS);
	return WORKS;
}

static void window_of(
	const struct busy_work *all, const uint64_t *reach, const struct span *v, uint64_t part[])
{
	struct busy_window in;
	uint32_t i = 0;

	while (i < WORKS && reach[i] <= v->begin)
		i++;
	busy_window_open(&in, v, i > 0 ? reach[i - 1] : 0);
	while (i < WORKS && busy_window_add(&in, &all[i]))
		i++;
	busy_window_close(&in, part);
}

/* Packed, in one run or merged from two, they answer as an array does. */
START_TEST(packed)
{
	struct busy_work *all = calloc(WORKS, sizeof(*all));
	uint64_t *reach = calloc(WORKS, sizeof(*reach)), bytes = 0;
	struct works got = {.n = 0};
	uint32_t i, k;

	ck_assert(all != NULL && reach != NULL);
	ck_assert_uint_eq(any_works(&got, all, _i == 1), WORKS);
	for (i = 0; i < WORKS; i++)
		reach[i] = i > 0 && reach[i - 1] > all[i].end ? reach[i - 1] : all[i].end;
	ck_assert(got.n == WORKS && works_begin(&got) == all[0].begin);
	for (i = 0; i < got.n_blocks; i++)
		bytes += got.block[i].n_bytes;
	ck_assert_msg(bytes < 10 * WORKS, "%lu bytes", bytes);
	for (i = 0; i < 300; i++) {
		const uint64_t from = i == 0 ? 0 : all[(uint32_t)rand() % WORKS].begin;
		const struct span v = {from, from + 1 + (uint64_t)rand() % (1u << (i % 30))};
		uint64_t want[PART_MAX] = {0}, is[PART_MAX] = {0};

		window_of(all, reach, &v, want);
		works_window(&got, &v, is);
		ck_assert_mem_eq(want, is, sizeof(want));
		for (k = 0; k < WORKS && all[k].begin < from; k++)
			;
		ck_assert_uint_eq(works_before(&got, from), k);
	}
	ck_assert_uint_eq(works_before(&got, UINT64_MAX), WORKS);
	works_fini(&got);
	free(all);
	free(reach);
}
END_TEST

/* Any numbers come back, as a forged file has them. */
START_TEST(packed_extremes)
{
	const struct busy_work any[] = {{0, UINT64_MAX, UINT64_MAX, PART_COMM},
		{1, 2, 1, PART_COPY}, {UINT64_MAX - 1, UINT64_MAX, 1, PART_COMPUTE}};
	uint64_t part[PART_MAX] = {0};
	struct works got = {.n = 0};
	uint32_t i;

	ck_assert(works_settle(&got) && works_before(&got, 9) == 0 &&
		  works_begin(&got) == UINT64_MAX);
	works_window(&got, &(struct span){3, 10}, part);
	ck_assert_uint_eq(part[PART_HOST], 7);
	for (i = 3; i-- > 0;)
		ck_assert(works_add(&got, &any[i]));
	ck_assert(works_settle(&got) && works_before(&got, 2) == 2);
	works_window(&got, &(struct span){3, 10}, part);
	ck_assert(part[PART_HOST] == 7 && part[PART_COMM] == 7);
	works_fini(&got);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("parts");
	TCase *c = tcase_create("parts");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, whole);
	tcase_add_test(c, not_whole);
	tcase_add_test(c, gpus_together);
	tcase_add_loop_test(c, packed, 0, 2);
	tcase_add_test(c, packed_extremes);
	suite_add_tcase(s, c);
	return s;
}
