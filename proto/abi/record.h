/* SPDX-License-Identifier: MIT. record.h: the records in a lane.
 *
 * A record is contiguous, a multiple of 8 bytes, 8-byte aligned, and final once `tail` passes it.
 * Its first word is the header:
 *
 *   bits  0..7   length / 8 (0 only in PAD, whose id is its length in bytes)
 *   bits  8..15  type, enum record_type
 *   bits 16..23  lap, the low 8 bits of position / lane_bytes: exposes stale or scribbled bytes
 *   bits 24..31  flags, by type
 *   bits 32..63  id, by type
 *
 * `clock` fields are raw ring clock (header.clock); the GPU's start and end are CLOCK_REALTIME ns.
 * An unknown type is skipped by its length and counted.
 */
#ifndef PROTOND_ABI_RECORD_H
#define PROTOND_ABI_RECORD_H

#include <stdint.h>

#include "buckets.h"
#include "gpu_terms.h"
#include "loss_terms.h"
#include "metric_terms.h"
#include "session_terms.h"

/* clang-format off */
/* layout: struct rec_layout, which others of the same layout share. event: what the program or the GPU
 * did; the others are about the recording. */
#define RECORDS(X) /* name    number  bytes  layout  event, what the header's id is */          \
        X(PAD,        0,  8, pad,       false) /* bytes to the end of the lap */                 \
        X(SCOPE,      1, 24, scope,     true)  /* path: one scope, written at its exit */        \
        X(LAUNCH,     2, 32, launch,    true)  /* path: the launching thread's */                \
        X(KERNEL,     3, 64, kernel,    true)  /* name: the kernel's symbol */                   \
        X(COPY,       4, 64, copy,      true)  /* enum copy_class */                             \
        X(SET,        5, 64, copy,      true)  /* 0 */                                           \
        X(METRIC,     6, 32, metric,    true)  /* path */                                        \
        X(SESSION,    7, 64, session,   true)  /* the job's own number of the session */         \
        X(THREAD,     8, 24, thread,    false) /* name: of the thread that owns the lane */      \
        X(CLOCK,      9, 40, clock,     false) /* 0 */                                           \
        X(LOST,      10, 32, lost,      false) /* enum lost_cause */                             \
        X(DELIVERED, 11, 24, delivered, false) /* epoch */                                       \
        X(GPU,       12, 32, gpu,       false) /* name: words for people, or NAME_NONE */        \
        X(SUM,       13, 192, sum,      false) /* path: many scopes; see below */                \
        X(TOTAL,     14, 64, total,     false) /* path: many metrics of one name and type */     \
        X(CAPTURED,  15, 40, captured,  true)  /* path: a metric of a graph's capture, once it ran */ \
        X(CALL,      16, 64, call,      true)  /* path: the calling thread's; written at its end */ \
        X(OVERHEAD,   17, 40, overhead,  true)  /* the id in its row of GPU_CLASSES */         \
        X(MEMORY,     18, 72, memory,    true)  /* enum held_kind */                          \
        X(SAMPLE,     19, 40, sample,    true)  /* path: where the thread stood */            \
        X(COUNTERS,   20, 24, counters,  false) /* bits: 1 << enum cpu_counter */             \
        X(CALLED,     21, 32, called,    true)  /* as CALL: one of the usual, in short */     \
        X(NAMED,      22, 24, named,     false) /* name: the program's, of a GPU or of an object of it */ \
        X(BLOCK,      23, 72, block,     true)  /* path: where torch's allocator was asked */
/* clang-format on */

enum record_type {
#define X(name, number, bytes, layout, event) REC_##name = (number),
	RECORDS(X)
#undef X
		REC_MAX,
	REC_NONE = REC_MAX, /* of what no record brings by itself */
};

#define REC_BYTES_MAX 2040u
#define REC_HDR(bytes, type, lap, flags, id)                                                 \
	((uint64_t)((bytes) >> 3) | (uint64_t)(type) << 8 | (uint64_t)(uint8_t)(lap) << 16 | \
		(uint64_t)(flags) << 24 | (uint64_t)(id) << 32)
