/* SPDX-License-Identifier: MIT. clock.c: the ring clock: the raw TSC where it is one clock for all
 * CPUs, else CLOCK_MONOTONIC. Nothing is calibrated here; CLOCK records let the daemon convert. */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "time_namespace.h"

#define CLOCK_BRACKETS 20

static int64_t ahead_ns;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t agent_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - (uint64_t)ahead_ns;
}

uint64_t agent_clock(void)
{
	return agent_clock_inline();
}

/* The kernel watches the TSC against other clocks and moves away from it when it is not one clock
 * for all CPUs; the CPU says whether it ticks in every power state. Both must hold. */
static bool tsc_usable(void)
{
#if defined(__x86_64__)
	static const char file[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	unsigned a, b, c, d;
	char source[16] = "";
	ssize_t n;
	int fd;

	if (__get_cpuid(0x80000007u, &a, &b, &c, &d) == 0 || (d & (1u << 8)) == 0)
		return false;
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, source, sizeof(source) - 1);
	close(fd);
	return n >= 4 && memcmp(source, "tsc\n", 4) == 0;
#else
	return false;
#endif
}

void agent_clock_open(void)
{
	ahead_ns = time_namespace_ahead_ns();
	HOT->tsc = tsc_usable();
}

uint32_t agent_tsc_khz(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	if (__get_cpuid(0x15u, &a, &b, &c, &d) != 0 && a != 0 && b != 0 && c != 0)
		return (uint32_t)((uint64_t)c * b / a / 1000);
	if (__get_cpuid(0x40000010u, &a, &b, &c, &d) != 0 && a > 100000 && a < 10000000)
		return a; /* as hypervisors say it */
#endif
	return 0;
}

void agent_clock_record(struct rec_clock *ret)
{
	uint64_t best = UINT64_MAX;

	*ret = (struct rec_clock){.hdr = REC_HDR(sizeof(*ret), REC_CLOCK, 0, 0, 0)};
	for (int i = 0; i < CLOCK_BRACKETS; i++) {
		const uint64_t before = agent_clock();
		const uint64_t real = clock_ns(CLOCK_REALTIME);
		const uint64_t mono = agent_monotonic_ns();
		const uint64_t after = agent_clock();

		if (after - before >= best)
			continue;
		best = after - before;
		ret->clock = before + best / 2;
		ret->realtime_ns = real;
		ret->monotonic_ns = mono;
		ret->error = (best + 1) / 2;
	}
}
