/* SPDX-License-Identifier: MIT. context.c: places that a thread can be set to: a trie of (parent,
 * name), insert-only, lock-free. A handle is the number of its node; 0 is the root, "nowhere of its
 * own". Made as name.c's table. */
#include "names.h"

#include "doorbell.h"

#define SLOTS (2 * CONTEXTS_MAX)

static struct node {
	uint32_t parent, name;
} nodes[CONTEXTS_MAX];
static _Atomic uint32_t slots[SLOTS]; /* node numbers; 0: free */
static _Atomic uint32_t count = 1;

/* The parent stands for a child that finds no room: outer levels are kept. */
uint64_t pd_context_child(uint64_t parent, uint32_t name)
{
	const uint32_t up = parent < CONTEXTS_MAX ? (uint32_t)parent : 0;
	uint32_t i = (uint32_t)(((uint64_t)up << 32 | name) * 0x9e3779b97f4a7c15ull >> 32),
		 mine = 0;

	for (;; i++) {
		_Atomic uint32_t *slot = &slots[i % SLOTS];
		/* acquire, also below: pairs with the release of the swap */
		uint32_t id = atomic_load_explicit(slot, memory_order_acquire);

		if (id == 0) {
			if (mine == 0 &&
				atomic_load_explicit(&count, memory_order_relaxed) < CONTEXTS_MAX)
				mine = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
			if (mine == 0 || mine >= CONTEXTS_MAX)
				return up;
			nodes[mine] = (struct node){.parent = up, .name = name};
			if (atomic_compare_exchange_strong_explicit(
				    slot, &id, mine, memory_order_acq_rel, memory_order_acquire))
				return mine;
		}
		if (nodes[id].parent == up && nodes[id].name == name)
			return id;
	}
}

uint32_t pd_context_name(uint64_t context, uint64_t *ret_parent)
{
	const struct node *n = context < CONTEXTS_MAX ? &nodes[context] : &nodes[0];

	*ret_parent = n->parent;
	return n->name;
}
