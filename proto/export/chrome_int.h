/* SPDX-License-Identifier: MIT. chrome_int.h: what the two files that write Chrome's trace
 * events share: chrome_trace.c reads a session and its processes, chrome_events.c writes what a
 * chunk has. */
#ifndef PROTOND_EXPORT_CHROME_INT_H
#define PROTOND_EXPORT_CHROME_INT_H

#include <stdlib.h>

#include "clockmap.h"
#include "export_format.h"
#include "profile_rows.h"
#include "text.h"
#include "trace.h"

#define LANES_MAX 64u      /* of a stream; what overlaps in more than these does so in the last */
#define LANE_TID  1000000u /* of a stream's second lane and on */

struct known { /* a node of the store */
	uint8_t hash[16];
	const char *name;
	uint32_t parent; /* place, PROFILE_NONE: a root */
	uint8_t kind;
};

struct lane_set { /* of one stream: when each of its lanes is free again */
	uint32_t device, stream, n;
	uint64_t *end; /* ns since the base */
};

struct named { /* a thread that had an event */
	uint32_t tid;
	const char *name; /* NULL: not known */
};

struct held { /* a metric whose scope has not been seen */
	uint64_t clock;
	uint32_t tid, node; /* node: place in known */
	uint8_t type;
	uint32_t free; /* its own place; once a scope has taken it, a later one */
	const char *name, *text;
	uint64_t bits;
};

struct gpu_seen {
	int64_t device;
	uint32_t ordinal, pid;
	const char *name;
};

struct chrome {
	struct load l;
	struct text out;
	FILE *to;
	bool first;
	uint64_t gone;   /* events that are not there any more */
	int64_t base_ns; /* of the ring's time: the file's times are differences to it */
	uint64_t flows, tasks;
	struct anchors tsc, mono; /* of the session's time, by the clock they were read beside */
	const struct anchors *wall;
	int64_t ahead_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	sqlite3_stmt *node_by_hash;
	struct known *known;
	uint32_t n_known, cap_known, *known_map, map_cap;
	uint32_t gpu_pid;
	/* of the process at hand */
	uint64_t events, kept; /* in all its chunks; in those that are there */
	int64_t pid;
	struct clockmap clock;
	struct anchors own;
	struct anchor own_anchor[2];
	struct lane_set *lane;
	uint32_t n_lanes, cap_lanes;
	struct named *thread;
	uint32_t n_threads, cap_threads;
	struct profile *texts; /* what the held ones are called */
	struct held *held;
	uint32_t n_held, cap_held;
	uint32_t *taken; /* those that the scope at hand took: places in held */
	uint32_t cap_taken;
	struct gpu_seen *gpu;
	uint32_t n_gpus, cap_gpus;
	/* of the chunk at hand */
	uint32_t *node; /* its places → known */
	uint32_t cap_node;
};

int chrome_no_memory(struct chrome *w);
/* Makes room for one more of `bytes` each in *v. */
int chrome_room(struct chrome *w, void **v, uint32_t *cap, uint32_t n, size_t bytes);
#define ROOM(w, v, cap, n) chrome_room((w), (void **)&(v), &(cap), (n), sizeof(*(v)))

/* chrome_events.c */
int64_t chrome_real_to_mono(struct chrome *w, uint64_t real_ns);
int chrome_flush(struct chrome *w);
void chrome_number(struct text *t, uint64_t v);
/* words, or NULL and a number */
void chrome_metadata(struct chrome *w, const char *what, int64_t pid, uint64_t tid, const char *key,
	const char *words, uint64_t index);
int chrome_chunk(struct chrome *w, const void *bytes, size_t n);
void chrome_metrics_left(struct chrome *w, bool all);           /* those whose scope was not seen */
struct gpu_seen *chrome_gpu(struct chrome *w, uint32_t device); /* NULL: out of memory */

#endif
