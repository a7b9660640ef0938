/* SPDX-License-Identifier: MIT. leb.h: numbers of seven bits a byte, the lowest first; a set top bit says
 * that more follow (LEB128). Pure. */
#ifndef PROTOND_BASE_LEB_H
#define PROTOND_BASE_LEB_H

#include <stdbool.h>
#include <stdint.h>

#define LEB_MAX 10u /* bytes of one number */

/* Where the next byte goes. */
static inline uint8_t *leb_put(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* Moves *at behind the number. 0 and *bad: it does not end before `end`. */
static inline uint64_t leb_get(const uint8_t **at, const uint8_t *end, bool *bad)
{
	uint64_t v = 0;
	uint32_t shift;
	uint8_t byte;

	for (shift = 0; shift < 64 && *at < end; shift += 7) {
		byte = *(*at)++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	*bad = true;
	return 0;
}

#endif
