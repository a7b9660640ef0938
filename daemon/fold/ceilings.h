/* SPDX-License-Identifier: MIT. ceilings.h: how far a fold may grow. */
#ifndef PROTOND_CEILINGS_H
#define PROTOND_CEILINGS_H

#include <stdint.h>

struct fold_limits {       /* 0: the default */
	uint32_t nodes;    /* cells per (session, process): 262 144; surplus counts in (other) */
	uint32_t launches; /* open launches per process: 1 048 576; the oldest leave, counted */
	uint32_t sweep;    /* of these, and of records that wait: so many leave or are joined at an
			       entry, each in a tree. 2048 */
	uint32_t sessions; /* live at once: 1 024 */
	uint32_t sessions_per_uid; /* not finalized, of one user: a quarter of `sessions`; as many:
				      there is one user, and nothing is kept for others */
	uint32_t processes;        /* 4 096 */
	uint64_t bytes; /* tables, trees, open launches of all processes and rows on their way,
			       about: 24 MiB; of one,     ¾ of it; beyond, only who has less than an
			       even     share gets more */
	uint64_t trace_bytes; /* of one session's timeline: 512 MiB; the oldest chunks leave */
	uint64_t trace_ns;    /* chunks older than this leave; 0: at no age */
};

/* Sessions that there was no room for since this fold was made, and of the last one: whose it was
 * to be, and why (as above). */
struct fold_refused {
	uint64_t n;
	uint32_t uid;
	int code;
};

#endif
