/* SPDX-License-Identifier: MIT. manager.h: the service manager that may have started us: what it
 * hands over, hears and keeps. For the rooms of the daemon. Loop thread.
 *
 * private: of one user. Such a daemon may have a stranger's variables.
 */
#ifndef PROTOND_OS_MANAGER_H
#define PROTOND_OS_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The socket of this name that it listens on for us (sd_listen_fds(3)), close-on-exec and
 * non-blocking; it is given once. -1: there is none. */
int manager_inherited(const char *name, int type);
/* The service: whoever started it starts it again. */
bool manager_restarts(bool private);
/* To its NOTIFY_SOCKET, with a descriptor unless it is -1. -ENOENT: there is none. */
int manager_notify(const char *state, int fd);
uint64_t manager_watchdog_ns(void); /* so often it wants to hear of us; 0: never */

bool manager_keeps(bool private); /* descriptors, for us */
#define MANAGER_KEPT "ring-"      /* what their names begin with */
/* Each that came back with a name like that, close-on-exec; it is the callee's. */
typedef void manager_kept_fn(void *arg, int fd, const char *name, size_t bytes);
void manager_kept(manager_kept_fn *fn, void *arg);

#endif
