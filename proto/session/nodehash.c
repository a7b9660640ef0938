/* SPDX-License-Identifier: MIT. nodehash.c: the 128-bit name of a node: BLAKE2s (RFC 7693) with a
 * digest of 16 bytes and no key; Python's hashlib.blake2s(x, digest_size=16) gives the same. */
#include "nodehash.h"

#include <string.h>

static const uint32_t iv[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu,
	0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};

/* clang-format off */
static const uint8_t sigma[10][16] = {
	{ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15},
	{14, 10,  4,  8,  9, 15, 13,  6,  1, 12,  0,  2, 11,  7,  5,  3},
	{11,  8, 12,  0,  5,  2, 15, 13, 10, 14,  3,  6,  7,  1,  9,  4},
	{ 7,  9,  3,  1, 13, 12, 11, 14,  2,  6,  5, 10,  4,  0, 15,  8},
	{ 9,  0,  5,  7,  2,  4, 10, 15, 14,  1, 11, 12,  6,  8,  3, 13},
	{ 2, 12,  6, 10,  0, 11,  8,  3,  4, 13,  7,  5, 15, 14,  1,  9},
	{12,  5,  1, 15, 14, 13,  4, 10,  0,  7,  6,  3,  9,  2,  8, 11},
	{13, 11,  7, 14, 12,  1,  3,  9,  5,  0, 15,  4,  8,  6,  2, 10},
	{ 6, 15, 14,  9, 11,  3,  0,  8, 12,  2, 13,  7,  1,  4, 10,  5},
	{10,  2,  8,  4,  7,  6,  1,  5, 15, 11,  9, 14,  3, 12, 13,  0},
};
/* clang-format on */

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void mix(uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d, uint32_t x, uint32_t y)
{
	*a += *b + x;
	*d = ror(*d ^ *a, 16);
	*c += *d;
	*b = ror(*b ^ *c, 12);
	*a += *b + y;
	*d = ror(*d ^ *a, 8);
	*c += *d;
	*b = ror(*b ^ *c, 7);
}

static void compress(struct blake2s *b, uint32_t last)
{
	uint32_t v[16], m[16], i; /* v in registers: its indices are constants */
	const uint8_t *s;

	for (i = 0; i < 16; i++)
		m[i] = le32(b->block + 4 * i);
	memcpy(v, b->h, sizeof(b->h));
	memcpy(v + 8, iv, sizeof(iv));
	v[12] ^= (uint32_t)b->n;
	v[13] ^= (uint32_t)(b->n >> 32);
	v[14] ^= last;
	for (i = 0; i < 10; i++) {
		s = sigma[i];
		mix(&v[0], &v[4], &v[8], &v[12], m[s[0]], m[s[1]]);
		mix(&v[1], &v[5], &v[9], &v[13], m[s[2]], m[s[3]]);
		mix(&v[2], &v[6], &v[10], &v[14], m[s[4]], m[s[5]]);
		mix(&v[3], &v[7], &v[11], &v[15], m[s[6]], m[s[7]]);
		mix(&v[0], &v[5], &v[10], &v[15], m[s[8]], m[s[9]]);
		mix(&v[1], &v[6], &v[11], &v[12], m[s[10]], m[s[11]]);
		mix(&v[2], &v[7], &v[8], &v[13], m[s[12]], m[s[13]]);
		mix(&v[3], &v[4], &v[9], &v[14], m[s[14]], m[s[15]]);
	}
	for (i = 0; i < 8; i++)
		b->h[i] ^= v[i] ^ v[i + 8];
}

void blake2s_init(struct blake2s *b)
{
	*b = (struct blake2s){0};
	memcpy(b->h, iv, sizeof(iv));
	b->h[0] ^= 0x01010000u ^ 16u;
}

void blake2s_add(struct blake2s *b, const void *p, size_t n)
{
	const uint8_t *from = p;
	size_t take;

	while (n > 0) {
		if (b->fill == sizeof(b->block)) { /* the last block waits for done() */
			compress(b, 0);
			b->fill = 0;
		}
		take = sizeof(b->block) - b->fill;
		take = take < n ? take : n;
		memcpy(b->block + b->fill, from, take);
		b->fill += (uint32_t)take;
		b->n += take;
		from += take;
		n -= take;
	}
}

void blake2s_done(struct blake2s *b, uint8_t ret[16])
{
	uint32_t i;

	memset(b->block + b->fill, 0, sizeof(b->block) - b->fill);
	compress(b, UINT32_MAX);
	for (i = 0; i < 16; i++)
		ret[i] = (uint8_t)(b->h[i / 4] >> 8 * (i % 4));
}

void node_hash(
	const uint8_t parent[16], uint8_t kind, const char *name, size_t bytes, uint8_t ret[16])
{
	struct blake2s b;

	blake2s_init(&b);
	blake2s_add(&b, parent, 16);
	blake2s_add(&b, &kind, 1);
	blake2s_add(&b, name, bytes);
	blake2s_done(&b, ret);
}
