/* SPDX-License-Identifier: MIT. cupti_callback.c: what the backend makes of CUPTI's callbacks, and
 * names. */
#include "quick.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_graph.h"
#include "cupti_name.h"
#include "cupti_peek.h"
#include "cupti_walk.h"

#include "../replay/fake_core.c" /* the engine's core, for the backend alone */

enum cbid { LAUNCH = 307, GRAPH_LAUNCH = 514, H2D = 277, SET8 = 216, BEGIN = 539, END = 497 };

static int node_id(void *node, uint64_t *ret)
{
	*ret = (uint64_t)(uintptr_t)node;
	return 0;
}

static int graph_id(void *graph, uint32_t *ret)
{
	*ret = (uint32_t)(uintptr_t)graph;
	return 0;
}

static uint32_t n_enabled;
static int enable_callback(uint32_t on, void *subscriber, uint32_t domain, uint32_t cbid)
{
	(void)subscriber;
	(void)domain;
	(void)cbid;
	n_enabled += on;
	return 0;
}

static void setup(void)
{
	cupti.api.enable_callback = enable_callback;
	ck_assert_int_eq(cupti_name_init(), 0);
	ck_assert_int_eq(cupti_graph_init(), 0);
	cupti.api.graph_node_id = node_id;
	cupti.api.graph_id = graph_id;
	cupti.api.graph_exec_id = graph_id;
	atomic_store(&cupti.epoch, 3);
	atomic_store(&cupti.level, LEVEL_ON);
}

static void driver(uint32_t cbid, enum cupti_site site, uint32_t correlation, int32_t ret)
{
	static _Thread_local uint64_t data;
	const struct cupti_callback d = {.site = site,
		.symbol = cbid == LAUNCH ? "a_kernel" : NULL,
		.ret_value = &ret,
		.correlation_data = &data,
		.correlation = correlation};

	cupti_on_callback(NULL, DOMAIN_DRIVER, cbid, &d);
}

static void api(uint32_t cbid, uint32_t correlation)
{
	driver(cbid, SITE_ENTER, correlation, 0);
	driver(cbid, SITE_EXIT, correlation, 0);
}

static void resource(uint32_t cbid, uintptr_t node, uintptr_t original, uintptr_t graph)
{
	struct cupti_graph g = {.graph = (void *)graph,
		.node = (void *)node,
		.original_node = (void *)original,
		.exec = (void *)graph};
	const struct cupti_resource r = {.descriptor = &g};

	cupti_on_callback(NULL, DOMAIN_RESOURCE, cbid, &r);
}

static void captured(uint32_t correlation, uintptr_t node)
{
	driver(LAUNCH, SITE_ENTER, correlation, 0);
	resource(RES_NODE_CREATED, node, 0, 1);
	driver(LAUNCH, SITE_EXIT, correlation, 0);
}

/* As the driver tells it: created in the executable graph, then a copy. */
static void cloned(uintptr_t node, uintptr_t original, uintptr_t graph)
{
	resource(RES_NODE_CREATED, node, 0, graph);
	resource(RES_NODE_CLONED, node, original, graph);
}

START_TEST(one_record_per_launch)
{
	static const struct {
		uint32_t cbid, flags;
	} calls[] = {{LAUNCH, 0}, {GRAPH_LAUNCH, LAUNCH_GRAPH}, {H2D, LAUNCH_COPY},
		{SET8, LAUNCH_SET}, {776, LAUNCH_COPY | LAUNCH_GRAPH}};
	const struct rec_launch *l;
	size_t i;

	fake_enter(PATH_KIND_SCOPE, "outer");
	for (i = 0; i < 5; i++) {
		api(calls[i].cbid, 100 + (uint32_t)i);
		ck_assert_uint_eq(core.recs, i + 1);
		l = &core.rec[i].u.launch;
		ck_assert_uint_eq(REC_TYPE(l->hdr), REC_LAUNCH);
		ck_assert_uint_eq(REC_FLAGS(l->hdr), calls[i].flags);
		ck_assert_uint_eq(REC_ID(l->hdr), me.path);
		ck_assert_uint_eq(l->correlation, 100 + i);
		ck_assert_uint_eq(l->epoch, 3);
		ck_assert_uint_eq(l->api, calls[i].cbid);
		ck_assert_uint_ne(l->clock, 0);
		ck_assert_str_eq(fake_name(l->name), i == 0 ? "a_kernel" : "");
	}
	ck_assert_uint_eq(agent_launched(), 5);
	api(1, 7);    /* not a launch */
	api(5000, 8); /* of a newer library */
	ck_assert_uint_eq(core.recs, 5);
	fake_exit();
}
END_TEST

