/* SPDX-License-Identifier: MIT. settle.h: who waits until jobs do what was last wanted of them. For
 * the loop; verbs call daemon_settle(). Loop thread. */
#ifndef PROTOND_DAEMON_SETTLE_H
#define PROTOND_DAEMON_SETTLE_H

#include "daemon.h"

struct settler;

struct settlers {
	struct daemon *d;
	struct settler *first;
};

/* As daemon_settle(), of what was told already. */
void settle_wait(struct settlers *all, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg);
void settle_check(struct settlers *all); /* somebody answered, or is gone */
void settle_end(struct settlers *all);   /* the daemon ends: nobody waits any more */

#endif
