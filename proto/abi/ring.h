/* SPDX-License-Identifier: MIT. ring.h: the ring file that a job shares with protond.
 *
 * One ring per process. The job creates the file (a named tmpfs file or a memfd), and alone
 * writes it; the daemon only pread()s it. Heads and wishes stand in a control file that the
 * daemon alone writes and the job maps read-only. Little-endian, fixed widths, no pointers.
 * The laws, the memory orders and the validation rules are in docs/ring.md.
 *
 *   0x0000  struct ring_header            immutable once magic is stored (release)
 *   0x1000  info      4 KiB               NUL-separated KEY=VALUE about the job, immutable
 *   off_counts        struct ring_counts  one page: how far each insert-only table goes
 *   off_lanes         n_lanes × struct ring_lane
 *   off_paths         path_cap × struct ring_path
 *   off_names         name_cap × struct ring_name
 *   off_configs       config_cap × struct ring_config
 *   off_devices       device_cap × struct ring_device
 *   off_bytes         name_bytes_cap bytes of text
 *   off_data          n_lanes × lane_bytes, backed by posix_fallocate when a lane is claimed
 *
 * Every section starts on a page, in this order, with nothing between: ring_layout() is the
 * one place that knows it, and the daemon recomputes it instead of believing the offsets.
 */
#ifndef PROTOND_ABI_RING_H
#define PROTOND_ABI_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session_terms.h"

#define RING_MAGIC      0x31474e52544f5250ull /* "PROTRNG1" */
#define RING_CTL_MAGIC  0x314c5443544f5250ull /* "PROTCTL1" */
#define RING_ABI        0x00010004u /* major << 16 | minor; a reader needs the same major */
#define RING_ABI_MAJOR  0x00010000u
#define RING_ABI_RINGS  1u /* from this minor on: the job heeds ring_ctl.nap */
#define RING_ABI_ASKS   2u /* from this minor on: the daemon answers RV_SESSION */
#define RING_ABI_CUTS   3u /* from this minor on: SESSION says what was lost before it */
#define RING_ABI_SUMS   4u /* from this minor on: the daemon reads sums behind a tail */
#define RING_PAGE       4096u
#define RING_INFO_BYTES 4096u

/* Ceilings: a header beyond one of them is refused. */
#define RING_LANES_MAX      1024u
#define RING_LANE_BYTES_MIN (64u << 10)
#define RING_LANE_BYTES_MAX (16u << 20)
#define RING_PATHS_MAX      (1u << 20)
#define RING_NAMES_MAX      (1u << 20)
#define RING_NAME_BYTES_MAX (64u << 20)
#define RING_CONFIGS_MAX    (1u << 16)
#define RING_DEVICES_MAX    64u
#define RING_FILE_MAX       (2ull << 30)

/* Defaults. */
#define RING_LANES      256u
#define RING_LANE_BYTES (256u << 10)
#define RING_PATHS      65536u
#define RING_NAMES      65536u
#define RING_NAME_BYTES (4u << 20)
#define RING_CONFIGS    4096u
#define RING_DEVICES    64u

/* Laws of the path and name tables; the daemon checks them once, when it copies an entry. */
#define PATH_ROOT          0u /* parent 0, depth 0, kind PATH_KIND_ROOT */
#define PATH_OTHER         1u /* ROOT/(other): where everything goes once nothing else is left */
#define PATH_DEPTH_MAX     256u
#define PATH_CHILDREN_MAX  (RING_PATHS / 2) /* one more child of a path goes to its (other) */
#define PATH_OTHER_RESERVE 4096u /* the last entries of the table are for (other) paths only */
#define NAME_NONE          0u    /* "" */
#define NAME_OTHER         1u    /* "(other)" */
#define NAME_BYTES_MAX     1024u /* a longer name is cut, its last 17 bytes "~" and a 64-bit hash */

enum path_kind {
	PATH_KIND_ROOT = 0,
	PATH_KIND_SCOPE = 1,
	PATH_KIND_STATE = 2,
	PATH_KIND_OP = 3,     /* names the launches inside it: a kernel's own name is not shown */
	PATH_KIND_FRAME = 4,  /* a Python frame, "file:line@function" */
	PATH_KIND_KERNEL = 5, /* never in a ring: the daemon makes these below a launch's path */
	PATH_KIND_EXCEPT =
		6,          /* what was captured into a graph: not in these of the job's sessions */
	PATH_KIND_CALL = 7, /* calls, where they are summed; nothing is below one */
	PATH_KIND_MAX = 8,
};

