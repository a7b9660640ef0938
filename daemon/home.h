/* SPDX-License-Identifier: MIT. home.h: the daemon's directories, its lock, its database's place.
 * For the loop. Loop thread. */
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

#endif
