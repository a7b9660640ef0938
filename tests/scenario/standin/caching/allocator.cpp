// SPDX-License-Identifier: MIT. Stands in for torch's caching allocator, on no memory at all: segments that are taken, cut into blocks and kept,
// and who is told of it when: statistics move after ALLOC and after FREE_COMPLETED, and before FREE_REQUESTED.
#include <c10/cuda/CUDACachingAllocator.h>

#include <map>
#include <mutex>
#include <vector>

namespace c10::cuda::CUDACachingAllocator
{

static void move(StatArray &a, int64_t by)
{
	Stat &s = a[0];

	s.current += by;
	s.peak = s.current > s.peak ? s.current : s.peak;
	(by > 0 ? s.allocated : s.freed) += by > 0 ? by : -by;
}

struct Block {
	uint64_t size, segment;
	int64_t requested = 0;
	bool used = false;
};

struct Allocator : CUDAAllocator {
	std::recursive_mutex mutex;
	DeviceStats stats;
	std::vector<AllocatorTraceTracker> trackers;
	std::map<uint64_t, Block> blocks; // by address
	uint64_t next = 0x7f0000000000;

	DeviceStats getDeviceStats(DeviceIndex) override
	{
		std::lock_guard<std::recursive_mutex> held(mutex);
		return stats;
	}

	void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override
	{
		std::lock_guard<std::recursive_mutex> held(mutex);
		trackers.push_back(std::move(tracker));
	}

	void tell(TraceEntry::Action action, uint64_t address, int64_t size)
	{
		for (auto &one : trackers)
			one(TraceEntry{action, 0, address, size});
	}

	uint64_t split() const
	{
		uint64_t all = 0;

		for (auto &one : blocks)
			all += !one.second.used && one.second.segment != 0 && one.second.size < segment_size(one.second.segment) ? one.second.size : 0;
		return all;
	}

	static uint64_t segment_size(uint64_t address)
	{
		return (address & 0xfffff) != 0 ? (address & 0xfffff) << 20 : 0;
	}

	void settle_split()
	{
		move(stats.inactive_split_bytes, (int64_t)split() - stats.inactive_split_bytes[0].current);
	}

	uint64_t find(uint64_t size)
	{
		for (auto &one : blocks)
			if (!one.second.used && one.second.size >= size && (size > 1 << 20) == (one.second.size > 1 << 20))
				return one.first;
		const uint64_t mib = size > 1 << 20 ? (size >> 20) + 2 : 2, address = next;

		next += (mib + 2) << 20;
		blocks[address] = Block{mib << 20, mib};
		move(stats.segment, 1);
		move(stats.reserved_bytes, (int64_t)(mib << 20));
		tell(TraceEntry::SEGMENT_ALLOC, address, (int64_t)(mib << 20));
		return address;
	}

	uint64_t alloc(int64_t requested)
	{
		std::lock_guard<std::recursive_mutex> held(mutex);
		const uint64_t size = requested > 512 ? (uint64_t)(requested + 511) / 512 * 512 : 512;

		if (requested > int64_t(1) << 40) {
			stats.num_ooms++;
			tell(TraceEntry::OOM, 0, requested);
			return 0;
		}
		const uint64_t address = find(size);
		Block &b = blocks[address];

		if (b.size - size > (size > 1 << 20 ? 1u << 20 : 511u)) {
			blocks[address + size] = Block{b.size - size, b.segment};
			b.size = size;
		}
		b.used = true;
		b.requested = requested;
		tell(TraceEntry::ALLOC, address, requested);
		move(stats.allocation, 1);
		move(stats.allocated_bytes, (int64_t)b.size);
		move(stats.active_bytes, (int64_t)b.size);
		move(stats.requested_bytes, requested);
		settle_split();
		return address;
	}

	void free(uint64_t address)
	{
		std::lock_guard<std::recursive_mutex> held(mutex);
		Block &b = blocks.at(address);

		move(stats.allocation, -1);
		move(stats.allocated_bytes, -(int64_t)b.size);
		tell(TraceEntry::FREE_REQUESTED, address, b.requested);
		tell(TraceEntry::FREE_COMPLETED, address, b.requested);
		move(stats.active_bytes, -(int64_t)b.size);
		move(stats.requested_bytes, -b.requested);
		b.used = false;
		settle_split();
	}
};

std::atomic<CUDAAllocator *> allocator{new Allocator};

} // namespace c10::cuda::CUDACachingAllocator

using namespace c10::cuda::CUDACachingAllocator;

static Allocator *ours()
{
	return static_cast<Allocator *>(get());
}

extern "C" uint64_t standin_alloc(int64_t bytes)
{
	return ours()->alloc(bytes);
}

extern "C" void standin_free(uint64_t address)
{
	ours()->free(address);
}

// allocated, peak, allocs, alloc bytes, frees, freed bytes, reserved, its peak, active, split, requested, segments, ooms
extern "C" void standin_stats(int64_t *to)
{
	const DeviceStats s = ours()->getDeviceStats(0);
	const int64_t all[] = {s.allocated_bytes[0].current, s.allocated_bytes[0].peak, s.allocation[0].allocated, s.allocated_bytes[0].allocated,
		s.allocation[0].freed, s.allocated_bytes[0].freed, s.reserved_bytes[0].current, s.reserved_bytes[0].peak, s.active_bytes[0].current,
		s.inactive_split_bytes[0].current, s.requested_bytes[0].current, s.segment[0].allocated, s.num_ooms};

	for (int64_t one : all)
		*to++ = one;
}