#define REC_BYTES(h)       ((uint32_t)((h)&0xff) << 3)
#define REC_TYPE(h)        ((uint8_t)((h) >> 8))
#define REC_LAP(h)         ((uint8_t)((h) >> 16))
#define REC_FLAGS(h)       ((uint8_t)((h) >> 24))
#define REC_ID(h)          ((uint32_t)((h) >> 32))
#define REC_WITH_ID(h, id) (((h)&UINT32_MAX) | (uint64_t)(id) << 32)

/* What comes before it in its lane comes before what others know of it: drained in the order of its
 * clock, which is its second word. */
#define REC_IS_MARK(h)                 \
	(REC_TYPE(h) == REC_SESSION || \
		(REC_TYPE(h) == REC_THREAD && (REC_FLAGS(h) & THREAD_GOES_ON) != 0))

struct rec_pad {
	uint64_t hdr;
};

/* flags of SCOPE */
#define SCOPE_BEGAN_BEFORE \
	1u               /* entered while nothing was recorded: begin is when recording began */
#define SCOPE_UNWOUND 2u /* closed by unwind, thread end or exit, not by its own exit */
#define SCOPE_SPAN    4u /* of a task: it may overlap others of its thread */

struct rec_scope {
	uint64_t hdr;
	uint64_t begin, end; /* clock */
};

/* flags of LAUNCH */
#define LAUNCH_OP    1u /* path is an op's: the kernels count on it, without a node of their own */
#define LAUNCH_GRAPH 2u /* a graph: many records share the correlation id */
#define LAUNCH_COPY  4u
#define LAUNCH_SET   8u
/* Of a COPY, while WANT_SYNC: `name` is how long the call took, in LAUNCH_UNIT of the clock. */
#define LAUNCH_TIMED  16u
#define LAUNCH_BLOCKS 32u /* TIMED, and the call comes back when the copy is done */
#define LAUNCH_ENDS   64u /* struct rec_launch_ended; while WANT_QUEUE */
#define LAUNCH_UNIT   64u

struct rec_launch {
	uint64_t hdr;
	uint64_t clock;
	uint32_t correlation;
	uint32_t name;   /* the kernel's, as far as the callback knows it; or NAME_NONE */
	uint32_t python; /* path of Python frames, or PATH_ROOT */
	uint16_t epoch;  /* of this process's subscriptions; ids restart in each */
	uint16_t api;    /* driver API callback id */
};

struct rec_launch_ended {
	struct rec_launch launch;
	uint64_t end; /* clock: the call came back */
};
_Static_assert(sizeof(struct rec_launch_ended) == 40, "record ABI");

/* flags of KERNEL, COPY, SET */
#define GPU_FLAG_RUNNING 1u /* a forced flush returned it unfinished: end is 0 */
#define GPU_FLAG_UNTIMED 2u /* times unusable: counted, no time */
#define GPU_FLAG_GRAPH   4u /* part of a graph launch */
#define GPU_FLAG_PAGED   8u /* COPY: the host's memory is not pinned, so the call waits for it */

struct rec_kernel {
	uint64_t hdr;
	uint64_t start, end; /* CLOCK_REALTIME ns, as the vendor's library gives them */
	uint32_t correlation;
	uint16_t epoch;
	uint16_t device; /* index in the device table */
	uint32_t context, stream;
	uint32_t captured; /* path at capture, PATH_ROOT: none or unknown */
	uint32_t graph_exec;
	uint32_t config; /* index in the config table, UINT32_MAX: table full */
	uint32_t pad0;
	uint64_t graph_node;
};

enum copy_class { COPY_OTHER = 0, COPY_H2D = 1, COPY_D2H = 2, COPY_D2D = 3, COPY_P2P = 4 };

struct rec_copy { /* COPY and SET */
	uint64_t hdr;
	uint64_t start, end;
	uint32_t correlation;
	uint16_t epoch;
	uint16_t device;
	uint32_t context, stream;
	uint32_t captured;
	uint32_t graph_exec;
	uint8_t kind, src, dst, pad0; /* enum copy_kind; enum memory_kind, both */
	uint32_t peer;                /* P2P: index of the other device */
	uint64_t bytes;
};