START_TEST(what_moves_nothing_is_no_launch)
{
	static const uint32_t calls[] = {H2D, SET8, 281, 306, 423, 430};
	const struct {
		uint64_t to, from;
		size_t count;
	} nothing = {1, 2, 0}, one = {1, 2, 1};
	uint64_t data;
	int32_t ret = 0;
	struct cupti_callback d = {.ret_value = &ret, .correlation_data = &data};
	size_t i, k;

	for (i = 0; i < 12; i++) {
		if (i == 6)
			api(BEGIN, 1); /* of any stream: launches are written at EXIT */
		for (k = 0; k < 2; k++) {
			d.params = k == 0 ? (const void *)&nothing : (const void *)&one;
			for (d.site = SITE_ENTER; d.site <= SITE_EXIT; d.site++)
				cupti_on_callback(NULL, DOMAIN_DRIVER, calls[i % 6], &d);
			ck_assert_uint_eq(fake_records(REC_LAUNCH), i + k);
		}
	}
	ck_assert_uint_eq(agent_launched(), 12);
	d.params = &nothing; /* a kernel's parameters are other ones */
	for (d.site = SITE_ENTER; d.site <= SITE_EXIT; d.site++)
		cupti_on_callback(NULL, DOMAIN_DRIVER, LAUNCH, &d);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 13);
	api(288, 9); /* nor those of a copy in two dimensions */
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 14);
}
END_TEST

static char here; /* the context that calls are in; streams are of another one */

/* A default stream is the context's that is given; any other must be of that, or none is given. */
static int stream_id(void *context, void *stream, uint8_t thread, uint32_t *ret)
{
	if (stream == NULL ? context != &here : context != NULL || thread != 0)
		return CUPTI_INVALID_STREAM;
	*ret = stream != NULL ? 100 + (uint32_t)(uintptr_t)stream : 7u + 2 * thread;
	return 0;
}

/* One call: ENTER and EXIT of this domain's callback with these parameters. */
static void enter_exit(
	uint32_t domain, uint32_t cbid, struct cupti_callback d, enum cupti_site from, int to)
{
	int site;

	for (site = (int)from; site <= to; site++) {
		d.site = (uint32_t)site;
		cupti_on_callback(NULL, domain, cbid, &d);
	}
}

START_TEST(calls_that_wait)
{
	static const struct {
		uint32_t domain, cbid;
		uint64_t params[2];
		uint32_t kind, stream;
		uint64_t event;
	} calls[] = {{DOMAIN_DRIVER, 126, {5, 0}, 0, 105, 0},
		{DOMAIN_RUNTIME, 131, {5, 0}, 0, 105, 0},
		{DOMAIN_RUNTIME, 137, {0xe1, 0}, 1, UINT32_MAX, 0xe1},
		{DOMAIN_RUNTIME, 165, {0, 0}, 2, UINT32_MAX, 0},
		{DOMAIN_RUNTIME, 147, {6, 0xe2}, 3, 106, 0xe2},
		{DOMAIN_DRIVER, 119, {0xe3, 4}, 4, 104, 0xe3},
		{DOMAIN_DRIVER, 243, {1, 2}, 5, UINT32_MAX, 0},
		{DOMAIN_RUNTIME, 22, {1, 0}, 6, UINT32_MAX, 0},
		{DOMAIN_DRIVER, 379, {1, 0}, 7, UINT32_MAX, 0},
		{DOMAIN_DRIVER, 126, {0, 0}, 0, 7, 0}, /* default streams from here on */
		{DOMAIN_DRIVER, 126, {1, 0}, 0, 7, 0}, {DOMAIN_DRIVER, 126, {2, 0}, 0, 9, 0},
		{DOMAIN_RUNTIME, 131, {0, 0}, 0, 7, 0},
		{DOMAIN_RUNTIME, 239, {0, 0}, 0, 9, 0}, /* _ptsz */
		{DOMAIN_RUNTIME, 239, {1, 0}, 0, 7, 0}, {DOMAIN_RUNTIME, 239, {5, 0}, 0, 105, 0},
		{DOMAIN_RUNTIME, 147, {0, 0xe2}, 3, 7, 0xe2},
		{DOMAIN_RUNTIME, 135, {0xe3, 0}, 4, 7, 0xe3},
		{DOMAIN_DRIVER, 441, {0xe3, 0}, 4, 9, 0xe3}};
	const struct rec_call *r;
	struct cupti_callback d = {.context_uid = 2, .context = &here};
	uint32_t i;

	cupti.api.stream_id = stream_id;
	fake_enter(PATH_KIND_SCOPE, "outer");
	d.params = calls[0].params;
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 0); /* off: nothing */
	atomic_store(&cupti.waits, true);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d.correlation = 100 + i;
		d.params = calls[i].params;
		d.function = calls[i].cbid == 239   ? "cudaStreamSynchronize_ptsz_v7000"
			     : calls[i].cbid == 441 ? "cuEventRecord_ptsz"
						    : "any";
		enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
		ck_assert_uint_eq(core.recs, i + 1);
		r = &core.rec[i].u.call;
		ck_assert_uint_eq(REC_TYPE(r->hdr), REC_CALL);
		ck_assert_uint_eq(REC_ID(r->hdr), me.path);
		ck_assert_uint_eq(r->kind, calls[i].kind);
		ck_assert_uint_eq(r->stream, calls[i].stream);
		ck_assert_uint_eq(r->event, calls[i].event);
		ck_assert_uint_eq(r->correlation, 100 + i);
		ck_assert_uint_eq(r->context, 2);
		ck_assert_uint_eq(r->epoch, 3);
		ck_assert(r->begin != 0 && r->end >= r->begin);
	}
	fake_exit();
}
END_TEST

