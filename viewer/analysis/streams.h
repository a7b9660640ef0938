/* SPDX-License-Identifier: MIT. streams.h: what each stream of each GPU did of a time: how long it worked, alone and beside
 * others, and its gaps. Exact, out of a timeline. */
#ifndef PROTOND_VIEWER_STREAMS_H
#define PROTOND_VIEWER_STREAMS_H

#include "events.h"

#define STREAMS_MAX 4096u /* of a process; work of further ones is counted only */

struct streams_row {                   /* a stream of a process; or all of a GPU's streams of it */
	int64_t pid, rank;             /* rank -1: none */
	uint32_t gpu, context, stream; /* gpu: ordinal */
	uint32_t streams;              /* of all of a GPU: how many; 0: it is one */
	uint64_t ops;
	uint64_t busy_ns;   /* some work of it ran */
	uint64_t alone_ns;  /* and none of another stream of the GPU; of all: one stream alone */
	uint64_t sum_ns;    /* of all: of its streams' busy_ns; of one: busy_ns */
	uint64_t span_ns;   /* from its first work to its last, of the time that was asked for */
	uint64_t window_ns; /* the time that was asked for, as far as the process had events */
	uint64_t gaps, longest_ns;  /* times without work in its span; the longest */
	char name[GPU_LABEL_BYTES]; /* the program's, of one; "": none */
};

struct streams { /* zero-initialise; streams_fini() */
	struct streams_row *
		row; /* process by process, GPU by GPU: all of it, then its streams, the busiest first */
	uint32_t n, cap;
	uint64_t left_out; /* operations of further streams */
};

/* Adds the rows of a process, of the times e->spans.of; pid and rank are left to the caller. -ENOMEM. */
int streams_add(struct streams *s, const struct events *e);

/* arg: a struct streams; as export_timeline_fn, of the times that s names (spans.h). -ENOENT, -E2BIG. */
int streams_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
void streams_fini(struct streams *s);

#endif
