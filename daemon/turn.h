/* SPDX-License-Identifier: MIT. turn.h: when the next tick is. For the loop. */
#ifndef PROTOND_DAEMON_TURN_H
#define PROTOND_DAEMON_TURN_H

#include <stdint.h>

struct protond;

void turn_in(struct protond *p, uint64_t ms); /* 0: in the loop's next turn */
void protond_hurry(struct protond *p);        /* now, for something happened */
void protond_turn(struct protond *p);         /* a tick, in the loop's next turn */
void protond_trim(struct protond *p); /* soon, what malloc has left goes back to the system */
/* Ends the loop without another word to the journal. */
void protond_fatal(struct protond *p, const char *why);

#endif
