/* SPDX-License-Identifier: MIT. cupti_abi.h: the part of CUPTI's binary interface that we use.
 *
 * Written down here so that no CUDA header is needed to build. Every number is checked against the
 * real headers, where they are installed, by tests/replay/abi.c. Record structs grow only at
 * their end: a field is there when the stride of the loaded library covers it, whatever its version
 * says (version 14 has two kernel strides). docs/cupti.md tells the rest.
 */
#ifndef PROTOND_CUPTI_ABI_H
#define PROTOND_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_INVALID_PARAMETER = 1,
	CUPTI_NOT_INITIALIZED = 15,
	CUPTI_MAX_LIMIT = 12,
	CUPTI_INVALID_STREAM = 20,
	CUPTI_INVALID_KIND = 21,
	CUPTI_HARDWARE_BUSY = 26,
	CUPTI_NOT_SUPPORTED = 27,
	CUPTI_VIRTUALIZED = 33,
	CUPTI_NO_PRIVILEGE = 35,
	CUPTI_OTHER_SUBSCRIBER = 39,
	CUPTI_VIRTUALIZED_NO_PRIVILEGE = 40,
	CUPTI_CONFIDENTIAL = 41,
	CUPTI_WSL = 45,
	CUPTI_UNKNOWN = 999,
};

enum cupti_domain {
	DOMAIN_DRIVER = 1,
	DOMAIN_RUNTIME = 2,
	DOMAIN_RESOURCE = 3,
	DOMAIN_STATE = 6,
};

enum cupti_site { SITE_ENTER = 0, SITE_EXIT = 1 };

enum cupti_kind {
	KIND_MEMCPY = 1,
	KIND_MEMSET = 2,
	KIND_KERNEL = 3,
	KIND_CONCURRENT_KERNEL = 10,
	KIND_OVERHEAD = 17,
	KIND_MEMCPY_PEER = 22,
	KIND_MEMORY = 49, /* MEMORY2 */
	KIND_MEMORY_POOL = 50,
	KIND_MAX = 64,
};
enum cupti_copy {
	CUPTI_COPY_HTOD = 1,
	CUPTI_COPY_DTOH = 2,
	CUPTI_COPY_HTOA = 3,
	CUPTI_COPY_ATOH = 4,
	CUPTI_COPY_ATOA = 5,
	CUPTI_COPY_ATOD = 6,
	CUPTI_COPY_DTOA = 7,
	CUPTI_COPY_DTOD = 8,
	CUPTI_COPY_HTOH = 9,
	CUPTI_COPY_PTOP = 10,
};
enum cupti_memory {
	CUPTI_MEMORY_PAGEABLE = 1,
	CUPTI_MEMORY_PINNED = 2,
	CUPTI_MEMORY_DEVICE = 3,
	CUPTI_MEMORY_ARRAY = 4,
	CUPTI_MEMORY_MANAGED = 5,
	CUPTI_MEMORY_DEVICE_STATIC = 6,
	CUPTI_MEMORY_MANAGED_STATIC = 7,
};
/* CUPTI sets this bit in a record's kind until start and end are filled in (measured). */
#define KIND_INCOMPLETE 0x80000000u

enum cupti_attribute {
	ATTR_ZEROED_OUT = 5, /* uint8_t: buffers come zeroed */
	ATTR_PER_THREAD = 9, /* uint8_t: a buffer per launching thread; 12.3 on */
};
#define THREAD_ID_SYSTEM 1

/* Handles that name a default stream of the thread's context. */
enum cuda_stream { STREAM_DEFAULT = 0, STREAM_LEGACY = 1, STREAM_OF_THREAD = 2 };

enum cupti_resource_cbid {
	RES_CONTEXT_CREATED = 1,
	RES_CONTEXT_DESTROY_STARTING = 2,
	RES_MODULE_UNLOAD_STARTING = 7,
	RES_GRAPH_DESTROY_STARTING = 10,
	RES_NODE_CREATED = 13,
	RES_NODE_DESTROY_STARTING = 14,
	RES_EXEC_CREATED = 18,
	RES_EXEC_DESTROY_STARTING = 19,
	RES_NODE_CLONED = 20,
};
enum cupti_state_cbid { STATE_FATAL_ERROR = 1 };

