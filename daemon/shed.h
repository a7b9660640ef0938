/* SPDX-License-Identifier: MIT. shed.h: memory that jobs leave behind. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_SHED_H
#define PROTOND_DAEMON_SHED_H

struct rings;

/* Once a second: where the rings of one user's dead processes have more memory than his share, the
 * oldest are given up. What was not taken of them is lost, and said. */
void rings_shed(struct rings *all);

#endif
