/* SPDX-License-Identifier: MIT. arena.c: memory that is given back all at once. */
#include "arena.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_MIN ((size_t)4 << 10)   /* each as large as all before it, */
#define CHUNK_MAX ((size_t)256 << 10) /* up to this */
#define ALIGN     16u

struct chunk {
	struct chunk *next;
	size_t pad; /* keeps bytes[] aligned */
	_Alignas(ALIGN) unsigned char bytes[];
};

/* INVARIANT: [at, end) is the untouched, zeroed rest of the first chunk. Text leaves `at`
 * unaligned. */
struct arena {
	struct chunk *first;
	unsigned char *at, *end;
	size_t held;
	atomic_uint owners;
};

struct arena *arena_new(void)
{
	struct arena *a = calloc(1, sizeof(*a));

	if (a != NULL)
		atomic_init(&a->owners, 1);
	return a;
}

struct arena *arena_hold(struct arena *a)
{
	(void)atomic_fetch_add_explicit(&a->owners, 1, memory_order_relaxed);
	return a;
}

void arena_free(struct arena *a)
{
	struct chunk *c, *next;

	if (a == NULL || atomic_fetch_sub_explicit(&a->owners, 1, memory_order_acq_rel) > 1)
		return;
	for (c = a->first; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

size_t arena_bytes(const struct arena *a)
{
	return a->held;
}

bool arena_is_shared(const struct arena *a)
{
	return atomic_load_explicit(&a->owners, memory_order_relaxed) > 1;
}

/* A large piece gets a chunk of its own behind the first, so that the first one's rest is not lost.
 */
static void *take_large(struct arena *a, size_t bytes)
{
	struct chunk *c;

	if (bytes > SIZE_MAX / 2)
		return NULL;
	c = calloc(1, sizeof(*c) + bytes);
	if (c == NULL)
		return NULL;
	a->held += sizeof(*c) + bytes;
	if (a->first == NULL) {
		a->first = c;
		a->at = a->end = c->bytes + bytes;
		return c->bytes;
	}
	c->next = a->first->next;
	a->first->next = c;
	return c->bytes;
}

static void *take(struct arena *a, size_t bytes)
{
	size_t chunk = CHUNK_MIN;
	struct chunk *c;
	void *piece;

	if (bytes > (size_t)(a->end - a->at)) {
		while (chunk < a->held && chunk < CHUNK_MAX)
			chunk *= 2;
		if (bytes > chunk / 4)
			return take_large(a, bytes);
		c = calloc(1, chunk);
		if (c == NULL)
			return NULL;
		a->held += chunk;
		c->next = a->first;
		a->first = c;
		a->at = c->bytes;
		a->end = (unsigned char *)c + chunk;
	}
	piece = a->at;
	a->at += bytes;
	return piece;
}

void *arena_take(struct arena *a, size_t bytes)
{
	size_t skip = (ALIGN - (uintptr_t)a->at % ALIGN) % ALIGN;

	if (skip > (size_t)(a->end - a->at))
		skip = (size_t)(a->end - a->at);
	if (skip > 0) /* of a new arena it is NULL, which takes no sum */
		a->at += skip;
	return take(a, bytes == 0 ? 1 : bytes);
}

char *arena_text(struct arena *a, const char *s, size_t bytes)
{
	char *copy;

	if (bytes > SIZE_MAX / 4)
		return NULL;
	copy = take(a, bytes + 1);
	if (copy == NULL)
		return NULL;
	if (bytes > 0)
		memcpy(copy, s, bytes);
	copy[bytes] = '\0';
	return copy;
}
