/* SPDX-License-Identifier: MIT. protonctl_daemon.h: a daemon to talk to, started where none runs.
 * For `run` and `daemon`. */
#ifndef PROTOND_PROTONCTL_DAEMON_H
#define PROTOND_PROTONCTL_DAEMON_H

#include <stdbool.h>

#include "rpc.h"

#define DAEMON_LOG_FILE "protond.log" /* in the runtime directory, of one that was started here */

/* Connects; when no daemon runs, starts a private one and connects to that. */
int daemon_ensure(struct rpc **ret, bool *ret_started, struct err *e);

/* For verbs that change what is stored: the daemon whose database `sessions` lists, started where
 * none runs. -EBUSY: the one that runs has another database than PROTOND_DB names. */
int daemon_of_sessions(struct rpc **ret, struct err *e);

#endif
