/* SPDX-License-Identifier: MIT. counter_page.h: a counter's value by rdpmc, as its page says how (perf_event_open(2),
 * struct perf_event_mmap_page). counters.c includes it.
 *
 * The kernel changes the page when the counter moves to or from the CPU, always on the CPU that its thread is on: lock
 * is a sequence that is another one then, odd or not. The value is offset and what the CPU counted since, which has
 * pmc_width bits and a sign.
 */
#ifndef PROTOND_AGENT_COUNTER_PAGE_H
#define PROTOND_AGENT_COUNTER_PAGE_H

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a thread, since the counter was made. */
struct counter_reading {
	uint64_t value, enabled,
		running; /* both ns; running is less: it shared the CPU's counters */
};

typedef uint64_t counter_pmc_fn(uint32_t pmc);
typedef uint64_t counter_tsc_fn(void);

#define COUNTER_PAGE_TRIES 64u

#define PAGE_LOAD(field) __atomic_load_n(&p->field, __ATOMIC_RELAXED)

/* value with its upper bits those of its sign. width: 1 to 64. */
static inline int64_t counter_signed(uint64_t value, uint32_t width)
{
	const uint32_t shift = 64 - width;

	return (int64_t)(value << shift) >> shift;
}

/* ns that went by since the kernel last wrote the times. */
static inline uint64_t counter_page_since(const struct perf_event_mmap_page *p, uint64_t tsc)
{
	const uint32_t shift = PAGE_LOAD(time_shift) & 63, mult = PAGE_LOAD(time_mult);
	const uint64_t cycles = PAGE_LOAD(time_cycles);
	uint64_t low;

	if (p->cap_user_time_short)
		tsc = cycles + ((tsc - cycles) & PAGE_LOAD(time_mask));
	low = tsc & ((1ull << shift) - 1);
	return PAGE_LOAD(time_offset) + (tsc >> shift) * mult + ((low * mult) >> shift);
}

/* False: the kernel has to be asked. */
static inline bool counter_page_read(const struct perf_event_mmap_page *p, counter_pmc_fn *pmc,
	counter_tsc_fn *tsc, struct counter_reading *ret)
{
	struct counter_reading r;
	uint32_t lock, index, width;
	uint64_t since;

	for (uint32_t i = 0; i < COUNTER_PAGE_TRIES; i++) {
		lock = PAGE_LOAD(lock);
		atomic_signal_fence(memory_order_seq_cst); /* its writer is on this CPU */
		index = PAGE_LOAD(index);
		width = PAGE_LOAD(pmc_width);
		r.value = (uint64_t)PAGE_LOAD(offset);
		r.enabled = PAGE_LOAD(time_enabled);
		r.running = PAGE_LOAD(time_running);
		if (!p->cap_user_rdpmc || (index != 0 && (width == 0 || width > 64)))
			return false;
		if (index != 0)
			r.value += (uint64_t)counter_signed(pmc(index - 1), width);
		if (p->cap_user_time && r.enabled != r.running) {
			since = counter_page_since(p, tsc());
			r.enabled += since;
			r.running += index != 0 ? since : 0;
		}
		atomic_signal_fence(memory_order_seq_cst);
		if (PAGE_LOAD(lock) == lock) {
			*ret = r;
			return true;
		}
	}
	return false;
}

#undef PAGE_LOAD

__extension__ typedef unsigned __int128 counter_wide;

/* What came between two readings: of a counter that had the CPU for a part of the time, what it would have counted in
 * all of it. False: it had none of it, so `was` is to stay. */
static inline bool counter_since(const struct counter_reading *was,
	const struct counter_reading *now, uint64_t *ret, bool *ret_scaled)
{
	const uint64_t value = now->value > was->value ? now->value - was->value : 0;
	const uint64_t enabled = now->enabled > was->enabled ? now->enabled - was->enabled : 0;
	const uint64_t running = now->running > was->running ? now->running - was->running : 0;
	counter_wide scaled;

	*ret_scaled = running < enabled;
	*ret = value;
	if (!*ret_scaled)
		return true;
	if (running == 0)
		return false;
	scaled = (counter_wide)value * enabled / running;
	*ret = scaled > INT64_MAX ? INT64_MAX : (uint64_t)scaled;
	return true;
}

#endif
