/* SPDX-License-Identifier: MIT. table.c: an open-addressing index from a 32-bit hash to a place in
 * the owner's array. Linear probing, deletion by shifting back, so that there are no tombstones. */
#include "table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_START 64u
#define TABLE_MAX   (1u << 26)
/* Emptier than this, a long probe is the doing of who chose the keys; fuller, it is chance: grow.
 */
#define TABLE_SPARSE 32u

void table_fini(struct table *t)
{
	free(t->slot);
	*t = (struct table){0};
}

/* Returns how far from home it stands. The caller has made room. */
static uint32_t slot_put(struct table_slot *slot, uint32_t mask, struct table_slot s)
{
	uint32_t i = s.hash & mask, k = 0;

	for (; slot[i].at != 0; i = (i + 1) & mask)
		k++;
	slot[i] = s;
	return k;
}

static int table_grow(struct table *t)
{
	uint32_t n = t->slot == NULL ? TABLE_START : (t->mask + 1) * 2, i, k, reach = 0;
	struct table_slot *slot;

	if (n > TABLE_MAX)
		return -ENOSPC;
	slot = calloc(n, sizeof(*slot));
	if (slot == NULL)
		return -ENOMEM;
	for (i = 0; t->slot != NULL && i <= t->mask; i++) {
		if (t->slot[i].at == 0)
			continue;
		k = slot_put(slot, n - 1, t->slot[i]);
		reach = k > reach ? k : reach;
	}
	free(t->slot);
	t->slot = slot;
	t->mask = n - 1;
	t->reach = reach;
	return 0;
}

/* The free slot for hash; -ENOSPC: none within TABLE_PROBES. */
static int slot_find(const struct table *t, uint32_t hash, uint32_t *ret_i, uint32_t *ret_k)
{
	uint32_t i = hash & t->mask, k = 0;

	for (; t->slot[i].at != 0; i = (i + 1) & t->mask)
		if (++k > TABLE_PROBES)
			return -ENOSPC;
	*ret_i = i;
	*ret_k = k;
	return 0;
}

int table_add(struct table *t, uint32_t hash, uint32_t at)
{
	uint32_t i, k;
	int r;

	if (t->slot == NULL || t->n >= (t->mask + 1) / 2) {
		r = table_grow(t);
		if (r < 0)
			return r;
	}
	while ((r = slot_find(t, hash, &i, &k)) < 0) {
		if (t->n < (t->mask + 1) / TABLE_SPARSE)
			return r;
		r = table_grow(t);
		if (r < 0)
			return r;
	}
	t->slot[i] = (struct table_slot){hash, at + 1};
	t->reach = k > t->reach ? k : t->reach;
	t->n++;
	return 0;
}

/* Fills the hole at i with whoever behind it may stand there. */
static void shift_back(struct table *t, uint32_t i)
{
	uint32_t j = i, home;

	for (;;) {
		j = (j + 1) & t->mask;
		if (t->slot[j].at == 0)
			break;
		home = t->slot[j].hash & t->mask;
		if (((j - home) & t->mask) < ((j - i) & t->mask))
			continue;
		t->slot[i] = t->slot[j];
		i = j;
	}
	t->slot[i] = (struct table_slot){0, 0};
}

void table_del(struct table *t, uint32_t hash, uint32_t at)
{
	uint32_t i, k;

	if (t->slot == NULL)
		return;
	for (i = hash & t->mask, k = 0; k <= t->reach; i = (i + 1) & t->mask, k++) {
		if (t->slot[i].at == 0)
			return;
		if (t->slot[i].hash != hash || t->slot[i].at != at + 1)
			continue;
		shift_back(t, i);
		t->n--;
		return;
	}
}

bool room_for(void **v, uint32_t *cap, uint32_t n, size_t bytes)
{
	uint32_t want;
	void *grown;

	if (n < *cap)
		return true;
	if (*cap > UINT32_MAX / 2)
		return false;
	want = *cap == 0 ? 8 : *cap * 2;
	grown = reallocarray(*v, want, bytes);
	if (grown == NULL)
		return false;
	*v = grown;
	*cap = want;
	return true;
}

bool zeroed_for(void **v, uint32_t *cap, uint32_t n, size_t bytes)
{
	uint32_t had;

	while (*cap < n) {
		had = *cap;
		if (!room_for(v, cap, had, bytes))
			return false;
		memset((char *)*v + had * bytes, 0, (*cap - had) * bytes);
	}
	return true;
}
