/* SPDX-License-Identifier: MIT. critical.h: what bounds a step: the chain of host work, launches and GPU work without a pause that
 * leads to its end, and what the step would take with a part of it faster. */
#ifndef PROTOND_VIEWER_CRITICAL_H
#define PROTOND_VIEWER_CRITICAL_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;
struct export_left;

#define CRITICAL_ROWS_MAX 20u

/* clang-format off */
#define CRITICAL_PARTS(X) /* name, word, what it is */ \
	X(HOST,    "host",    "the host worked, in scopes") \
	X(LOADER,  "data",    "the host worked or waited in a data loader") \
	X(CALL,    "call",    "calls of the GPU's library, and waits for no work that is known") \
	X(NOTHING, "between", "the host, where no scope was open") \
	X(LAUNCH,  "launch",  "from a launch until the GPU began, with nothing before it") \
	X(COMPUTE, "compute", "kernels") \
	X(COMM,    "comm",    "collectives") \
	X(COPY,    "copy",    "copies and memsets") \
	X(GAP,     "gap",     "between two pieces of work of one stream") \
	X(EVENT,   "event",   "from an event to the work of the stream that waited for it") \
	X(RETURN,  "return",  "from the end of the work that was waited for until the call came back")
/* clang-format on */

enum critical_part {
#define X(name, word, what) CRITICAL_##name,
	CRITICAL_PARTS(X)
#undef X
		CRITICAL_N
};

struct critical_row {     /* of a name, in a part */
	const char *name; /* "": it has none */
	enum critical_part part;
	uint64_t ns;    /* on the path */
	uint32_t times; /* edges */
	double gain_ns; /* of the whole, were all of this name a tenth faster: computed anew */
};

struct critical {                                   /* critical_free() */
	int64_t pid, rank;                          /* rank -1: none */
	uint32_t step;                              /* its number; 0: a window */
	uint32_t steps;                             /* how many its process has */
	uint64_t begin_ns, end_ns;                  /* since the timeline's zero */
	uint64_t part_ns[CRITICAL_N];               /* they add up to end - begin */
	struct critical_row row[CRITICAL_ROWS_MAX]; /* by ns */
	uint32_t n_rows, left_out;
	uint64_t left_out_ns;
	uint32_t nodes, edges; /* of the graph */
	bool waits;            /* some call that waits for the GPU is in it */
	uint32_t behind;       /* pieces of work that were launched in it and ended after it, */
	uint64_t
		behind_ns; /* the last of them so long; no more than the step's own length is looked at */
	struct profile *texts;
};

/* Of an open store: the step that s names, else one of median length, of the first process that has any; or s' window, or
 * all of what has no steps, of the first process with events there. -ENODATA: no timeline. -ENOENT: no such step. -EINVAL, -E2BIG. */
int critical_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct critical **ret, struct err *e);
void critical_free(struct critical *c); /* NULL is fine */

#endif
