/* SPDX-License-Identifier: MIT. queue_depth.h: how many launches of a stream were outstanding (called, and not
 * done on the GPU) when each of them was called, out of a timeline. Stamps of host and GPU agree to some µs. */
#ifndef PROTOND_VIEWER_QUEUE_DEPTH_H
#define PROTOND_VIEWER_QUEUE_DEPTH_H

#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;
struct export_left;

#define QUEUE_FULL \
	1024u /* launches before it: CUDA's queue has no more entries, and a call waits */
#define QUEUE_DEPTH_MAX (1u << 21) /* operations of a process; later ones are counted only */

struct queue_op { /* an operation, with its launch */
	uint64_t launch_ns, end_ns;
	uint32_t gpu, context, stream; /* gpu: ordinal */
	uint32_t tid,
		correlation; /* a launch of many (a graph) is one, done with the last of them */
};

struct queue_depth_row {   /* a stream of a process */
	int64_t pid, rank; /* rank -1: none */
	uint32_t gpu, context, stream;
	uint32_t max;      /* at a launch: others before it */
	uint64_t launches; /* on this stream */
	uint64_t sum;      /* of what each found */
	uint64_t full;     /* that found QUEUE_FULL or more */
};

struct queue_depth { /* the answer: queue_depth_fini() */
	struct queue_depth_row *row;
	uint32_t n, cap;
	uint64_t unlaunched; /* operations whose launch is not known */
	uint64_t left_out;
};

/* Sorts v, and adds a row for each stream. pid and rank are left to the caller. -ENOMEM. */
int queue_depth_add(struct queue_depth *d, struct queue_op *v, uint32_t n);

/* arg: a struct queue_depth, zeroed; as export_timeline_fn. */
int queue_depth_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
void queue_depth_fini(struct queue_depth *d);

#endif
