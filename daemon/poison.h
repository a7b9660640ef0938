/* SPDX-License-Identifier: MIT. poison.h: entries that end the daemon: what is being applied is
 * written down before it is, so that one bad entry does not stop the service for good. For the
 * loop.
 *
 * The file "applying" in the runtime directory is mapped: a store into it is there after any death
 * of ours, and costs no system call. A start that finds an entry named there knows what the daemon
 * before it died of. One that ended two starts, or two daemons at work, is left out from then on:
 * said, counted in the status, and as LOST_SKIPPED where it was a lane's.
 */
#ifndef PROTOND_DAEMON_POISON_H
#define PROTOND_DAEMON_POISON_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct journal_entry;
struct protond;

#define POISON_DEATHS 2u

/* With p->d.runtime_fd; again in a new directory. Where there is no room for the file nothing is
 * guarded, which is said. */
void poison_open(struct protond *p);
void poison_close(struct protond *p);
/* fold_apply() of e, or of what stands for it when it is left out. */
int poison_apply(struct protond *p, const struct journal_entry *e);

#endif
