/* SPDX-License-Identifier: MIT. retain.h: how long sessions are kept. For the loop. */
#ifndef PROTOND_DAEMON_RETAIN_H
#define PROTOND_DAEMON_RETAIN_H

#include <stdint.h>

struct protond;

void retain_if_due(struct protond *p, uint64_t now); /* once an hour; on the store's thread */

#endif
