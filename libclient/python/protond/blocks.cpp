/* SPDX-License-Identifier: MIT. blocks.cpp: torch's caching allocator of CUDA, block by block, by its
 * trace tracker. Built by _built.py on the user's machine, for his torch (2.1 and later); it needs
 * libtorch's headers and CUDA's, and of protond only blocks_calls.h.
 *
 * The allocator calls with the lock of the device held, and asks that nothing of torch be called but
 * itself. It says what was asked for; what a block has is more, by a rule that settings change, so that
 * a size is a guess until the device's statistics have moved, which is before the next event. */
#include <c10/cuda/CUDACachingAllocator.h>

#include <stdint.h>
#include <string.h>

#include <atomic>
#include <exception>
#include <type_traits>

#include "blocks_calls.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace
{

namespace caching = c10::cuda::CUDACachingAllocator;

constexpr uint32_t DEVICES = 64;
constexpr uint64_t UNIT = 512; /* the least there is between two blocks' sizes */

struct blocks_calls calls;
std::atomic<uint32_t> turn{0}; /* odd: on. Each time another */

/* Under the lock of the device, and its own, for tell() has not got that. */
struct device_state {
	std::atomic_flag lock = ATOMIC_FLAG_INIT;
	uint32_t events;
	uint32_t turn; /* what was said of it is of this one */
	bool open;     /* the newest block's size is a guess */
	uint64_t address, guess;
	int64_t allocated, freed; /* as the statistics counted, before it */
} devices[DEVICES];

/* What the allocator says of itself, in all versions of torch. */
template <typename S> int64_t now(const S &stat)
{
	return stat[0].current > 0 ? stat[0].current : 0;
}

template <typename S>
void put(uint32_t device, const S &s, uint32_t op, uint64_t address, uint64_t bytes)
{
	struct blocks_event e;

	memset(&e, 0, sizeof(e));
	e.address = address;
	e.bytes = bytes;
	e.reserved = (uint64_t)now(s.reserved_bytes);
	e.active = (uint64_t)now(s.active_bytes);
	e.split = (uint64_t)now(s.inactive_split_bytes);
	e.requested = (uint64_t)now(s.requested_bytes);
	e.device = device;
	e.op = op;
	calls.block(&e);
}

/* The statistics have moved: the size is known. */
template <typename S> void settle(uint32_t device, struct device_state *d, const S &s)
{
	const int64_t grown = s.allocated_bytes[0].allocated - d->allocated;

	if (d->open && grown > (int64_t)d->guess)
		put(device, s, BLOCKS_SIZE, d->address, (uint64_t)grown);
	d->open = false;
}

template <typename S>
void on_alloc(uint32_t device, struct device_state *d, const S &s, uint64_t address, uint64_t asked)
{
	d->open = true;
	d->address = address;
	d->guess = asked > UNIT ? (asked + UNIT - 1) / UNIT * UNIT : UNIT;
	d->allocated = s.allocated_bytes[0].allocated;
	put(device, s, BLOCKS_ALLOC, address, d->guess);
}

/* What was freed is what the statistics have moved by. */
template <typename S>
void on_free(uint32_t device, struct device_state *d, const S &s, uint64_t address, uint64_t asked)
{
	const int64_t freed = s.allocated_bytes[0].freed - d->freed;

	put(device, s, BLOCKS_FREE, address, freed > 0 ? (uint64_t)freed : asked);
}

/* True: it was just begun with what the statistics have, the event's own among it if it is a free. */
template <typename S> bool begin(uint32_t device, struct device_state *d, const S &s, uint32_t now_turn)
{
	if (d->turn == now_turn)
		return false;
	d->turn = now_turn;
	d->open = false;
	put(device, s, BLOCKS_BEFORE, (uint64_t)now(s.allocation), (uint64_t)now(s.allocated_bytes));
	return true;
}

template <typename E> void on_event(const E &e)
{
	using action = std::decay_t<E>;
	const uint32_t now_turn = turn.load(std::memory_order_acquire);
	const uint32_t device = (uint32_t)e.device_;
	const uint64_t address = (uint64_t)e.addr_, bytes = e.size_ > 0 ? (uint64_t)e.size_ : 0;
	bool begun;

	if ((now_turn & 1) == 0 || device >= DEVICES || e.action_ == action::FREE_COMPLETED)
		return;
	const auto s = caching::get()->getDeviceStats(e.device_);
	struct device_state *d = &devices[device];

	while (d->lock.test_and_set(std::memory_order_acquire))
		;
	d->events++;
	begun = begin(device, d, s, now_turn);
	settle(device, d, s);
	if (e.action_ == action::ALLOC)
		on_alloc(device, d, s, address, bytes);
	else if (e.action_ == action::FREE_REQUESTED && !begun)
		on_free(device, d, s, address, bytes);
	else if (e.action_ == action::SEGMENT_ALLOC || e.action_ == action::SEGMENT_MAP)
		put(device, s, BLOCKS_SEGMENT, address, bytes);
	else if (e.action_ == action::SEGMENT_FREE || e.action_ == action::SEGMENT_UNMAP)
		put(device, s, BLOCKS_SEGMENT_GONE, address, bytes);
	else if (e.action_ == action::OOM)
		put(device, s, BLOCKS_OOM, 0, bytes);
	d->freed = s.allocated_bytes[0].freed;
	d->lock.clear(std::memory_order_release);
}

/* How things stand behind the device's last event, unless another comes meanwhile. */
void tell(uint32_t device, struct device_state *d)
{
	uint32_t events;

	while (d->lock.test_and_set(std::memory_order_acquire))
		;
	events = d->turn == turn.load() ? d->events : 0;
	d->lock.clear(std::memory_order_release);
	if (events == 0)
		return;
	const auto s = caching::get()->getDeviceStats((c10::DeviceIndex)device);
	while (d->lock.test_and_set(std::memory_order_acquire))
		;
	if (d->events == events) {
		settle(device, d, s);
		put(device, s, BLOCKS_STATE, 0, 0);
	}
	d->lock.clear(std::memory_order_release);
}

char words[300];

} // namespace

/* --- ours ----------------------------------------------------------------------------------------- */

EXPORT void protond_blocks_turn(int on)
{
	uint32_t was = turn.load();

	while ((was & 1) != (on != 0) && !turn.compare_exchange_weak(was, was + 1))
		;
}

EXPORT void protond_blocks_tell(void)
{
	if ((turn.load() & 1) != 0)
		for (uint32_t i = 0; i < DEVICES; i++)
			tell(i, &devices[i]);
}

/* Once, when CUDA is in use. NULL, or why not. */
EXPORT const char *protond_blocks_open(const struct blocks_calls *table, uint64_t bytes)
{
	if (bytes != sizeof(calls) || table->bytes != sizeof(calls))
		return "it was built for another protond";
	calls = *table;
	try {
		caching::attachAllocatorTraceTracker([](const auto &e) { on_event(e); });
	} catch (const std::exception &e) {
		strncpy(words, e.what(), sizeof(words) - 1);
		words[strcspn(words, "\n")] = '\0';
		return words;
	}
	return NULL;
}
