/* SPDX-License-Identifier: MIT. wants.h: telling jobs what is wanted of them. For the loop. Loop
 * thread. */
#ifndef PROTOND_DAEMON_WANTS_H
#define PROTOND_DAEMON_WANTS_H

struct intake;
struct ring;

/* Into the control file and to the job, where it changed. */
void ring_want(struct ring *r);
void wants_tell(const struct intake *in); /* all jobs; NULL: there are none yet */

#endif
