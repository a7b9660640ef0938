/* SPDX-License-Identifier: MIT. lane.h: lanes as their owners see them. The engine's files include
 * it; a backend writes by agent_put() and agent_launch(). */
#ifndef PROTOND_AGENT_LANE_H
#define PROTOND_AGENT_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "ring.h"

/* A model whose operators are scopes has thousands of paths. */
#define CACHE_BITS  12
#define CACHE_SLOTS (1u << CACHE_BITS)
#define CACHE_WAYS  4u /* of a line */

struct counted;

struct path_slot {
	uint32_t parent, name; /* name: process-local; 0: empty */
	uint32_t path;
	uint32_t pad0;
};

/* Where the sum of a path's events of one kind is; stale unless that is between tail and end. */
#define SUM_SLOT_BITS 10
#define SUM_SLOTS     (1u << SUM_SLOT_BITS)
struct sum_slot {
	uint32_t path, kind;
	uint64_t pos;
};

/* Drops of one cause that were not yet said in-band. */
struct lost {
	uint64_t count, first, last;
};

/* A lane as its owner sees it: ordinary memory of this process, written by the thread that owns the
 * lane. It changes hands under core.table_lock. Its place in the ring is tail, limit, data, lap,
 * shared, head, index, full and nested: in a burst two lanes change places. */
struct lane {
	_Alignas(64) uint64_t tail; /* mirror of shared->tail */
	uint64_t limit;             /* a record that would end beyond it takes the slow path */
	unsigned char *data;
	uint64_t mask; /* lane_bytes - 1 */
	uint64_t lap;  /* bits 16..23 of each header */
	struct ring_lane *shared;
	_Atomic uint64_t launches; /* by its owners; others load it */
	uint32_t base_path;        /* of a thread's own context; PATH_ROOT: none */
	uint32_t op_python;        /* Python's stack in the open op, + 1; 0: nobody asked yet */
	uint64_t head;             /* as last read */
	uint32_t index;
	uint32_t inherited; /* PROTOND_INHERIT=copy: the main thread's path at the first event */
	struct lost full, nested;
	uint32_t name;       /* of the owner */
	uint32_t moves;      /* of the owner, since it claimed the lane */
	uint64_t waits_head; /* no move was to be had while the head of lane `waits` was this */
	uint32_t waits;      /* RING_LANES_MAX: none was refused */
	uint32_t moved;      /* of a lane that was left in a burst: which move that was */
	const struct lane *mover; /* and whose; else NULL */
	bool idle;                /* left, and empty for a second */
	/* counters.c: the owner's; they are of that thread, of that time with the switch on */
	struct counted *counted; /* NULL: none are to be had */
	uint32_t counted_tid, counted_epoch;
	/* Stays good when the lane changes hands. */
	_Alignas(64) struct path_slot cache[CACHE_SLOTS];
	struct lane *sums; /* of a thread under pressure: where its sums are; else NULL */
	/* Of a lane of sums: see sums.c. */
	uint64_t end;   /* of the open ones; not above tail: there are none */
	uint64_t base;  /* clock: what began before it is not summed */
	uint64_t since; /* events since the daemon's last visit */
	uint64_t seen;  /* ring_ctl.sums, as it was when that was last looked at; likewise: */
	uint32_t cut;   /* core.cut */
	struct sum_slot slot[SUM_SLOTS];
};

int lane_init(void);
void lane_fini(void);
/* [any] *ret_lane stays as it was when no lane is to be had. */
void lane_claim(uint32_t tid, bool own_name, void **ret_lane);
void lane_release(struct lane *l, bool reuse);
struct lane *lane_first(void); /* with the tables' lock: the one at core.lanes_used */
/* [agent] When none is left: takes back those whose thread ended without giving its own back. */
void lane_sweep(void);
/* [agent] Once a second: gives back the memory of lanes that were left and idle since the last call.
 * True: there may be more. */
bool lane_trim(void);
/* After a refusal nobody asks for a lane until this is called: there may be room again. */
void lane_retry(void);
/* [any] In l, or in further lanes of its owner. */
bool lane_more(struct lane *l, uint32_t bytes);
/* [any] Gives l's owner a lane for its sums. False: none is to be had, or the daemon knows no sums. */
bool lane_sums_take(struct lane *l);
void lane_sums_give(struct lane *l);     /* [any] closes them, and gives it back */
void lane_sums_close(struct lane *sums); /* [any] those that are open are final */
/* [any] Room for a record, after LOST has told what was refused before; counts nothing. */
bool lane_room(struct lane *l, uint32_t bytes);
bool lane_put(struct lane *l, const void *rec, uint32_t bytes);
/* [any] Wakes the daemon if it naps and has left so many bytes of the lane. */
void lane_wake(const struct lane *l, uint64_t least);
/* [any] What this process has lost so far, by cause, as struct rec_session_cut has it. */
void lane_lost(uint64_t *ret_lost);
void lane_nested(struct lane *l); /* [any] in a signal handler that interrupted the owner */

static inline void lane_commit(struct lane *l, uint32_t bytes)
{
	l->tail += bytes;
	/* Publishes the record; pairs with the daemon's acquire fence after it has read tail. */
	atomic_store_explicit(&l->shared->tail, l->tail, memory_order_release);
}

#endif
