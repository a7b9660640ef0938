/* SPDX-License-Identifier: MIT. abi.c: our own numbers of CUPTI against its real headers (12.8
 * to 13.0). Compiles or does not; `make check` tries where the headers are installed. */
#include <stddef.h>
#include <stdint.h>

#include <cuda.h>
#include <cupti.h>

#include "../../agent/backend/cupti/cupti_abi.h"
#include "../../proto/abi/record.h"

#define SAME(a, b)            _Static_assert((size_t)(a) == (size_t)(b), #a " is " #b)
#define AT(ours, type, field) SAME(ours, offsetof(type, field))

#define X(name, number, flags) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
LAUNCH_CBIDS(X)
CAPTURE_CBIDS(X)
#undef X
#define X(name, number) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
COPY_CBIDS(X)
BATCH_CBIDS(X)
SET_CBIDS(X)
#undef X
#define X(name, number) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
BLOCKING_COPY_CBIDS(X)
#undef X
#define X(name, number, class, stream, event) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
DRIVER_CALL_CBIDS(X)
#undef X
#define X(name, number, class, stream, event) SAME(number, CUPTI_RUNTIME_TRACE_CBID_##name);
RUNTIME_CALL_CBIDS(X)
#undef X
#define X(name, number, class) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
DRIVER_MEMORY_CBIDS(X)
#undef X
#define X(name, number, class) SAME(number, CUPTI_RUNTIME_TRACE_CBID_##name);
RUNTIME_MEMORY_CBIDS(X)
#undef X
#define X(name, number) SAME(number, CUPTI_RUNTIME_TRACE_CBID_##name);
RESULT_ELSE_CBIDS(X)
RUNTIME_READ_CBIDS(X)
#undef X
#define X(name, number) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
DRIVER_READ_CBIDS(X)
#undef X
SAME(CUDA_NOT_READY, CUDA_ERROR_NOT_READY);
SAME(STREAM_LEGACY, CU_STREAM_LEGACY);
SAME(STREAM_OF_THREAD, CU_STREAM_PER_THREAD);
AT(0, cuStreamSynchronize_params, hStream);
AT(0, cuEventSynchronize_params, hEvent);
AT(0, cuStreamWaitEvent_params, hStream);
AT(8, cuStreamWaitEvent_params, hEvent);
AT(0, cuEventRecord_params, hEvent);
AT(8, cuEventRecord_params, hStream);
AT(8, cuEventRecordWithFlags_params, hStream);
AT(0, cudaStreamWaitEvent_v3020_params, stream);
AT(8, cudaStreamWaitEvent_v3020_params, event);
AT(0, cudaEventRecord_v3020_params, event);
AT(8, cudaEventRecord_v3020_params, stream);
AT(0, cudaStreamSynchronize_v3020_params, stream);
AT(0, cudaEventSynchronize_v3020_params, event);
#define X(name, number) AT(LINEAR_COUNT, name##_params, ByteCount);
LINEAR_COPY_CBIDS(X)
#undef X
#define X(name, number) AT(LINEAR_COUNT, name##_params, N);
LINEAR_SET_CBIDS(X)
#undef X

