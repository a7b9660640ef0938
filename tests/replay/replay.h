/* SPDX-License-Identifier: MIT. replay.h: the stub libcupti that plays a raw dump back: what it has
 * beyond CUPTI's own functions. docs/replay.md.
 *
 * PD_REPLAY_DUMP   the file; read when the library is first asked for anything
 * PD_REPLAY_ERROR  what cuptiSubscribe answers instead of 0 (999, 39, 35, 15)
 * PD_REPLAY_LIVE   work ends in the calls of the replay that wait, not when it was recorded
 * PD_REPLAY_FAULT  drop | zero | nullpool | running | wrap | destroyfirst | unknown
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdint.h>

enum replay_step { REPLAY_SCOPE = 1, REPLAY_STATE = 2, REPLAY_OP = 3 };

/* Called on the thread that plays the recorded thread; level() on the one that called run(). */
struct replay_ops {
	void (*enter)(void *user, enum replay_step kind, const char *name);
	void (*exit)(void *user, enum replay_step kind);
	void (*level)(void *user, uint32_t level); /* the agent was 0: none, 1: armed, 2: on */
	void *user;
};

struct replay_told {
	uint64_t callbacks, skipped; /* skipped: nobody had asked for that callback */
	uint64_t records, dropped;   /* records delivered; left out by the fault `drop` */
	uint64_t unwalked;           /* bytes of unknown kinds */
};

/* Plays the whole dump: callbacks in their order on as many threads as were recorded, buffers
 * through the registered callbacks. 0 or -errno. */
typedef int pd_replay_run_fn(const struct replay_ops *ops, struct replay_told *ret);

#endif