enum cuda_result {
	CUDA_OK = 0,
	CUDA_INVALID_VALUE = 1,
	CUDA_INVALID_HANDLE = 400,
	CUDA_ILLEGAL_STATE = 401,
	CUDA_NOT_READY = 600, /* what a query says, and no error */
	CUDA_CAPTURE_UNMATCHED = 903,
	CUDA_CAPTURE_WRONG_THREAD = 908,
};

/* Driver API calls that launch something: X(name, number, flags of LAUNCH). A number that a library
 * does not know is refused by it and left out. */
/* clang-format off */
#define LAUNCH_CBIDS(X)                                                                             \
	X(cuLaunch, 115, 0) X(cuLaunchGrid, 116, 0) X(cuLaunchGridAsync, 117, 0)                     \
	X(cuLaunchKernel, 307, 0) X(cuLaunchKernel_ptsz, 442, 0)                                     \
	X(cuLaunchCooperativeKernel, 477, 0) X(cuLaunchCooperativeKernel_ptsz, 478, 0)               \
	X(cuLaunchCooperativeKernelMultiDevice, 480, LAUNCH_GRAPH)                                   \
	X(cuLaunchKernelEx, 652, 0) X(cuLaunchKernelEx_ptsz, 653, 0)                                 \
	X(cuGraphLaunch, 514, LAUNCH_GRAPH) X(cuGraphLaunch_ptsz, 515, LAUNCH_GRAPH)
/* Their parameters begin with a destination, a source or a value, and how much: LINEAR_COUNT. */
#define LINEAR_COPY_CBIDS(X)                                                                        \
	X(cuMemcpyHtoD_v2, 276) X(cuMemcpyHtoDAsync_v2, 277) X(cuMemcpyDtoH_v2, 278)                \
	X(cuMemcpyDtoHAsync_v2, 279) X(cuMemcpyDtoD_v2, 280) X(cuMemcpyDtoDAsync_v2, 281)           \
	X(cuMemcpy, 305) X(cuMemcpyAsync, 306) X(cuMemcpyHtoD_v2_ptds, 397)                         \
	X(cuMemcpyDtoH_v2_ptds, 398) X(cuMemcpyDtoD_v2_ptds, 399) X(cuMemcpy_ptds, 408)             \
	X(cuMemcpyAsync_ptsz, 418) X(cuMemcpyHtoDAsync_v2_ptsz, 421)                                \
	X(cuMemcpyDtoHAsync_v2_ptsz, 422) X(cuMemcpyDtoDAsync_v2_ptsz, 423)
#define LINEAR_SET_CBIDS(X)                                                                         \
	X(cuMemsetD8Async, 216) X(cuMemsetD16Async, 218) X(cuMemsetD32Async, 220)                   \
	X(cuMemsetD8_v2, 249) X(cuMemsetD16_v2, 250) X(cuMemsetD32_v2, 251)                         \
	X(cuMemsetD8_v2_ptds, 411) X(cuMemsetD16_v2_ptds, 412) X(cuMemsetD32_v2_ptds, 413)          \
	X(cuMemsetD8Async_ptsz, 428) X(cuMemsetD16Async_ptsz, 429) X(cuMemsetD32Async_ptsz, 430)
#define COPY_CBIDS(X)                                                                               \
	LINEAR_COPY_CBIDS(X) X(cuMemcpyAtoH_v2, 282) X(cuMemcpyAtoHAsync_v2, 283)                   \
	X(cuMemcpyAtoD_v2, 284) X(cuMemcpyDtoA_v2, 285) X(cuMemcpyAtoA_v2, 286)                     \
	X(cuMemcpy2D_v2, 287) X(cuMemcpy2DUnaligned_v2, 288) X(cuMemcpy2DAsync_v2, 289)             \
	X(cuMemcpy3D_v2, 290) X(cuMemcpy3DAsync_v2, 291) X(cuMemcpyHtoA_v2, 292)                    \
	X(cuMemcpyHtoAAsync_v2, 293) X(cuMemcpyPeer, 318) X(cuMemcpyPeerAsync, 319)                 \
	X(cuMemcpy3DPeer, 320) X(cuMemcpy3DPeerAsync, 321) X(cuMemcpyDtoA_v2_ptds, 400)             \
	X(cuMemcpyAtoD_v2_ptds, 401) X(cuMemcpyHtoA_v2_ptds, 402) X(cuMemcpyAtoH_v2_ptds, 403)      \
	X(cuMemcpyAtoA_v2_ptds, 404) X(cuMemcpy2D_v2_ptds, 405)                                     \
	X(cuMemcpy2DUnaligned_v2_ptds, 406) X(cuMemcpy3D_v2_ptds, 407) X(cuMemcpyPeer_ptds, 409)    \
	X(cuMemcpy3DPeer_ptds, 410) X(cuMemcpyHtoAAsync_v2_ptsz, 419)                               \
	X(cuMemcpyAtoHAsync_v2_ptsz, 420) X(cuMemcpy2DAsync_v2_ptsz, 424)                           \
	X(cuMemcpy3DAsync_v2_ptsz, 425) X(cuMemcpyPeerAsync_ptsz, 426)                              \
	X(cuMemcpy3DPeerAsync_ptsz, 427)
