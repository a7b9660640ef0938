/* SPDX-License-Identifier: MIT. cupti_pool.c: the activity buffers that CUPTI fills.
 *
 * A buffer goes round: free -> CUPTI (request) -> completed -> the agent's thread (drain) -> free.
 * It is prefaulted and zeroed by the agent, never by the launching thread that CUPTI's request runs
 * on (a first touch of 1 MiB costs a launch 0.4 ms).
 *
 *   free       stack: word {tag:32, index + 1:32}; popped by any thread, pushed by the agent alone.
 *              The tag moves with each change, so that a popper that slept does not take a buffer
 *              whose `next` is no longer what it read (ABA).
 *   completed  stack: pushed by any thread, taken whole by the agent (exchange), then turned round.
 *
 * When none is free, CUPTI gets one of a few small spare buffers, and when those are out too, one
 * that everybody shares; what it writes there is counted (gpu_refused: requests; gpu_dropped:
 * records of a spare), never read as data. NULL would crash CUPTI before 12.9. With a buffer per
 * launching thread a small pool starves many threads, so the agent makes more under pressure, up to
 * four times the start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cupti_dump.h"
#include "cupti_pool.h"

#define BUFFER_BYTES    (1u << 20)
#define BUFFERS_DEFAULT 16u
#define BUFFERS_MAX     256u
#define GROWTH          4u
#define SPARES          8u
#define SPARE_BYTES     (64u << 10)
#define LINE            64u

enum spare_state { SPARE_FREE = 0, SPARE_OUT = 1 };

struct slot {
	_Atomic uint32_t next; /* index + 1 in the stack that the slot is on */
	bool forced;
	uint32_t module;
	uint64_t valid, seq;
};

static struct {
	_Alignas(LINE) _Atomic uint64_t free;
	_Alignas(LINE) _Atomic uint32_t completed;
	_Atomic uint32_t out;         /* not free: with CUPTI, or completed and not yet walked */
	_Atomic bool forcing;         /* FlushAll(1) runs */
	_Alignas(LINE) uint8_t *base; /* of BUFFERS_MAX buffers, address space only */
	_Atomic uint32_t made;        /* the agent makes; others only look */
	uint32_t cap;
	struct slot slot[BUFFERS_MAX];
	_Atomic uint32_t spare[SPARES]; /* enum spare_state */
	uint8_t *spares;                /* SPARES, then the shared one */
} pool;

static uint8_t *bytes_of(uint32_t i)
{
	return pool.base + (size_t)i * BUFFER_BYTES;
}

static uint32_t pop(void)
{
	/* Acquire: pairs with the release in push(); the zeroes of the buffer come with it. */
	uint64_t w = atomic_load_explicit(&pool.free, memory_order_acquire), to;
	uint32_t i;

	do {
		i = (uint32_t)w;
		if (i == 0)
			return UINT32_MAX;
		to = ((w >> 32) + 1) << 32 |
		     atomic_load_explicit(&pool.slot[i - 1].next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.free, &w, to, memory_order_acquire, memory_order_acquire));
	return i - 1;
}

static void push(uint32_t i)
{
	uint64_t w = atomic_load_explicit(&pool.free, memory_order_relaxed), to;

	do {
		atomic_store_explicit(&pool.slot[i].next, (uint32_t)w, memory_order_relaxed);
		to = ((w >> 32) + 1) << 32 | (i + 1);
		/* Release: pairs with the acquire in pop(). */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.free, &w, to, memory_order_release, memory_order_relaxed));
}

static uint32_t setting(void)
{
	const char *v = getenv("PROTOND_CUPTI_BUFFERS");
	unsigned long n = v != NULL ? strtoul(v, NULL, 10) : 0;

	if (n == 0)
		return BUFFERS_DEFAULT;
	return n < 2 ? 2 : n > BUFFERS_MAX ? BUFFERS_MAX : (uint32_t)n;
}

static int map(void)
{
	size_t all = (size_t)BUFFERS_MAX * BUFFER_BYTES + (SPARES + 1) * (size_t)SPARE_BYTES;
	void *p = mmap(NULL, all, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	pool.base = p;
	pool.spares = pool.base + (size_t)BUFFERS_MAX * BUFFER_BYTES;
	pool.cap = setting() * GROWTH;
	if (pool.cap > BUFFERS_MAX)
		pool.cap = BUFFERS_MAX;
	return 0;
}

/* Writes one word per page: the memory is there before CUPTI asks, and still zero. */
static void prefault(uint8_t *p, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i += RING_PAGE)
		__atomic_store_n(p + i, 0, __ATOMIC_RELAXED);
}

static void grow(uint32_t n)
{
	while (n-- > 0 && pool.made < pool.cap) {
		prefault(bytes_of(pool.made), BUFFER_BYTES);
		push(pool.made++);
	}
}

int cupti_pool_init(void)
{
	uint64_t w;
	uint32_t i;

	if (pool.base == NULL) {
		if (map() < 0)
			return -ENOMEM;
		grow(setting());
		return 0;
	}
	/* Again after cupti_pool_idle(): nobody pops now. */
	w = atomic_load_explicit(&pool.free, memory_order_acquire);
	for (i = (uint32_t)w; i != 0; i = pool.slot[i - 1].next)
		prefault(bytes_of(i - 1), BUFFER_BYTES);
	return 0;
}

