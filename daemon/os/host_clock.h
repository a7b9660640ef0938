/* SPDX-License-Identifier: MIT. host_clock.h: what time it is. For the rooms of the daemon. Any
 * thread. */
#ifndef PROTOND_OS_HOST_CLOCK_H
#define PROTOND_OS_HOST_CLOCK_H

#include <stdint.h>

uint64_t mono_ns(void); /* CLOCK_MONOTONIC */
int64_t real_ns(void);  /* CLOCK_REALTIME */

#endif