/* One call, many copies under one correlation id. */
#define BATCH_CBIDS(X)                                                                              \
	X(cuMemcpyBatchAsync, 776) X(cuMemcpyBatchAsync_ptsz, 777) X(cuMemcpy3DBatchAsync, 778)      \
	X(cuMemcpy3DBatchAsync_ptsz, 779) X(cuMemcpyBatchAsync_v2, 796)                              \
	X(cuMemcpyBatchAsync_v2_ptsz, 797) X(cuMemcpy3DBatchAsync_v2, 798)                           \
	X(cuMemcpy3DBatchAsync_v2_ptsz, 799)
#define SET_CBIDS(X)                                                                                \
	LINEAR_SET_CBIDS(X) X(cuMemsetD2D8Async, 222) X(cuMemsetD2D16Async, 224)                    \
	X(cuMemsetD2D32Async, 226) X(cuMemsetD2D8_v2, 252) X(cuMemsetD2D16_v2, 253)                 \
	X(cuMemsetD2D32_v2, 254) X(cuMemsetD2D8_v2_ptds, 414) X(cuMemsetD2D16_v2_ptds, 415)         \
	X(cuMemsetD2D32_v2_ptds, 416) X(cuMemsetD2D8Async_ptsz, 431)                                \
	X(cuMemsetD2D16Async_ptsz, 432) X(cuMemsetD2D32Async_ptsz, 433)
#define CAPTURE_CBIDS(X)                                                                            \
	X(cuStreamBeginCapture, 495, 1) X(cuStreamBeginCapture_ptsz, 496, 1)                         \
	X(cuStreamBeginCapture_v2, 539, 1) X(cuStreamBeginCapture_v2_ptsz, 540, 1)                   \
	X(cuStreamBeginCaptureToGraph, 720, 1) X(cuStreamBeginCaptureToGraph_ptsz, 721, 1)           \
	X(cuStreamEndCapture, 497, 0) X(cuStreamEndCapture_ptsz, 498, 0)
/* clang-format on */
/* Those of them that come back when the copy is done. */
/* clang-format off */
#define BLOCKING_COPY_CBIDS(X)                                                                      \
	X(cuMemcpyHtoD_v2, 276) X(cuMemcpyDtoH_v2, 278) X(cuMemcpyAtoH_v2, 282)                     \
	X(cuMemcpy2D_v2, 287) X(cuMemcpy2DUnaligned_v2, 288) X(cuMemcpy3D_v2, 290)                  \
	X(cuMemcpyHtoA_v2, 292) X(cuMemcpy, 305) X(cuMemcpyHtoD_v2_ptds, 397)                       \
	X(cuMemcpyDtoH_v2_ptds, 398) X(cuMemcpyHtoA_v2_ptds, 402) X(cuMemcpyAtoH_v2_ptds, 403)      \
	X(cuMemcpy2D_v2_ptds, 405) X(cuMemcpy2DUnaligned_v2_ptds, 406) X(cuMemcpy3D_v2_ptds, 407)   \
	X(cuMemcpy_ptds, 408)
/* Calls that wait, or tell the GPU what to wait for: X(name, number, class, offset of the stream in
 * its parameters, of the event). The runtime's own calls are known as such, for what they call of
 * the driver is not always told. */
