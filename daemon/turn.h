/* SPDX-License-Identifier: MIT. turn.h: when the next tick is. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_TURN_H
#define PROTOND_DAEMON_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct turn {
	uv_timer_t tick;
	uv_idle_t again;                 /* a tick at once; either this or the timer is set */
	void (*on_tick)(struct turn *t); /* what a tick is: daemon.c */
	uint64_t quiet_since_ns;   /* last tick that moved anything, or that somebody asked for */
	uint64_t ticked_ns;        /* the last tick */
	uint32_t nap, last_nap;    /* what jobs are told, or were; 0: we look often */
	bool commit_due, trim_due; /* each has a turn of its own */
	bool stopping, ok;         /* ok: nothing forced us to end */
};

int turn_init(struct turn *t, uv_loop_t *loop); /* as uv_timer_init() */
void turn_in(struct turn *t, uint64_t ms);      /* 0: in the loop's next turn */
void turn_hurry(struct turn *t);                /* now, for something happened */
void turn_soon(struct turn *t);                 /* a tick, in the loop's next turn */
void turn_trim(struct turn *t); /* soon, what malloc has left goes back to the system */
/* Ends the loop without another word to the journal. */
void turn_fatal(struct turn *t, const char *why);

#endif
