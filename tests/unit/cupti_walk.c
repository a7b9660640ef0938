/* SPDX-License-Identifier: MIT. cupti_walk.c: activity records cut down to the ring's: overhead, memory, graphs side by
 * side. */
#include "cupti_help.h"

/* An OVERHEAD record of CUPTI, of each stride; what its times or its kind make of it. */
static const struct overhead_case {
	uint32_t stride, kind, object;
	uint64_t start, end;
	uint32_t id, correlation, tid; /* id UINT32_MAX: not written */
} overheads[] = {
	{56, 1, OBJECT_THREAD, 10, 20, 1, 77, 42},
	{48, 5u << 16, OBJECT_THREAD, 10, 20, 6, 77, 42},
	{40, 6u << 16, 1, 10, 10, 7, 0, 0},
	{56, 8u << 16, OBJECT_THREAD, 10, 20, 9, 77, 42},
	{56, 99u << 16, OBJECT_THREAD, 10, 20, 0, 77, 42},
	{56, 1, OBJECT_THREAD, 0, 20, UINT32_MAX, 0, 0},
	{56, 1, OBJECT_THREAD, 20, 10, UINT32_MAX, 0, 0},
	{56, 1, OBJECT_THREAD, 10, UINT64_MAX, UINT32_MAX, 0, 0},
	{32, 1, OBJECT_THREAD, 10, 20, UINT32_MAX, 0, 0},
};

START_TEST(overhead_is_told)
{
	static _Alignas(8) uint8_t bytes[64];
	const struct overhead_case *c = &overheads[_i];
	const uint32_t kind = KIND_OVERHEAD, correlation = 77, tid = 42;
	struct cupti_buffer b = {.bytes = bytes, .valid = c->stride};
	const struct rec_overhead *r;

	cupti.stride[kind] = (uint16_t)c->stride;
	memcpy(bytes, &kind, 4);
	memcpy(bytes + O_KIND, &c->kind, 4);
	memcpy(bytes + O_OBJECT_KIND, &c->object, 4);
	memcpy(bytes + O_THREAD, &tid, 4);
	memcpy(bytes + O_START, &c->start, 8);
	memcpy(bytes + O_END, &c->end, 8);
	memcpy(bytes + O_CORRELATION, &correlation, 4);
	ck_assert_uint_eq(cupti_walk(&b), c->id != UINT32_MAX);
	ck_assert_uint_eq(core.recs, c->id != UINT32_MAX);
	cupti.stride[kind] = 0;
	if (core.recs == 0)
		return;
	r = (const struct rec_overhead *)(const void *)&core.rec[0].u;
	ck_assert_uint_eq(REC_TYPE(r->hdr), REC_OVERHEAD);
	ck_assert_uint_eq(REC_ID(r->hdr), c->id);
	ck_assert(r->start == c->start && r->end == c->end);
	ck_assert_uint_eq(r->correlation, c->correlation);
	ck_assert_uint_eq(r->tid, c->tid);
	ck_assert_uint_eq(r->epoch, 3);
}
END_TEST

/* A MEMORY2 or MEMORY_POOL record of CUPTI, of each stride; op 0: it is not written. */
static const struct memory_case {
	uint32_t kind, stride, what, of, pool, async;
	uint64_t time;
	uint32_t op, id;
	uint64_t reserved;
} memories[] = {
	{KIND_MEMORY, 128, 1, CUPTI_MEMORY_DEVICE, 0, 0, 5, MEMORY_ALLOC, HELD_DEVICE, 0},
	{KIND_MEMORY, 112, 2, CUPTI_MEMORY_PINNED, 0, 0, 5, MEMORY_FREE, HELD_PINNED, 0},
	{KIND_MEMORY, 120, 1, CUPTI_MEMORY_MANAGED, 0, 0, 5, MEMORY_ALLOC, HELD_MANAGED, 0},
	{KIND_MEMORY, 128, 1, CUPTI_MEMORY_DEVICE, 1, 1, 5, MEMORY_ALLOC, HELD_POOL, 4096},
	{KIND_MEMORY, 112, 1, CUPTI_MEMORY_DEVICE, 1, 1, 5, MEMORY_ALLOC, HELD_POOL, 0},
	{KIND_MEMORY, 128, 1, CUPTI_MEMORY_DEVICE, 2, 1, 5, MEMORY_ALLOC, HELD_POOL, 0},
	{KIND_MEMORY, 128, 1, CUPTI_MEMORY_DEVICE_STATIC, 0, 0, 5, MEMORY_ALLOC, HELD_STATIC, 0},
	{KIND_MEMORY, 128, 1, 77, 0, 0, 5, MEMORY_ALLOC, HELD_ELSE, 0},
	{KIND_MEMORY, 128, 3, CUPTI_MEMORY_DEVICE, 0, 0, 5, 0, 0, 0},
	{KIND_MEMORY, 128, 0, CUPTI_MEMORY_DEVICE, 0, 0, 5, 0, 0, 0},
	{KIND_MEMORY, 128, 1, CUPTI_MEMORY_DEVICE, 0, 0, 0, 0, 0, 0},
	{KIND_MEMORY, 128, 1, CUPTI_MEMORY_DEVICE, 0, 0, UINT64_MAX, 0, 0, 0},
	{KIND_MEMORY, 80, 1, CUPTI_MEMORY_DEVICE, 0, 0, 5, 0, 0, 0},
	{KIND_MEMORY_POOL, 80, 1, 0, 1, 0, 5, MEMORY_POOL_MADE, HELD_RESERVED, 4096},
	{KIND_MEMORY_POOL, 64, 2, 0, 1, 0, 5, MEMORY_POOL_GONE, HELD_RESERVED, 4096},
	{KIND_MEMORY_POOL, 72, 3, 0, 1, 0, 5, MEMORY_POOL_TRIMMED, HELD_RESERVED, 4096},
	{KIND_MEMORY_POOL, 72, 3, 0, 2, 0, 5, MEMORY_POOL_TRIMMED, HELD_RESERVED, 0},
	{KIND_MEMORY_POOL, 80, 4, 0, 1, 0, 5, 0, 0, 0},
	{KIND_MEMORY_POOL, 48, 1, 0, 1, 0, 5, 0, 0, 0},
};

