/* SPDX-License-Identifier: MIT. agent.h: what a backend may use of the engine, and what it gives in
 * return: struct backend. Backends include it and no other header of the engine.
 *
 * [any]: on any application thread: no malloc, lock, syscall, log or wait; errno kept. (The first
 * event of a thread claims a lane, the first use of a name or path inserts it: those may make a
 * system call to back tmpfs pages, and take a process-private spinlock for the insertion only.)
 * [agent]: on the agent's own thread only.
 */
#ifndef PROTOND_AGENT_H
#define PROTOND_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends.h"
#include "engine.h"
#include "gpu_report.h"
#include "record.h"
#include "ring.h"

/* --- the tables of the ring, insert-only ------------------------------------------------------ */

/* [any] Ring name id of any bytes; cut and hashed beyond NAME_BYTES_MAX; NAME_OTHER when full. */
uint32_t agent_name(const char *text, size_t bytes);
/* [any] Child of a path; the parent's (other) when the table or the parent is full. `name` is a
 * ring name id. */
uint32_t agent_path_child(uint32_t parent, enum path_kind kind, uint32_t name);
struct agent_step {
	uint32_t parent, kind; /* kind: enum path_kind */
	const char *text;
	uint32_t bytes;
};
/* [any] A path's last level, read back. False: PATH_ROOT. */
bool agent_path_step(uint32_t path, struct agent_step *ret);
/* [any] UINT32_MAX when full. */
uint32_t agent_config(const struct ring_config *c);
/* [any] Finds by uuid or adds; returns index, UINT16_MAX when full. */
uint16_t agent_device(const struct ring_device *d);

/* --- where a thread stands -------------------------------------------------------------------- */

/* [any] Where a launch on this thread stands now: op, else state, else scope, else the context's or
 * the main thread's path. *ret_op: the path is an op's. */
uint32_t agent_where(bool *ret_op);
/* [any] A scope of the program's. May come before the engine is open, and in a forked child. */
bool agent_markers_off(void); /* [any] What a vendor's markers begin now is no scope. */
void agent_scope_enter(struct pd_thread *t, uint32_t name);
void agent_scope_exit(struct pd_thread *t);
/* [any] As struct protond_engine has metric() and span(); and what such a span begins with. */
void agent_metric(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t bits);
/* [any] Likewise, of the span that `context` is; 0: where the thread stands. */
void agent_metric_at(
	struct pd_thread *t, uint64_t context, uint32_t name, uint32_t type, uint64_t bits);
bool agent_metrics_on(void); /* [any] Somebody wants metrics. */
/* [any] Another number when a session may have begun, that does not know what was told before. */
uint32_t agent_cut(void);
/* [any] n values are not recorded: enum lost_cause, one without a counter in the ring. */
void agent_lost(struct pd_thread *t, uint32_t cause, uint64_t n);
/* [any] A thread's name from now on, the caller's or another's: a process-local name. */
void agent_thread_named(struct pd_thread *t, uint32_t tid, uint32_t name);
/* [any] Likewise a GPU's name (object: NAMED_GPU), or that of one of its streams, contexts or events. */
void agent_gpu_named(struct pd_thread *t, uint32_t ordinal, uint64_t object, uint32_t name);
void agent_object_named(struct pd_thread *t, enum gpu_object what, void *handle,
	uint32_t name); /* of the present GPU */
void agent_span(struct pd_thread *t, uint64_t context, uint64_t begin);
uint64_t agent_span_begin(void);

/* --- CUDA graphs: what a program gives while it captures one; see capture.c --------------------- */

void agent_capture_began(void);          /* [any] By the calling thread. */
uint32_t agent_capture_ended(bool last); /* [any] A list that no node took, and which the caller now
					    holds; 0: none. last: none is open in the process */
uint32_t agent_capture_given(
	void); /* [any] For a node just made by the calling thread: a list, held by
					the caller; 0: none. Its items count with each record of the node. */
void agent_given_hold(uint32_t given); /* [any] Once more; of all of these 0 is no list */
void agent_given_drop(uint32_t given); /* [any] */
void agent_given_lost(uint32_t given); /* [any] Drops it, and counts it as lost. */
/* [agent] Writes the items of a list, for one record of a node: start is its time. */
void agent_given_put(uint32_t given, uint32_t correlation, uint16_t epoch, uint64_t start);
void agent_given_tell(void);     /* [agent] Says what was lost, now and then */
void agent_capture_forget(void); /* nobody sees captures, nodes and their ends any more */
/* [any] As agent_where(), of what is captured: also tells which sessions it is not for. */
uint32_t agent_where_captured(void);

/* --- records ---------------------------------------------------------------------------------- */

/* [any] Writes one complete record into the calling thread's lane. `rec` starts with a header word
 * made with REC_HDR(bytes, type, 0, flags, id): the lap is filled in here. False: dropped, and
 * counted. */
bool agent_put(const void *rec, uint32_t bytes);
/* [agent] The same into the agent's own lane, waiting for space (the daemon drains it) until the
 * engine ends. False: ended, or no daemon for 60 s: dropped, counted. */
bool agent_put_wait(const void *rec, uint32_t bytes);
/* [any] Writes and counts a LAUNCH record of where the thread stands. flags: LAUNCH_ bits but
 * LAUNCH_OP; clock 0: now. Not between agent_enter() and agent_leave(). False: already inside of
 * us, counted as such. */
