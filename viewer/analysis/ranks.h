/* SPDX-License-Identifier: MIT. ranks.h: the processes of one session side by side: what each scope and
 * kernel took in each of them. */
#ifndef PROTOND_VIEWER_RANKS_H
#define PROTOND_VIEWER_RANKS_H

#include <string.h>

#include "cost.h"
#include "gpu_terms.h"
#include "profile.h"

struct sqlite3;

#define RANKS_MAX      256u /* processes; of more, the first by rank */
#define RANKS_ROWS_MAX 500u

struct ranks_process {
	int64_t id, pid, rank; /* rank -1: none */
	uint64_t total_ns;     /* of its tree */
};

struct ranks_row {     /* a node that is in two processes or more, matched by path of names */
	uint32_t node; /* of ranks.p */
	uint32_t slowest, in; /* place of a process; in how many of them it is */
	uint64_t min_ns, median_ns, max_ns;
};

struct ranks {
	struct profile *p; /* all of their nodes on one tree; no metrics */
	struct ranks_process *process;
	uint32_t n, left_out;  /* processes */
	struct ranks_row *row; /* by max - median, the most uneven first */
	uint32_t n_rows;
	uint64_t *ns;      /* [n_nodes of p * n]: with all below it; 0: not there */
	enum cost cost;    /* which time */
	uint64_t *host_ns; /* likewise, of scopes, the time on the host; NULL: ns is that */
};

/* Where ranks meet, those that come early wait: there they have the larger number. */
static inline bool rank_meets(const struct profile_node *n)
{
	return n->class == CLASS_COMM || strncmp(n->name, "dist.", 5) == 0 ||
	       strncmp(n->name, "nccl", 4) == 0;
}

/* Of a session in an open store. -ENODATA: it has one process. -errno with words. */
int ranks_read(struct sqlite3 *db, int64_t id, struct ranks **ret, struct err *e);
uint32_t ranks_worked(const struct ranks *r); /* processes that have anything to compare */
/* Of process k, the time of its collectives' kernels. */
double ranks_meeting_ns(const struct ranks *r, uint32_t k);
void ranks_free(struct ranks *r); /* NULL is fine */

#endif
