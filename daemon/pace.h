/* SPDX-License-Identifier: MIT. pace.h: how soon the rings are looked at again. For the loop. Loop
 * thread. */
#ifndef PROTOND_DAEMON_PACE_H
#define PROTOND_DAEMON_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct protond;

#define FLOW_BYTES  4096u /* less in 20 ms (a clock record a second) is no flow */
#define PACE_PARKED UINT64_MAX
/* ms until the next tick; PACE_PARKED: when somebody comes. moved: bytes in this one; works: a
 * session began or ended; more: there is more to be drained. */
uint64_t pace_ms(struct protond *p, uint64_t moved, bool works, bool more);

#endif
