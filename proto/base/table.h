/* SPDX-License-Identifier: MIT. table.h: an open-addressing index from a 32-bit hash to a place in
 * the owner's array. Owns the slots, never the things. Single-threaded.
 *
 * Keys come from jobs, so that a probe has a bound: an insert that would probe further than
 * TABLE_PROBES is refused, and costs the one who chose the keys. */
#ifndef PROTOND_BASE_TABLE_H
#define PROTOND_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_PROBES 128u
#define TABLE_NONE   UINT32_MAX

struct table_slot {
	uint32_t hash, at; /* at: place + 1; 0 is free */
};

struct table { /* zero-initialised: empty */
	struct table_slot *slot;
	uint32_t mask, n;
	uint32_t reach; /* no entry stands further than this from its home */
};

void table_fini(struct table *t);
int table_add(struct table *t, uint32_t hash, uint32_t at);  /* not there yet; -ENOMEM, -ENOSPC */
void table_del(struct table *t, uint32_t hash, uint32_t at); /* not there: nothing */

static inline uint64_t table_bytes(const struct table *t)
{
	return t->slot == NULL ? 0 : ((uint64_t)t->mask + 1) * sizeof(*t->slot);
}

typedef bool table_same_fn(const void *arg, uint32_t at);

/* The place whose thing is the same; TABLE_NONE. Inlined, so that `same` is no call. */
static inline uint32_t table_find(
	const struct table *t, uint32_t hash, table_same_fn *same, const void *arg)
{
	struct table_slot s;
	uint32_t i, k;

	if (t->slot == NULL)
		return TABLE_NONE;
	for (i = hash & t->mask, k = 0; k <= t->reach; i = (i + 1) & t->mask, k++) {
		s = t->slot[i];
		if (s.at == 0)
			return TABLE_NONE;
		if (s.hash == hash && same(arg, s.at - 1))
			return s.at - 1;
	}
	return TABLE_NONE;
}

static inline uint32_t table_mix(uint64_t a, uint64_t b)
{
	uint64_t x = (a ^ b * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;

	x ^= x >> 32;
	x *= 0xc4ceb9fe1a85ec53u;
	return (uint32_t)(x >> 32);
}

/* Makes room for one more of `bytes` each in *v; false: out of memory, *v stands. */
bool room_for(void **v, uint32_t *cap, uint32_t n, size_t bytes);
#define ROOM_FOR(v, cap, n) room_for((void **)&(v), &(cap), (n), sizeof(*(v)))
/* Makes *v have [0, n), new ones zeroed; false likewise. */
bool zeroed_for(void **v, uint32_t *cap, uint32_t n, size_t bytes);
#define ZEROED_FOR(v, cap, n) zeroed_for((void **)&(v), &(cap), (n), sizeof(*(v)))

#endif