#define NOT_THERE 255
#define DRIVER_CALL_CBIDS(X)                                                                        \
	X(cuCtxSynchronize, 17, DEVICE_SYNC, NOT_THERE, NOT_THERE)                                  \
	X(cuCtxSynchronize_v2, 800, DEVICE_SYNC, NOT_THERE, NOT_THERE)                              \
	X(cuStreamSynchronize, 126, STREAM_SYNC, 0, NOT_THERE)                                      \
	X(cuStreamSynchronize_ptsz, 440, STREAM_SYNC, 0, NOT_THERE)                                 \
	X(cuEventSynchronize, 121, EVENT_SYNC, NOT_THERE, 0)                                        \
	X(cuStreamWaitEvent, 295, STREAM_WAIT, 0, 8) X(cuStreamWaitEvent_ptsz, 436, STREAM_WAIT, 0, 8) \
	X(cuEventRecord, 119, EVENT_RECORD, 8, 0) X(cuEventRecord_ptsz, 441, EVENT_RECORD, 8, 0)    \
	X(cuEventRecordWithFlags, 587, EVENT_RECORD, 8, 0)                                          \
	X(cuEventRecordWithFlags_ptsz, 588, EVENT_RECORD, 8, 0)                                     \
	X(cuMemAlloc_v2, 243, ALLOC, NOT_THERE, NOT_THERE)                                          \
	X(cuMemAllocPitch_v2, 244, ALLOC, NOT_THERE, NOT_THERE)                                     \
	X(cuMemAllocManaged, 371, ALLOC, NOT_THERE, NOT_THERE)                                      \
	X(cuMemFree_v2, 245, FREE, NOT_THERE, NOT_THERE)                                            \
	X(cuMemHostAlloc, 39, REGISTER, NOT_THERE, NOT_THERE)                                       \
	X(cuMemHostAlloc_v2, 271, REGISTER, NOT_THERE, NOT_THERE)                                   \
	X(cuMemAllocHost_v2, 294, REGISTER, NOT_THERE, NOT_THERE)                                   \
	X(cuMemFreeHost, 38, REGISTER, NOT_THERE, NOT_THERE)                                        \
	X(cuMemHostRegister_v2, 379, REGISTER, NOT_THERE, NOT_THERE)                                \
	X(cuMemHostUnregister, 302, REGISTER, NOT_THERE, NOT_THERE)
#define RUNTIME_CALL_CBIDS(X)                                                                       \
	X(cudaDeviceSynchronize_v3020, 165, DEVICE_SYNC, NOT_THERE, NOT_THERE)                      \
	X(cudaStreamSynchronize_v3020, 131, STREAM_SYNC, 0, NOT_THERE)                              \
	X(cudaStreamSynchronize_ptsz_v7000, 239, STREAM_SYNC, 0, NOT_THERE)                         \
	X(cudaEventSynchronize_v3020, 137, EVENT_SYNC, NOT_THERE, 0)                                \
	X(cudaStreamWaitEvent_v3020, 147, STREAM_WAIT, 0, 8)                                        \
	X(cudaStreamWaitEvent_ptsz_v7000, 247, STREAM_WAIT, 0, 8)                                   \
	X(cudaEventRecord_v3020, 135, EVENT_RECORD, 8, 0)                                           \
	X(cudaEventRecord_ptsz_v7000, 242, EVENT_RECORD, 8, 0)                                      \
	X(cudaMalloc_v3020, 20, ALLOC, NOT_THERE, NOT_THERE)                                        \
	X(cudaMallocPitch_v3020, 21, ALLOC, NOT_THERE, NOT_THERE)                                   \
	X(cudaMallocManaged_v6000, 206, ALLOC, NOT_THERE, NOT_THERE)                                \
	X(cudaFree_v3020, 22, FREE, NOT_THERE, NOT_THERE)                                           \
	X(cudaMallocHost_v3020, 25, REGISTER, NOT_THERE, NOT_THERE)                                 \
	X(cudaHostAlloc_v3020, 27, REGISTER, NOT_THERE, NOT_THERE)                                  \
	X(cudaFreeHost_v3020, 26, REGISTER, NOT_THERE, NOT_THERE)                                   \
	X(cudaHostRegister_v4000, 152, REGISTER, NOT_THERE, NOT_THERE)                              \
	X(cudaHostUnregister_v4000, 153, REGISTER, NOT_THERE, NOT_THERE)