bool agent_launch(uint32_t flags, uint32_t correlation, uint32_t name, uint16_t epoch, uint16_t api,
	uint64_t clock);
/* [any] Likewise at the call's end, which is now: with LAUNCH_ENDS. */
bool agent_launch_ended(uint32_t flags, const struct rec_launch *known);
/* [any] Likewise a CALL record; begin and end are of agent_clock(). */
bool agent_call(const struct rec_call *r);
/* [any] Likewise a CALLED record, whose end is now. False: nothing was written, and agent_call() is
 * to be asked. Not between agent_enter() and agent_leave(). */
bool agent_called(uint32_t correlation, uint32_t name, uint16_t epoch, uint64_t begin);
void agent_launch_failed(void); /* [any] takes one back: no activity will answer it */
/* [any] Launches so far, less those that failed. What the caller's own thread launched is in it. */
uint64_t agent_launched(void);

struct backend_status {
	struct gpu_report gpu;
	bool replay; /* the library plays a recording: the session says so (source=replay) */
};
/* [agent] Tells the ring and the daemon. */
void agent_report(const struct backend_status *s, uint32_t epoch);

/* [any] Guard against re-entry (signals, the vendor's library inside us). False: already inside;
 * count and leave. Saves errno in *saved; agent_leave restores it. */
bool agent_enter(int *saved);
void agent_leave(int saved);

/* [any] Adds to a counter of struct ring_counts (relaxed). Use: agent_count(&c->gpu_dropped, n). */
struct ring_counts *agent_counts(void);
static inline void agent_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* --- the rest --------------------------------------------------------------------------------- */

uint64_t agent_clock(void); /* [any] ring clock now */
uint64_t agent_monotonic_ns(void);
/* [any] The agent's thread has something to drain before the next flush: one futex wake. */
void agent_ring(void);
/* A variable as the program was started with it, NULL if unset: getenv() on a thread of ours would
 * race with the application's setenv(). Valid for ever. */
const char *agent_env(const char *name);

/* --- what a backend gives --------------------------------------------------------------------- */

/* What a failure says to people: what happened, and what to do. */
struct backend_error {
	int32_t code; /* the vendor's, or -errno */
	char text[256];
};

/* Verbs are idempotent, on libprotond's thread or the agent's (never both at once: worker.c holds
 * them apart), except launches, which the backend's own callbacks write on application threads. */
struct backend {
	const struct backend_term *term; /* its row of BACKENDS */

	/* CAP_MARKER: table: what the vendor's loader gave to the injected library. 1: attached. */
	uint32_t (*attach)(const struct protond_host *host, void *table);
	uint32_t (*extend)(void *module); /* likewise, of an extension; attach() comes before it */

	/* CAP_KERNEL, all that follow. */

	/* Library and driver usable? Loads, but changes nothing in the process. Fills *ret but for
	 * state, code and words. */
	int (*probe)(struct backend_status *ret, struct backend_error *e);
	/* Subscribes. armed (CAP_GRAPH): graph callbacks only; else launches and activity records
	 * too. May be called to go from armed to on and back. take: whoever else is subscribed has
	 * done, and is ended. */
	int (*start)(bool armed, bool take, struct backend_error *e);
	/* What is recorded beside launches and GPU work, enum ring_want bits (WANT_SWITCHES), from now
	 * on and in later starts. NULL: nothing is. */
	void (*switches)(uint32_t want);
	/* [agent] Brings finished activity into the ring: every flush period, and on request.
	 * force: also what is unfinished (once per stall). Returns records written. */
	uint64_t (*flush)(bool force);
	uint64_t (*pending)(void);  /* launches seen and not yet delivered, as far as it can tell */
	uint64_t (*launched)(void); /* launches seen; NULL: it does not count them */
	/* Drains, disables, unsubscribes. finalize: also gives the library's cost back where that
	 * is safe; *ret_residual says whether a cost is left. */
	int (*stop)(bool finalize, bool *ret_residual);
	/* After a stop that left a cost: gives it back inside the application's next API call.
	 * Waits for one. False: none came, or it is not safe. NULL: cannot. */
	bool (*give_back)(void);
	/* In the process's exit handler, at most timeout_ms: what can still be saved. True: there was
	 * time for all, and more will not come of any launch. */
	bool (*exit)(uint32_t timeout_ms);
	void (*forked)(void); /* in the child: forget everything, touch nothing */
	/* Subscriptions so far, as in LAUNCH.epoch. NULL: the engine counts successful starts. */
	uint32_t (*epoch)(void);
	/* [any] Of an object of the calling thread's GPU, which is there: as records number both
	 * (gpu_terms.h). NULL: it does not know. */
	bool (*object)(enum gpu_object what, void *handle, uint32_t *ret_ordinal, uint64_t *ret);
	/* [agent] Only what the vendor's library has handed over by itself, after agent_ring().
	 * Returns records written. NULL: such records wait for the next flush. */
	uint64_t (*drain)(void);
	/* [agent] A record waits for room in the ring, inside flush() or drain(), while the application
	 * goes on: for what cannot wait. NULL: all can. */
	void (*waits)(void);
};

#define X(name, vendor, caps, injection) extern const struct backend backend_##name;
BACKENDS(X)
#undef X

#endif