enum ring_clock { RING_CLOCK_TSC = 1, RING_CLOCK_MONOTONIC = 2 };

struct ring_header {
	uint64_t magic; /* stored last, release; a reader that sees it sees all the rest */
	uint32_t abi;
	uint32_t header_bytes; /* sizeof(struct ring_header) */
	uint8_t uuid[16];      /* of this ring; random */
	uint8_t store[16]; /* of the daemon's store that it belongs to; only that one drains it */
	uint8_t boot_id[16];
	uint8_t parent[16]; /* ring uuid of the process that forked this one, or zero */
	uint32_t pid;       /* as the job sees itself; a hint: the daemon believes the socket */
	uint32_t uid;
	uint64_t pid_start; /* /proc/self/stat field 22, clock ticks since boot */
	uint32_t clock;     /* enum ring_clock */
	uint32_t tsc_khz;   /* a hint; 0 unknown */
	uint32_t n_lanes, lane_bytes;
	uint32_t path_cap, name_cap, name_bytes_cap, config_cap, device_cap;
	uint32_t pad0;
	uint64_t file_bytes;
	uint64_t created_clock; /* `clock` when the ring was made */
	uint64_t created_monotonic_ns, created_realtime_ns;
};
_Static_assert(sizeof(struct ring_header) == 168, "ring ABI");

/* Writer: the job. Each count is stored (release) after the entries below it are complete. */
struct ring_counts {
	_Atomic uint32_t paths, names, configs, devices;
	_Atomic uint32_t name_bytes;
	/* Forked children that could not offer a ring of their own. The one number that other
	 * processes write, too: the children. */
	_Atomic uint32_t children_lost;
	_Atomic uint64_t paths_refused; /* scopes entered that went to an (other) */
	_Atomic uint64_t names_refused; /* names that became "(other)": the table was full */
	_Atomic uint64_t names_cut;
	_Atomic uint64_t drop_no_lane; /* events of threads that got no lane */
	_Atomic uint64_t gpu_dropped;  /* records that the vendor's library dropped */
	_Atomic uint64_t gpu_refused;  /* buffer requests answered by the discard buffer */
	_Atomic uint64_t gpu_invalid;  /* records without usable times */
	_Atomic uint64_t gpu_unknown;  /* bytes of kinds that could not be walked */
	_Atomic uint64_t agent_ns;     /* CPU time of the agent's own threads, ns */
};
_Static_assert(sizeof(struct ring_counts) == 96, "ring ABI");

struct ring_path {
	uint32_t parent; /* < own id */
	uint32_t name;
	uint16_t kind;   /* enum path_kind */
	uint16_t depth;  /* parent's + 1, ≤ PATH_DEPTH_MAX */
	uint32_t domain; /* name id of the NVTX domain that a scope is of; NAME_NONE: of none */
};
_Static_assert(sizeof(struct ring_path) == 16, "ring ABI");

struct ring_name {
	uint32_t offset, bytes; /* in the byte area; not NUL-terminated; any bytes */
	uint64_t hash;          /* FNV-1a 64 of the bytes; a hint */
};
_Static_assert(sizeof(struct ring_name) == 16, "ring ABI");

/* A launch configuration. */
struct ring_config {
	uint32_t grid[3], block[3];
	uint32_t registers;                     /* per thread */
	uint32_t static_shared, dynamic_shared; /* bytes per block */
	uint32_t local_per_thread;              /* bytes */
	uint32_t pad0[2];
};
_Static_assert(sizeof(struct ring_config) == 48, "ring ABI");

/* A GPU. KERNEL.device is an index into this table, not the CUDA ordinal. */
struct ring_device {
	uint8_t uuid[16];
	uint32_t ordinal; /* as this process numbers it */
	uint32_t type;    /* enum device_type */
	uint32_t pci_domain, pci_bus, pci_device;
	uint32_t arch; /* 90 for compute capability 9.0 */
	uint32_t num_sms;
	uint32_t clock_khz, memory_clock_khz, bus_width; /* kHz, kHz, bits */
	uint64_t memory_bytes;
	char name[64]; /* NUL-padded */
	uint32_t pad0[2];
};
_Static_assert(sizeof(struct ring_device) == 136, "ring ABI");
enum device_type { DEVICE_CUDA = 1, DEVICE_HIP = 2 };

