/* SPDX-License-Identifier: MIT. core.h: the engine's own state, and nothing that acts on it. The
 * engine's files include it, backends do not: agent.h is theirs.
 *
 * Who writes what:
 *   agent_hot   want() alone, under the backend lock; every event reads it. Its page is
 *               MADV_WIPEONFORK: in a forked child all of it is 0, which means "record nothing"
 *   the tables  whoever holds core.table_lock; readers need no lock (an entry is complete before
 *               its id can be found)
 *   core.agent  the agent's own lane: whoever holds core.backend_lock
 *
 * The files stand in layers; each uses those before it: core, clock, sync, ring_file, table, lane,
 * proxy, guard, sums, counters, scope, capture, launch and event, report, worker, gpu, engine.
 */
#ifndef PROTOND_CORE_H
#define PROTOND_CORE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"
#include "ring.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Of this library alone, so that no look at it goes by way of a table of addresses. */
#define AGENT_OWN __attribute__((visibility("hidden")))

#define AGENT_WANT_RECORD (~(uint32_t)WANT_GPU_PAUSE) /* any of these: paths move */
#define GENERATION_SYNCS  (UINT32_MAX - 1)            /* no recording's: scope_sync() is at it */

enum scope_clock {
	CPU_OFF = 0,
	CPU_TSC = 1,
	CPU_MONOTONIC = 2,
	CPU_COUNTED = 3, /* whichever clock, and what the CPU counted: WANT_COUNTERS */
};

struct agent_hot {
	_Atomic uint32_t match; /* generation, or UINT32_MAX, which no thread has: one comparison */
	_Atomic uint32_t generation; /* of the recording; 0: nothing is recorded */
	_Atomic uint32_t cpu;        /* enum scope_clock: what a scope reads and records */
	_Atomic uint32_t want;
	uint32_t tsc;           /* 1: the ring clock is the TSC */
	_Atomic uint64_t began; /* clock at which this recording began */
	uint32_t inherit_copy;
	uint32_t opened; /* 0 in a forked child */
	const struct pd_thread *_Atomic main;
	_Atomic uint32_t main_path; /* the main thread's path when recording began */
};
extern union agent_page {
	struct agent_hot hot;
	unsigned char bytes[RING_PAGE];
} agent_page AGENT_OWN;
#define HOT (&agent_page.hot)

struct backend;
struct lane;

struct core {
	const struct protond_host *host;
	struct ring_header *header; /* the whole mapping starts here */
	struct ring_layout at;
	struct ring_counts *counts;
	struct ring_ctl *ctl; /* zeroes until the daemon's file is mapped over it */
	uint64_t ctl_bytes;
	int fd; /* of the ring; belongs to us as long as ino is its inode: see ring_back() */
	uint64_t dev, ino;
	uint32_t named;
	uint8_t uuid[16];

	_Atomic uint32_t table_lock;
	struct lane *lanes;
	uint32_t n_lanes, lane_bytes;
	_Atomic uint32_t lanes_used, lanes_backed, lanes_backed_max;
	uint32_t *free_lane; /* a stack of lanes that were left; from the end, one of bare ones */
	_Atomic uint32_t n_free;   /* left */
	uint32_t n_bare;           /* left, and their memory given back */
	uint32_t n_unsummed;       /* threads with a lane and none for their sums */
	_Atomic bool lanes_none;   /* none could be had, and none was given back since */
	_Atomic uint64_t launches; /* what no lane counts, less those that failed: modulo 2^64 */
	_Atomic uint32_t cut;      /* the job's own sessions changed so often */
	_Atomic uint32_t except;   /* ring name of those of them that are inactive; 0: none */
	_Atomic uint32_t captures; /* threads that capture a CUDA graph */
	_Atomic bool markers_off;  /* ranges of NVTX are no scopes */
	_Atomic uint64_t tick_ns;  /* of the ring clock, times 2^32 */
	_Atomic uint32_t nap;      /* the daemon's, for which it was woken */
	bool wakes;                /* the host has wake() */

	_Atomic uint32_t backend_lock;
	struct lane *agent;            /* under backend_lock */
	uint32_t generation;           /* last one given out */
	uint32_t epoch;                /* GPU subscriptions so far */
	const struct backend *backend; /* NULL: none in this build */
	uint32_t gpu_wanted;           /* enum gpu_state that was last asked for */
	bool gpu_take;                 /* until the next start */
	bool gpu_aside;                /* the next stop lets go at once */
	_Atomic uint32_t gpu;          /* enum gpu_state */
	_Atomic uint32_t bell;         /* futex: the agent's thread has something to do */
	_Atomic uint32_t flush_asked, flush_done;
	_Atomic uint64_t ending_ns;          /* when the exit handler gives up; 0: not ending */
	_Atomic uint32_t flush_ms, stall_ms; /* of its thread; tests change them later */
};
extern struct core core AGENT_OWN;

/* This thread runs the backend: what it writes goes into core.agent. */
extern __thread bool agent_on_backend __attribute__((tls_model("initial-exec"))) AGENT_OWN;
/* host->thread() of a thread that launches; NULL: not yet asked for, or it runs the backend. */
extern __thread struct pd_thread *agent_self __attribute__((tls_model("initial-exec"))) AGENT_OWN;

/* The recording that events belong to from now on; 0: none. */
static inline void generation_set(uint32_t generation)
{
	atomic_store_explicit(&HOT->generation, generation, memory_order_release);
	/* release, both: began, cpu and main_path are this generation's; an event that sees it sees
	 * them on x86 and, being dated by them, a moment later elsewhere */
	atomic_store_explicit(
		&HOT->match, generation != 0 ? generation : UINT32_MAX, memory_order_release);
}

#endif