static void put32(uint8_t *p, size_t at, uint32_t v)
{
	memcpy(p + at, &v, sizeof(v));
}

static void put64(uint8_t *p, size_t at, uint64_t v)
{
	memcpy(p + at, &v, sizeof(v));
}

static void memory_bytes(uint8_t *p, const struct memory_case *c)
{
	const bool pool = c->kind == KIND_MEMORY_POOL;

	put32(p, 0, c->kind);
	put32(p, M_OPERATION, c->what);
	put32(p, M_KIND, pool ? c->pool : c->of);
	put32(p, M_CORRELATION, 77);
	put64(p, pool ? PO_ADDRESS : M_ADDRESS, 0x7000);
	if (!pool) {
		put64(p, M_BYTES, 1024);
		put64(p, M_TIME, c->time);
		put32(p, M_CONTEXT, 2);
		put32(p, M_STREAM, 3);
		put32(p, M_ASYNC, c->async);
		put32(p, M_POOL_TYPE, c->pool);
		put64(p, M_POOL, 0x9000);
	} else {
		put64(p, PO_TIME, c->time);
	}
	put64(p, pool ? PO_SIZE : M_POOL_SIZE, 4096);
	put64(p, pool ? PO_USED : M_POOL_USED, 1024);
}

START_TEST(memory_is_told)
{
	static _Alignas(8) uint8_t bytes[128];
	const struct memory_case *c = &memories[_i];
	struct cupti_buffer b = {.bytes = bytes, .valid = c->stride};
	const struct rec_memory *r;

	cupti.stride[c->kind] = (uint16_t)c->stride;
	memory_bytes(bytes, c);
	ck_assert_uint_eq(cupti_walk(&b), c->op != 0);
	ck_assert_uint_eq(core.recs, c->op != 0);
	cupti.stride[c->kind] = 0;
	if (core.recs == 0)
		return;
	r = (const struct rec_memory *)(const void *)&core.rec[0].u;
	ck_assert_uint_eq(REC_TYPE(r->hdr), REC_MEMORY);
	ck_assert_uint_eq(REC_BYTES(r->hdr), sizeof(*r));
	ck_assert_uint_eq(REC_FLAGS(r->hdr), c->op);
	ck_assert_uint_eq(REC_ID(r->hdr), c->id);
	ck_assert_uint_eq(r->time, 5);
	ck_assert_uint_eq(r->correlation, 77);
	ck_assert_uint_eq(r->epoch, 3);
	ck_assert_uint_eq(r->reserved, c->reserved);
	ck_assert_uint_eq(r->bytes, c->kind == KIND_MEMORY ? 1024 : 0);
	ck_assert_uint_eq(r->address, c->kind == KIND_MEMORY ? 0x7000 : 0);
	ck_assert_uint_eq(r->pool, c->kind != KIND_MEMORY ? 0x7000 : c->pool != 0 ? 0x9000 : 0);
}
END_TEST

/* n kernels of each of `ids` launches of a graph, in turns; the ids are `apart`. */
static void deliver(uint32_t n, uint32_t ids, uint32_t apart)
{
	static uint8_t bytes[1u << 20];
	const uint32_t kind = KIND_CONCURRENT_KERNEL, stride = 216;
	const uint64_t start = 1000, end = 1001, node = 7;
	struct cupti_buffer b = {.bytes = bytes, .valid = (size_t)n * ids * stride};

	cupti.stride[kind] = stride;
	for (uint32_t i = 0; i < n * ids; i++) {
		const uint32_t id = 100 + i % ids * apart;
		uint8_t *p = bytes + (size_t)i * stride;

		memcpy(p, &kind, sizeof(kind));
		memcpy(p + K_CORRELATION, &id, sizeof(id));
		memcpy(p + K_START, &start, sizeof(start));
		memcpy(p + K_END, &end, sizeof(end));
		memcpy(p + K_GRAPH_NODE, &node, sizeof(node));
	}
	(void)cupti_walk(&b);
}

/* However the ids of graphs that run at the same time fall, each launch counts once; and what is
 * counted more than once, for there are too many, does not hide launches to come. */
START_TEST(graphs_side_by_side_count_once)
{
	static const struct {
		uint32_t ids, apart;
	} cases[] = {{2, 8192}, {4, 8192}, {4, 2048}, {3, 1}, {9, 8192}};
	const uint32_t ids = cases[_i].ids;

	for (uint32_t i = 0; i < ids; i++)
		api(GRAPH_LAUNCH, 100 + i * cases[_i].apart);
	deliver(100, ids, cases[_i].apart);
	ck_assert_uint_eq(cupti_delivered(), ids);
	for (uint32_t i = 0; i < 50; i++)
		api(LAUNCH, 200000 + i);
	ck_assert_uint_eq(agent_launched() - cupti_delivered(), 50);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_walk");
	TCase *t = tcase_create("walk");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, overhead_is_told, 0, sizeof(overheads) / sizeof(overheads[0]));
	tcase_add_loop_test(t, memory_is_told, 0, sizeof(memories) / sizeof(memories[0]));
	tcase_add_loop_test(t, graphs_side_by_side_count_once, 0, 5);
	suite_add_tcase(s, t);
	return s;
}
