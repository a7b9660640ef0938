/* SPDX-License-Identifier: MIT. settle.h: who waits until jobs do what was last wanted of them. For
 * the loop; verbs call daemon_settle(). */
#ifndef PROTOND_DAEMON_SETTLE_H
#define PROTOND_DAEMON_SETTLE_H

#include "daemon.h"

struct protond;

/* As daemon_settle(), of what was told already. */
void settle_wait(struct protond *p, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg);
void settle_check(struct protond *p); /* somebody answered, or is gone */
void settle_end(struct protond *p);   /* the daemon ends: nobody waits any more */

#endif
