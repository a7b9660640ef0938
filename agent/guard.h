/* SPDX-License-Identifier: MIT. guard.h: the guard against re-entry of a thread, by signal handlers
 * and the vendor's library. The engine's files include it; a backend has agent_enter(). */
#ifndef PROTOND_AGENT_GUARD_H
#define PROTOND_AGENT_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

/* [any] Where the calling frame is, as the mark of who is inside. Never 0. */
static inline uint32_t guard_mark(void)
{
	uintptr_t sp;

#if defined(__x86_64__)
	__asm__("mov %%rsp, %0" : "=r"(sp));
#else
	sp = (uintptr_t)__builtin_frame_address(0);
#endif
	return (uint32_t)sp | 1u;
}

static inline void guard_in(struct pd_thread *t)
{
	t->busy = guard_mark();
	/* Against the compiler only: a handler on this thread must see busy before anything moves.
	 */
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void guard_out(struct pd_thread *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	t->busy = 0;
}

/* [any] The thread is marked as inside. True: whoever was is gone (a longjmp() out of a signal
 * handler), and the mark is taken back. */
bool guard_heal(struct pd_thread *t);
/* [any] Counts an event that came while its own thread was inside. */
void guard_refused(struct pd_thread *t);

#endif
