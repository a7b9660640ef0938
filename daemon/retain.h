/* SPDX-License-Identifier: MIT. retain.h: how long sessions are kept. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_RETAIN_H
#define PROTOND_DAEMON_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "store.h"

struct daemon_config;

/* How much of the database all may have, and each user. */
struct store_limits retain_limits(const struct daemon_config *c, bool private);
/* The store sees to it. */
void retain_limit(const struct daemon_config *c, bool private, struct store *s);
/* By age, once an hour, by *last_ns; says what the store could not do. */
void retain_if_due(const struct daemon_config *c, struct store *s, uint64_t *last_ns, uint64_t now);

#endif
