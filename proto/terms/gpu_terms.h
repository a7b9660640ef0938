/* SPDX-License-Identifier: MIT. gpu_terms.h: the kinds of GPU work and of tree nodes: what each is
 * called and counted as, wherever it is stored, shown or written. Anybody may include it.
 *
 * A new kind of GPU event is a row of GPU_CLASSES here, a row of RECORDS (proto/abi/record.h) if no
 * record carries it yet, and the vendor's walker that writes that record.
 */
#ifndef PROTOND_TERMS_GPU_TERMS_H
#define PROTOND_TERMS_GPU_TERMS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
/* What a node of a tree is: node.kind of the database. The first six are path kinds of the ring. */
#define NODE_KINDS(X) /* name  number  word */ \
        X(ROOT,     0, "root")                 \
        X(SCOPE,    1, "scope")                \
        X(STATE,    2, "state")                \
        X(OP,       3, "op")                   \
        X(FRAME,    4, "frame")                \
        X(KERNEL,   5, "kernel")               \
        X(COPY,     6, "copy")                 \
        X(SET,      7, "set")                  \
        X(CAPTURED, 8, "captured") /* below it: what was captured into a graph, and where */ \
        X(CALL,     9, "call")     /* of the vendor's library, on the thread that stood there */
/* clang-format on */

enum node_kind {
#define X(name, number, word) NODE_##name = (number),
	NODE_KINDS(X)
#undef X
};

static const char *const node_kind_words[] = {
#define X(name, number, word) [number] = (word),
	NODE_KINDS(X)
#undef X
};

#define NODE_CAPTURED_NAME "<captured_at>"

/* clang-format off */
/* What memory is; "pool": what programs took of the pools of a device, "reserved": what these have; "static": variables of
 * modules, which nobody allocates; "torch_": by torch's caching allocator, as its memory_stats() have it;
 * "resident": what the process has in RAM. */
#define HELD_KINDS(X) /* name  number  word */ \
        X(DEVICE, 0, "device") X(PINNED, 1, "pinned") X(MANAGED, 2, "managed") X(ARRAY, 3, "array") \
        X(POOL, 4, "pool") X(RESERVED, 5, "reserved") X(ELSE, 6, "other") \
        X(STATIC, 7, "static") \
        X(TORCH, 8, "torch_allocated") X(TORCH_RESERVED, 9, "torch_reserved") X(TORCH_ACTIVE, 10, "torch_active") \
        X(TORCH_SPLIT, 11, "torch_inactive_split") X(TORCH_REQUESTED, 12, "torch_requested") \
        X(RESIDENT, 13, "resident")
/* clang-format on */

enum held_kind {
#define X(name, number, word) HELD_##name = (number),
	HELD_KINDS(X)
#undef X
		HELD_MAX
};

/* What is one sum, and no block of it anybody's. */
static inline int held_is_sum(uint8_t kind)
{
	return kind == HELD_RESERVED || kind > HELD_TORCH;
}

static const char *const held_kind_words[HELD_MAX] = {
#define X(name, number, word) [number] = (word),
	HELD_KINDS(X)
#undef X
};

/* clang-format off */
/* The classes of what a tree counts: cell.class of the database, trace_op.class of a timeline.
 * word:   in lists and --json
 * record: that brings it, REC_name of proto/abi/record.h, and its id there where one record brings
 *         several classes (enum copy_class). COMM is a KERNEL that its name gives away.
 * node:   kind of its leaf in the tree, and the leaf's name; "": the kernel's own
 * trace, launch: a Chrome trace's category of the event, and its word for the launch
 * counts: as which columns: CPU (cpu_time, calls), KERNEL (time, count), COPY (copies, bytes too),
 *         SYNC (sync_time, syncs): a call in which its thread waited for the GPU, or may have;
 *         OVERHEAD (overhead_time, overheads), LAUNCH (launch_time, launches), DELAY (launch_delay,
 *         launch_delays): of the switches overhead and queue; SAMPLE (sample_time, cpu_samples),
 *         OFF_CPU (off_cpu_time, off_cpu_samples, which are among the samples),
 *         READY (run_queue_time, run_queue_samples, which are among those): of the switch cpu;
 *         API (api_time, api_calls), API_ERROR (api_error_time, api_errors, which are among the calls):
 *         of the switch api, whose leaves have the calls' own names */
