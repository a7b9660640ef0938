/* SPDX-License-Identifier: MIT. state.h: the fold itself, and who owns what in it.
 *
 *   fold ─┬─ process ── tables, nodes, lanes, what is in flight
 *         └─ session ── part, one per process that is in it: windows, a tree, a timeline
 *
 * A process refers to the parts that take its events (at most PARTS_MAX, each with a slot: a bit in
 * a launch's set). A part refers to its process, whose nodes its cells stand on: the process goes
 * last. No lock: all on one thread.
 *
 * The files stand in layers, and none calls one above it; where a lower one would have to, it says
 * what happened (fold.no_memory, p->refused, what it returns) and the upper one looks:
 *
 *   fold · collect · restore · where      what fold.h promises
 *   pipeline · pending                    a lane's records; what is in flight, packed
 *   life · now                            processes come, say where they are, and go
 *   verb                                  what is said about sessions
 *   member                                a process joins a session, and leaves it
 *   correlate                             launches and their GPU records find each other
 *   metric                                a number of the program's counts
 *   tree                                  an event becomes a number
 *   timeline · steps                      and, where wanted, stays an event; a step is told apart
 *   ids · node                            what a ring's ids mean
 *   loss                                  what was lost, and what else must be known
 *   process · part · session              state, and the room that is left
 *   flight · cells · chunks · notes · ceilings · this file: data
 *   window · busy · words · nodehash      pure, and know nothing of the others
 */
#ifndef PROTOND_STATE_H
#define PROTOND_STATE_H

#include "ceilings.h"
#include "clockmap.h"
#include "must.h"

struct process;
struct row_anchor;
struct session;
struct user;

#define FOLD_MAGIC   0x444c4f46u /* "FOLD"; of a fold that is freed it is not */
#define ANCHORS_KEPT 256u
#define BOOT_NS      60000000000ull /* CLOCK_MONOTONIC goes back so far at a boot alone */

struct fold {
	struct fold_limits limit;
	struct process **process; /* by age */
	struct session **session;
	struct user **user; /* those that have processes here */
	uint32_t n_processes, cap_processes, n_sessions, cap_sessions, n_users, cap_users;
	struct anchor tsc_anchor[ANCHORS_KEPT], mono_anchor[ANCHORS_KEPT];
	struct anchors tsc, mono;
	struct row_anchor *new_anchor;
	uint32_t n_new_anchors, cap_new_anchors;
	int64_t next_process, next_session, offset_ns;
	struct fold_refused refused; /* not kept */
	int64_t *deleted;
	uint32_t n_deleted, cap_deleted, round, seen; /* seen: as in fold_seen() */
	uint64_t now_ns;
	uint64_t restored_ns; /* when what fold_restore() took was stored */
	uint64_t cost_ns;
	uint32_t fresh;               /* bytes of rows since the last collect */
	uint64_t held[WEIGHT_MAX];    /* bytes of all processes, as last weighed */
	uint64_t waiting;             /* bytes of rows on their way to the store */
	uint64_t sealed_bytes;        /* of chunks that wait for the next collect */
	bool cost_known, dirty, news; /* news: see fold_has_news() */
	bool restoring;               /* what was stored is taken back whatever it takes */
	bool no_memory;               /* for good: the journal has what this fold lacks */
	bool no_space;                /* during one fold_apply() */
	bool ending;                  /* in fold_free(): all goes, in any order */
	uint32_t magic;
};

#define MUST_FOLD(f) MUST((f) != NULL && (f)->magic == FOLD_MAGIC)

#endif
