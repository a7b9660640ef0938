/* SPDX-License-Identifier: MIT. wants.h: telling jobs what is wanted of them. For the loop. */
#ifndef PROTOND_DAEMON_WANTS_H
#define PROTOND_DAEMON_WANTS_H

struct protond;
struct ring;

/* Into the control file and to the job, where it changed. */
void ring_want(struct ring *r);
void wants_tell(struct protond *p); /* all jobs; before there is an intake: nobody */

#endif