SAME(CUPTI_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(CUPTI_INVALID_STREAM, CUPTI_ERROR_INVALID_STREAM);
SAME(CUPTI_INVALID_KIND, CUPTI_ERROR_INVALID_KIND);
SAME(CUPTI_MAX_LIMIT, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(CUPTI_HARDWARE_BUSY, CUPTI_ERROR_HARDWARE_BUSY);
SAME(CUPTI_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED);
SAME(CUPTI_VIRTUALIZED, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
SAME(CUPTI_NO_PRIVILEGE, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(CUPTI_OTHER_SUBSCRIBER, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(CUPTI_VIRTUALIZED_NO_PRIVILEGE, CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
SAME(CUPTI_CONFIDENTIAL, CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED);
SAME(CUPTI_WSL, CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED);
SAME(CUPTI_UNKNOWN, CUPTI_ERROR_UNKNOWN);

SAME(DOMAIN_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API);
SAME(DOMAIN_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API);
SAME(DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
SAME(DOMAIN_STATE, CUPTI_CB_DOMAIN_STATE);
SAME(SITE_ENTER, CUPTI_API_ENTER);
SAME(SITE_EXIT, CUPTI_API_EXIT);
SAME(STATE_FATAL_ERROR, CUPTI_CBID_STATE_FATAL_ERROR);

SAME(KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(KIND_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(KIND_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(KIND_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(CUPTI_COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(CUPTI_COPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(CUPTI_COPY_HTOA, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA);
SAME(CUPTI_COPY_ATOH, CUPTI_ACTIVITY_MEMCPY_KIND_ATOH);
SAME(CUPTI_COPY_ATOA, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA);
SAME(CUPTI_COPY_ATOD, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD);
SAME(CUPTI_COPY_DTOA, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA);
SAME(CUPTI_COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(CUPTI_COPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME(CUPTI_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
SAME(CUPTI_MEMORY_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
SAME(CUPTI_MEMORY_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
SAME(CUPTI_MEMORY_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
SAME(CUPTI_MEMORY_ARRAY, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY);
SAME(CUPTI_MEMORY_MANAGED, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
SAME(CUPTI_MEMORY_DEVICE_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC);
SAME(CUPTI_MEMORY_MANAGED_STATIC, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC);
SAME(ATTR_ZEROED_OUT, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
SAME(ATTR_PER_THREAD, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER);
SAME(THREAD_ID_SYSTEM, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);

SAME(RES_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
SAME(RES_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
SAME(RES_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
SAME(RES_GRAPH_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING);
SAME(RES_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
SAME(RES_NODE_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING);
SAME(RES_EXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED);
SAME(RES_EXEC_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING);
SAME(RES_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

SAME(CUDA_ILLEGAL_STATE, CUDA_ERROR_ILLEGAL_STATE);
SAME(CUDA_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(CUDA_CAPTURE_UNMATCHED, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
SAME(CUDA_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);

SAME(sizeof(struct cupti_callback), sizeof(CUpti_CallbackData));
SAME(offsetof(struct cupti_callback, ret_value), offsetof(CUpti_CallbackData, functionReturnValue));
SAME(offsetof(struct cupti_callback, symbol), offsetof(CUpti_CallbackData, symbolName));
SAME(offsetof(struct cupti_callback, context), offsetof(CUpti_CallbackData, context));
SAME(offsetof(struct cupti_callback, context_uid), offsetof(CUpti_CallbackData, contextUid));
SAME(offsetof(struct cupti_callback, correlation_data),
	offsetof(CUpti_CallbackData, correlationData));
SAME(offsetof(struct cupti_callback, correlation), offsetof(CUpti_CallbackData, correlationId));
SAME(sizeof(struct cupti_graph), sizeof(CUpti_GraphData));
SAME(offsetof(struct cupti_graph, node), offsetof(CUpti_GraphData, node));
SAME(offsetof(struct cupti_graph, original_node), offsetof(CUpti_GraphData, originalNode));
SAME(offsetof(struct cupti_graph, exec), offsetof(CUpti_GraphData, graphExec));
SAME(offsetof(struct cupti_resource, descriptor), offsetof(CUpti_ResourceData, resourceDescriptor));

AT(K_REGISTERS, CUpti_ActivityKernel10, registersPerThread);
AT(K_START, CUpti_ActivityKernel10, start);
AT(K_END, CUpti_ActivityKernel10, end);
AT(K_DEVICE, CUpti_ActivityKernel10, deviceId);
AT(K_CONTEXT, CUpti_ActivityKernel10, contextId);
AT(K_STREAM, CUpti_ActivityKernel10, streamId);
AT(K_GRID, CUpti_ActivityKernel10, gridX);
AT(K_BLOCK, CUpti_ActivityKernel10, blockX);
AT(K_STATIC_SHARED, CUpti_ActivityKernel10, staticSharedMemory);
AT(K_DYNAMIC_SHARED, CUpti_ActivityKernel10, dynamicSharedMemory);
AT(K_LOCAL_PER_THREAD, CUpti_ActivityKernel10, localMemoryPerThread);
AT(K_CORRELATION, CUpti_ActivityKernel10, correlationId);
AT(K_NAME, CUpti_ActivityKernel10, name);
AT(K_GRAPH_NODE, CUpti_ActivityKernel10, graphNodeId);
AT(K_GRAPH, CUpti_ActivityKernel10, graphId);

AT(C_KIND, CUpti_ActivityMemcpy6, copyKind);
AT(C_SRC, CUpti_ActivityMemcpy6, srcKind);
AT(C_DST, CUpti_ActivityMemcpy6, dstKind);
AT(C_BYTES, CUpti_ActivityMemcpy6, bytes);
AT(C_START, CUpti_ActivityMemcpy6, start);
AT(C_DEVICE, CUpti_ActivityMemcpy6, deviceId);
AT(C_STREAM, CUpti_ActivityMemcpy6, streamId);
AT(C_CORRELATION, CUpti_ActivityMemcpy6, correlationId);
AT(C_GRAPH_NODE, CUpti_ActivityMemcpy6, graphNodeId);
AT(C_GRAPH, CUpti_ActivityMemcpy6, graphId);

AT(C_START, CUpti_ActivityMemcpyPtoP4, start);
AT(C_DEVICE, CUpti_ActivityMemcpyPtoP4, deviceId);
AT(P_SRC_DEVICE, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
AT(P_DST_DEVICE, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
AT(P_CORRELATION, CUpti_ActivityMemcpyPtoP4, correlationId);
AT(P_GRAPH_NODE, CUpti_ActivityMemcpyPtoP4, graphNodeId);
AT(P_GRAPH, CUpti_ActivityMemcpyPtoP4, graphId);

SAME(KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
SAME(OBJECT_THREAD, CUPTI_ACTIVITY_OBJECT_THREAD);
#define X(name, number, class) SAME(number, CUPTI_ACTIVITY_OVERHEAD_##name);
OVERHEAD_KINDS(X)
#undef X
AT(O_KIND, CUpti_ActivityOverhead3, overheadKind);
AT(O_OBJECT_KIND, CUpti_ActivityOverhead3, objectKind);
AT(O_THREAD, CUpti_ActivityOverhead3, objectId.pt.threadId);
AT(O_START, CUpti_ActivityOverhead3, start);
AT(O_END, CUpti_ActivityOverhead3, end);
AT(O_CORRELATION, CUpti_ActivityOverhead3, correlationId);

SAME(KIND_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2);
SAME(MEMORY_ALLOCATION, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
SAME(MEMORY_RELEASE, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
SAME(POOL_LOCAL, CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL);
AT(M_OPERATION, CUpti_ActivityMemory4, memoryOperationType);
AT(M_KIND, CUpti_ActivityMemory4, memoryKind);
AT(M_CORRELATION, CUpti_ActivityMemory4, correlationId);
AT(M_ADDRESS, CUpti_ActivityMemory4, address);
AT(M_BYTES, CUpti_ActivityMemory4, bytes);
AT(M_TIME, CUpti_ActivityMemory4, timestamp);
AT(M_DEVICE, CUpti_ActivityMemory4, deviceId);
AT(M_CONTEXT, CUpti_ActivityMemory4, contextId);
AT(M_STREAM, CUpti_ActivityMemory4, streamId);
AT(M_ASYNC, CUpti_ActivityMemory4, isAsync);
AT(M_POOL_TYPE, CUpti_ActivityMemory4, memoryPoolConfig.memoryPoolType);
AT(M_POOL, CUpti_ActivityMemory4, memoryPoolConfig.address);
AT(M_POOL_SIZE, CUpti_ActivityMemory4, memoryPoolConfig.pool.size);
AT(M_POOL_USED, CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize);
SAME(KIND_MEMORY_POOL, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
SAME(POOL_CREATED, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED);
SAME(POOL_DESTROYED, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED);
SAME(POOL_TRIMMED, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED);
AT(PO_OPERATION, CUpti_ActivityMemoryPool3, memoryPoolOperationType);
AT(PO_TYPE, CUpti_ActivityMemoryPool3, memoryPoolType);
AT(PO_CORRELATION, CUpti_ActivityMemoryPool3, correlationId);
AT(PO_DEVICE, CUpti_ActivityMemoryPool3, deviceId);
AT(PO_ADDRESS, CUpti_ActivityMemoryPool3, address);
AT(PO_SIZE, CUpti_ActivityMemoryPool3, size);
AT(PO_TIME, CUpti_ActivityMemoryPool3, timestamp);
AT(PO_USED, CUpti_ActivityMemoryPool3, utilizedSize);

AT(S_BYTES, CUpti_ActivityMemset4, bytes);
AT(S_START, CUpti_ActivityMemset4, start);
AT(S_DEVICE, CUpti_ActivityMemset4, deviceId);
AT(S_STREAM, CUpti_ActivityMemset4, streamId);
AT(S_CORRELATION, CUpti_ActivityMemset4, correlationId);
AT(S_MEMORY_KIND, CUpti_ActivityMemset4, memoryKind);
AT(S_GRAPH_NODE, CUpti_ActivityMemset4, graphNodeId);
AT(S_GRAPH, CUpti_ActivityMemset4, graphId);

SAME(DEV_CLOCK, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(DEV_SMS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(DEV_PCI_BUS, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME(DEV_PCI_DEVICE, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
SAME(DEV_MEMORY_CLOCK, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(DEV_BUS_WIDTH, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(DEV_PCI_DOMAIN, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
SAME(DEV_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(DEV_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

int main(void)
{
	return 0;
}
