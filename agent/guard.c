/* SPDX-License-Identifier: MIT. guard.c: the guard against re-entry, and how it heals.
 *
 * A thread that is inside the engine has its stack pointer in t->busy. A signal handler that
 * interrupted it sees that and leaves. Should the handler longjmp() away, nobody takes the mark
 * back: then the next call sooner or later comes from a frame about as high as the marked one or
 * higher (older). A handler never does: the kernel puts the registers, more than SIGNAL_FRAME
 * bytes, between it and the frame that it interrupted. A handler on an alternate stack says nothing
 * by its address: there the mark is believed. A mark that was made on the alternate stack is
 * nobody's once the thread is back on its own.
 */
#include "guard.h"

#include <signal.h>

#include "agent.h"
#include "clock.h"
#include "lane.h"

#define SIGNAL_FRAME 768 /* x86-64: 128 red zone, 304 ucontext, 128 siginfo, at least 576 fpu */

/* 32 bits of all addresses: right for frames less than 2 GiB apart. */
static bool is_gone(uint32_t mark)
{
	const bool older = (int32_t)(guard_mark() + SIGNAL_FRAME - mark) > 0;
	const int e = errno;
	stack_t s = {0};
	int r;

	r = sigaltstack(NULL, &s);
	errno = e;
	if (r < 0 || (s.ss_flags & SS_ONSTACK) != 0)
		return false;
	return older ||
	       ((s.ss_flags & SS_DISABLE) == 0 && mark - (uint32_t)(uintptr_t)s.ss_sp < s.ss_size);
}

/* An enter counts a frame, fills it, and then shows it in the now block. One that a handler jumped
 * out of may have left an older scope's beginning there. */
static void begin_anew(struct pd_thread *t)
{
	const struct lane *l = t->engine;
	const uint32_t kept = t->depth < STACK_MAX ? t->depth : STACK_MAX;
	uint32_t i;

	if (l == NULL || HOT->cpu == CPU_OFF)
		return;
	for (i = atomic_load_explicit(&l->shared->now.depth, memory_order_relaxed); i < kept; i++)
		t->frame[i].begin = agent_clock_inline();
}

/* What was being added is added. A record may follow: the ones that are open are closed. */
static void sums_heal(const struct pd_thread *t)
{
	const struct lane *l = t->engine;

	if (l != NULL && l->sums != NULL)
		lane_sums_close(l->sums);
}

__attribute__((cold)) bool guard_heal(struct pd_thread *t)
{
	if (!is_gone(t->busy))
		return false;
	begin_anew(t);
	sums_heal(t);
	t->busy = 0;
	t->generation =
		0; /* the interrupted call may have left half of its work: all is worked out anew */
	return true;
}

__attribute__((cold)) void guard_refused(struct pd_thread *t)
{
	if (t->engine != NULL)
		lane_nested(t->engine);
	else /* it is only just getting a lane */
		agent_count(&core.counts->drop_no_lane, 1);
}

bool agent_enter(int *saved)
{
	struct pd_thread *t;

	*saved = errno;
	if (HOT->opened == 0)
		return false;
	if (agent_on_backend) /* inside the backend, which called its library, which called back */
		return true;
	t = core.host->thread();
	if (t == NULL)
		return false;
	if (t->busy != 0 && !guard_heal(t)) {
		guard_refused(t);
		errno = *saved;
		return false;
	}
	guard_in(t);
	return true;
}

void agent_leave(int saved)
{
	struct pd_thread *t = !agent_on_backend ? core.host->thread() : NULL;

	if (t != NULL)
		guard_out(t);
	errno = saved;
}
