/* SPDX-License-Identifier: MIT. scope.h: where each thread stands. The engine's files include it; a
 * backend asks agent_where(). */
#ifndef PROTOND_AGENT_SCOPE_H
#define PROTOND_AGENT_SCOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "core.h"
#include "lane.h"

void scope_enter(struct pd_thread *t, uint32_t name);
void scope_exit(struct pd_thread *t);
void scope_unwind(struct pd_thread *t, uint32_t depth);
void scope_state_changed(struct pd_thread *t);
void scope_context_changed(struct pd_thread *t);
void scope_thread_exit(struct pd_thread *t);
uint32_t scope_main_snapshot(void); /* the main thread's path, worked out by another thread */
/* [any] With states and op: where a launch or a metric of that thread stands. It is synced. */
uint32_t scope_where(const struct pd_thread *t, const struct lane *l, bool *ret_op);
/* [any] The path of the caller's stack in its language, where somebody wants it; else PATH_ROOT. */
uint32_t scope_python(struct lane *l, bool op); /* l: the thread's, or NULL */
/* [any] With the guard held: t has a lane and paths of this recording. False: it gets no lane. */
bool scope_sync(struct pd_thread *t);
/* [any] Where the main thread is, as others see it. l: NULL before the thread has a lane. */
uint32_t scope_follow(const struct lane *l);

/* Where another thread stands, as far as it has said; states and ops too. */
uint32_t scope_of(const struct pd_thread *t);

typedef uint64_t __attribute__((may_alias)) pair; /* two words in one store, little-endian */

/* Inside a state or an op? */
static inline bool scope_marked(const struct pd_thread *t)
{
	const pair *both = (const pair *)(const void *)&t->states;

	_Static_assert(
		offsetof(struct pd_thread, op) == offsetof(struct pd_thread, states) + 4, "pair");
	return *both != 0;
}

/* Without states and op. */
static inline uint32_t scope_stand(const struct pd_thread *t, const struct lane *l)
{
	const uint32_t path = t->path;

	if (unlikely(path == PATH_ROOT) && t->is_main == 0)
		return scope_follow(l);
	return path;
}

#endif