/* Calls that allocate or free and wait for nothing: X(name, number, class). */
#define DRIVER_MEMORY_CBIDS(X)                                                                      \
	X(cuMemAllocAsync, 598, ALLOC) X(cuMemAllocAsync_ptsz, 599, ALLOC)                          \
	X(cuMemAllocFromPoolAsync, 611, ALLOC) X(cuMemAllocFromPoolAsync_ptsz, 612, ALLOC)          \
	X(cuMemFreeAsync, 600, FREE) X(cuMemFreeAsync_ptsz, 601, FREE)                              \
	X(cuMemPoolTrimTo, 602, FREE) X(cuMemPoolCreate, 607, ALLOC) X(cuMemPoolDestroy, 608, FREE) \
	X(cuMemCreate, 549, ALLOC) X(cuMemRelease, 550, FREE)                                       \
	X(cuMemMap, 551, ALLOC) X(cuMemUnmap, 552, FREE)                                            \
	X(cuArrayCreate_v2, 272, ALLOC) X(cuArray3DCreate_v2, 274, ALLOC)                           \
	X(cuArrayDestroy, 89, FREE) X(cuMipmappedArrayCreate, 347, ALLOC)                           \
	X(cuMipmappedArrayDestroy, 349, FREE)
#define RUNTIME_MEMORY_CBIDS(X)                                                                     \
	X(cudaMallocAsync_v11020, 373, ALLOC) X(cudaMallocAsync_ptsz_v11020, 374, ALLOC)            \
	X(cudaMallocFromPoolAsync_v11020, 391, ALLOC)                                               \
	X(cudaMallocFromPoolAsync_ptsz_v11020, 392, ALLOC)                                          \
	X(cudaFreeAsync_v11020, 375, FREE) X(cudaFreeAsync_ptsz_v11020, 376, FREE)                  \
	X(cudaMemPoolTrimTo_v11020, 377, FREE) X(cudaMemPoolCreate_v11020, 383, ALLOC)              \
	X(cudaMemPoolDestroy_v11020, 384, FREE) X(cudaMalloc3D_v3020, 140, ALLOC)                   \
	X(cudaMallocArray_v3020, 23, ALLOC) X(cudaMalloc3DArray_v3020, 141, ALLOC)                  \
	X(cudaMallocMipmappedArray_v5000, 192, ALLOC) X(cudaFreeArray_v3020, 24, FREE)              \
	X(cudaFreeMipmappedArray_v5000, 194, FREE)
/* Runtime calls whose result does not say how they went: X(name, number). */
#define RESULT_ELSE_CBIDS(X)                                                                        \
	X(cudaCreateChannelDesc_v3020, 7) X(cudaGetLastError_v3020, 10)                             \
	X(cudaPeekAtLastError_v3020, 11) X(cudaGetErrorString_v3020, 12)
/* Calls that only read what the process knows, and what the runtime's of them call of the driver: so
 * many and so short that to know them costs more than they do. X(name, number). */
#define RUNTIME_READ_CBIDS(X)                                                                       \
	X(cudaGetLastError_v3020, 10) X(cudaPeekAtLastError_v3020, 11) X(cudaGetDevice_v3020, 17)   \
	X(cudaDeviceGetAttribute_v5000, 200)
#define DRIVER_READ_CBIDS(X)                                                                        \
	X(cuDeviceGetAttribute, 9) X(cuCtxGetDevice, 16) X(cuCtxGetCurrent, 304)                    \
	X(cuDevicePrimaryCtxGetState, 392) X(cuKernelGetAttribute, 686) X(cuCtxGetDevice_v2, 795)
/* clang-format on */
#define CBID_MAX     1024u
#define LINEAR_COUNT 16u /* offset */

/* What CUPTI hands to a callback of the driver's domain or the runtime's. */
struct cupti_callback {
	uint32_t site; /* enum cupti_site */
	uint32_t pad0;
	const char *function;
	const void *params;
	const void *ret_value; /* CUresult, valid at SITE_EXIT */
	const char *symbol;    /* the kernel's name, or NULL */
	void *context;
	uint32_t context_uid;
	uint32_t pad1;
	uint64_t *correlation_data; /* ours, from ENTER to EXIT of one call */
	uint32_t correlation;
	uint32_t pad2;
};
_Static_assert(sizeof(struct cupti_callback) == 72, "CUPTI ABI");

struct cupti_resource {
	void *context;
	void *handle;
	void *descriptor; /* struct cupti_graph for the graph callbacks */
};

struct cupti_graph {
	void *graph, *original_graph;
	void *node, *original_node;
	int32_t node_type, pad0;
	void *dependency;
	void *exec;
};
_Static_assert(sizeof(struct cupti_graph) == 56, "CUPTI ABI");

