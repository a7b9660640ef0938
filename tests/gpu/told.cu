/* SPDX-License-Identifier: MIT. told.cu: steps whose critical path, streams and occupancy are known, with a fault that is planted.
 *
 * told FAULT STEPS: none, low (kernels of which an SM holds one block of four warps), tail (a wave, and a little more), shapes (another
 * grid in each step). In each step two kernels side by side, of 3.0 and 2.9 ms, then one that waits for both, of 1 ms (with a fault
 * longer); the host waits for that. Prints "blocks GRID BLOCK SHARED N" of each launch configuration: what CUDA says an SM holds. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExtCudaRt.h>

#include "protond.h"

#define OK(call)                                                                          \
	do {                                                                              \
		const cudaError_t r_ = (call);                                            \
		if (r_ != cudaSuccess) {                                                  \
			fprintf(stderr, "told: %s: %s\n", #call, cudaGetErrorString(r_)); \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

/* Each block works for so long, from when it begins. */
__device__ static void work(uint64_t ns)
{
	uint64_t begin, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
	do
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	while (now - begin < ns);
}

__global__ void longer_kernel(uint64_t ns)
{
	work(ns);
}

__global__ void shorter_kernel(uint64_t ns)
{
	work(ns);
}

__global__ void after_kernel(uint64_t ns)
{
	work(ns);
}

static void say(const void *kernel, int grid, int block, int shared)
{
	int n;

	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, kernel, block, (size_t)shared));
	printf("blocks %d %d %d %d\n", grid, block, shared, n);
}

int main(int argc, char **argv)
{
	const char *fault = argc > 1 ? argv[1] : "none";
	const int steps = argc > 2 ? atoi(argv[2]) : 40;
	const bool low = strcmp(fault, "low") == 0, tail = strcmp(fault, "tail") == 0,
		   shapes = strcmp(fault, "shapes") == 0;
	const int block = low ? 128 : 512, shared = low ? 150000 : 0;
	cudaStream_t one, two;
	cudaEvent_t done;
	int sms = 0, grid, i, held = 0;

	OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	OK(cudaFuncSetAttribute(after_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 150000));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&held, after_kernel, block, (size_t)shared));
	grid = held * sms + (tail ? sms / 4 : 0);
	OK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	nvtxNameCudaDeviceA(0, "the one");
	nvtxNameCudaStreamA(one, "left");
	nvtxNameCudaStreamA(two, "right");
	say((const void *)longer_kernel, sms, 512, 0);
	say((const void *)shorter_kernel, sms, 512, 0);
	say((const void *)after_kernel, grid, block, shared);
	for (i = 0; i < steps; i++) {
		const int size = shapes ? grid * (1 + i) : grid;
		/* However many waves: the same time. */
		const uint64_t ns = low      ? 20000000
				    : shapes ? 5000000ull / (uint64_t)(1 + i)
					     : 1000000;

		protond_scope_enter(protond_name("step"));
		longer_kernel<<<sms, 512, 0, one>>>(3000000);
		shorter_kernel<<<sms, 512, 0, two>>>(2900000);
		OK(cudaEventRecord(done, one));
		OK(cudaStreamWaitEvent(two, done, 0));
		after_kernel<<<size, block, shared, two>>>(ns);
		OK(cudaStreamSynchronize(two));
		protond_scope_exit();
	}
	OK(cudaGetLastError());
	printf("steps %d\n", steps);
	return 0;
}
