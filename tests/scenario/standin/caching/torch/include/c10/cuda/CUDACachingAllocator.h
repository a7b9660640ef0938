/* SPDX-License-Identifier: MIT. Stands in for torch's header: of the caching allocator, what tells of its blocks. */
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

namespace c10
{
using DeviceIndex = int8_t;
namespace cuda::CUDACachingAllocator
{
struct Stat {
	int64_t current = 0, peak = 0, allocated = 0, freed = 0;
};
using StatArray = std::array<Stat, 3>;
struct DeviceStats {
	StatArray allocation, segment, active, inactive_split;
	StatArray allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes,
		requested_bytes;
	int64_t num_ooms = 0;
};
struct TraceEntry {
	enum Action {
		ALLOC,
		FREE_REQUESTED,
		FREE_COMPLETED,
		SEGMENT_ALLOC,
		SEGMENT_FREE,
		SEGMENT_MAP,
		SEGMENT_UNMAP,
		SNAPSHOT,
		OOM
	};
	Action action_;
	DeviceIndex device_;
	size_t addr_;
	int64_t size_;
};
using AllocatorTraceTracker = std::function<void(const TraceEntry &)>;
struct CUDAAllocator {
	virtual ~CUDAAllocator() = default;
	virtual DeviceStats getDeviceStats(DeviceIndex device) = 0;
	virtual void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) = 0;
};
extern std::atomic<CUDAAllocator *> allocator;
inline CUDAAllocator *get()
{
	return allocator.load();
}
inline void attachAllocatorTraceTracker(AllocatorTraceTracker tracker)
{
	get()->attachAllocatorTraceTracker(std::move(tracker));
}
} // namespace cuda::CUDACachingAllocator
} // namespace c10
