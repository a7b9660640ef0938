/* SPDX-License-Identifier: MIT. poison.h: entries that end the daemon: what is being applied is
 * written down before it is, so that one bad entry does not stop the service for good. For the
 * loop. Loop thread.
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

struct daemon;
struct journal_entry;
struct poison; /* the file, mapped */

#define POISON_DEATHS 2u

/* With d->runtime_fd; again in a new directory. Where there is no room for the file nothing is
 * guarded, which is said: *at is NULL. */
void poison_open(struct poison **at, const struct daemon *d);
void poison_close(struct poison **at);
/* fold_apply() of e, or of what stands for it when it is left out. NULL: nothing is guarded. */
int poison_apply(struct poison *o, struct daemon *d, const struct journal_entry *e);

#endif
