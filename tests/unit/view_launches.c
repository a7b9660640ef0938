/* SPDX-License-Identifier: MIT. view_launches.c: kernels by how they are launched, what an SM holds of them, and how near they come
 * to a GPU's peaks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launches.h"
#include "quick.h"
#include "roofline.h"

static struct profile_device h200 = {.type = "CUDA",
	.id = "0",
	.name = "H200",
	.arch = 90,
	.arch_text = "90",
	.num_sms = 132,
	.clock_khz = 1980000,
	.memory_clock_khz = 3201000,
	.bus_width = 6144,
	.busy_ns = 1};

/* Blocks an SM holds, as cuda_occupancy.h of CUDA 13.0 says it. */
static const struct {
	uint32_t arch, threads, registers, static_shared, dynamic_shared, blocks;
} held[] = {
	{90, 256, 128, 0, 65536, 2},
	{90, 384, 168, 1024, 0, 1},
	{90, 1024, 65, 0, 0, 0},
	{90, 32, 16, 0, 0, 32},
	{90, 48, 40, 0, 9000, 23},
	{90, 128, 255, 48, 230000, 1},
	{80, 96, 33, 0, 0, 16},
	{80, 512, 64, 0, 40000, 2},
	{89, 256, 40, 0, 0, 6},
	{89, 1024, 32, 0, 0, 1},
	{75, 64, 24, 2000, 0, 16},
	{70, 128, 90, 0, 0, 5},
	{120, 192, 72, 0, 30000, 3},
};

START_TEST(an_sm_holds)
{
	struct profile_device d = h200;
	struct profile_config c = {.grid = {1000, 1, 1}, .block = {1, 1, 1}};
	struct occupancy o;

	d.arch = held[_i].arch;
	c.block[0] = held[_i].threads;
	c.registers = held[_i].registers;
	c.static_shared = held[_i].static_shared;
	c.dynamic_shared = held[_i].dynamic_shared;
	ck_assert(occupancy_of(&d, &c, &o));
	ck_assert_uint_eq(o.blocks, held[_i].blocks);
}
END_TEST

START_TEST(waves_and_tail)
{
	struct profile_config c = {.grid = {132, 3, 1}, .block = {256, 1, 1}, .registers = 128};
	struct occupancy o;

	ck_assert(occupancy_of(&h200, &c, &o)); /* two blocks of eight warps each, of 64 */
	ck_assert(o.blocks == 2 && o.limit == OCCUPANCY_REGISTERS && o.share == 0.25);
	ck_assert(o.waves == 1.5 && o.tail == 0.25);
	c.grid[1] = 2;
	ck_assert(occupancy_of(&h200, &c, &o) && o.waves == 1 && o.tail == 0);
	c.dynamic_shared = 200000;
	ck_assert(occupancy_of(&h200, &c, &o) && o.limit == OCCUPANCY_SHARED && o.blocks == 1);
	c.dynamic_shared = 300000; /* of a file that lies */
	ck_assert(occupancy_of(&h200, &c, &o) && o.blocks == 0 && isnan(o.tail));
	c.block[0] = 2000000000;
	ck_assert(!occupancy_of(&h200, &c, &o));
	c.block[0] = 0;
	ck_assert(!occupancy_of(&h200, &c, &o));
}
END_TEST

START_TEST(what_is_not_known)
{
	struct profile_device d = h200;
	struct profile_config c = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	struct occupancy o;

	d.arch = 35;
	ck_assert(!occupancy_of(&d, &c, &o));
	d = h200;
	d.num_sms = 0;
	ck_assert(!occupancy_of(&d, &c, &o));
	d = h200;
	d.type = "HIP";
	ck_assert(!occupancy_of(&d, &c, &o));
}
END_TEST

/* --- a tree */

struct made {
	struct profile *p;
	uint32_t time, count;
};

static void put(struct profile *p, uint32_t node, uint32_t metric, uint64_t v)
{
	ck_assert_int_eq(
		profile_set(p, node, metric, (struct value){.type = VALUE_U64, .u = v}), 0);
}

static struct made tree(void)
{
	struct made m = {.p = profile_new()};

	m.time = profile_add_metric(m.p, "time (ns)", KIND_INCLUSIVE);
	m.count = profile_add_metric(m.p, "count", KIND_INCLUSIVE);
	m.p->device = calloc(2, sizeof(*m.p->device));
	m.p->config = calloc(8, sizeof(*m.p->config));
	ck_assert(m.p->device != NULL && m.p->config != NULL);
	m.p->device[0] = h200;
	m.p->n_devices = 1;
	return m;
}

static uint32_t kernel(struct made *m, uint32_t up, const char *name, uint64_t n, uint64_t ns)
{
	const uint32_t i = profile_add_node(m->p, up, name, NODE_KERNEL);

	put(m->p, i, m->count, n);
	put(m->p, i, m->time, ns);
	return i;
}

static void config(struct made *m, uint32_t node, uint32_t grid, uint64_t count)
{
	m->p->config[m->p->n_configs++] =
		(struct profile_config){node, {grid, 1, 1}, {256, 1, 1}, 128, 0, 0, count};
}

static void fini(struct made *m)
{
	profile_free(m->p);
}

