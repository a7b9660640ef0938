/* SPDX-License-Identifier: MIT. home.h: the daemon's directories, its lock, its database's place.
 * For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_HOME_H
#define PROTOND_DAEMON_HOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct daemon;

/* Resolves and makes d->runtime and rings/ (owner and mode checked), opens both, takes the lock.
 * -EBUSY: another protond runs there. */
int home_open(struct daemon *d, struct err *e);
void home_close(struct daemon *d);
/* A start that failed leaves no directory of its making: a private protond would refuse a service's. */
void home_unmake(const struct daemon *d);
bool home_is_gone(const struct daemon *d); /* somebody removed the directory below us */
/* Makes what lacks; *ret_new: the directory is another one now. */
int home_again(struct daemon *d, bool *ret_new, struct err *e);
int home_db(
	const struct daemon *d, char *ret, size_t n, struct err *e); /* and makes its directory */
int home_db_local(char *ret, size_t n, struct err *e);               /* not on a network */
/* A protond answers on this directory's agent.sock. */
bool home_answers(const char *runtime);
/* Where a user's rings have names; *ret "": they have none, each is a memfd. */
void home_rings_of(const struct daemon *d, uint32_t uid, char *ret, size_t n);

#endif