START_TEST(a_call_inside_of_another_is_part_of_it)
{
	struct cupti_callback d = {.correlation = 9};

	atomic_store(&cupti.waits, true);
	enter_exit(DOMAIN_RUNTIME, 22, d, SITE_ENTER, SITE_ENTER); /* cudaFree waits, then frees */
	enter_exit(DOMAIN_DRIVER, 17, d, SITE_ENTER, SITE_EXIT);
	enter_exit(DOMAIN_DRIVER, 245, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 0);
	enter_exit(DOMAIN_RUNTIME, 22, d, SITE_EXIT, SITE_EXIT);
	ck_assert_uint_eq(fake_records(REC_CALL), 1);
	ck_assert_uint_eq(core.rec[0].u.call.kind, 6);
	d.correlation = 10; /* one whose beginning came before the switch */
	enter_exit(DOMAIN_RUNTIME, 165, d, SITE_EXIT, SITE_EXIT);
	enter_exit(DOMAIN_DRIVER, 5000, d, SITE_ENTER, SITE_EXIT); /* of a newer library */
	enter_exit(DOMAIN_RUNTIME, 5000, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 1);
}
END_TEST

static void called_is(uint32_t correlation, const char *name)
{
	const struct rec_called *r = &core.rec[core.recs - 1].u.called;

	ck_assert_uint_eq(REC_TYPE(r->hdr), REC_CALLED);
	ck_assert_uint_eq(REC_ID(r->hdr), me.path);
	ck_assert_uint_eq(r->correlation, correlation);
	ck_assert_uint_eq(r->epoch, 3);
	ck_assert_uint_ne(r->begin, 0);
	ck_assert_str_eq(fake_name(r->name), name);
}

/* Every call once, the outermost; launches, captures and calls that wait among them. */
START_TEST(with_api_every_call_is_a_record)
{
	static const struct {
		uint32_t domain, cbid;
		const char *function, *name;
		int32_t result;
		uint32_t kind, flags;
	} calls[] = {
		{DOMAIN_RUNTIME, 17, "cudaGetDevice_v3020", "cudaGetDevice", 0, 8, CALL_API},
		{DOMAIN_RUNTIME, 131, "cudaStreamSynchronize_v3020", "cudaStreamSynchronize", 0, 0,
			CALL_API},
		{DOMAIN_RUNTIME, 373, "cudaMallocAsync_v11020", "cudaMallocAsync", 2, 5,
			CALL_API | CALL_FAILED | CALL_ONLY_MEMORY},
		{DOMAIN_RUNTIME, 239, "cudaStreamSynchronize_ptsz_v7000",
			"cudaStreamSynchronize_ptsz", 0, 0, CALL_API},
		{DOMAIN_RUNTIME, 10, "cudaGetLastError_v3020", "cudaGetLastError", 2, 8, CALL_API},
		{DOMAIN_DRIVER, 126, "cuStreamSynchronize", "cuStreamSynchronize", 0, 0, CALL_API},
		{DOMAIN_DRIVER, 243, "cuMemAlloc_v2", "cuMemAlloc_v2", 2, 5,
			CALL_API | CALL_FAILED},
		{DOMAIN_DRIVER, 117, "cuLaunchGridAsync", "cuLaunchGridAsync", 0, 8, CALL_API},
		{DOMAIN_DRIVER, 119, "cuEventRecord", "cuEventRecord", 600, 4, CALL_API},
		{DOMAIN_DRIVER, 496, "cuStreamBeginCapture_ptsz", "cuStreamBeginCapture_ptsz", 1, 8,
			CALL_API | CALL_FAILED},
		{DOMAIN_DRIVER, CBID_MAX - 1, "cuNewest_v12030", "cuNewest", 0, 8, CALL_API},
		{DOMAIN_DRIVER, CBID_MAX, "cuBeyond", NULL, 0, 8, CALL_API},
		{DOMAIN_RUNTIME, 18, NULL, NULL, 0, 8, CALL_API},
	};
	uint64_t own = 0;
	struct cupti_callback d = {.context_uid = 2, .correlation_data = &own};
	const struct rec_call *r;
	uint32_t i, n = 0, k;

	cupti_set_odd(ODD_API, true);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d.correlation = 100 + i;
		d.function = calls[i].function;
		d.ret_value = &calls[i].result;
		for (k = 0; k < 2; k++, n++) { /* the second time its name is known */
			enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
			ck_assert_uint_eq(fake_records(REC_CALL) + fake_records(REC_CALLED), n + 1);
			if (k == 1 && calls[i].kind == 8 && calls[i].flags == CALL_API &&
				calls[i].result == 0 && calls[i].name != NULL) {
				called_is(100 + i, calls[i].name);
				continue;
			}
			r = &core.rec[core.recs - 1].u.call;
			ck_assert_uint_eq(REC_TYPE(r->hdr), REC_CALL);
			ck_assert_uint_eq(r->kind, calls[i].kind);
			ck_assert_uint_eq(REC_FLAGS(r->hdr), calls[i].flags);
			ck_assert_uint_eq(r->correlation, 100 + i);
			ck_assert(r->begin != 0 && r->end >= r->begin);
			if (calls[i].name != NULL)
				ck_assert_str_eq(fake_name(r->name), calls[i].name);
			else
				ck_assert_uint_eq(r->name, NAME_NONE);
		}
	}
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
	d.function = "cudaLaunchKernel_v7000"; /* what is inside of it is part of it */
	d.ret_value = NULL;
	enter_exit(DOMAIN_RUNTIME, 211, d, SITE_ENTER, SITE_ENTER);
	enter_exit(DOMAIN_DRIVER, 307, d, SITE_ENTER, SITE_EXIT);
	enter_exit(DOMAIN_RUNTIME, 211, d, SITE_EXIT, SITE_EXIT);
	ck_assert_uint_eq(fake_records(REC_CALL) + fake_records(REC_CALLED), n + 1);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 3);
	cupti_set_odd(ODD_API, false); /* off: nothing, though its callbacks still come */
	enter_exit(DOMAIN_RUNTIME, 17, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, n + 4);
}
END_TEST

