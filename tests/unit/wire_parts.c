/* SPDX-License-Identifier: MIT. wire_parts.c: parts of windows of a timeline, of which not all is there, of a
 * session that was not always active: they add up to the time in which it was. */
#include "quick.h"

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
	ck_assert(p.n_gpus == 2 && p.gpu[0].n == 4 && p.gpu[1].n == 1);
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
	ck_assert(parts_from(&p.gpu[0], 2000) == 0 && parts_from(&p.gpu[0], 2001) == 1);
	ck_assert_uint_eq(parts_from(&p.gpu[0], 9501), 4);
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
	ck_assert(parts_settle(&p, &w) && p.known_ns == 9200 && p.gpu[0].n == 4);
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

Suite *suite(void)
{
	Suite *s = suite_create("parts");
	TCase *c = tcase_create("parts");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, whole);
	tcase_add_test(c, not_whole);
	tcase_add_test(c, gpus_together);
	suite_add_tcase(s, c);
	return s;
}
