/* SPDX-License-Identifier: MIT. retain.h: how long sessions are kept. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_RETAIN_H
#define PROTOND_DAEMON_RETAIN_H

#include <stdint.h>

struct daemon_config;
struct store;

/* Once an hour, by *last_ns; on the store's thread. */
void retain_if_due(const struct daemon_config *c, struct store *s, uint64_t *last_ns, uint64_t now);

#endif