/* A call that waits, inside of one that is api's alone: sync and alloc have what they have without. */
START_TEST(with_api_a_call_inside_of_another_is_still_the_others)
{
	struct cupti_callback d = {
		.correlation = 8, .context_uid = 2, .function = "cudaElse_v3020"};
	const struct rec_call *r;
	bool waits = _i != 0;

	cupti_set_odd(ODD_API, true);
	atomic_store(&cupti.waits, waits);
	enter_exit(DOMAIN_RUNTIME, 17, d, SITE_ENTER, SITE_ENTER);
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_ENTER, SITE_ENTER); /* cuStreamSynchronize */
	enter_exit(DOMAIN_DRIVER, 121, d, SITE_ENTER, SITE_EXIT);  /* its part */
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_EXIT, SITE_EXIT);
	enter_exit(
		DOMAIN_DRIVER, 599, d, SITE_ENTER, SITE_EXIT); /* cuMemAllocAsync: alloc is off */
	ck_assert_uint_eq(fake_records(REC_CALL), waits);
	enter_exit(DOMAIN_RUNTIME, 17, d, SITE_EXIT, SITE_EXIT);
	ck_assert_uint_eq(fake_records(REC_CALL), waits + 1u);
	r = &core.rec[core.recs - 1].u.call;
	ck_assert(r->kind == 8 && REC_FLAGS(r->hdr) == CALL_API);
	if (waits) {
		r = &core.rec[core.recs - 2].u.call;
		ck_assert(r->kind == 0 && REC_FLAGS(r->hdr) == 0);
	}
}
END_TEST

/* While it is off, the callbacks of other calls are not even asked for. */
START_TEST(callbacks_are_asked_for_when_they_are_wanted)
{
	cupti_call_enable();
	ck_assert_uint_eq(n_enabled, 0);
	atomic_store(&cupti.waits, true);
	cupti_call_enable();
	ck_assert_uint_gt(n_enabled, 30);
	ck_assert_uint_lt(n_enabled, 60);
	cupti_set_odd(ODD_API, true);
	n_enabled = 0;
	cupti_call_enable();
	ck_assert_uint_eq(n_enabled, 2 * CBID_MAX - 10); /* what only reads */
}
END_TEST