#define GPU_CLASSES(X) /* name  n  word    record  id  node    leaf             trace         launch    counts */ \
        X(CPU,     0, "cpu",     NONE,   0, SCOPE,  "",              "scope",      "",       CPU)    \
        X(COMPUTE, 1, "compute", KERNEL, 0, KERNEL, "",              "kernel",     "launch", KERNEL) \
        X(COMM,    2, "comm",    NONE,   1, KERNEL, "",              "kernel",     "launch", KERNEL) \
        X(H2D,     3, "h2d",     COPY,   1, COPY,   "[memcpy HtoD]", "gpu_memcpy", "memcpy", COPY)   \
        X(D2H,     4, "d2h",     COPY,   2, COPY,   "[memcpy DtoH]", "gpu_memcpy", "memcpy", COPY)   \
        X(D2D,     5, "d2d",     COPY,   3, COPY,   "[memcpy DtoD]", "gpu_memcpy", "memcpy", COPY)   \
        X(P2P,     6, "p2p",     COPY,   4, COPY,   "[memcpy PtoP]", "gpu_memcpy", "memcpy", COPY)   \
        X(MEMSET,  7, "memset",  SET,    0, SET,    "[memset]",      "gpu_memset", "memset", COPY)   \
        X(OTHER,   8, "other",   COPY,   0, COPY,   "[memcpy]",      "gpu_memcpy", "memcpy", KERNEL) \
        X(STREAM_SYNC,  9,  "stream_sync",  CALL, 0, CALL, "cudaStreamSynchronize", "cuda_sync", "", SYNC) \
        X(EVENT_SYNC,   10, "event_sync",   CALL, 1, CALL, "cudaEventSynchronize",  "cuda_sync", "", SYNC) \
        X(DEVICE_SYNC,  11, "device_sync",  CALL, 2, CALL, "cudaDeviceSynchronize", "cuda_sync", "", SYNC) \
        X(STREAM_WAIT,  12, "stream_wait",  CALL, 3, CALL, "cudaStreamWaitEvent",   "cuda_sync", "", CPU)  \
        X(EVENT_RECORD, 13, "event_record", CALL, 4, CALL, "cudaEventRecord",       "cuda_sync", "", CPU)  \
        X(COPY_WAIT,    14, "copy_wait",    NONE, 2, CALL, "cudaMemcpy",            "cuda_sync", "", SYNC) \
        X(ALLOC,        15, "alloc",        CALL, 5, CALL, "cudaMalloc",            "cuda_sync", "", SYNC) \
        X(FREE,         16, "free",         CALL, 6, CALL, "cudaFree",              "cuda_sync", "", SYNC) \
        X(REGISTER,     17, "register",     CALL, 7, CALL, "cudaHostRegister",      "cuda_sync", "", SYNC) \
        X(OVERHEAD,     18, "overhead",     OVERHEAD, 0, CALL, "[overhead]",        "overhead", "", OVERHEAD) \
        X(COMPILE,      19, "compile",      OVERHEAD, 1, CALL, "[compile]",         "overhead", "", OVERHEAD) \
        X(BUFFER_FLUSH, 20, "buffer_flush", OVERHEAD, 2, CALL, "[buffer flush]",    "overhead", "", OVERHEAD) \
        X(INSTRUMENT,   21, "instrument",   OVERHEAD, 3, CALL, "[instrumentation]", "overhead", "", OVERHEAD) \
        X(RESOURCE,     22, "resource",     OVERHEAD, 4, CALL, "[resource]",        "overhead", "", OVERHEAD) \
        X(MODULE_LOAD,  23, "module_load",  OVERHEAD, 5, CALL, "[module load]",     "overhead", "", OVERHEAD) \
        X(LAZY_LOAD,    24, "lazy_load",    OVERHEAD, 6, CALL, "[lazy load]",       "overhead", "", OVERHEAD) \
        X(QUEUE_FULL,   25, "queue_full",   OVERHEAD, 7, CALL, "[queue full]",      "overhead", "", OVERHEAD) \
        X(BUFFER_ASK,   26, "buffer_request", OVERHEAD, 8, CALL, "[buffer request]", "overhead", "", OVERHEAD) \
        X(UVM_INIT,     27, "uvm_init",     OVERHEAD, 9, CALL, "[uvm init]",        "overhead", "", OVERHEAD) \
        X(LAUNCH,       28, "launch",       NONE, 3, CALL, "[launch]",       "cuda_launch", "", LAUNCH) \
        X(LAUNCH_DELAY, 29, "launch_delay", NONE, 4, CALL, "[launch delay]", "", "", DELAY) \
        X(SAMPLE,       30, "sample",         SAMPLE, 0, FRAME, "", "cpu_sample", "", SAMPLE) \
        X(SAMPLE_OFF,   31, "sample_off_cpu", NONE,   5, FRAME, "", "cpu_sample", "", OFF_CPU) \
        X(SAMPLE_READY, 32, "sample_ready",   NONE,   6, FRAME, "", "cpu_sample", "", READY) \
        X(API,          33, "api",          CALL, 8, CALL, "[call]",         "cuda_api", "", API) \
        X(API_ERROR,    34, "api_error",    NONE, 7, CALL, "[call]",         "cuda_api", "", API_ERROR)
