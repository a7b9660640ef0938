/* SPDX-License-Identifier: MIT. late_rank.h: which rank the others wait for. Where ranks meet, in a
 * collective on the GPU, whoever comes early waits inside of it: so the late one is the one whose
 * collectives take least, and the others wait for it for as long as theirs take longer (cf. the
 * straggler analyses of analyses.md's sources; HTA has the same from kernel times of NCCL). */
#ifndef PROTOND_VIEWER_LATE_RANK_H
#define PROTOND_VIEWER_LATE_RANK_H

#include "ranks.h"
#include "steps.h"

struct late_rank {
	uint32_t at;   /* place in ranks.process */
	bool by_steps; /* of steps that are not warm (step_pace.h); else of all, the start included */
	double wait_ns;      /* what the median of the others waits for it, in all */
	double step_wait_ns; /* a step: the median of its steps; NAN without steps */
	uint32_t steps;      /* of it */
	double share;   /* wait_ns of the others' time: of their steps, else of their GPU work */
	uint32_t since; /* the step from which they wait, as it is numbered; 0: from the first on */
	/* What it has more of than the others, without collectives: the innermost with nearly all. */
	uint32_t
		node; /* of ranks.p; PROFILE_NONE: nothing that was recorded makes up half of the wait */
	bool host;      /* that is the host's time, not the GPU's */
	double more_ns; /* in all, than the median of the others */
};

/* Of a session whose ranks meet on GPUs; s: its steps, NULL without a timeline. False: fewer than two
 * ranks had GPU work and collectives, or no memory. */
bool late_rank_find(const struct ranks *r, const struct steps *s, struct late_rank *ret);

#endif