START_TEST(copies_are_timed)
{
	const struct rec_launch *l;

	atomic_store(&cupti.waits, true);
	driver(H2D, SITE_ENTER, 1, 0);
	ck_assert_uint_eq(core.recs, 0);
	driver(H2D, SITE_EXIT, 1, 0);
	ck_assert_uint_eq(core.recs, 1);
	l = &core.rec[0].u.launch;
	ck_assert_uint_eq(REC_FLAGS(l->hdr), LAUNCH_COPY | LAUNCH_TIMED);
	ck_assert_uint_lt(l->name, UINT32_MAX);
	api(276, 2); /* comes back when it is done */
	ck_assert_uint_eq(
		REC_FLAGS(core.rec[1].u.launch.hdr), LAUNCH_COPY | LAUNCH_TIMED | LAUNCH_BLOCKS);
	driver(H2D, SITE_ENTER, 3, 0);
	driver(H2D, SITE_EXIT, 3, 1); /* failed */
	api(LAUNCH, 4);
	ck_assert_uint_eq(core.recs, 3);
	ck_assert_uint_eq(REC_FLAGS(core.rec[2].u.launch.hdr), 0);
	ck_assert_uint_eq(agent_launched(), 3);
}
END_TEST

/* Written when the call is back, with its end; what fails or makes a node is none; off: as ever. */
START_TEST(launches_that_end)
{
	const struct rec_launch_ended *l;

	cupti_set_odd(ODD_QUEUE, true);
	driver(LAUNCH, SITE_ENTER, 1, 0);
	ck_assert_uint_eq(core.recs, 0);
	driver(LAUNCH, SITE_EXIT, 1, 0);
	ck_assert_uint_eq(core.recs, 1);
	l = (const struct rec_launch_ended *)(const void *)&core.rec[0].u;
	ck_assert_uint_eq(REC_FLAGS(l->launch.hdr), LAUNCH_ENDS);
	ck_assert_uint_eq(REC_BYTES(l->launch.hdr), sizeof(*l));
	ck_assert(l->launch.clock != 0 && l->end >= l->launch.clock);
	ck_assert_uint_eq(l->launch.correlation, 1);
	ck_assert_uint_eq(l->launch.epoch, 3);
	driver(LAUNCH, SITE_ENTER, 2, 0);
	driver(LAUNCH, SITE_EXIT, 2, 1); /* failed */
	ck_assert_uint_eq(core.recs, 1);
	atomic_store(&cupti.waits, true); /* a copy says both */
	api(H2D, 3);
	ck_assert_uint_eq(
		REC_FLAGS(core.rec[1].u.launch.hdr), LAUNCH_COPY | LAUNCH_TIMED | LAUNCH_ENDS);
	driver(LAUNCH, SITE_ENTER, 4, 0);
	cupti_set_odd(ODD_QUEUE, false); /* meanwhile */
	driver(LAUNCH, SITE_EXIT, 4, 0);
	driver(LAUNCH, SITE_ENTER, 5, 0);
	ck_assert_uint_eq(core.recs, 4);
	cupti_set_odd(ODD_QUEUE, true);
	driver(LAUNCH, SITE_EXIT, 5, 0);
	ck_assert_uint_eq(core.recs, 4);
	ck_assert_uint_eq(REC_BYTES(core.rec[2].u.launch.hdr), sizeof(struct rec_launch));
	ck_assert_uint_eq(REC_BYTES(core.rec[3].u.launch.hdr), sizeof(struct rec_launch));
	ck_assert_uint_eq(agent_launched(), 4);
	cupti_set_odd(ODD_QUEUE, false);
}
END_TEST

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

/* With alloc alone: calls that allocate or free, whether they wait or not, and no other. */
START_TEST(calls_of_memory)
{
	static const struct {
		uint32_t domain, cbid, kind, flags;
	} calls[] = {{DOMAIN_RUNTIME, 20, 5, 0}, {DOMAIN_RUNTIME, 22, 6, 0},
		{DOMAIN_RUNTIME, 27, 7, 0}, {DOMAIN_RUNTIME, 373, 5, CALL_ONLY_MEMORY},
		{DOMAIN_DRIVER, 600, 6, CALL_ONLY_MEMORY}, {DOMAIN_DRIVER, 243, 5, 0}};
	struct cupti_callback d = {.correlation = 1};
	uint32_t i;

	fake_enter(PATH_KIND_SCOPE, "outer");
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 0);
	atomic_store(&cupti.allocs, true);
	enter_exit(DOMAIN_DRIVER, 126, d, SITE_ENTER, SITE_EXIT); /* cuStreamSynchronize */
	api(H2D, 1);                                              /* is not timed */
	ck_assert_uint_eq(core.recs, 1);
	ck_assert_uint_eq(REC_FLAGS(core.rec[0].u.launch.hdr), LAUNCH_COPY);
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		d.correlation = 100 + i;
		enter_exit(calls[i].domain, calls[i].cbid, d, SITE_ENTER, SITE_EXIT);
		ck_assert_uint_eq(core.recs, i + 2);
		ck_assert_uint_eq(core.rec[i + 1].u.call.kind, calls[i].kind);
		ck_assert_uint_eq(REC_FLAGS(core.rec[i + 1].u.call.hdr), calls[i].flags);
		ck_assert_uint_eq(REC_ID(core.rec[i + 1].u.call.hdr), me.path);
	}
	atomic_store(&cupti.allocs, false);
	atomic_store(&cupti.waits, true); /* what waits for nothing is not of sync */
	enter_exit(DOMAIN_RUNTIME, 373, d, SITE_ENTER, SITE_EXIT);
	ck_assert_uint_eq(core.recs, 7);
	fake_exit();
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

