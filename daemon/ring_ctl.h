/* SPDX-License-Identifier: MIT. ring_ctl.h: the control file beside each ring: what we tell a job
 * without a word: how far its lanes are drained, what is wanted, that we live. For the loop. Loop
 * thread. */
#ifndef PROTOND_DAEMON_RING_CTL_H
#define PROTOND_DAEMON_RING_CTL_H

#include "rings.h"

/* Made, or the one that the job has mapped already; heads and want written. -errno. */
int ring_control_open(struct ring *r);
/* What the job was told is not less than what was taken; where it is more, a journal was cut, and
 * the drain is told what may be gone. Of a ring whose file cannot be read, and never will be, all of
 * it is: that is said to the fold. -ENOMEM, -ENOSPC. */
int ring_compare_heads(struct ring *r);
int ring_control_fd(const struct ring *r); /* read-only descriptor, the caller's; -errno */
void ring_control_remove(const struct ring *r);
void ring_release(struct ring *r); /* tells heads; after a flush only */
bool ring_say_want(struct ring *r, uint32_t want);
bool ring_nap(struct ring *r, uint32_t nap); /* says it */
/* How often its sums were taken, and cut. */
void ring_say_sums(struct ring *r);
bool ring_is_recording(const struct ring *r);
bool ring_wakes(const struct ring *r); /* its job heeds ring_ctl.nap */

#endif
