/* SPDX-License-Identifier: MIT. draw.h: random numbers that come again: xorshift (Marsaglia, 2003). Set seed first; not 0. */
#ifndef PROTOND_TESTS_DRAW_H
#define PROTOND_TESTS_DRAW_H

#include <stdint.h>

static uint64_t seed = 88172645463325252u;

static inline uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static inline uint32_t below(uint32_t n)
{
	return (uint32_t)(draw() % n);
}

#endif