#define NOW_FRAMES 64u

/* What a thread is in, at any instant, also after its death. The thread alone writes; `seq` is odd
 * while it does, so a reader that sees an odd or changed seq reads again. */
struct ring_now {
	_Atomic uint32_t seq;
	_Atomic uint32_t depth; /* open scopes; may exceed NOW_FRAMES */
	_Atomic uint32_t path;  /* current path id */
	uint32_t pad0;
	struct {
		_Atomic uint64_t begin; /* ring clock; 0: entered before recording, or no clock
				  wanted; UINT64_MAX: by the process that forked this one */
		_Atomic uint32_t path;
		uint32_t pad0;
	} frame[NOW_FRAMES]; /* frame[d % NOW_FRAMES] is the scope at depth d */
};
_Static_assert(sizeof(struct ring_now) == 16 + 16 * NOW_FRAMES, "ring ABI");

enum lane_state {
	LANE_FREE = 0,
	LANE_LIVE = 1,
	LANE_EXITED = 2,
	LANE_SUMS = 4, /* its thread's sums are here, and the thread in another */
	LANE_LEFT = 3, /* full: its thread goes on in another; of the lanes of a thread that are
			  LIVE or LEFT, the one with the most `moves` is where it is */
};

/* What is being added to one of a lane's sums: set first and cleared last, so that whoever reads for
 * the last time can bring it to its end. `pos`: position + 1 of the sum; 0: nothing. */
struct ring_redo {
	_Atomic uint64_t pos;
	_Atomic uint64_t count; /* SUM: place of the bucket << 32 | what it becomes */
	_Atomic uint64_t sum;   /* what time or sum becomes */
	_Atomic uint64_t value; /* SUM: this one's duration; TOTAL: what latest becomes */
	_Atomic uint64_t last;
};

/* Writer: the thread that owns the lane. `tail` counts bytes and never wraps. */
struct ring_lane {
	_Alignas(64) _Atomic uint64_t tail;
	_Atomic uint64_t drop_full;   /* records refused: lane full */
	_Atomic uint64_t drop_nested; /* records refused: a signal handler inside the agent */
	_Atomic uint32_t state;       /* enum lane_state */
	_Atomic uint32_t tid;         /* of the owner, as the job sees it */
	_Atomic uint32_t generation;  /* owners so far */
	_Atomic uint32_t moves;       /* of the owner, from lane to lane, when it came here */
	_Atomic uint64_t
		sums; /* end of the open sums behind tail; not above tail: there are none */
	uint64_t pad1[2];
	_Alignas(64) struct ring_now now;
	struct ring_redo redo;
	uint64_t pad2;
};
_Static_assert(sizeof(struct ring_lane) == 64 + 1040 + 48, "ring ABI");

/* The control file: the daemon writes, the job maps it read-only. */
enum ring_want {
	WANT_SCOPES = 1,   /* SCOPE records, paths, now blocks */
	WANT_CPU_TIME = 2, /* with clock reads; else a scope only moves the path */
	WANT_METRICS = 4,
	WANT_GPU = 8,
	WANT_GPU_ARMED = 16,     /* subscribe for graph captures, record nothing */
	WANT_GPU_PAUSE = 32,     /* let go of the GPU altogether */
	WANT_PYTHON = 64,        /* Python stacks at launches */
	WANT_SYNC = 256,         /* with WANT_GPU: CALL records, and how long copies took */
	WANT_OVERHEAD = 512,     /* likewise: OVERHEAD records */
	WANT_QUEUE = 1024,       /* likewise: LAUNCH_ENDS */
	WANT_API = 2048,         /* likewise: CALL records of every call, CALL_API */
	WANT_CPU_SAMPLES = 4096, /* SAMPLE records */
	WANT_ALLOC = 8192, /* BLOCK records; with WANT_GPU MEMORY, and CALL of what they are of */
	WANT_OPS = 16384,  /* scopes of PyTorch's operators, from what Python loads for them */
	WANT_COUNTERS = 32768, /* METRIC records of what the CPU counts in scopes */
	WANT_SUMS = 128, /* only in the control file: sums from the next quarter of a lane on */
};

