/* SPDX-License-Identifier: MIT. top_memory.c: what a look says of memory, and in words. */
#include "top_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "gpu_terms.h"
#include "human.h"

static struct look_memory *memory_of(struct look *l, int64_t device)
{
	uint32_t i;

	for (i = 0; i < l->n_memory; i++)
		if (l->memory[i].device == device)
			return &l->memory[i];
	if (l->n_memory == LOOK_DEVICES)
		return NULL;
	l->memory[l->n_memory] = (struct look_memory){.device = device};
	return &l->memory[l->n_memory++];
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b >= a ? a + b : UINT64_MAX;
}

static void take(struct look *l, const msgpack_object *from)
{
	const int64_t device = wire_i64_or(from, "device", -1);
	const uint64_t now = wire_u64_or(from, "now", 0), peak = wire_u64_or(from, "peak", 0);
	struct look_memory *m;
	char kind[32];

	(void)wire_text(from, "kind", kind, sizeof(kind));
	m = device >= 0 ? memory_of(l, device) : NULL;
	if (m == NULL)
		return;
	if (strcmp(kind, held_kind_words[HELD_TORCH]) == 0) {
		m->allocated = sum(m->allocated, now);
		m->peak = sum(m->peak, peak);
		m->torch = true;
	} else if (strcmp(kind, held_kind_words[HELD_TORCH_RESERVED]) == 0) {
		m->reserved = sum(m->reserved, now);
	} else if (strcmp(kind, held_kind_words[HELD_DEVICE]) == 0) {
		m->driver = sum(m->driver, now);
		m->driver_peak = sum(m->driver_peak, peak);
	}
}

int look_memory_take(struct look *l, const msgpack_object *answer)
{
	const msgpack_object *list = wire_get(answer, "memory");
	uint32_t i;

	l->memory = arena_take(l->arena, LOOK_DEVICES * sizeof(*l->memory));
	if (l->memory == NULL)
		return -ENOMEM;
	if (list == NULL || list->type != MSGPACK_OBJECT_ARRAY)
		return 0;
	for (i = 0; i < list->via.array.size; i++)
		take(l, &list->via.array.ptr[i]);
	return 0;
}

static void words_of_device(const struct look_memory *m, char *to, size_t n)
{
	char now[32], all[32], peak[32];

	text_bytes(m->torch ? m->allocated : m->driver, now);
	text_bytes(m->reserved, all);
	text_bytes(m->torch ? m->peak : m->driver_peak, peak);
	if (m->torch)
		(void)snprintf(to, n, "cuda:%" PRId64 " allocated %s of %s reserved, peak %s",
			m->device, now, all, peak);
	else
		(void)snprintf(
			to, n, "cuda:%" PRId64 " allocated %s, peak %s", m->device, now, peak);
}

void look_memory_words(const struct look *l, look_word_fn *fn, void *arg)
{
	char word[160], text[32];
	uint32_t i;

	text_bytes(l->resident, text);
	(void)snprintf(word, sizeof(word), "memory: resident %s", text);
	if (l->resident == 0 ? l->n_memory == 0 : !fn(arg, word))
		return;
	for (i = 0; i < l->n_memory; i++) {
		words_of_device(&l->memory[i], word, sizeof(word));
		if (l->memory[i].torch + l->memory[i].driver_peak != 0 && !fn(arg, word))
			return;
	}
}
