/* SPDX-License-Identifier: MIT. flight.h: what of a process is in flight: launches that may yet get
 * records, and records that wait for their launch. Plain data; correlate.c alone moves it from list
 * to list. */
#ifndef PROTOND_FLIGHT_H
#define PROTOND_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"
#include "ring.h"
#include "table.h"

#define WAIT_NS 5000000000ull /* how long one half waits for the other after it might have come */

/* A KERNEL, COPY or SET record, in one shape; CAPTURED too: bytes is its value, id its type;
 * OVERHEAD too: stream is its thread. */
struct gpu {
	uint64_t start, end, bytes; /* CLOCK_REALTIME ns */
	uint32_t correlation, name, captured, config, stream, context;
	uint32_t graph_exec; /* id of the executable graph it was part of, or 0; not kept */
	uint16_t epoch, device;
	uint8_t type;  /* of the record, enum record_type */
	uint8_t flags; /* GPU_FLAG_* */
	uint8_t id;    /* of the record's header, where that tells classes apart */
	uint8_t class; /* enum cell_class of these two; COMPUTE may be COMM, by its name */
};

/*           LAUNCH                      first record (ordinary)
 *   (none) ───────► OPEN / GRAPH ──────────────────────────────► (gone)
 *      │               │ GRAPH: DELIVERED passed it, nothing more came
 *      │ record        ▼
 *      └──► WAITING  PASSED ── 5 s without a record ──► (gone)
 *             │ LAUNCH: joined;  5 s: counted under (no launch)
 *             └──► JOINED: of a graph, while records that waited are still to be counted ──► GRAPH
 */
enum launch_list {
	LIST_OPEN,
	LIST_GRAPH,
	LIST_JOINED,
	LIST_PASSED,
	LIST_WAITING,
	LIST_FREE,
	LIST_MAX
};

struct launch {
	uint64_t clock;   /* of the launch */
	uint64_t end;     /* clock, of LAUNCH_ENDS: the call came back */
	uint64_t parts;   /* bit per slot: the sessions that it counts in */
	uint64_t seen_ns; /* monotonic time of the entry that brought it, or its last record */
	uint32_t correlation, path, name,
		python; /* name: of LAUNCH_TIMED, how long its call took */
	uint16_t epoch;
	uint8_t flags;       /* LAUNCH_* */
	uint8_t list;        /* enum launch_list */
	uint32_t next, prev; /* place + 1, oldest first */
	uint32_t records;    /* place + 1 in gpu[]: records that wait, or RUNNING ones */
	uint32_t round;      /* DELIVERED records so far when its last record came; 0: none came */
	uint32_t tid;        /* of the thread that launched */
	uint32_t graph_exec; /* id of the executable graph, once a record said it */
};

struct gpu_wait {
	struct gpu gpu;
	uint32_t next; /* place + 1 */
	uint32_t n;    /* records from here to the end of its launch's */
};

struct flight {
	struct launch *launch;
	struct gpu_wait *gpu;
	uint32_t n_launches, cap_launches, n_gpu, cap_gpu, free_gpu, held_gpu;
	uint32_t waiting; /* records held of launches in LIST_WAITING */
	struct table by_key;
	struct {
		uint32_t first, last, n;
	} list[LIST_MAX];
	uint64_t delivered_clock; /* of the last DELIVERED */
	uint64_t idle_clock;      /* of the last one that left nothing pending */
	uint32_t rounds;          /* DELIVERED records, + 1 */
	uint16_t epoch;           /* of the last one */
	bool pass_due;            /* DELIVERED came since the last sweep */
	uint32_t left;            /* of limit.sweep, for this entry */
};

static inline uint32_t launch_name(const struct launch *l)
{
	return (l->flags & LAUNCH_TIMED) == 0 ? l->name : NAME_NONE;
}

static inline uint32_t flight_open(const struct flight *c) /* may yet get records */
{
	return c->list[LIST_OPEN].n + c->list[LIST_GRAPH].n + c->list[LIST_JOINED].n;
}

static inline bool flight_is_joining(const struct flight *c) /* sweeps are to go on */
{
	return c->list[LIST_JOINED].n != 0;
}

static inline uint32_t flight_records(const struct flight *c, uint32_t records)
{
	return records == 0 ? 0 : c->gpu[records - 1].n;
}

static inline struct launch *flight_first(const struct flight *c, enum launch_list list)
{
	return c->list[list].first == 0 ? NULL : &c->launch[c->list[list].first - 1];
}

static inline struct launch *flight_next(const struct flight *c, const struct launch *l)
{
	return l->next == 0 ? NULL : &c->launch[l->next - 1];
}

static inline void flight_append(struct flight *c, struct launch *l, enum launch_list list)
{
	uint32_t at = (uint32_t)(l - c->launch) + 1;

	l->list = (uint8_t)list;
	l->next = 0;
	l->prev = c->list[list].last;
	if (l->prev != 0)
		c->launch[l->prev - 1].next = at;
	else
		c->list[list].first = at;
	c->list[list].last = at;
	c->list[list].n++;
}

/* From its list. */
static inline void flight_remove(struct flight *c, struct launch *l)
{
	enum launch_list list = l->list;

	if (l->prev != 0)
		c->launch[l->prev - 1].next = l->next;
	else
		c->list[list].first = l->next;
	if (l->next != 0)
		c->launch[l->next - 1].prev = l->prev;
	else
		c->list[list].last = l->prev;
	c->list[list].n--;
}

#endif