/* flags of METRIC: enum metric_type, and: */
#define METRIC_TYPE_BITS 7u
#define METRIC_COUNTED \
	8u /* U64: what the CPU counted in the scope itself: of the switch counters alone */
#define METRIC_SCALED 16u /* and it had the CPU's counters for a part of the time only */
struct rec_metric {
	uint64_t hdr;
	uint64_t clock;
	uint64_t value;  /* bits of the value; STR: a name id */
	uint32_t name;   /* "flops8 (inc)": what metric_name_parse() in docs/ring.md reads */
	uint32_t python; /* path of Python frames, or PATH_ROOT */
};

/* flags of CAPTURED: enum metric_type. It counts in the launch that ran the graph. */
struct rec_captured {
	uint64_t hdr;
	uint64_t start; /* of the node that brought it: CLOCK_REALTIME ns */
	uint64_t value; /* as in METRIC */
	uint32_t correlation;
	uint32_t name;
	uint16_t epoch;
	uint16_t pad0[3];
};

/* flags of CALL */
#define CALL_ONLY_MEMORY 1u /* it waits for nothing: where its MEMORY records are of */
#define CALL_API         2u /* while WANT_API: `name` is there; a kind that is API's is of that alone */
#define CALL_FAILED      4u /* API, and it returned an error */

/* A call that waits for the GPU, or tells it what to wait for; or allocates memory, or frees it; or
 * any other. */
struct rec_call {
	uint64_t hdr;
	uint64_t begin, end; /* clock */
	uint64_t event; /* the vendor's handle, used again for another when destroyed; 0: none */
	uint32_t correlation;
	uint32_t context;
	uint32_t stream; /* as in KERNEL; UINT32_MAX: none, or unknown */
	uint32_t python; /* path of Python frames, or PATH_ROOT */
	uint16_t epoch;
	uint8_t kind; /* the id in its row of GPU_CLASSES */
	uint8_t pad0[5];
	uint32_t name; /* CALL_API: the call's; NAME_NONE: unknown */
	uint32_t pad1;
};

/* CALL of class API, with CALL_API and a name: it did not fail, has no Python path, and took less than
 * 2^32 of the clock. */
struct rec_called {
	uint64_t hdr;
	uint64_t begin; /* clock */
	uint32_t took;  /* in the clock's units */
	uint32_t correlation;
	uint32_t name;
	uint16_t epoch;
	uint16_t pad0;
};

/* What the driver or the vendor's profiling library did for itself, on a thread of the program. */
struct rec_overhead {
	uint64_t hdr;
	uint64_t start, end;  /* CLOCK_REALTIME ns */
	uint32_t correlation; /* of the call in which it was; 0: none, or unknown */
	uint32_t tid;         /* 0: unknown */
	uint16_t epoch;
	uint16_t pad0[3];
};

/* flags of MEMORY */
enum memory_op {
	MEMORY_ALLOC = 1,
	MEMORY_FREE = 2,
	MEMORY_POOL_MADE = 3,
	MEMORY_POOL_GONE = 4,
	MEMORY_POOL_TRIMMED = 5,
	MEMORY_OP_MAX
};
#define MEMORY_NO_DEVICE UINT16_MAX

/* What the driver gave or took back. */
struct rec_memory {
	uint64_t hdr;
	uint64_t time; /* CLOCK_REALTIME ns */
	uint64_t address, bytes;
	uint64_t pool;        /* its address; 0: it is of none */
	uint64_t reserved;    /* bytes that the pool has now */
	uint64_t used;        /* of these are taken */
	uint32_t correlation; /* of the call; 0: none, or unknown */
	uint32_t stream;      /* UINT32_MAX: none */
	uint32_t context;
	uint16_t epoch;
	uint16_t device; /* index in the device table; MEMORY_NO_DEVICE */
};

