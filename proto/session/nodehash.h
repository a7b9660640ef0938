/* SPDX-License-Identifier: MIT. nodehash.h: the 128-bit name of a node, the same in all sessions,
 * processes and hosts: BLAKE2s-128 of (parent's hash ‖ one byte of kind ‖ the name's bytes).
 *
 * A strong hash, because one store holds the nodes of all users by hash: with a weak one a job
 * could make a node that takes another user's name. It is computed once per node, never per event.
 */
#ifndef PROTOND_NODEHASH_H
#define PROTOND_NODEHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blake2s {
	uint32_t h[8];
	uint64_t n; /* bytes taken in */
	uint32_t fill;
	uint8_t block[64];
};

void blake2s_init(struct blake2s *b); /* 16 bytes out, no key */
void blake2s_add(struct blake2s *b, const void *p, size_t n);
void blake2s_done(struct blake2s *b, uint8_t ret[16]);

void node_hash(
	const uint8_t parent[16], uint8_t kind, const char *name, size_t bytes, uint8_t ret[16]);

/* Of names of 16 bytes: hashes, uuids, tokens. */
static inline void hash_copy(uint8_t to[16], const uint8_t from[16])
{
	__builtin_memcpy(to, from, 16);
}
static inline bool hash_same(const uint8_t a[16], const uint8_t b[16])
{
	return __builtin_memcmp(a, b, 16) == 0;
}
static inline bool hash_is_zero(const uint8_t a[16])
{
	static const uint8_t zero[16];

	return hash_same(a, zero);
}

#endif
