/* SPDX-License-Identifier: MIT. own_sessions.h: what the daemon itself does to sessions: a job's
 * automatic one, and the end of those whose jobs are gone. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_OWN_SESSIONS_H
#define PROTOND_DAEMON_OWN_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

struct protond;
struct ring;

#define ORPHANS_MAX 16u
struct orphans { /* runs without their protonctl, at the last look */
	uint8_t uuid[ORPHANS_MAX][16];
	uint32_t n;
	int64_t before_ns; /* of those that began by then, in CLOCK_REALTIME */
};

void session_auto(struct ring *r, const char *command); /* starts a job's automatic session */
void sessions_close(struct protond *p); /* finalizes those whose jobs are gone or asked for it */
void sessions_sweep(struct protond *p); /* and, twice seen, those that nobody is there to end */
void sessions_interrupted(struct protond *p); /* once a second, after a start */
/* Before its END. False: not all of its sessions have ended yet, again in the next tick. */
bool sessions_owner_gone(struct protond *p, const uint8_t ring[16]);

#endif