/* flags of BLOCK */
enum block_op {
	BLOCK_ALLOC = 1,
	BLOCK_FREE = 2,
	BLOCK_SIZE = 3,         /* of one that was just allocated: it is larger than it seemed */
	BLOCK_SEGMENT = 4,      /* taken from the driver, or mapped */
	BLOCK_SEGMENT_GONE = 5, /* given back, or unmapped */
	BLOCK_OOM = 6,          /* refused; bytes: those that were asked for */
	BLOCK_BEFORE =
		7, /* all that is allocated as the recording begins; address: how many blocks */
	BLOCK_STATE = 8, /* nothing happened: how it stands */
	BLOCK_OP_MAX
};

/* What torch's caching allocator did, and how it stood when it said so: what is allocated moves after it
 * has said ALLOC, and the others after FREE. */
struct rec_block {
	uint64_t hdr;
	uint64_t clock;
	uint64_t address, bytes;
	uint64_t reserved, active, split,
		requested; /* of the device, bytes; split: inactive_split */
	uint32_t device;   /* as torch numbers them */
	uint32_t pad0;
};

/* flags of SAMPLE */
#define SAMPLE_OFF_CPU   1u
#define SAMPLE_READY     4u /* and only for want of one */
#define SAMPLE_NO_FRAMES 2u /* its process runs a Python whose frames cannot be read */
#define SAMPLE_NO_NATIVE 8u /* native frames were asked for, and perf_event_open() was refused */

/* A thread was looked at `samples` times, one after the other, and was in the same each time. It counts
 * from the look before the first to the last one. */
struct rec_sample {
	uint64_t hdr;
	uint64_t begin, end; /* clock */
	uint32_t python;     /* path of frames, or PATH_ROOT */
	uint32_t tid;
	uint32_t samples;
	uint32_t pad0;
};

/* flags of COUNTERS */
enum counters_what {
	COUNTERS_REFUSED = 1, /* those of id, with code */
	COUNTERS_LIMIT = 2,   /* this thread's: too many descriptors */
	COUNTERS_GONE = 3,    /* this thread's: the program has closed them */
	COUNTERS_WORDS = 4,   /* PROTOND_COUNTERS: a word in it is none, or they are too many */
	COUNTERS_WHAT_MAX
};

/* Why something is not counted; once each time that the switch goes on. */
struct rec_counters {
	uint64_t hdr;
	uint64_t clock;
	int32_t code;     /* errno, of perf_event_open() */
	int32_t paranoid; /* kernel.perf_event_paranoid; INT32_MAX: unknown */
};

#define NAMED_GPU    UINT32_MAX       /* as a stream: the GPU itself */
#define NAMED_OBJECT (UINT32_MAX - 1) /* likewise: what `object` says */
struct rec_named {
	uint64_t hdr;
	uint32_t ordinal; /* of the GPU, as the process numbers it */
	uint32_t stream;  /* as in KERNEL */
	uint64_t object;  /* of NAMED_OBJECT: GPU_CONTEXT(), GPU_EVENT() */
};

enum session_verb {
	SESSION_START = 1,
	SESSION_ACTIVATE = 2,
	SESSION_DEACTIVATE = 3,
	SESSION_FINALIZE = 4,
	SESSION_PHASE = 5, /* the next phase begins */
};
#define SESSION_ALL  UINT32_MAX
#define JOB_SESSIONS 32u /* live ones that one job may have started itself */

/* flags of SESSION: enum session_verb. Fields from `name` on are read in SESSION_START only. */
struct rec_session {
	uint64_t hdr;
	uint64_t clock;
	uint32_t name;    /* of the session */
	uint32_t backend; /* name ids; NAME_NONE: the default */
	uint32_t mode, hook;
	uint8_t data, context, cpu; /* enums of session_terms.h */
	uint8_t switches;           /* enum session_switch bits */
	uint32_t format;            /* SESSION_FINALIZE: name id of the format */
	uint64_t flags;             /* PROTOND_* flags of the call */
	uint32_t domains;           /* name id of a list of NVTX's: range_name.h; NAME_NONE: all */
	uint32_t pad0;
	uint64_t pad1;
};

/* SESSION as it is written from RING_ABI_CUTS on: with all that the process had lost by then, so that
 * each loss is one session's, whenever it is read. */
