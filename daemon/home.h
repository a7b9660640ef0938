/* SPDX-License-Identifier: MIT. home.h: the daemon's directories, its lock, its database's place,
 * and what a service manager says and keeps. For the loop. */
#ifndef PROTOND_DAEMON_HOME_H
#define PROTOND_DAEMON_HOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct protond;

/* Resolves and makes d->runtime and rings/ (owner and mode checked), opens both, takes the lock.
 * -EBUSY: another protond runs there. */
int home_open(struct protond *p, struct err *e);
void home_close(struct protond *p);
bool home_is_gone(const struct protond *p); /* somebody removed the directory below us */
/* Makes what lacks; *ret_new: the directory is another one now. */
int home_again(struct protond *p, bool *ret_new, struct err *e);
int home_db(
	const struct protond *p, char *ret, size_t n, struct err *e); /* and makes its directory */
int home_db_local(
	const struct protond *p, char *ret, size_t n, struct err *e); /* not on a network */
/* A protond answers on this directory's agent.sock. */
bool home_answers(const char *runtime);
/* The rings directory of a user, made if need be; *ret "" when there can be none: a memfd then. */
void home_rings_of(const struct protond *p, uint32_t uid, char *ret, size_t n);
/* The service: whoever started it starts it again. A private one may have a stranger's variables.
 */
bool home_is_managed(const struct protond *p);
/* To systemd's NOTIFY_SOCKET, with a descriptor unless it is -1. -ENOENT: there is none. */
int home_notify(const char *state, int fd);
uint64_t home_watchdog_ns(void); /* so often systemd wants to hear of us; 0: never */
/* systemd keeps descriptors for us. A private one may have a stranger's variables. */
bool home_keeps(const struct protond *p);
#define HOME_KEPT "ring-" /* what their names begin with */
/* Each that came back with a name like that, close-on-exec; it is the callee's. */
typedef void home_kept_fn(void *arg, int fd, const char *name, size_t bytes);
void home_kept(home_kept_fn *fn, void *arg);

#endif
