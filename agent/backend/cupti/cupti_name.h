/* SPDX-License-Identifier: MIT. cupti_name.h: names of kernels by pointer. cupti.c,
 * cupti_callback.c and cupti_walk.c include it. */
#ifndef PROTOND_CUPTI_NAME_H
#define PROTOND_CUPTI_NAME_H

#include <stdatomic.h>
#include <stdint.h>

#include "cupti_state.h"

#define SYMBOLS 16384u /* power of two */
struct cupti_symbol {
	_Atomic uintptr_t key;
	_Atomic uint64_t value; /* cupti.module << 32 | ring name; 0: not yet */
};
static inline uint32_t cupti_slot(uintptr_t key, uint32_t slots)
{
	return (uint32_t)((uint64_t)key * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);
}
uint32_t cupti_symbol(const char *symbol); /* [any] inside agent_enter(); valid now, in a launch */
/* [any] The same of one that was asked for before and stands in its own slot; else NAME_NONE. */
static inline uint32_t cupti_symbol_known(const char *symbol)
{
	const struct cupti_symbol *s = &cupti.symbols[cupti_slot((uintptr_t)symbol, SYMBOLS)];
	/* Acquire: an unload that this launch follows has moved it. */
	const uint32_t module = atomic_load_explicit(&cupti.module, memory_order_acquire);
	const uint64_t v = atomic_load_explicit(&s->value, memory_order_relaxed);

	if (atomic_load_explicit(&s->key, memory_order_relaxed) != (uintptr_t)symbol)
		return NAME_NONE;
	return v >> 32 == module ? (uint32_t)v : NAME_NONE;
}
uint32_t cupti_kernel_name(
	const char *name, uint32_t gen); /* [agent] gen: cupti.module at delivery */
int cupti_name_init(void);

#endif