/* clang-format on */

/* What of a GPU a program gives a name: a stream, by its number, and a context, by its id, or an event, by
 * its handle. */
#define GPU_CONTEXT(id)    (1ull << 56 | (uint32_t)(id))
#define GPU_EVENT(handle)  (2ull << 56 | ((uint64_t)(handle) & ((1ull << 56) - 1)))
#define GPU_OBJECT(object) ((uint32_t)((object) >> 56))
enum gpu_object { GPU_OBJECT_STREAM, GPU_OBJECT_CONTEXT, GPU_OBJECT_EVENT, GPU_OBJECTS };

#define GPU_IDS 16u /* ids that a record may tell classes apart by: below it */

enum cell_class {
#define X(name, n, ...) CLASS_##name = (n),
	GPU_CLASSES(X)
#undef X
		CLASS_MAX
};

/* From SAMPLE on each is a part of the one before it. */
enum gpu_counts {
	COUNTS_CPU,
	COUNTS_KERNEL,
	COUNTS_COPY,
	COUNTS_SYNC,
	COUNTS_OVERHEAD,
	COUNTS_LAUNCH,
	COUNTS_DELAY,
	COUNTS_SAMPLE,
	COUNTS_OFF_CPU,
	COUNTS_READY,
	COUNTS_API,
	COUNTS_API_ERROR,
	COUNTS_MAX
};

struct gpu_class {
	const char *word, *leaf, *trace, *launch;
	uint8_t node;   /* enum node_kind */
	uint8_t counts; /* enum gpu_counts */
};

static const struct gpu_class gpu_classes[CLASS_MAX] = {
#define X(name, n, word, record, id, node, leaf, trace, launch, counts) \
	[n] = {word, leaf, trace, launch, NODE_##node, COUNTS_##counts},
	GPU_CLASSES(X)
#undef X
};

/* enum cell_class of a number out of a file. */
static inline uint8_t gpu_class_known(uint64_t n)
{
	return (uint8_t)(n < CLASS_MAX ? n : CLASS_OTHER);
}

static inline bool gpu_class_is_kernel(uint8_t class)
{
	return gpu_classes[class].node == NODE_KERNEL;
}

/* The GPU did it, not a thread of the program. */
static inline bool gpu_class_is_work(uint8_t class)
{
	return gpu_classes[class].counts == COUNTS_KERNEL ||
	       gpu_classes[class].counts == COUNTS_COPY;
}

/* A call by which a thread waits for the GPU, may have to, or says what is to be waited for: timelines
 * have lanes for them. */
static inline bool gpu_class_is_sync(uint8_t class)
{
	return class >= CLASS_STREAM_SYNC && class <= CLASS_REGISTER;
}

/* What threads were seen in: of any node, not of leaves of its own. Of enum gpu_counts. */
static inline bool gpu_counts_samples(uint8_t counts)
{
	return counts >= COUNTS_SAMPLE && counts <= COUNTS_READY;
}

/* Of those that count as OVERHEAD: the vendor's profiling library, which is there because of us; else
 * the driver. */
static inline bool gpu_class_is_ours(uint8_t class)
{
	return class == CLASS_BUFFER_FLUSH || class == CLASS_BUFFER_ASK ||
	       class == CLASS_INSTRUMENT || class == CLASS_RESOURCE;
}

/* A kernel of NCCL, RCCL and the like. */
static inline bool gpu_kernel_is_comm(const char *kernel)
{
	static const char *const part[] = {"nccl", "rccl", "AllReduce", "AllGather",
		"ReduceScatter", "AllToAll", "all_reduce", "all_gather", "reduce_scatter",
		"cross_device_reduce", "nvshmem"};
	size_t i;

	for (i = 0; i < sizeof(part) / sizeof(part[0]); i++)
		if (strstr(kernel, part[i]) != NULL)
			return true;
	return false;
}

/* By the name of a leaf: Proton and others put more words before the bracket. CLASS_OTHER: none. */
static inline uint8_t gpu_class_of_leaf(const char *name)
{
	uint8_t c;
	size_t n;

	for (c = 0; c < CLASS_MAX; c++) {
		n = strlen(gpu_classes[c].leaf);
		if (n > 0 && c != CLASS_OTHER && gpu_class_is_work(c) &&
			strncmp(name, gpu_classes[c].leaf, n - 1) == 0)
			return c;
	}
	return CLASS_OTHER;
}

/* Launch configurations that a session's tree tells apart for a kernel at one place, the first ones; what more there are
 * have none. A timeline has all. */
#define CONFIGS_A_NODE 8u

#endif