#define CUT_CAUSES ((uint32_t)LOST_NAMES) /* the first ones, which have counters in the ring */
struct rec_session_cut {
	struct rec_session session;
	uint64_t lost[CUT_CAUSES]; /* [cause - 1]; absolute */
};
_Static_assert(LOST_LANE_FULL == 1 && LOST_NAMES == 9, "causes with counters come first");
_Static_assert(sizeof(struct rec_session_cut) == 136, "record ABI");

/* flags of THREAD */
#define THREAD_GOES_ON \
	1u /* in another lane: this is the last record here, and comes before what stands there */

#define THREAD_SUMS 2u /* its sums are in this lane, and it is in another */

struct rec_thread {
	uint64_t hdr;
	uint64_t clock;
	uint32_t tid;
	uint32_t generation;
};

struct rec_clock {
	uint64_t hdr;
	uint64_t clock;
	uint64_t monotonic_ns, realtime_ns;
	uint64_t error; /* half the bracket, in clock units */
};

struct rec_lost {
	uint64_t hdr;
	uint64_t count;
	uint64_t first, last; /* clock of the first and the last lost event */
};

struct rec_delivered {
	uint64_t hdr;
	uint64_t clock; /* all that finished before this has been delivered, but for what `pending`
			   says */
	uint64_t pending; /* launches without a record, as the agent counts them */
};

/* flags of GPU: enum gpu_state */
struct rec_gpu {
	uint64_t hdr;
	uint64_t clock;
	int32_t code;     /* the vendor's, or -errno; 0 */
	uint32_t version; /* of the vendor's library */
	uint32_t epoch;
	uint32_t
		replay; /* 1: the backend's library plays a recording; no time in it was measured */
};

/* Sums: what many events of one path came to, where no record of each had room. A sum grows behind
 * its lane's tail, where no number in it ever falls but a total's, and is final when tail passes it
 * (docs/ring.md). All of it counts at `opened`. */
#define SUM_BUCKETS 34u /* side by side, beginning at a multiple of it */
#define SUM_PARTS   (HIST_BUCKETS / SUM_BUCKETS)
_Static_assert(HIST_BUCKETS % SUM_BUCKETS == 0, "no sum goes beyond the last bucket");

/* flags of SUM; of TOTAL, beside those of METRIC */
#define SUM_SURPLUS 0x80u /* of paths that there was no room for: path is PATH_OTHER */

struct rec_sum {
	uint64_t hdr;
	uint64_t opened, last; /* clock: when the first event of it ended; the last one */
	uint64_t time;         /* of all of them, in the clock's units; likewise: */
	uint64_t min, max;
	uint32_t first; /* bucket (hist_bucket() of ns) that count[0] is */
	uint32_t pad0;
	uint32_t count[SUM_BUCKETS]; /* there is no other word for how many they are */
};

/* flags of TOTAL: those of METRIC, SUM_SURPLUS */
struct rec_total {
	uint64_t hdr;
	uint64_t opened, last; /* clock */
	uint64_t count;
	uint64_t sum;    /* bits; STR: of no meaning */
	uint64_t latest; /* bits of the last value; STR: a name id */
	uint32_t name;
	uint32_t pad0[3];
};

/* A sum with what struct ring_redo says; as often as one likes. rec: whole. */
static inline void rec_redo(void *rec, uint64_t count, uint64_t sum, uint64_t value, uint64_t last)
{
	struct rec_sum *s = rec;
	struct rec_total *t = rec;

	if (REC_TYPE(s->hdr) == REC_SUM) {
		s->count[(count >> 32) % SUM_BUCKETS] = (uint32_t)count;
		s->time = sum;
		s->min = value < s->min ? value : s->min;
		s->max = value > s->max ? value : s->max;
		s->last = last;
	} else if (REC_TYPE(t->hdr) == REC_TOTAL) {
		t->count = count;
		t->sum = sum;
		t->latest = value;
		t->last = last;
	}
}

#define X(name, number, bytes, layout, event)                                        \
	_Static_assert(sizeof(struct rec_##layout) == (bytes) && (bytes) % 8 == 0 && \
			       (bytes) <= REC_BYTES_MAX,                             \
		"record ABI");
RECORDS(X)
#undef X

#endif
