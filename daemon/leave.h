/* SPDX-License-Identifier: MIT. leave.h: the last drain of a dead process, and its END. For the
 * loop. Loop thread. */
#ifndef PROTOND_DAEMON_LEAVE_H
#define PROTOND_DAEMON_LEAVE_H

struct protond;
struct ring;

/* In each tick until END is in the journal; nothing is given up before. */
void ring_leave(struct protond *p, struct ring *r);

#endif
