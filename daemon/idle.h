/* SPDX-License-Identifier: MIT. idle.h: when a private daemon ends by itself. For daemon.c. Loop
 * thread. */
#ifndef PROTOND_DAEMON_IDLE_H
#define PROTOND_DAEMON_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct protond;

/* Once a second. True: for idle_exit_s there was nobody, and nobody is at the door. */
bool idle_is_over(struct protond *p, uint64_t now_ns);

#endif
