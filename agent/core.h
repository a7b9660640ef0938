/* SPDX-License-Identifier: MIT. core.h: the engine's own state, shared by its files and by nothing
 * else.
 *
 * Who writes what:
 *   agent_hot     want() alone, under the backend lock; every event reads it. Its page is
 *                 MADV_WIPEONFORK: in a forked child all of it is 0, which means "record nothing"
 *   struct lane   the thread that owns the lane; hand-over between threads is under core.table_lock
 *   the tables    whoever holds core.table_lock; readers need no lock (an entry is complete before
 *                 its id can be found)
 *   core.agent    the agent's own lane: whoever holds core.backend_lock
 */
#ifndef PROTOND_CORE_H
#define PROTOND_CORE_H

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "agent.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The builtin asks for a line that is only read, unless told of a newer CPU. */
static inline void prefetch_to_write(const void *p)
{
#if defined(__x86_64__)
	__asm__("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#define AGENT_WANT_RECORD (~(uint32_t)WANT_GPU_PAUSE) /* any of these: paths move */
#define GENERATION_SYNCS  (UINT32_MAX - 1)            /* no recording's: scope_sync() is at it */
#define CACHE_BITS        10
#define CACHE_SLOTS       (1u << CACHE_BITS)
#define CONTEXTS_MAX      65536u

enum scope_clock { CPU_OFF = 0, CPU_TSC = 1, CPU_MONOTONIC = 2 };

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
} agent_page;
#define HOT (&agent_page.hot)

struct path_slot {
	uint32_t parent, name; /* name: process-local; 0: empty */
	uint32_t path;
	uint32_t pad0;
};

/* Drops of one cause that were not yet said in-band. */
struct lost {
	uint64_t count, first, last;
};

/* A lane as its owner sees it: ordinary memory of this process. */
struct lane {
	_Alignas(64) uint64_t tail; /* mirror of shared->tail */
	uint64_t limit;             /* a record that would end beyond it takes the slow path */
	unsigned char *data;
	uint64_t mask; /* lane_bytes - 1 */
	uint64_t lap;  /* bits 16..23 of each header */
	struct ring_lane *shared;
	_Atomic uint64_t launches; /* by its owners; others load it */
	uint32_t base_path;        /* of a thread's own context; PATH_ROOT: none */
	uint64_t head;             /* as last read */
	uint32_t index;
	uint32_t inherited; /* PROTOND_INHERIT=copy: the main thread's path at the first event */
	bool backed;
	struct lost full, nested;
	struct path_slot cache[CACHE_SLOTS]; /* stays good when the lane changes hands */
};

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
	_Atomic uint32_t lanes_used, lanes_backed_max;
	uint32_t *free_lane; /* a stack of lane numbers */
	_Atomic uint32_t n_free;
	_Atomic bool lanes_none;   /* none could be had, and none was given back since */
	_Atomic uint64_t launches; /* what no lane counts, less those that failed: modulo 2^64 */
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
extern struct core core;

/* This thread runs the backend: what it writes goes into core.agent. */
extern __thread bool agent_on_backend __attribute__((tls_model("initial-exec")));
/* host->thread() of a thread that launches; NULL: not yet asked for, or it runs the backend. */
extern __thread struct pd_thread *agent_self __attribute__((tls_model("initial-exec")));

/* --- clock.c ------------------------------------------------------------------------------------
 */

bool agent_tsc_usable(void);
uint32_t agent_tsc_khz(void);
void agent_clock_record(struct rec_clock *ret); /* tightest of 20 brackets */

static inline uint64_t agent_tsc(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return agent_monotonic_ns();
#endif
}

static inline uint64_t agent_clock_inline(void)
{
	return likely(HOT->tsc != 0) ? agent_tsc() : agent_monotonic_ns();
}

/* --- sync.c: futex, and the lock of cold paths ---------------------------------------------------
 */

void agent_lock_tables(sigset_t *ret_mask); /* core.table_lock, and no signal meanwhile */
void agent_unlock_tables(const sigset_t *mask);
bool agent_lock_for(_Atomic uint32_t *lock, uint32_t timeout_ms);
void agent_unlock(_Atomic uint32_t *lock);
void agent_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ms); /* < 0: for ever */
void agent_wake(_Atomic uint32_t *word);

/* --- ring.c -------------------------------------------------------------------------------------
 */

int ring_make(const struct engine_open *o, char *text);
void ring_unmake(void); /* before anybody has seen it: the file too */
void ring_budget(void); /* when no further lane was to be had: perhaps there is room again */
/* Backs a range of the ring file with memory, so that a store to it cannot fault. -ENOSPC, -EBADF.
 */
int ring_back(uint64_t offset, uint64_t bytes);
int ring_control(int fd, uint32_t n_lanes);
/* Gives a ring that is whole the name by which it is found when its job is dead: one that was
 * killed before leaves nothing. */
void ring_name(void);
bool ring_reopen(void); /* the application has closed its descriptor: another, by its name */
void ring_forget(void); /* in a forked child: puts private zeroes where the parent's ring was */

/* --- table.c ------------------------------------------------------------------------------------
 */

