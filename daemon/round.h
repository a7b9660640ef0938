/* SPDX-License-Identifier: MIT. round.h: whose ring is drained next: of a tick's time each user has a
 * part, and each of his rings a turn before any has a second one, so that 256 rings of one user weigh
 * as much as one of another. For the loop. Pure.
 *
 *   round_begin ─► { round_may ─► round_took } for each ring ─► round_end
 */
#ifndef PROTOND_DAEMON_ROUND_H
#define PROTOND_DAEMON_ROUND_H

#include <stdbool.h>
#include <stdint.h>

struct round_user {
	uint32_t uid;
	bool seen, left;   /* in this tick: he has rings; and some that are to wait for the next */
	uint64_t began_ns; /* his round: rings taken since had their turn */
	uint64_t spent_ns; /* in this tick */
};

struct round { /* zero-initialised: nobody */
	struct round_user *user;
	uint32_t n, cap, last; /* last: found last */
	uint64_t part_ns;      /* of this tick, for one user */
};

void round_begin(struct round *o, uint64_t tick_ns);
/* A ring of that user, last taken then, is to be drained in this tick. */
bool round_may(struct round *o, uint32_t uid, uint64_t taken_ns);
void round_took(struct round *o, uint32_t uid, uint64_t ns);
bool round_end(struct round *o, uint64_t now_ns); /* true: somebody has rings left */
void round_fini(struct round *o);

#endif
