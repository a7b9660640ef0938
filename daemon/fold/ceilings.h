/* SPDX-License-Identifier: MIT. ceilings.h: how far a fold may grow. */
#ifndef PROTOND_CEILINGS_H
#define PROTOND_CEILINGS_H

#include <stdint.h>

/* What takes memory: each kind may have limit.bytes, so that neither starves the other. */
enum weight {
	WEIGHT_REST,   /* tables, trees */
	WEIGHT_FLIGHT, /* launches and records that wait for their other half */
	WEIGHT_MAX
};

/* 0: the default, which stands behind each. */
struct fold_limits {
	/* Cells per (session, process); what is over counts in (other). 262 144 */
	uint32_t nodes;
	/* Open launches per process. Over it those leave that have waited for long, else no more
	 * are waited for; either is counted. 1 048 576 */
	uint32_t launches;
	/* Launches and records that one entry joins or lets go, times trees. 2 048 */
	uint32_t sweep;
	/* Sessions live at once. 1 024 */
	uint32_t sessions;
	/* Sessions of one user that are not finalized. If that is all of them, there is one
	 * user, and nothing is kept back for others. A quarter of `sessions` */
	uint32_t sessions_per_uid;
	/* 4 096 */
	uint32_t processes;
	/* Of tables and trees of all processes, and of rows on their way to the store, about; and as
	 * much again of open launches. One user gets three quarters of either at most; once all is
	 * used, only users and processes that have less than an even share get more. 24 MiB */
	uint64_t bytes;
	/* Of one session's timeline; over it the oldest chunks leave. 512 MiB */
	uint64_t trace_bytes;
	/* Of all of one user's that are not over, likewise: of the longest. 0: all */
	uint64_t trace_bytes_per_uid;
	/* Chunks older than this leave. 0: they stay */
	uint64_t trace_ns;
};

/* Sessions that there was no room for since this fold was made, and of the last one: whose it was
 * to be, and why (as above). */
struct fold_refused {
	uint64_t n;
	uint32_t uid;
	int code;
};

#endif
