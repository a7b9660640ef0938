/* SPDX-License-Identifier: MIT. ring_clock.c: what the ring clock is in nanoseconds. An anchor is
 * three clocks read at nearly one instant, and by how much they may be apart. */
#include "ring_clock.h"

#include <time.h>

#include "host_clock.h"

#define BRACKETS 20

static uint64_t tsc(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return mono_ns();
#endif
}

const struct clock_source clock_tsc = {tsc, mono_ns, real_ns};
const struct clock_source clock_mono = {mono_ns, mono_ns, real_ns};

/* before | clock, real | after: the two inner reads are within the bracket, so taking its middle as
 * their instant errs by half the bracket at most. An interrupt in between makes it wide: not
 * chosen. */
void clock_anchor(const struct clock_source *s, uint32_t ring_clock, struct j_anchor *ret)
{
	uint64_t before, after, clock, width, best = UINT64_MAX;
	int64_t real;
	int i;

	*ret = (struct j_anchor){.ring_clock = ring_clock};
	for (i = 0; i < BRACKETS; i++) {
		before = s->mono();
		clock = s->clock();
		real = s->real();
		after = s->mono();
		width = after >= before ? after - before : UINT64_MAX - 1;
		if (width >= best)
			continue;
		best = width;
		ret->clock = clock;
		ret->monotonic_ns = before + width / 2;
		ret->realtime_ns = real > 0 ? (uint64_t)real : 0;
		ret->error_ns = width / 2 + width % 2;
	}
}