/* gemm at two places in two configurations, and five launches that came with none; a small one. */
START_TEST(rows_of_launches)
{
	struct made m = tree();
	struct launches *l;
	uint32_t a, b, c;

	a = kernel(&m, 0, "gemm", 10, 1000000);
	b = kernel(&m, profile_add_node(m.p, 0, "forward", NODE_SCOPE), "gemm", 15, 3000000);
	c = kernel(&m, 0, "small", 100, 900000);
	config(&m, a, 396, 10);
	config(&m, b, 396, 5);
	config(&m, b, 264, 5);
	config(&m, c, 132, 100);
	ck_assert_int_eq(launches_new(m.p, &l), 0);
	ck_assert_uint_eq(l->n, 4);
	ck_assert_str_eq(l->row[0].name, "gemm");
	ck_assert(l->row[0].config->grid[0] == 396 && l->row[0].count == 15 && l->row[0].ns == 2e6);
	ck_assert(l->row[0].has_occupancy && l->row[0].occupancy.waves == 1.5);
	ck_assert(l->row[1].ns == 1e6 && l->row[2].ns == 1e6);
	ck_assert((l->row[1].config == NULL) != (l->row[2].config == NULL));
	ck_assert(l->count == 125 && l->ns == 4.9e6 && l->small == 100 && l->small_ns == 9e5);
	ck_assert(l->shared_out && l->low_ns == 0); /* a quarter is not below it */
	/* 2 ms × 1/4, and 0.9 ms × 1/2: half a wave is all there is. */
	ck_assert(fabs(l->tail_ns - (5e5 + 4.5e5)) < 1e-3);
	launches_free(l);
	m.p->device[1] = h200; /* another GPU worked, too */
	m.p->device[1].num_sms = 108;
	m.p->n_devices = 2;
	ck_assert_int_eq(launches_new(m.p, &l), 0);
	ck_assert(l->device == NULL && !l->row[0].has_occupancy);
	launches_free(l);
	fini(&m);
}
END_TEST

START_TEST(no_launches)
{
	struct made m = tree();
	struct launches *l = NULL;

	ck_assert_int_eq(launches_new(m.p, &l), -ENODATA);
	ck_assert_ptr_null(l);
	fini(&m);
}
END_TEST

/* --- the roof */

/* At 16 bits 132 SMs of 1980 MHz do 132/114 × 1980/1755 × 1513e12 ÷ 2 a second; bytes 2 × 6144 × 3201e6 ÷ 8. */
static const double flops_peak = 132.0 / 114 * (1980.0 / 1755) * 1513e12 / 2,
		    bytes_peak = 2.0 * 6144 * 3201e6 / 8;

START_TEST(rows_of_a_roofline)
{
	struct made m = tree();
	const uint32_t flops = profile_add_metric(m.p, "flops16", KIND_INCLUSIVE),
		       bytes = profile_add_metric(m.p, "bytes", KIND_INCLUSIVE),
		       up = profile_add_node(m.p, 0, "forward", NODE_SCOPE),
		       in = profile_add_node(m.p, up, "norm", NODE_SCOPE);
	struct roofline *r;

	put(m.p, up, flops, 400000000000);
	put(m.p, up, bytes, 100000000);
	put(m.p, in, bytes, 4800000000);
	(void)kernel(&m, up, "gemm", 1, 1000000);
	(void)kernel(&m, in, "norm", 1, 2000000);
	(void)kernel(&m, 0, "other", 1, 7000000);
	m.p->head.duration_ns = 20000000;
	ck_assert_int_eq(roofline_new(m.p, &r), 0);
	ck_assert_uint_eq(r->n, 3);
	ck_assert_uint_eq(r->row[0].node, 0);
	ck_assert(r->row[0].ns == 10e6 && r->row[0].flops == 4e11 && r->row[0].bytes == 4.9e9);
	ck_assert_uint_eq(r->row[1].node, up);
	ck_assert(r->row[1].ns == 3e6 && r->row[1].bound == BOUND_MEMORY);
	ck_assert(fabs(r->row[1].util - 4.9e9 / bytes_peak / 3e-3) < 1e-9);
	ck_assert_uint_eq(r->row[2].node, in);
	ck_assert(r->row[2].bound == BOUND_UNKNOWN && isnan(r->row[2].compute_ns));
	ck_assert(fabs(r->row[2].util - 4.8e9 / bytes_peak / 2e-3) < 1e-9);
	ck_assert(fabs(r->mfu - 4e11 / flops_peak / 20e-3) < 1e-9);
	roofline_free(r);
	m.p->device[0].arch_text = "61"; /* no peak of arithmetic, one of memory */
	ck_assert_int_eq(roofline_new(m.p, &r), 0);
	ck_assert(r->peaks.code == -ENOTSUP && isnan(r->mfu) && r->row[2].util > 0);
	roofline_free(r);
	fini(&m);
}
END_TEST

START_TEST(nothing_told)
{
	struct made m = tree();
	struct roofline *r = NULL;

	(void)kernel(&m, 0, "gemm", 1, 1000000);
	ck_assert_int_eq(roofline_new(m.p, &r), -ENODATA);
	ck_assert_ptr_null(r);
	fini(&m);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("launches");
	TCase *t = tcase_create("launches");

	tcase_add_loop_test(t, an_sm_holds, 0, sizeof(held) / sizeof(*held));
	tcase_add_test(t, waves_and_tail);
	tcase_add_test(t, what_is_not_known);
	tcase_add_test(t, rows_of_launches);
	tcase_add_test(t, no_launches);
	tcase_add_test(t, rows_of_a_roofline);
	tcase_add_test(t, nothing_told);
	suite_add_tcase(s, t);
	return s;
}
