/* SPDX-License-Identifier: MIT. names.c: the process-local name table: text to id and back,
 * insert-only, lock-free.
 *
 * An insertion takes room for the text and an id by adding to two counters, writes the entry, and
 * then swaps the id into its hash slot. Who loses the swap looks again: if the other one was the
 * same text, its own id is left unused. So a signal handler, or a child forked in the middle, finds
 * the table whole. Ids 0 and 1 are "(other)".
 */
#include "names.h"

#include <string.h>

#include "doorbell.h"
#include "longname.h"
#include "protond.h"
#include "ring.h"

#define SLOTS (2 * NAMES_MAX)

static const char other[] = "(other)";
#define OTHER_BYTES ((uint32_t)sizeof(other) - 1)

struct entry {
	const char *_Atomic text; /* stored last */
	uint32_t bytes;
	uint32_t hash; /* upper half */
};

static struct entry entries[NAMES_MAX];
static _Atomic uint32_t slots[SLOTS]; /* ids; 0: free */
static _Atomic uint32_t count = NAME_OTHER_OP + 1;
static char texts[RING_NAME_BYTES];
static _Atomic uint32_t texts_used;

static bool same(uint32_t id, uint64_t hash, const char *text, uint32_t bytes)
{
	const struct entry *e = &entries[id];

	return e->hash == (uint32_t)(hash >> 32) && e->bytes == bytes &&
	       memcmp(atomic_load_explicit(&e->text, memory_order_relaxed), text, bytes) == 0;
}

/* 0: no room. The counters stop a little above their limits, by what threads add at once. */
static uint32_t entry_make(uint64_t hash, const char *text, uint32_t bytes)
{
	uint32_t id, at;

	if (atomic_load_explicit(&count, memory_order_relaxed) >= NAMES_MAX ||
		atomic_load_explicit(&texts_used, memory_order_relaxed) + bytes > sizeof(texts))
		return 0;
	at = atomic_fetch_add_explicit(&texts_used, bytes, memory_order_relaxed);
	if (at + bytes > sizeof(texts))
		return 0;
	id = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	if (id >= NAMES_MAX)
		return 0;
	memcpy(texts + at, text, bytes);
	entries[id].bytes = bytes;
	entries[id].hash = (uint32_t)(hash >> 32);
	/* release: the entry is whole; pairs with the acquire in pd_name() */
	atomic_store_explicit(&entries[id].text, texts + at, memory_order_release);
	return id;
}

static uint32_t intern(const char *text, uint32_t bytes)
{
	const uint64_t hash = name_hash(text, bytes);
	uint32_t mine = 0;

	if (bytes == OTHER_BYTES && memcmp(text, other, bytes) == 0)
		return 0;
	for (uint32_t i = (uint32_t)(hash ^ hash >> 29);; i++) {
		_Atomic uint32_t *slot = &slots[i % SLOTS];
		/* acquire, also below: pairs with the release of the swap */
		uint32_t id = atomic_load_explicit(slot, memory_order_acquire);

		if (id == 0) {
			if (mine == 0)
				mine = entry_make(hash, text, bytes);
			if (mine == 0)
				return 0;
			if (atomic_compare_exchange_strong_explicit(
				    slot, &id, mine, memory_order_acq_rel, memory_order_acquire))
				return mine;
		}
		if (same(id, hash, text, bytes))
			return id;
	}
}

uint32_t pd_intern(const char *text, uint32_t bytes)
{
	char shorter[NAME_BYTES_MAX];

	if (bytes <= NAME_BYTES_MAX)
		return intern(text, bytes);
	name_cut(text, bytes, shorter);
	return intern(shorter, NAME_BYTES_MAX);
}

const char *pd_name(uint32_t id, uint32_t *ret_bytes)
{
	/* acquire: pairs with the release in entry_make() */
	const char *text = id < NAMES_MAX
				   ? atomic_load_explicit(&entries[id].text, memory_order_acquire)
				   : NULL;

	*ret_bytes = text != NULL ? entries[id].bytes : OTHER_BYTES;
	return text != NULL ? text : other;
}

PD_EXPORT uint32_t protond_name(const char *name)
{
	const size_t n = name != NULL ? strlen(name) : 0;

	return pd_intern(n != 0 ? name : "", n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
}

PD_EXPORT uint32_t protond_name_n(const char *name, uint32_t bytes)
{
	return pd_intern(name != NULL ? name : "", name != NULL ? bytes : 0);
}

PD_EXPORT uint32_t protond_metric(const char *name_unit_kind)
{
	return protond_name(name_unit_kind);
}
