/* SPDX-License-Identifier: MIT. host_clock.c: what time it is. */
#include "host_clock.h"

#include <time.h>

#include "time_namespace.h"

static int64_t ahead_ns;

void host_clock_open(void)
{
	ahead_ns = time_namespace_ahead_ns();
}

uint64_t mono_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - (uint64_t)ahead_ns;
}

int64_t real_ns(void)
{
	struct timespec t = {0};

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
