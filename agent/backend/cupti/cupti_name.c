/* SPDX-License-Identifier: MIT. cupti_name.c: ring names of kernels, found by the address of their
 * text, so that a launch compares one word and hashes no string.
 *
 * Two tables. The launching threads share cupti.symbols: insert-only, a key is set once (CAS) and
 * its value, (generation << 32 | name), is replaced when a module was unloaded since, because then
 * the address may hold another name. Racing threads store the same value. The agent's thread has
 * `names` for the pointers in activity records. Those may be stale by the time they are read:
 * cupti_peek().
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "cupti_name.h"
#include "cupti_peek.h"

#define SYMBOL_PROBE 8u
#define NAMES        65536u /* power of two */
#define NAMES_FULL   (NAMES / 4 * 3)
#define NAME_PEEK    8192u /* a longer kernel name ends here, before it is cut and hashed */

struct name {
	uintptr_t key;
	uint32_t gen, id;
};

static struct name *names;
static uint32_t n_names;

static void *table_new(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

int cupti_name_init(void)
{
	if (cupti.symbols == NULL)
		cupti.symbols = table_new(SYMBOLS * sizeof(*cupti.symbols));
	if (names == NULL)
		names = table_new(NAMES * sizeof(*names));
	return cupti.symbols != NULL && names != NULL ? 0 : -ENOMEM;
}

static uint32_t value_of(struct cupti_symbol *s, const char *symbol)
{
	/* Acquire: an unload that this launch follows has moved the generation. */
	uint32_t gen = atomic_load_explicit(&cupti.module, memory_order_acquire);
	uint64_t v = atomic_load_explicit(&s->value, memory_order_relaxed);
	uint32_t id;

	if (v != 0 && v >> 32 == gen)
		return (uint32_t)v;
	id = agent_name(symbol, strnlen(symbol, NAME_PEEK));
	atomic_store_explicit(&s->value, (uint64_t)gen << 32 | id, memory_order_relaxed);
	return id;
}

uint32_t cupti_symbol(const char *symbol)
{
	uint32_t i = cupti_slot((uintptr_t)symbol, SYMBOLS), k;
	uintptr_t key;

	for (k = 0; k < SYMBOL_PROBE; k++) {
		struct cupti_symbol *s = &cupti.symbols[(i + k) & (SYMBOLS - 1)];

		key = atomic_load_explicit(&s->key, memory_order_relaxed);
		if (key == 0 &&
			atomic_compare_exchange_strong_explicit(&s->key, &key, (uintptr_t)symbol,
				memory_order_relaxed, memory_order_relaxed))
			key = (uintptr_t)symbol;
		if (key == (uintptr_t)symbol)
			return value_of(s, symbol);
	}
	return agent_name(symbol, strnlen(symbol, NAME_PEEK)); /* crowded: right, only slower */
}

static struct name *name_slot(uintptr_t key)
{
	uint32_t i = cupti_slot(key, NAMES);

	while (names[i].key != 0 && names[i].key != key)
		i = (i + 1) & (NAMES - 1);
	return &names[i];
}

static uint32_t name_read(const char *name, uint32_t fallback)
{
	static char text[NAME_PEEK]; /* agent's thread only */
	size_t n = cupti_peek(name, text, sizeof(text));

	return n > 0 ? agent_name(text, n) : fallback;
}

uint32_t cupti_kernel_name(const char *name, uint32_t gen)
{
	struct name *n;

	if (name == NULL)
		return NAME_NONE;
	n = name_slot((uintptr_t)name);
	/* gen is of the buffer's delivery: an older entry may be of a module that is gone. */
	if (n->key != 0 && (int32_t)(n->gen - gen) >= 0)
		return n->id;
	if (n->key == 0 && n_names >= NAMES_FULL) {
		memset(names, 0, NAMES * sizeof(*names)); /* modules came and went: begin anew */
		n_names = 0;
		n = name_slot((uintptr_t)name);
	}
	n_names += n->key == 0;
	n->id = name_read(name, n->key != 0 ? n->id : NAME_NONE);
	n->key = (uintptr_t)name;
	n->gen = gen;
	return n->id;
}
