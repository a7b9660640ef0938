/* SPDX-License-Identifier: MIT. host_clock.h: what time it is. For the rooms of the daemon. Any
 * thread. */
#ifndef PROTOND_OS_HOST_CLOCK_H
#define PROTOND_OS_HOST_CLOCK_H

#include <stdint.h>

void host_clock_open(void); /* first, before there are threads */
uint64_t mono_ns(void);     /* CLOCK_MONOTONIC of the machine: time_namespace.h */
int64_t real_ns(void);      /* CLOCK_REALTIME */

#endif