START_TEST(op_is_told)
{
	fake_enter(PATH_KIND_OP, "op");
	api(LAUNCH, 1);
	ck_assert_uint_eq(REC_FLAGS(core.rec[0].u.launch.hdr), LAUNCH_OP);
	fake_exit();
}
END_TEST

START_TEST(captured_launches_are_none)
{
	api(BEGIN, 1);
	captured(2, 501);
	api(LAUNCH, 3); /* on another stream meanwhile: a real one, at its exit */
	driver(LAUNCH, SITE_ENTER, 4, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	driver(LAUNCH, SITE_EXIT, 4, 1); /* failed */
	api(END, 5);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	ck_assert_uint_eq(core.rec[0].u.launch.correlation, 3);
	driver(LAUNCH, SITE_ENTER, 6, 0); /* no capture is open: at once */
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
	driver(LAUNCH, SITE_EXIT, 6, 0);
	ck_assert_uint_eq(agent_launched(), 2);
}
END_TEST

START_TEST(failed_end_does_not_end)
{
	api(BEGIN, 1);
	driver(END, SITE_EXIT, 2, CUDA_ILLEGAL_STATE); /* of a stream that does not capture */
	captured(3, 501);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 0);
	driver(END, SITE_EXIT, 4, 901); /* invalidated: over */
	driver(LAUNCH, SITE_ENTER, 5, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	driver(END, SITE_EXIT, 6, 0); /* one too many changes nothing */
	driver(LAUNCH, SITE_ENTER, 7, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
}
END_TEST

START_TEST(unseen_capture_costs_one_launch)
{
	captured(1, 501); /* the capture began before we looked */
	captured(2, 502);
	captured(3, 503);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	ck_assert_uint_eq(agent_launched(), 0); /* and nobody waits for it */
	api(END, 4);
	driver(LAUNCH, SITE_ENTER, 5, 0);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 2);
}
END_TEST

START_TEST(failed_launch_is_not_pending)
{
	driver(LAUNCH, SITE_ENTER, 1, 0);
	driver(LAUNCH, SITE_EXIT, 1, 700);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
	ck_assert_uint_eq(agent_launched(), 0);
}
END_TEST

START_TEST(nodes_keep_their_path)
{
	uint32_t path;

	fake_enter(PATH_KIND_SCOPE, "layer");
	path = me.path;
	api(BEGIN, 1);
	captured(2, 501);
	api(END, 3);
	fake_exit();
	cloned(900, 501, 77);
	ck_assert_uint_eq(cupti_node(900).path, path);
	resource(RES_EXEC_DESTROY_STARTING, 0, 0, 77);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(cupti_node(900).path, PATH_ROOT);
	ck_assert_uint_eq(cupti_node(501).path, path);
}
END_TEST

/* What is given in a capture is of the next kernel node, and of its copies; what comes after the last
 * one is of that. */
START_TEST(nodes_take_what_is_given)
{
	api(BEGIN, 1);
	ck_assert_uint_eq(core.captures, 1);
	captured(2, 501);
	core.given = 7;
	captured(3, 502);
	captured(4, 503);
	cloned(902, 502, 77);
	cloned(903, 502, 78);
	core.given = 9;
	api(END, 5);
	ck_assert_uint_eq(core.captures, 0);
	ck_assert_uint_eq(cupti_node(501).given, 0);
	ck_assert_uint_eq(cupti_node(502).given, 7);
	ck_assert_uint_eq(cupti_node(503).given, 9);
	ck_assert_uint_eq(cupti_node(902).given, 7);
	ck_assert_uint_eq(cupti_node(903).given, 7);
	ck_assert_uint_eq(
		core.held, 3); /* of 7; the fake counts no hold for what is left at the end */
	resource(RES_EXEC_DESTROY_STARTING, 0, 0, 77);
	cupti_graph_reap(true);
	cupti_graph_reap(true);
	ck_assert_uint_eq(core.held, 2);
	core.given = 11; /* and nobody is there to take it */
	resource(RES_GRAPH_DESTROY_STARTING, 0, 0, 1);
	api(BEGIN, 6);
	api(END, 7);
	ck_assert_uint_eq(core.given_lost, 11);
}
END_TEST

START_TEST(reentry_is_refused)
{
	int saved;

	ck_assert(agent_enter(&saved));
	api(LAUNCH, 1);
	agent_leave(saved);
	ck_assert_uint_eq(core.recs, 0);
}
END_TEST

/* A handler's launch that is refused leaves alone what is known of the call that it interrupted. */
START_TEST(refused_call_inside_of_another)
{
	int saved;

	setup();
	driver(LAUNCH, SITE_ENTER, 1, 0);
	ck_assert(agent_enter(&saved)); /* in the callback of the node */
	api(LAUNCH, 2);
	agent_leave(saved);
	resource(RES_NODE_CREATED, 11, 0, 1);
	driver(LAUNCH, SITE_EXIT, 1, 0);
	ck_assert_uint_eq(agent_launched(), 0);
	ck_assert_int_eq(cupti.captures, 1);
	api(LAUNCH, 3); /* waits until it is known to be none, and is one */
	ck_assert_uint_eq(agent_launched(), 1);
}
END_TEST

START_TEST(fatal_error_silences)
{
	const struct cupti_state s = {.result = 12};

	cupti_on_callback(NULL, DOMAIN_STATE, STATE_FATAL_ERROR, &s);
	api(LAUNCH, 1);
	ck_assert_uint_eq(core.recs, 0);
	(void)backend_cupti.flush(false);
	(void)backend_cupti.flush(false);
	ck_assert_uint_eq(core.recs, 1); /* told once */
	ck_assert_uint_eq(REC_TYPE(core.rec[0].u.launch.hdr), REC_GPU);
	ck_assert_uint_eq(REC_FLAGS(core.rec[0].u.launch.hdr), GPU_FAILED);
}
END_TEST

START_TEST(names_follow_modules)
{
	char text[32] = "first";
	const uint32_t first = cupti_symbol(text);

	ck_assert_str_eq(fake_name(first), "first");
	ck_assert_uint_eq(cupti_kernel_name(text, 0), first);
	memcpy(text, "other", 5);
	ck_assert_uint_eq(cupti_symbol(text), first); /* same module: the address is enough */
	ck_assert_uint_eq(cupti_kernel_name(text, 0), first);
	cupti_on_callback(
		NULL, DOMAIN_RESOURCE, RES_MODULE_UNLOAD_STARTING, &(struct cupti_resource){0});
	ck_assert_str_eq(fake_name(cupti_symbol(text)), "other");
	ck_assert_uint_eq(cupti_kernel_name(text, 0), first); /* delivered before the unload */
	ck_assert_str_eq(fake_name(cupti_kernel_name(text, 1)), "other");
}
END_TEST

/* A kernel's name whose module is gone by the time its record is read. */
START_TEST(gone_text_does_not_crash)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char buf[64];
	uint32_t id;

	ck_assert_ptr_ne(p, MAP_FAILED);
	memcpy(p + 4090, "crosses_a_page", 15);
	ck_assert_uint_eq(cupti_peek(p + 4090, buf, sizeof(buf)), 14);
	ck_assert_str_eq(buf, "crosses_a_page");
	ck_assert_uint_eq(cupti_peek(p + 4090, buf, 8), 7);
	ck_assert_str_eq(buf, "crosses");
	id = cupti_kernel_name(p + 4090, 0);
	ck_assert_str_eq(fake_name(id), "crosses_a_page");
	ck_assert_int_eq(munmap(p, 8192), 0);
	ck_assert_uint_eq(cupti_kernel_name(p + 4090, 1), id); /* the last that was known */
	ck_assert_uint_eq(cupti_kernel_name(p + 100, 1), NAME_NONE);
	ck_assert_uint_eq(cupti_kernel_name(NULL, 1), NAME_NONE);
}
END_TEST

