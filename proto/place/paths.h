/* SPDX-License-Identifier: MIT. paths.h: where people's tools find protond's sockets and database.
 */
#ifndef PROTOND_PLACE_PATHS_H
#define PROTOND_PLACE_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define PATHS_CONTROL_SOCK "control.sock"
#define PATHS_AGENT_SOCK   "agent.sock"
#define PATHS_SERVICE_DIR  "/run/protond"
#define PATHS_SERVICE_DB   "/var/lib/protond/protond.db"

/* The i-th runtime directory to look for a daemon in, best first. -ENOENT: no more of them. Nothing
 * is made. PROTOND_RUNTIME_DIR, when set, is the only one. */
int paths_runtime(uint32_t i, char *ret, size_t n);
/* Where a private daemon of this user lives, made (0700, owner checked) when it is not there. */
int paths_private_runtime(char *ret, size_t n, struct err *e);
/* Makes a path absolute. -errno of getcwd(), -ENAMETOOLONG. */
int paths_whole(const char *path, char *ret, size_t n);
/* A private daemon's configuration, or the service's; it need not exist. False: there is no home. */
bool paths_config(bool private, char *ret, size_t n);
/* Where a private daemon of this user keeps its database, unless it is told where. */
int paths_private_db(char *ret, size_t n);
/* The i-th database to look for, best first; it need not exist. -ENOENT: no more. PROTOND_DB, when
 * set, is the only one; `db` of a configuration stands for its daemon's usual place. */
int paths_db(uint32_t i, char *ret, size_t n);

#endif
