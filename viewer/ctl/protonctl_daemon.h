/* SPDX-License-Identifier: MIT. protonctl_daemon.h: a daemon to talk to, started where none runs.
 * For `run`. */
#ifndef PROTOND_PROTONCTL_DAEMON_H
#define PROTOND_PROTONCTL_DAEMON_H

#include <stdbool.h>

#include "rpc.h"

/* Connects; when no daemon runs, starts a private one and connects to that. */
int daemon_ensure(struct rpc **ret, bool *ret_started, struct err *e);

#endif
