/* SPDX-License-Identifier: MIT. top.h: what a live session has recorded so far, by its heaviest
 * paths. Answered at once. */
#ifndef PROTOND_QUERY_TOP_H
#define PROTOND_QUERY_TOP_H

#include "ask.h"
#include "find.h"
#include "fold.h"

typedef void top_session_fn(void *arg, const struct refusal *no, const struct session_ref *s);
/* The session that is shown when none is named: query_newest_live(), once what jobs wrote before is
 * in the fold, as LOOK_MS allows. */
void query_top_session(struct daemon *d, const struct asker *a, top_session_fn *done, void *arg);
/* Whether there is something to be shown of it. -EALREADY: the fold has let go of it. */
int query_top_check(const struct session_ref *s, struct refusal *no);

/* Of what: session_ref's cells, as fold_top_wish has it. */
struct top_wish {
	uint32_t n, pid; /* pid: of this job alone; 0: of all */
	bool hist;
	const uint8_t *device; /* uuid; NULL: all */
};
/* CPU time that its jobs' agents and the daemon took for it. */
uint64_t query_top_cost(const struct daemon *d, const struct session_ref *s);
/* Whether a job takes part in it. */
bool query_top_member(
	const struct daemon *d, const struct session_ref *s, const struct fold_process *p);
void query_top_busy(
	const struct daemon *d, const struct session_ref *s, fold_busy_fn *fn, void *arg);
void query_top_told(
	const struct daemon *d, const struct session_ref *s, fold_told_fn *fn, void *arg);
/* fn for each job that runs and that the asker may see. */
void query_top_jobs(const struct daemon *d, const struct asker *a, fold_process_fn *fn, void *arg);
/* fn for each of the n cells with the largest sums. */
void query_top_cells(struct daemon *d, const struct session_ref *s, const struct top_wish *w,
	fold_cell_fn *fn, void *arg);

/* What its jobs hold of memory, if allocations are recorded; and what any job has in RAM. */
void query_top_memory(
	const struct daemon *d, const struct session_ref *s, fold_memory_fn *fn, void *arg);
uint64_t query_top_resident(const struct fold_process *p); /* 0: unknown */

#endif