struct ring_ctl {
	uint64_t magic;
	uint32_t abi;
	_Atomic uint32_t want;    /* enum ring_want bits */
	_Atomic uint64_t beat_ns; /* CLOCK_MONOTONIC of the daemon's last drain */
	/* Not 0: the daemon looks seldom; whoever is at the end of a quarter of its lane, and finds
	 * an eighth not drained, says PING, once for each value. */
	_Atomic uint32_t nap;
	uint32_t pad1;
	_Atomic uint64_t sums; /* visits << 32 | cuts: SUMS_VISIT, SUMS_CUT */
	uint64_t pad0[3];
	struct {
		_Alignas(64) _Atomic uint64_t head; /* bytes drained and durable in the journal */
	} lane[];
};
_Static_assert(offsetof(struct ring_ctl, lane) == 64, "ring ABI");
#define SUMS_VISIT(word) ((uint32_t)((word) >> 32)) /* goes up when sums were taken */
#define SUMS_CUT(word)   ((uint32_t)(word))         /* changes when open sums are to be closed */

/* Of the switches: those that need no GPU. alloc: torch's allocator without the driver. */
#define WANT_WITHOUT_GPU (WANT_OPS | WANT_CPU_SAMPLES | WANT_COUNTERS | WANT_ALLOC)

/* What the switches of a session want, enum session_switch bits; gpu: it records the GPU, too. */
static inline uint32_t want_of_switches(uint32_t switches, bool gpu)
{
#define X(name, bit, ...) | ((switches & (bit)) != 0 ? (uint32_t)WANT_##name : 0)
	return (0 SESSION_SWITCHES(X)) & (gpu ? UINT32_MAX : (uint32_t)WANT_WITHOUT_GPU);
#undef X
}
#define WANT_SWITCHES want_of_switches(UINT32_MAX, true)

struct ring_layout {
	uint64_t info, counts, lanes, paths, names, configs, devices, bytes, data, file_bytes;
};

static inline uint64_t ring_page_up(uint64_t n)
{
	return (n + RING_PAGE - 1) & ~(uint64_t)(RING_PAGE - 1);
}

static inline bool ring_is_pow2(uint32_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

/* The canonical layout for a header's sizes; false when one is out of bounds. */
static inline bool ring_layout(const struct ring_header *h, struct ring_layout *ret)
{
	struct ring_layout l = {.info = RING_PAGE};

	if (h->n_lanes == 0 || h->n_lanes > RING_LANES_MAX || !ring_is_pow2(h->lane_bytes) ||
		h->lane_bytes < RING_LANE_BYTES_MIN || h->lane_bytes > RING_LANE_BYTES_MAX)
		return false;
	if (h->path_cap < 2 * PATH_OTHER_RESERVE || h->path_cap > RING_PATHS_MAX ||
		h->name_cap < 2 || h->name_cap > RING_NAMES_MAX ||
		h->name_bytes_cap < NAME_BYTES_MAX || h->name_bytes_cap > RING_NAME_BYTES_MAX)
		return false;
	if (h->config_cap == 0 || h->config_cap > RING_CONFIGS_MAX || h->device_cap == 0 ||
		h->device_cap > RING_DEVICES_MAX)
		return false;
	l.counts = l.info + RING_INFO_BYTES;
	l.lanes = l.counts + ring_page_up(sizeof(struct ring_counts));
	l.paths = l.lanes + ring_page_up((uint64_t)h->n_lanes * sizeof(struct ring_lane));
	l.names = l.paths + ring_page_up((uint64_t)h->path_cap * sizeof(struct ring_path));
	l.configs = l.names + ring_page_up((uint64_t)h->name_cap * sizeof(struct ring_name));
	l.devices = l.configs + ring_page_up((uint64_t)h->config_cap * sizeof(struct ring_config));
	l.bytes = l.devices + ring_page_up((uint64_t)h->device_cap * sizeof(struct ring_device));
	l.data = l.bytes + ring_page_up(h->name_bytes_cap);
	l.file_bytes = l.data + (uint64_t)h->n_lanes * h->lane_bytes;
	if (l.file_bytes > RING_FILE_MAX)
		return false;
	*ret = l;
	return true;
}

static inline uint64_t ring_ctl_bytes(uint32_t n_lanes)
{
	return ring_page_up(sizeof(struct ring_ctl) + 64ull * n_lanes);
}

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared atomics must not take a lock");

#endif