int table_init(void);
uint32_t table_name_of(uint32_t local);        /* [any] ring name of a process-local name */
uint32_t table_context_path(uint64_t context); /* [any] path of a context handle */
/* [any] As agent_path_child for a scope, and says whether the answer may be remembered: an (other)
 * may not, so that each scope that goes there is counted. */
uint32_t table_scope(uint32_t parent, uint32_t local, bool *ret_keep);

/* --- lane.c -------------------------------------------------------------------------------------
 */

int lane_init(void);
void lane_fini(void);
void lane_claim(uint32_t tid, bool own_name, void **ret_lane); /* [any] as it was: none to be had */
void lane_release(struct lane *l, bool reuse);
void lane_sweep(void); /* [agent] when there is none left: those whose thread gave none back */
/* Before it nobody asks for a lane after one could not be had: there may be room again. */
void lane_retry(void);
bool lane_slow(struct lane *l, uint32_t bytes); /* [any] counts a refusal */
/* [any] Room for a record, after LOST has told what was refused before; counts nothing. */
bool lane_room(struct lane *l, uint32_t bytes);
bool lane_put(struct lane *l, const void *rec, uint32_t bytes);
/* [any] Wakes the daemon if it naps and has left so many bytes of the lane. */
void lane_wake(const struct lane *l, uint64_t least);
void lane_nested(struct lane *l); /* [any] in a signal handler that interrupted the owner */

static inline uint64_t *lane_reserve(struct lane *l, uint32_t bytes)
{
	if (unlikely(l->tail + bytes > l->limit) && !lane_slow(l, bytes))
		return NULL;
	return (uint64_t *)(void *)(l->data + (l->tail & l->mask));
}

static inline void lane_commit(struct lane *l, uint32_t bytes)
{
	l->tail += bytes;
	/* Publishes the record; pairs with the daemon's acquire fence after it has read tail. */
	atomic_store_explicit(&l->shared->tail, l->tail, memory_order_release);
}

/* --- scope.c ------------------------------------------------------------------------------------
 */

void scope_enter(struct pd_thread *t, uint32_t name);
void scope_exit(struct pd_thread *t);
/* The same for callers that may come before open() or in a forked child. */
void scope_enter_unsure(struct pd_thread *t, uint32_t name);
void scope_exit_unsure(struct pd_thread *t);
void scope_unwind(struct pd_thread *t, uint32_t depth);
void scope_state_changed(struct pd_thread *t);
void scope_context_changed(struct pd_thread *t);
void scope_thread_exit(struct pd_thread *t);
uint32_t scope_main_snapshot(void); /* the main thread's path, worked out by another thread */
/* [any] The path of the caller's stack in its language, where somebody wants it; else PATH_ROOT. */
uint32_t scope_python(void);

/* --- event.c: metrics, spans, session marks
 * --------------------------------------------------------
 */

void event_metric(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t bits);
void event_span(struct pd_thread *t, uint64_t context, uint64_t begin);
int event_session(struct pd_thread *t, uint32_t verb, uint32_t session, uint32_t name,
	const struct session_options *o);

/* --- guard.c: re-entry ---------------------------------------------------------------------------
 */

/* [any] Where the calling frame is, as the mark of who is inside. Never 0. */
static inline uint32_t guard_mark(void)
{
	uintptr_t sp;

#if defined(__x86_64__)
	__asm__("mov %%rsp, %0" : "=r"(sp));
#else
	sp = (uintptr_t)__builtin_frame_address(0);
#endif
	return (uint32_t)sp | 1u;
}

static inline void guard_in(struct pd_thread *t)
{
	t->busy = guard_mark();
	/* Against the compiler only: a handler on this thread must see busy before anything moves.
	 */
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void guard_out(struct pd_thread *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	t->busy = 0;
}

/* [any] The thread is marked as inside. True: whoever was is gone (a longjmp() out of a signal
 * handler), and the mark is taken back. */
bool guard_heal(struct pd_thread *t);
/* [any] Counts an event that came while its own thread was inside. */
void guard_refused(struct pd_thread *t);
/* [any] With the guard held: t has a lane and paths of this recording. False: it gets no lane. */
bool scope_sync(struct pd_thread *t);

/* The recording that events belong to from now on; 0: none. */
static inline void generation_set(uint32_t generation)
{
	atomic_store_explicit(&HOT->generation, generation, memory_order_release);
	/* release, both: began, cpu and main_path are this generation's; an event that sees it sees
	 * them on x86 and, being dated by them, a moment later elsewhere */
	atomic_store_explicit(
		&HOT->match, generation != 0 ? generation : UINT32_MAX, memory_order_release);
}

/* --- worker.c: the agent's own thread ------------------------------------------------------------
 */

int worker_start(void);
int worker_flush(uint32_t timeout_ms);
void worker_exit(void);
bool worker_in(uint32_t timeout_ms); /* takes backend_lock, and with it the agent's lane */
void worker_out(void);
void worker_clock(void);           /* inside: a CLOCK record */
void worker_delivered(bool force); /* inside: flush, and DELIVERED */

/* --- gpu.c: GPU states; inside worker_in() --------------------------------------------------- */

void gpu_want(uint32_t want);
void gpu_give_back(void);

#endif