struct cupti_state {
	int32_t result, pad0;
	const char *message;
};

/* Offsets in activity records; a comment gives the stride from which a field is there. */
enum record_kernel {
	K_REGISTERS = 6, /* uint16_t */
	K_START = 16,
	K_END = 24,
	K_DEVICE = 40,
	K_CONTEXT = 44,
	K_STREAM = 48,
	K_GRID = 52,
	K_BLOCK = 64,
	K_STATIC_SHARED = 76,
	K_DYNAMIC_SHARED = 80,
	K_LOCAL_PER_THREAD = 84,
	K_CORRELATION = 92,
	K_NAME = 104,
	K_MIN = 144,
	K_GRAPH_NODE = 144, /* 160 */
	K_GRAPH = 156,      /* 160; the executable graph's id, whatever it is called */
	K_GRAPH_STRIDE = 160,
};

enum record_copy {
	C_KIND = 4,
	C_SRC = 5,
	C_DST = 6,
	C_BYTES = 8,
	C_START = 16,
	C_END = 24,
	C_DEVICE = 32,
	C_CONTEXT = 36,
	C_STREAM = 40,
	C_CORRELATION = 44,
	C_MIN = 64,
	C_GRAPH_NODE = 64,
	C_GRAPH_NODE_STRIDE = 72,
	C_GRAPH = 72,
	C_GRAPH_STRIDE = 80,
};

enum record_peer {
	P_SRC_DEVICE = 44,
	P_DST_DEVICE = 52,
	P_CORRELATION = 60,
	P_MIN = 72,
	P_GRAPH_NODE = 72,
	P_GRAPH_NODE_STRIDE = 80,
	P_GRAPH = 80,
	P_GRAPH_STRIDE = 88,
};

enum record_overhead {
	O_KIND = 4,
	O_OBJECT_KIND = 8,
	O_THREAD = 16, /* of OBJECT_THREAD: its process comes before */
	O_START = 24,
	O_END = 32,
	O_MIN = 40,
	O_CORRELATION = 40, /* 48 */
	O_CORRELATION_STRIDE = 48,
};
#define OBJECT_THREAD 2u
/* X(name, number, class) of a record's kind; any other is OVERHEAD. */
/* clang-format off */
#define OVERHEAD_KINDS(X)                                                                           \
	X(DRIVER_COMPILER, 1, COMPILE) X(CUPTI_BUFFER_FLUSH, 1 << 16, BUFFER_FLUSH)                 \
	X(CUPTI_INSTRUMENTATION, 2 << 16, INSTRUMENT) X(CUPTI_RESOURCE, 3 << 16, RESOURCE)          \
	X(RUNTIME_TRIGGERED_MODULE_LOADING, 4 << 16, MODULE_LOAD)                                   \
	X(LAZY_FUNCTION_LOADING, 5 << 16, LAZY_LOAD) X(COMMAND_BUFFER_FULL, 6 << 16, QUEUE_FULL)    \
	X(ACTIVITY_BUFFER_REQUEST, 7 << 16, BUFFER_ASK) X(UVM_ACTIVITY_INIT, 8 << 16, UVM_INIT)
/* clang-format on */

enum record_memory {
	M_OPERATION = 4,
	M_KIND = 8,
	M_CORRELATION = 12,
	M_ADDRESS = 16,
	M_BYTES = 24,
	M_TIME = 32,
	M_DEVICE = 52,
	M_CONTEXT = 56,
	M_STREAM = 60,
	M_ASYNC = 72,
	M_MIN = 112,
	M_POOL_TYPE = 80,
	M_POOL = 88,
	M_POOL_SIZE = 104, /* of POOL_LOCAL; likewise: */
	M_POOL_USED = 112, /* 120 */
	M_POOL_USED_STRIDE = 120,
};
#define MEMORY_ALLOCATION 1u
#define MEMORY_RELEASE    2u
#define POOL_LOCAL        1u

enum record_pool {
	PO_OPERATION = 4,
	PO_TYPE = 8,
	PO_CORRELATION = 12,
	PO_DEVICE = 20,
	PO_ADDRESS = 32,
	PO_SIZE = 40,
	PO_TIME = 56,
	PO_MIN = 64,
	PO_USED = 64, /* 72 */
	PO_USED_STRIDE = 72,
};
#define POOL_CREATED   1u
#define POOL_DESTROYED 2u
#define POOL_TRIMMED   3u

