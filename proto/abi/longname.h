/* SPDX-License-Identifier: MIT. longname.h: the law of names that are too long, where job and
 * engine keep it. */
#ifndef PROTOND_ABI_LONGNAME_H
#define PROTOND_ABI_LONGNAME_H

#include <stddef.h>
#include <string.h>

#include "ring.h"

#define NAME_HASH_HEX 16u

/* FNV-1a, 64 bits. */
static inline uint64_t name_hash(const void *p, size_t bytes)
{
	const unsigned char *b = p;
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < bytes; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

/* A name over `most` bytes keeps its beginning and ends in "~" and the hash of the whole. */
static inline void name_cut_to(const char *text, size_t bytes, char *ret, uint32_t most)
{
	static const char digit[] = "0123456789abcdef";
	const uint64_t hash = name_hash(text, bytes);
	const uint32_t keep = most - NAME_HASH_HEX - 1;

	memcpy(ret, text, keep);
	ret[keep] = '~';
	for (uint32_t i = 0; i < NAME_HASH_HEX; i++)
		ret[keep + 1 + i] = digit[hash >> (60 - 4 * i) & 15];
}

static inline void name_cut(const char *text, size_t bytes, char ret[NAME_BYTES_MAX])
{
	name_cut_to(text, bytes, ret, NAME_BYTES_MAX);
}

#endif
