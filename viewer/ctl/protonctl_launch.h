/* SPDX-License-Identifier: MIT. protonctl_launch.h: the runs of one launch on a node are one
 * session. For `run`. */
#ifndef PROTOND_PROTONCTL_LAUNCH_H
#define PROTOND_PROTONCTL_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

struct launch {
	int fd; /* -1: a run alone */
	char path[256];
	struct launch_session {
		uint8_t token[16];
		char uuid[40];
		int64_t id;
	} session;
};
/* 1: another rank has begun the session, which is in l->session. 0: begin it, then launch_begin().
 */
int launch_join(struct launch *l, const char *name);
void launch_begin(struct launch *l); /* l->session is filled in */
bool launch_leave(struct launch *l); /* true: nobody else is left, so the session ends */

#endif
