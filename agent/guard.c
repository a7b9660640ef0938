/* SPDX-License-Identifier: MIT. guard.c: the guard against re-entry, and how it heals.
 *
 * A thread that is inside the engine has its stack pointer in t->busy. A signal handler that
 * interrupted it sees that and leaves. Should the handler longjmp() away, nobody takes the mark
 * back: then the next call sooner or later comes from a frame about as high as the marked one or
 * higher (older). A handler never does: the kernel puts the registers, more than SIGNAL_FRAME
 * bytes, between it and the frame that it interrupted. A handler on an alternate stack says nothing
 * by its address: there the mark is believed.
 */
#include "core.h"

#include <signal.h>

#define SIGNAL_FRAME 768 /* x86-64: 128 red zone, 304 ucontext, 128 siginfo, at least 576 fpu */

static bool on_alternate_stack(void)
{
	const int e = errno;
	stack_t s = {0};
	const bool on = sigaltstack(NULL, &s) == 0 && (s.ss_flags & SS_ONSTACK) != 0;

	errno = e;
	return on;
}

__attribute__((cold)) bool guard_heal(struct pd_thread *t)
{
	/* 32 bits of both addresses: right for frames less than 2 GiB apart */
	if ((int32_t)(guard_mark() + SIGNAL_FRAME - t->busy) <= 0 || on_alternate_stack())
		return false;
	t->busy = 0;
	t->generation =
		0; /* the interrupted call may have left half of its work: all is worked out anew */
	return true;
}

bool agent_enter(int *saved)
{
	struct pd_thread *t;

	*saved = errno;
	if (HOT->opened == 0)
		return false;
	if (agent_own != NULL) /* inside the backend, which called its library, which called back */
		return true;
	t = core.host->thread();
	if (t == NULL)
		return false;
	if (t->busy != 0 && !guard_heal(t)) {
		if (t->engine != NULL)
			lane_nested(t->engine);
		errno = *saved;
		return false;
	}
	guard_in(t);
	return true;
}

void agent_leave(int saved)
{
	struct pd_thread *t = agent_own == NULL ? core.host->thread() : NULL;

	if (t != NULL)
		guard_out(t);
	errno = saved;
}

struct ring_counts *agent_counts(void)
{
	return core.counts;
}

const struct protond_host *agent_host(void)
{
	return core.host;
}