START_TEST(crowded_symbols_stay_right)
{
	static char text[40000][8];
	uint32_t i;

	for (i = 0; i < 40000; i++)
		(void)snprintf(text[i], sizeof(text[i]), "k%u", i % 50);
	for (i = 0; i < 40000; i++)
		ck_assert_str_eq(fake_name(cupti_symbol(text[i])), text[i]);
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

#define PER_THREAD 20000u
static void *launcher(void *arg)
{
	uint32_t i;

	for (i = 0; i < PER_THREAD; i++)
		api(LAUNCH, i);
	return arg;
}

START_TEST(threads_lose_no_count)
{
	pthread_t t[4];
	uint32_t i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, launcher, NULL), 0);
	for (i = 0; i < 4; i++)
		(void)pthread_join(t[i], NULL);
	ck_assert_uint_eq(agent_launched(), 4 * PER_THREAD);
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 4 * PER_THREAD);
}
END_TEST

/* --- taking CUPTI out --- */

static sem_t wanted;
static _Atomic uint32_t finalized;

static int f_callback(uint32_t on, void *s, uint32_t domain, uint32_t cbid)
{
	(void)on, (void)s, (void)domain, (void)cbid;
	return 0;
}

static int f_domain(uint32_t on, void *s, uint32_t domain)
{
	(void)s;
	ck_assert_uint_eq(domain, DOMAIN_RUNTIME);
	if (on != 0)
		(void)sem_post(&wanted);
	return 0;
}

