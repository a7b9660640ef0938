/* SPDX-License-Identifier: MIT. drained.h: who waits until what jobs have written by now is in the
 * fold. For the loop; verbs call daemon_when_drained(). Loop thread. */
#ifndef PROTOND_DAEMON_DRAINED_H
#define PROTOND_DAEMON_DRAINED_H

#include "daemon.h"

struct protond;

/* As daemon_when_drained(), of one job. */
int when_drained(
	struct protond *p, const uint8_t ring[16], uint64_t deadline_ns, drained_fn *fn, void *arg);
void drained_check(struct protond *p); /* calls those that need not wait any longer */
/* Brings it now, for all: the daemon ends. Returns how many rings have more. */
uint32_t drained_whole(struct protond *p, uint64_t deadline_ns);
void drained_end(struct protond *p); /* calls all: the daemon ends */

#endif
