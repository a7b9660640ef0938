/* SPDX-License-Identifier: MIT. engine.h: what libprotond (the doorbell) and libprotond-agent (the
 * engine) say to each other inside one process.
 *
 * libprotond is always there and does nothing but keep, per thread, a stack of name ids. When
 * something is to be recorded its parked thread loads the engine, calls open() and start(), stores
 * the engine's table, and then raises the gate. From then on calls go straight to the table. Tables
 * carry size and version: a side uses a slot only when `bytes` covers it.
 *
 * Threads: the slots marked [any] run on application threads: no lock, malloc, syscall, log or wait
 * after a thread's first event, but for a wake() (one for each nap of the daemon's) and, when a lane
 * is full, for the way into another (the tables' lock, memory for a lane); errno is kept.
 * All others run on libprotond's own thread.
 */
#ifndef PROTOND_ABI_ENGINE_H
#define PROTOND_ABI_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "gpu_report.h"
#include "session_terms.h"

#define ENGINE_ABI    1u
#define ENGINE_SONAME "libprotond-agent.so.0"
#define ENGINE_SYMBOL "protond_engine_v1"
#define STACK_MAX     256u /* deeper scopes are counted, not named; exits stay balanced */
#define STATES_MAX    16u
#define STATE_BELOW \
	0x80000000u         /* a state that stands below the one around it, and does not hide it */
#define NAMES_MAX    65536u /* process-local name ids; 0 is "(other)" */
#define CONTEXTS_MAX 65536u /* context handles; 0 is the root */
/* A process-local name that begins with it is a scope's of an NVTX domain: MARK DOMAIN MARK NAME; of
 * the default one DOMAIN is empty. No byte of UTF-8. */
#define NAME_DOMAIN_MARK 0xffu

/* A thread, in a block mmapped by libprotond at the thread's first call. Only that thread touches
 * it, except `path`, which other threads load when they follow the main thread. */
struct pd_frame {
	uint32_t name;  /* process-local id */
	uint32_t path;  /* ring path; valid while thread.generation is the engine's */
	uint64_t begin; /* ring clock; 0 unknown, FRAME_INHERITED */
};
#define FRAME_INHERITED UINT64_MAX /* open when this process was forked: a place, without time */

struct pd_thread {
	uint32_t bytes;      /* sizeof, as libprotond made it */
	uint32_t depth;      /* open scopes; frames beyond STACK_MAX are not kept */
	uint32_t generation; /* the recording that `path` ids belong to; 0 none */
	uint32_t path;       /* current path; atomic */
	uint32_t states;     /* open states */
	uint32_t op;         /* name id of the innermost op; 0: none */
	uint64_t context;    /* what protond_context_set() gave; 0: follow the main thread */
	uint32_t base_depth; /* scopes open when context was set: not part of this context */
	uint32_t tid;
	uint32_t is_main;
	uint32_t busy;              /* re-entry guard: the depth of calls into us */
	void *engine;               /* the engine's own state of this thread */
	uint32_t state[STATES_MAX]; /* name ids, and STATE_BELOW */
	struct pd_frame frame[STACK_MAX];
};

enum gpu_hint {
	GPU_HINT_TAKE = 1,  /* the tool that we paused for has done: what it still holds ends when
			       we next start */
	GPU_HINT_ASIDE = 2, /* the pause: let go at once, whatever cost that leaves */
};

/* What the engine may ask of libprotond. */
struct protond_host {
	uint32_t abi, bytes;
	struct pd_thread *(*thread)(void); /* [any] of the caller; NULL when none can be had */
	/* [any] Text of a process-local name. Never moves, never freed. */
	const char *(*name)(uint32_t id, uint32_t *ret_bytes);
	uint32_t (*intern)(const char *text, uint32_t bytes); /* [any] 0 when the table is full */
	/* [any] One level of a context handle: its name, and the handle of its parent (0: root). */
	uint32_t (*context_name)(uint64_t context, uint64_t *ret_parent);
	/* [agent thread] The fields of gpu_report(), for an engine of 0.1. */
	void (*gpu_state)(uint32_t state, int32_t code, uint32_t library, uint32_t driver,
		const char *path, const char *words);
	const struct pd_thread *(*main_thread)(void); /* [any] NULL until it called */
	/* [any] The caller's stack in its language, innermost first, as process-local names. */
	uint32_t (*stack)(uint32_t *names, uint32_t cap);
	void (*wake)(void); /* [any] The daemon is to look at the ring. Two system calls. */
	/* [agent thread] Says a changed GPU state to the daemon. */
	void (*gpu_report)(const struct gpu_report *r);
	/* [agent thread] All blocks of threads, one after another; NULL: the first, and after the
	 * last. One whose tid is 0 is nobody's now. Never freed. */
	const struct pd_thread *(*next_thread)(const struct pd_thread *after);
	/* [any] The handle of a scope of this name where the calling thread stands. */
	uint64_t (*context_below)(uint32_t name);
};
#define HOST_BYTES_LEAST  offsetof(struct protond_host, wake) /* a host of 0.1 may end there */
#define HOST_HAS(h, slot) ((h)->bytes >= offsetof(struct protond_host, slot) + sizeof((h)->slot))

