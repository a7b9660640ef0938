/* SPDX-License-Identifier: MIT. thread.h: waking, and the blocks of threads. What API calls go
 * through includes it. */
#ifndef PROTOND_THREAD_H
#define PROTOND_THREAD_H

#include "doorbell.h"

/* [any] The caller's block: wakes the library if need be; NULL when there is no memory. errno kept.
 */
struct pd_thread *pd_thread_cold(void);
struct pd_block *pd_block_self(void); /* NULL as above */
extern const struct protond_host pd_host;

static inline struct pd_thread *pd_thread_here(void)
{
	struct pd_thread *t = pd_self;

	/* acquire: pairs with the release in gate_set(): behind GATE_ON stand the engine's
	 * functions */
	if (likely(t != NULL) &&
		likely(atomic_load_explicit(&HOT->gate, memory_order_acquire) != GATE_WAKE))
		return t;
	return pd_thread_cold();
}

#endif