static int f_unsubscribe(void *s)
{
	(void)s;
	return 0;
}

static int f_finalize(void)
{
	atomic_fetch_add(&finalized, 1);
	return 0;
}

static void *leaver(void *arg)
{
	*(bool *)arg = cupti_finalize_in_call(*(bool *)arg ? 60000 : 1);
	return NULL;
}

static pthread_t leave(bool *waits_then_done)
{
	pthread_t t;

	cupti.api.enable_callback = f_callback;
	cupti.api.enable_domain = f_domain;
	cupti.api.unsubscribe = f_unsubscribe;
	cupti.api.finalize = f_finalize;
	atomic_store(&cupti.level, LEVEL_NONE);
	ck_assert_int_eq(sem_init(&wanted, 0, 0), 0);
	ck_assert_int_eq(pthread_create(&t, NULL, leaver, waits_then_done), 0);
	ck_assert_int_eq(sem_wait(&wanted), 0);
	return t;
}

static void left(pthread_t t, const bool *done, uint32_t times)
{
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert(*done);
	ck_assert_uint_eq(atomic_load(&finalized), times);
	core.recs = 0;
	atomic_store(&cupti.level, LEVEL_ON);
	api(LAUNCH, 9); /* records as before */
	ck_assert_uint_eq(fake_records(REC_LAUNCH), 1);
}

static void runtime(enum cupti_site site)
{
	const struct cupti_callback d = {.site = site};

	cupti_on_callback(NULL, DOMAIN_RUNTIME, 211, &d);
}

/* At the end of a call inside of another, CUPTI would never see the other's end. */
START_TEST(taken_out_at_the_end_of_an_outermost_call)
{
	bool done = true;
	pthread_t t = leave(&done);
	int i;

	runtime(SITE_ENTER);
	for (i = 0; i < 100; i++)
		api(LAUNCH, 1);
	ck_assert_uint_eq(atomic_load(&finalized), 0);
	runtime(SITE_EXIT);
	left(t, &done, 1);

	done = true; /* the runtime's call had begun before anybody looked */
	t = leave(&done);
	driver(LAUNCH, SITE_EXIT, 1, 0);
	api(LAUNCH, 1);
	api(LAUNCH, 1);
	ck_assert_uint_eq(atomic_load(&finalized), 1);
	runtime(SITE_EXIT);
	left(t, &done, 2);

	done = true; /* a program without the runtime */
	t = leave(&done);
	for (i = 0; i < 16 && atomic_load(&finalized) == 2; i++)
		api(LAUNCH, 1);
	left(t, &done, 3);

	done = false; /* nobody calls */
	t = leave(&done);
	ck_assert_int_eq(pthread_join(t, NULL), 0);
	ck_assert(!done);
	ck_assert_uint_eq(atomic_load(&finalized), 3);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cupti_callback");
	TCase *t = tcase_create("callback");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, one_record_per_launch);
	tcase_add_test(t, what_moves_nothing_is_no_launch);
	tcase_add_test(t, calls_that_wait);
	tcase_add_test(t, a_call_inside_of_another_is_part_of_it);
	tcase_add_test(t, with_api_every_call_is_a_record);
	tcase_add_loop_test(t, with_api_a_call_inside_of_another_is_still_the_others, 0, 2);
	tcase_add_test(t, callbacks_are_asked_for_when_they_are_wanted);
	tcase_add_test(t, copies_are_timed);
	tcase_add_test(t, launches_that_end);
	tcase_add_loop_test(t, overhead_is_told, 0, sizeof(overheads) / sizeof(overheads[0]));
	tcase_add_test(t, calls_of_memory);
	tcase_add_loop_test(t, memory_is_told, 0, sizeof(memories) / sizeof(memories[0]));
	tcase_add_test(t, op_is_told);
	tcase_add_test(t, captured_launches_are_none);
	tcase_add_test(t, failed_end_does_not_end);
	tcase_add_test(t, unseen_capture_costs_one_launch);
	tcase_add_test(t, refused_call_inside_of_another);
	tcase_add_test(t, failed_launch_is_not_pending);
	tcase_add_test(t, nodes_keep_their_path);
	tcase_add_test(t, nodes_take_what_is_given);
	tcase_add_test(t, reentry_is_refused);
	tcase_add_test(t, fatal_error_silences);
	tcase_add_test(t, names_follow_modules);
	tcase_add_test(t, gone_text_does_not_crash);
	tcase_add_test(t, crowded_symbols_stay_right);
	tcase_add_loop_test(t, graphs_side_by_side_count_once, 0, 5);
	tcase_add_test(t, threads_lose_no_count);
	tcase_add_test(t, taken_out_at_the_end_of_an_outermost_call);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return s;
}
