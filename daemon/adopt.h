/* SPDX-License-Identifier: MIT. adopt.h: a ring becomes a process of the fold. For the loop. Loop
 * thread. */
#ifndef PROTOND_DAEMON_ADOPT_H
#define PROTOND_DAEMON_ADOPT_H

#include <stdbool.h>
#include <stdint.h>

struct ring;
struct rv_state;

struct ring_origin {
	const uint8_t *token; /* NULL: none */
	uint32_t flags;
	const char *version;
};
/* PROCESS, an anchor and the automatic session; once. -errno. */
int ring_adopt(struct ring *r, const struct ring_origin *o);
/* A thread of the job has recorded: the agent's own is the first that has a lane. */
bool ring_is_used(struct ring *r);
int ring_put_state(const struct ring *r, const struct rv_state *s);

#endif