enum record_set {
	S_BYTES = 8,
	S_START = 16,
	S_END = 24,
	S_DEVICE = 32,
	S_CONTEXT = 36,
	S_STREAM = 40,
	S_CORRELATION = 44,
	S_MEMORY_KIND = 50, /* uint16_t */
	S_MIN = 64,
	S_GRAPH_NODE = 64,
	S_GRAPH_NODE_STRIDE = 72,
	S_GRAPH = 72,
	S_GRAPH_STRIDE = 80,
};

typedef void cupti_callback_fn(void *user, uint32_t domain, uint32_t cbid, const void *data);
typedef void cupti_request_fn(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records);
typedef void cupti_complete_fn(
	void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid);

/* Functions: X(field, symbol, required, parameters). */
/* clang-format off */
#define CUPTI_SYMBOLS(X)                                                                            \
	X(get_version,       "cuptiGetVersion",                   1, (uint32_t *))                    \
	X(subscribe,         "cuptiSubscribe",                    1, (void **, cupti_callback_fn *, void *)) \
	X(unsubscribe,       "cuptiUnsubscribe",                  1, (void *))                        \
	X(enable_callback,   "cuptiEnableCallback",               1, (uint32_t, void *, uint32_t, uint32_t)) \
	X(enable_domain,     "cuptiEnableDomain",                 1, (uint32_t, void *, uint32_t))    \
	X(activity_enable,   "cuptiActivityEnable",               1, (uint32_t))                      \
	X(activity_disable,  "cuptiActivityDisable",              1, (uint32_t))                      \
	X(register_buffers,  "cuptiActivityRegisterCallbacks",    1, (cupti_request_fn *, cupti_complete_fn *)) \
	X(flush_all,         "cuptiActivityFlushAll",             1, (uint32_t))                      \
	X(next_record,       "cuptiActivityGetNextRecord",        1, (uint8_t *, size_t, void **))    \
	X(dropped_records,   "cuptiActivityGetNumDroppedRecords", 1, (void *, uint32_t, size_t *))    \
	X(set_attribute,     "cuptiActivitySetAttribute",         1, (uint32_t, size_t *, void *))    \
	X(thread_id_type,    "cuptiSetThreadIdType",              0, (uint32_t))                      \
	X(finalize,          "cuptiFinalize",                     0, (void))                          \
	X(stream_id,         "cuptiGetStreamIdEx",                0, (void *, void *, uint8_t, uint32_t *)) \
	X(context_id,        "cuptiGetContextId",                 0, (void *, uint32_t *))            \
	X(graph_node_id,     "cuptiGetGraphNodeId",               0, (void *, uint64_t *))            \
	X(graph_id,          "cuptiGetGraphId",                   0, (void *, uint32_t *))            \
	X(graph_exec_id,     "cuptiGetGraphExecId",               0, (void *, uint32_t *))

/* The driver's, for facts about devices: X(field, symbol, parameters). */
#define DRIVER_SYMBOLS(X)                                                                           \
	X(version,     "cuDriverGetVersion",    (int *))                                             \
	X(device,      "cuDeviceGet",           (int *, int))                                        \
	X(device_uuid, "cuDeviceGetUuid_v2",    (uint8_t *, int))                                    \
	X(context_device, "cuCtxGetDevice",   (int *))                                               \
	X(context,     "cuCtxGetCurrent",       (void **))                                           \
	X(device_attr, "cuDeviceGetAttribute",  (int *, int, int))                                   \
	X(device_name, "cuDeviceGetName",       (char *, int, int))                                  \
	X(device_mem,  "cuDeviceTotalMem_v2",   (size_t *, int))
/* clang-format on */

enum device_attribute {
	DEV_CLOCK = 13,
	DEV_SMS = 16,
	DEV_PCI_BUS = 33,
	DEV_PCI_DEVICE = 34,
	DEV_MEMORY_CLOCK = 36,
	DEV_BUS_WIDTH = 37,
	DEV_PCI_DOMAIN = 50,
	DEV_MAJOR = 75,
	DEV_MINOR = 76,
};

struct cupti_api {
#define X(field, symbol, required, params) int(*field) params;
	CUPTI_SYMBOLS(X)
#undef X
};

struct cuda_api {
#define X(field, symbol, params) int(*field) params;
	DRIVER_SYMBOLS(X)
#undef X
};

#endif