void cupti_pool_idle(void)
{
	uint32_t i;

	if (pool.base == NULL)
		return;
	for (i = (uint32_t)atomic_load_explicit(&pool.free, memory_order_acquire); i != 0;
		i = pool.slot[i - 1].next)
		(void)madvise(bytes_of(i - 1), BUFFER_BYTES, MADV_DONTNEED); /* zero again */
}

void cupti_pool_forcing(bool on)
{
	atomic_store_explicit(&pool.forcing, on, memory_order_relaxed);
}

static uint8_t *take_spare(void)
{
	uint32_t i, was;

	atomic_fetch_add_explicit(&agent_counts()->gpu_refused, 1, memory_order_relaxed);
	for (i = 0; i < SPARES; i++) {
		was = SPARE_FREE;
		/* Acquire: pairs with the release in spare_back(). */
		if (atomic_compare_exchange_strong_explicit(&pool.spare[i], &was, SPARE_OUT,
			    memory_order_acquire, memory_order_relaxed))
			return pool.spares + (size_t)i * SPARE_BYTES;
	}
	return pool.spares + (size_t)SPARES * SPARE_BYTES; /* many may write it: read by nobody */
}

void cupti_on_request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	uint32_t i = pop();

	*ret_records = 0; /* fill it */
	if (i == UINT32_MAX) {
		*ret_buffer = take_spare();
		*ret_bytes = SPARE_BYTES;
		return;
	}
	/* Many threads that begin at once: ask for more now, one futex wake, not at the next flush.
	 */
	if (atomic_fetch_add_explicit(&pool.out, 1, memory_order_relaxed) + 1 == pool.made / 2)
		agent_ring();
	*ret_buffer = bytes_of(i);
	*ret_bytes = BUFFER_BYTES;
}

static void spare_back(uint32_t i, uint8_t *p, size_t valid)
{
	uint64_t records = 0;
	uint32_t kind;
	size_t at;

	if (i >= SPARES)
		return;
	if (valid > SPARE_BYTES)
		valid = SPARE_BYTES;
	for (at = 0; at + 8 <= valid; at += cupti.stride[kind], records++) {
		memcpy(&kind, p + at, sizeof(kind));
		kind &= ~KIND_INCOMPLETE;
		if (kind >= KIND_MAX || cupti.stride[kind] == 0)
			break;
	}
	atomic_fetch_add_explicit(&agent_counts()->gpu_dropped, records, memory_order_relaxed);
	memset(p, 0, valid);
	/* Release: pairs with the acquire in take_spare(). */
	atomic_store_explicit(&pool.spare[i], SPARE_FREE, memory_order_release);
}

void cupti_on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
	uint32_t i, head;
	struct slot *s;

	(void)context;
	(void)stream;
	(void)bytes;
	if (buffer >= pool.spares && buffer < pool.spares + (SPARES + 1) * (size_t)SPARE_BYTES) {
		spare_back((uint32_t)((size_t)(buffer - pool.spares) / SPARE_BYTES), buffer, valid);
		return;
	}
	if (buffer < pool.base || buffer >= pool.spares)
		return; /* not ours: another tool's buffers came back to us */
	i = (uint32_t)((size_t)(buffer - pool.base) / BUFFER_BYTES);
	s = &pool.slot[i];
	s->valid = valid <= BUFFER_BYTES ? valid : BUFFER_BYTES;
	s->module = atomic_load_explicit(&cupti.module, memory_order_relaxed);
	s->forced = atomic_load_explicit(&pool.forcing, memory_order_relaxed);
	s->seq = cupti_is_odd(ODD_DUMP) ? cupti_dump_seq() : 0;
	head = atomic_load_explicit(&pool.completed, memory_order_relaxed);
	do {
		atomic_store_explicit(&s->next, head, memory_order_relaxed);
		/* Release: pairs with the exchange in cupti_pool_drain(); the records come with it.
		 */
	} while (!atomic_compare_exchange_weak_explicit(
		&pool.completed, &head, i + 1, memory_order_release, memory_order_relaxed));
	if (head ==
		0) /* the first since the last drain: at full speed the pool is empty in 10 ms */
		agent_ring();
}

uint64_t cupti_pool_drain(uint64_t (*walk)(const struct cupti_buffer *))
{
	/* Acquire: pairs with the release in cupti_on_complete(). */
	uint32_t newest = atomic_exchange_explicit(&pool.completed, 0, memory_order_acquire);
	uint32_t oldest = 0, next;
	uint64_t n = 0;

	while (newest != 0) { /* turn it round */
		next = pool.slot[newest - 1].next;
		pool.slot[newest - 1].next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest != 0) {
		struct slot *s = &pool.slot[oldest - 1];
		struct cupti_buffer b = {.bytes = bytes_of(oldest - 1),
			.valid = s->valid,
			.seq = s->seq,
			.module = s->module,
			.forced = s->forced};

		next = s->next;
		n += walk(&b);
		memset(b.bytes, 0, b.valid);
		push(oldest - 1);
		atomic_fetch_sub_explicit(&pool.out, 1, memory_order_relaxed);
		oldest = next;
	}
	return n;
}

static bool short_of_free(void)
{
	return pool.made != 0 &&
	       atomic_load_explicit(&pool.out, memory_order_relaxed) >= pool.made / 2;
}

void cupti_pool_grow(void)
{
	if (short_of_free())
		grow(8);
}

bool cupti_pool_pressed(void)
{
	return short_of_free() && pool.made == pool.cap;
}