struct engine_open {
	uint32_t n_lanes, lane_bytes; /* 0: the defaults */
	uint8_t store[16];
	uint8_t parent[16];
	const char *rings_dir; /* NULL or "": memfd */
	const char *info;      /* NUL-separated KEY=VALUE, info_bytes long */
	uint32_t info_bytes;
	int32_t inherit_copy; /* PROTOND_INHERIT=copy */
};

/* What torch's caching allocator did: struct rec_block. */
struct engine_block {
	uint64_t address, bytes, reserved, active, split, requested;
	uint32_t device, op; /* enum block_op */
};

struct session_options {
	uint32_t backend, mode, hook; /* process-local name ids, 0 none */
	uint8_t data, context, cpu, switches;
	uint64_t flags;
	uint32_t domains; /* likewise; there with SESSION_DOMAINS in flags */
};
#define SESSION_DOMAINS (1ull << 63)

struct protond_engine {
	uint32_t abi, bytes;
	char version[32];

	/* Makes the ring. 0, or -errno and words in text[256]. Once per process. */
	int (*open)(const struct protond_host *host, const struct engine_open *o, char *text);
	int (*ring_fd)(uint8_t ret_uuid[16], uint32_t *ret_named);
	/* Takes the control file (maps it, closes fd). Again after a reconnect. */
	int (*control)(int fd, uint32_t n_lanes);
	/* Starts, changes or ends recording. want is enum ring_want bits; 0 ends. Idempotent.
	 * Returns when it holds: GPU on or failed (then gpu_state() was told). */
	int (*want)(uint32_t want);
	void (*exit)(void); /* from the exit handler: flush, with a watchdog; then silent */
	void (*thread_exit)(struct pd_thread *t); /* [any] give the lane back */

	void (*scope_enter)(struct pd_thread *t, uint32_t name); /* [any] moves depth */
	void (*scope_exit)(struct pd_thread *t); /* [any] depth > 0 holds; moves depth */
	void (*scope_unwind)(struct pd_thread *t, uint32_t depth); /* [any] */
	void (*state_changed)(struct pd_thread *t);   /* [any] after state[] or op moved */
	void (*context_changed)(struct pd_thread *t); /* [any] */
	/* [any] name: process-local id of "flops8 (inc)"; type: enum metric_type; bits of the
	 * value. */
	void (*metric)(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t bits);
	/* [any] verb: enum session_verb; session: the job's own number or SESSION_ALL. */
	int (*session)(struct pd_thread *t, uint32_t verb, uint32_t session, uint32_t name,
		const struct session_options *o);
	/* Waits (at most timeout_ms) until what was launched so far is delivered into the ring. */
	int (*flush)(uint32_t timeout_ms);
	uint32_t (*nvtx)(void *get_export_table); /* InitializeInjectionNvtx2 passes through here */
	/* Before nvtx(), which may come before open(): whose threads and names NVTX ranges are. */
	void (*host)(const struct protond_host *host);
	uint64_t (*clock)(void); /* [any] ring clock now */
	/* [any] A scope that was on no stack: where `context` stands, from `begin` (ring clock; 0:
	 * before this recording) to now. */
	void (*span)(struct pd_thread *t, uint64_t context, uint64_t begin);
	/* Before want(): enum gpu_hint bits. */
	void (*gpu_hint)(uint32_t hints);
	/* After want() with PAUSE and GPU_HINT_ASIDE: what is left of their cost, inside the next
	 * call of the GPU's interface. Waits for one, at most 250 ms. */
	void (*gpu_give_back)(void);
	/* In a forked child, also without open(): what it records may not reach the daemon (1), or
	 * does after all (-1). Its parent's ring counts that. */
	void (*child_lost)(int32_t n);
	/* [any] 1: the thread captures a CUDA graph, so its metrics count when that runs. */
	uint32_t (*capturing)(const struct pd_thread *t);
	/* [any] As metric(), of a number that the GPU writes at each run: which of those that it
	 * writes (its device << 32 | a number of the caller's) into captured_ring(). 0: not taken. */
	uint32_t (*captured)(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t which);
	/* Memory for good, zeroed: a 64-bit count of entries begun, and from byte 64 on entries
	 * {tag, value}: the entry of count n stands at n modulo how many there are (a power of 2), tag
	 * is a number << 32 | the low half of n, written last and 0 meanwhile. NULL: none to be had. */
	void *(*captured_ring)(uint32_t device, uint64_t *ret_bytes);
	void (*markers)(uint32_t on); /* [any] Whether ranges of NVTX are scopes from now on */
	uint32_t (*nvtx_extension)(void *module); /* likewise InitializeInjectionNvtxExtension */
	void (*block)(struct pd_thread *t, const struct engine_block *b); /* [any] */
	void (*unkept)(void); /* [any] A scope's end on a thread for which no block could be had */
	uint32_t (*threads)(void); /* Of its own: none of them ends as the program does */
};

typedef const struct protond_engine *protond_engine_fn(void);

#endif
