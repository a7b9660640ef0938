/* SPDX-License-Identifier: MIT. config.h: reading the CONFIG table of daemon.h. For the loop. */
#ifndef PROTOND_DAEMON_CONFIG_H
#define PROTOND_DAEMON_CONFIG_H

#include "daemon.h"

/* Defaults, then file (NULL: the usual one, which may be missing), then PROTOND_* variables.
 * -ENOENT, -EINVAL with file, line and remedy. */
int config_load(struct config *c, const char *file, bool private, struct err *e);
int config_parse(struct config *c, const char *text, size_t bytes, const char *name, struct err *e);
void config_free(struct config *c);
int config_auto(const struct config *c, enum auto_mode *ret, struct err *e);

#endif
