/* SPDX-License-Identifier: MIT. cupti_walk.c: activity records cut down to the ring's. Agent's
 * thread.
 *
 * Our own walk by the strides that the library itself gave (cuptiActivityGetNextRecord costs 6 to
 * 30 ns a record, this 1 to 2). A kind of unknown size cannot be stepped over: the rest of its
 * buffer is counted in bytes.
 */
#include <string.h>

#include "copy.h"
#include "cupti_device.h"
#include "cupti_dump.h"
#include "cupti_graph.h"
#include "cupti_name.h"
#include "cupti_state.h"
#include "cupti_walk.h"

#define FIRSTS 2048u /* power of two */
#define WAYS   4u

/* Launches of which one call gives many records: the ids seen last, the newest first in each row,
 * so that each counts once. An id that was pushed out counts again, which makes `pending` smaller
 * than it is, never larger; but no more are delivered than were launched. */
static struct {
	uint32_t id[FIRSTS][WAYS];
	uint64_t delivered;
} firsts;

static uint16_t get16(const uint8_t *p, size_t at)
{
	uint16_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint64_t get64(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint16_t epoch(void)
{
	return (uint16_t)atomic_load_explicit(&cupti.epoch, memory_order_relaxed);
}

/* True: it is there, and is the first now. */
static bool seen(uint32_t correlation)
{
	uint32_t *row = firsts.id[correlation & (FIRSTS - 1)];
	uint32_t at = 0;
	bool known;

	if (row[0] == correlation)
		return true;
	while (at < WAYS - 1 && row[at] != correlation)
		at++;
	known = row[at] == correlation;
	memmove(row + 1, row, at * sizeof(*row));
	row[0] = correlation;
	return known;
}

static void count_first(uint32_t correlation, bool shared)
{
	if (!shared || !seen(correlation))
		firsts.delivered++;
}

uint64_t cupti_delivered(void)
{
	return firsts.delivered;
}

void cupti_walk_reset(void)
{
	memset(firsts.id, 0, sizeof(firsts.id));
}

/* Flags for a record's times, and what is kept of them. */
static uint32_t times(uint64_t *start, uint64_t *end, uint32_t kind, const struct cupti_buffer *b)
{
	if (*end == 0 && (b->forced || (kind & KIND_INCOMPLETE) != 0))
		return GPU_FLAG_RUNNING;
	if (*start != 0 && *end >= *start && *end >> 63 == 0)
		return 0;
	*start = *end = 0;
	agent_count(&agent_counts()->gpu_invalid, 1);
	return GPU_FLAG_UNTIMED;
}

static uint32_t config_of(const uint8_t *p)
{
	struct ring_config c = {.registers = get16(p, K_REGISTERS),
		.static_shared = get32(p, K_STATIC_SHARED),
		.dynamic_shared = get32(p, K_DYNAMIC_SHARED),
		.local_per_thread = get32(p, K_LOCAL_PER_THREAD)};

	memcpy(c.grid, p + K_GRID, sizeof(c.grid));
	memcpy(c.block, p + K_BLOCK, sizeof(c.block));
	return agent_config(&c);
}

static const char *name_at(const uint8_t *p)
{
	const char *name;

	memcpy(&name, p + K_NAME, sizeof(name));
	return name;
}

static bool put_kernel(const uint8_t *p, uint32_t kind, const struct cupti_buffer *b)
{
	struct rec_kernel r = {.start = get64(p, K_START),
		.end = get64(p, K_END),
		.correlation = get32(p, K_CORRELATION),
		.epoch = epoch(),
		.device = cupti_device(get32(p, K_DEVICE)),
		.context = get32(p, K_CONTEXT),
		.stream = get32(p, K_STREAM),
		.captured = PATH_ROOT,
		.config = config_of(p)};
	uint32_t flags = times(&r.start, &r.end, kind, b);
	uint32_t name = cupti_kernel_name(name_at(p), b->module);
	struct cupti_node node = {.path = PATH_ROOT};
	bool ok;

	if (cupti.stride[kind & ~KIND_INCOMPLETE] >= K_GRAPH_STRIDE) {
		r.graph_node = get64(p, K_GRAPH_NODE);
		r.graph_exec = get32(p, K_GRAPH);
	}
	if (r.graph_node != 0) {
		flags |= GPU_FLAG_GRAPH;
		node = cupti_node(r.graph_node);
		r.captured = node.path;
	}
	count_first(r.correlation, r.graph_node != 0);
	r.hdr = REC_HDR(sizeof(r), REC_KERNEL, 0, flags, name);
	ok = agent_put_wait(&r, sizeof(r));
	if (node.given != 0)
		agent_given_put(node.given, r.correlation, r.epoch, r.start);
	return ok;
}

/* Our numbers are CUPTI's. */
#define SAME(ours, cuptis) _Static_assert((int)(ours) == (int)(cuptis), #ours)
SAME(COPY_KIND_HOST_DEVICE, CUPTI_COPY_HTOD);
SAME(COPY_KIND_DEVICE_HOST, CUPTI_COPY_DTOH);
SAME(COPY_KIND_HOST_ARRAY, CUPTI_COPY_HTOA);
SAME(COPY_KIND_ARRAY_HOST, CUPTI_COPY_ATOH);
SAME(COPY_KIND_ARRAY_ARRAY, CUPTI_COPY_ATOA);
SAME(COPY_KIND_ARRAY_DEVICE, CUPTI_COPY_ATOD);
SAME(COPY_KIND_DEVICE_ARRAY, CUPTI_COPY_DTOA);
SAME(COPY_KIND_DEVICE_DEVICE, CUPTI_COPY_DTOD);
SAME(COPY_KIND_HOST_HOST, CUPTI_COPY_HTOH);
SAME(COPY_KIND_PEER, CUPTI_COPY_PTOP);
SAME(MEMORY_PAGEABLE, CUPTI_MEMORY_PAGEABLE);
SAME(MEMORY_PINNED, CUPTI_MEMORY_PINNED);
SAME(MEMORY_DEVICE, CUPTI_MEMORY_DEVICE);
SAME(MEMORY_ARRAY, CUPTI_MEMORY_ARRAY);
SAME(MEMORY_MANAGED, CUPTI_MEMORY_MANAGED);
SAME(MEMORY_DEVICE_STATIC, CUPTI_MEMORY_DEVICE_STATIC);
SAME(MEMORY_MANAGED_STATIC, CUPTI_MEMORY_MANAGED_STATIC);

static enum copy_class class_of(uint8_t kind)
{
	static const uint8_t classes[COPY_KIND_MAX] = {
#define X(name, number, class) [number] = COPY_##class,
		COPY_KINDS(X)
#undef X
	};

	return kind < COPY_KIND_MAX ? (enum copy_class)classes[kind] : COPY_OTHER;
}

/* Where the graph fields of a record stand, and from which stride. */
struct graph_at {
	uint16_t node, node_stride, exec, exec_stride;
};

static uint32_t graph_fields(
	struct rec_copy *r, const uint8_t *p, uint32_t stride, const struct graph_at *at)
{
	uint64_t node = stride >= at->node_stride ? get64(p, at->node) : 0;

	if (node == 0)
		return 0;
	r->graph_exec = stride >= at->exec_stride ? get32(p, at->exec) : 0;
	r->captured = cupti_node(node).path;
	return GPU_FLAG_GRAPH;
}

static bool put_copy(const uint8_t *p, uint32_t kind, const struct cupti_buffer *b)
{
	static const struct graph_at at = {
		C_GRAPH_NODE, C_GRAPH_NODE_STRIDE, C_GRAPH, C_GRAPH_STRIDE};
	static const struct graph_at peer_at = {
		P_GRAPH_NODE, P_GRAPH_NODE_STRIDE, P_GRAPH, P_GRAPH_STRIDE};
	const bool peer = (kind & ~KIND_INCOMPLETE) == KIND_MEMCPY_PEER;
	const uint32_t stride = cupti.stride[kind & ~KIND_INCOMPLETE];
	struct rec_copy r = {.start = get64(p, C_START),
		.end = get64(p, C_END),
		.correlation = get32(p, peer ? P_CORRELATION : C_CORRELATION),
		.epoch = epoch(),
		.device = cupti_device(get32(p, C_DEVICE)),
		.context = get32(p, C_CONTEXT),
		.stream = get32(p, C_STREAM),
		.captured = PATH_ROOT,
		.kind = p[C_KIND],
		.src = p[C_SRC],
		.dst = p[C_DST],
		.bytes = get64(p, C_BYTES)};
	enum copy_class class = peer ? COPY_P2P : class_of(r.kind);
	uint32_t other, flags = times(&r.start, &r.end, kind, b);

	if (peer) {
		other = get32(p, P_SRC_DEVICE);
		if (other == get32(p, C_DEVICE))
			other = get32(p, P_DST_DEVICE);
		r.peer = cupti_device(other);
	}
	flags |= graph_fields(&r, p, stride, peer ? &peer_at : &at);
	if (r.src == MEMORY_PAGEABLE || r.dst == MEMORY_PAGEABLE)
		flags |= GPU_FLAG_PAGED;
	count_first(r.correlation, true); /* a batch shares one id too */
	r.hdr = REC_HDR(sizeof(r), REC_COPY, 0, flags, class);
	return agent_put_wait(&r, sizeof(r));
}

static bool put_set(const uint8_t *p, uint32_t kind, const struct cupti_buffer *b)
{
	static const struct graph_at at = {
		S_GRAPH_NODE, S_GRAPH_NODE_STRIDE, S_GRAPH, S_GRAPH_STRIDE};
	struct rec_copy r = {.start = get64(p, S_START),
		.end = get64(p, S_END),
		.correlation = get32(p, S_CORRELATION),
		.epoch = epoch(),
		.device = cupti_device(get32(p, S_DEVICE)),
		.context = get32(p, S_CONTEXT),
		.stream = get32(p, S_STREAM),
		.captured = PATH_ROOT,
		.dst = (uint8_t)get16(p, S_MEMORY_KIND),
		.bytes = get64(p, S_BYTES)};
	uint32_t flags = times(&r.start, &r.end, kind, b);

	flags |= graph_fields(&r, p, cupti.stride[KIND_MEMSET], &at);
	count_first(r.correlation, (flags & GPU_FLAG_GRAPH) != 0);
	r.hdr = REC_HDR(sizeof(r), REC_SET, 0, flags, 0);
	return agent_put_wait(&r, sizeof(r));
}

static uint32_t overhead_id(uint32_t kind)
{
	static const uint8_t id_of[CLASS_MAX] = {
#define X(name, n, word, record, id, ...) [n] = (id),
		GPU_CLASSES(X)
#undef X
	};

	switch (kind) {
#define X(name, number, class) \
	case (number):         \
		return id_of[CLASS_##class];
		OVERHEAD_KINDS(X)
#undef X
	default:
		return id_of[CLASS_OVERHEAD];
	}
}

static bool put_overhead(const uint8_t *p)
{
	struct rec_overhead r = {.start = get64(p, O_START),
		.end = get64(p, O_END),
		.tid = get32(p, O_OBJECT_KIND) == OBJECT_THREAD ? get32(p, O_THREAD) : 0,
		.epoch = epoch()};

	if (cupti.stride[KIND_OVERHEAD] < O_MIN)
		return false;
	if (cupti.stride[KIND_OVERHEAD] >= O_CORRELATION_STRIDE)
		r.correlation = get32(p, O_CORRELATION);
	if (r.start == 0 || r.end < r.start || r.end >> 63 != 0) {
		agent_count(&agent_counts()->gpu_invalid, 1);
		return false;
	}
	r.hdr = REC_HDR(sizeof(r), REC_OVERHEAD, 0, 0, overhead_id(get32(p, O_KIND)));
	return agent_put_wait(&r, sizeof(r));
}

static enum held_kind held_kind(uint32_t kind, bool pool)
{
	switch (kind) {
	case CUPTI_MEMORY_DEVICE:
		return pool ? HELD_POOL : HELD_DEVICE;
	case CUPTI_MEMORY_PINNED:
		return HELD_PINNED;
	case CUPTI_MEMORY_MANAGED:
		return HELD_MANAGED;
	case CUPTI_MEMORY_DEVICE_STATIC:
	case CUPTI_MEMORY_MANAGED_STATIC:
		return HELD_STATIC;
	case CUPTI_MEMORY_ARRAY:
		return HELD_ARRAY;
	default:
		return HELD_ELSE;
	}
}

/* With what it is of. False: what it says cannot be, or the ring refused it. */
static bool put_held(struct rec_memory *r, uint32_t op, uint32_t device, enum held_kind kind)
{
	if (op == 0 || r->time == 0 || r->time >> 63 != 0) {
		agent_count(&agent_counts()->gpu_invalid, 1);
		return false;
	}
	r->epoch = epoch();
	r->device = device < RING_DEVICES_MAX ? cupti_device(device) : MEMORY_NO_DEVICE;
	r->hdr = REC_HDR(sizeof(*r), REC_MEMORY, 0, op, kind);
	return agent_put_wait(r, sizeof(*r));
}

static bool put_memory(const uint8_t *p)
{
	static const uint8_t ops[] = {
		[MEMORY_ALLOCATION] = MEMORY_ALLOC, [MEMORY_RELEASE] = MEMORY_FREE};
	const uint32_t stride = cupti.stride[KIND_MEMORY], op = get32(p, M_OPERATION);
	struct rec_memory r = {0};
	uint32_t pool;

	if (stride < M_MIN)
		return false;
	r = (struct rec_memory){.time = get64(p, M_TIME),
		.address = get64(p, M_ADDRESS),
		.bytes = get64(p, M_BYTES),
		.correlation = get32(p, M_CORRELATION),
		.stream = get32(p, M_STREAM),
		.context = get32(p, M_CONTEXT)};
	pool = get32(p, M_POOL_TYPE);
	if (pool != 0)
		r.pool = get64(p, M_POOL);
	if (pool == POOL_LOCAL && stride >= M_POOL_USED_STRIDE) {
		r.reserved = get64(p, M_POOL_SIZE);
		r.used = get64(p, M_POOL_USED);
	}
	return put_held(&r, op < sizeof(ops) ? ops[op] : 0, get32(p, M_DEVICE),
		held_kind(get32(p, M_KIND), pool != 0 || get32(p, M_ASYNC) != 0));
}

static bool put_pool(const uint8_t *p)
{
	static const uint8_t ops[] = {[POOL_CREATED] = MEMORY_POOL_MADE,
		[POOL_DESTROYED] = MEMORY_POOL_GONE,
		[POOL_TRIMMED] = MEMORY_POOL_TRIMMED};
	const uint32_t stride = cupti.stride[KIND_MEMORY_POOL], op = get32(p, PO_OPERATION);
	struct rec_memory r = {0};

	if (stride < PO_MIN)
		return false;
	r = (struct rec_memory){.time = get64(p, PO_TIME),
		.pool = get64(p, PO_ADDRESS),
		.correlation = get32(p, PO_CORRELATION),
		.stream = UINT32_MAX};
	if (get32(p, PO_TYPE) == POOL_LOCAL) {
		r.reserved = get64(p, PO_SIZE);
		r.used = stride >= PO_USED_STRIDE ? get64(p, PO_USED) : 0;
	}
	return put_held(&r, op < sizeof(ops) ? ops[op] : 0, get32(p, PO_DEVICE), HELD_RESERVED);
}

/* One record; whether the ring took it. Kinds that we did not ask for are stepped over. */
static bool put_record(const uint8_t *p, uint32_t kind, const struct cupti_buffer *b)
{
	switch (kind & ~KIND_INCOMPLETE) {
	case KIND_KERNEL:
	case KIND_CONCURRENT_KERNEL:
		return put_kernel(p, kind, b);
	case KIND_MEMCPY:
	case KIND_MEMCPY_PEER:
		return put_copy(p, kind, b);
	case KIND_MEMSET:
		return put_set(p, kind, b);
	case KIND_OVERHEAD:
		return put_overhead(p);
	case KIND_MEMORY:
		return put_memory(p);
	case KIND_MEMORY_POOL:
		return put_pool(p);
	default:
		return false;
	}
}

uint64_t cupti_walk(const struct cupti_buffer *b)
{
	uint64_t at, n = 0;
	uint32_t kind, plain, stride;

	if (cupti_is_odd(ODD_DUMP))
		cupti_dump_buffer(b);
	for (at = 0; at + 8 <= b->valid; at += stride) {
		kind = get32(b->bytes, at);
		plain = kind & ~KIND_INCOMPLETE;
		stride = plain < KIND_MAX ? cupti.stride[plain] : 0;
		if (stride == 0 || stride > b->valid - at) {
			agent_count(&agent_counts()->gpu_unknown, b->valid - at);
			break;
		}
		n += put_record(b->bytes + at, kind, b);
	}
	if (firsts.delivered > agent_launched())
		firsts.delivered = agent_launched();
	return n;
}
