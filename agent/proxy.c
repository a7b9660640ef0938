/* SPDX-License-Identifier: MIT. proxy.c: what threads are in that have said nothing since the
 * recording began. */
#include "proxy.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "intern.h"
#include "lane.h"
#include "sync.h"

#define PROXIES_MAX 64u

static struct {
	_Atomic uint32_t n;
	struct lane *lane[PROXIES_MAX]; /* under the tables' lock */
	uint32_t tid[PROXIES_MAX];
} proxies;

/* A thread's stack as it is for a moment. */
struct stack {
	uint32_t tid, depth, path;
	uint32_t frame[NOW_FRAMES];
};

void proxy_forget(void)
{
	atomic_store_explicit(&proxies.n, 0, memory_order_relaxed);
}

static bool has_lane(const struct pd_thread *t)
{
	return __atomic_load_n(&t->engine, __ATOMIC_RELAXED) != NULL;
}

/* It may move meanwhile: then an event of its own is near, and says better. Context 0 is where the
 * main thread is. */
__attribute__((no_sanitize("thread"))) static void stack_read(
	const struct pd_thread *t, struct stack *ret)
{
	const uint64_t context = __atomic_load_n(&t->context, __ATOMIC_RELAXED);
	const uint32_t base = __atomic_load_n(&t->base_depth, __ATOMIC_RELAXED);
	uint32_t kept;

	ret->tid = __atomic_load_n(&t->tid, __ATOMIC_RELAXED);
	ret->depth = __atomic_load_n(&t->depth, __ATOMIC_RELAXED);
	ret->path = __atomic_load_n(&t->is_main, __ATOMIC_RELAXED) != 0
			    ? PATH_ROOT
			    : atomic_load_explicit(&HOT->main_path, memory_order_relaxed);
	kept = ret->depth < STACK_MAX ? ret->depth : STACK_MAX;
	for (uint32_t i = 0; i < kept; i++) {
		const uint32_t name = __atomic_load_n(&t->frame[i].name, __ATOMIC_RELAXED);
		bool keep;

		if (i == base && context != 0)
			ret->path = table_context_path(context);
		ret->path = table_scope(ret->path, name, &keep);
		ret->frame[i % NOW_FRAMES] = ret->path;
	}
}

uint32_t proxy_path(const struct pd_thread *t)
{
	struct stack s;

	stack_read(t, &s);
	return s.path;
}

static uint32_t find(uint32_t tid)
{
	const uint32_t n = atomic_load_explicit(&proxies.n, memory_order_relaxed);
	uint32_t i;

	for (i = 0; i < n && proxies.tid[i] != tid; i++)
		;
	return i;
}

/* With the lock, as all that follows. Half of the lanes are for those that record. */
static struct lane *lane_for(uint32_t tid)
{
	const uint32_t at = find(tid), n = atomic_load_explicit(&proxies.n, memory_order_relaxed);

	if (at < n)
		return proxies.lane[at];
	if (n == PROXIES_MAX || core.lanes_used >= core.n_lanes / 2)
		return NULL;
	proxies.lane[n] = lane_first();
	proxies.tid[n] = tid;
	core.lanes_used++;
	atomic_store_explicit(&proxies.n, n + 1, memory_order_relaxed);
	return proxies.lane[n];
}

static void end_at(uint32_t at)
{
	const uint32_t n = atomic_load_explicit(&proxies.n, memory_order_relaxed) - 1;
	struct lane *l = proxies.lane[at];

	atomic_store_explicit(&l->shared->tid, 0, memory_order_relaxed);
	/* release: as in lane_release() */
	atomic_store_explicit(&l->shared->state, LANE_EXITED, memory_order_release);
	core.free_lane[core.n_lanes - ++core.n_bare] = (uint32_t)(l - core.lanes);
	proxies.lane[at] = proxies.lane[n];
	proxies.tid[at] = proxies.tid[n];
	atomic_store_explicit(&proxies.n, n, memory_order_relaxed);
}

static void now_write(struct ring_now *n, const struct stack *s)
{
	const uint32_t seq = atomic_load_explicit(&n->seq, memory_order_relaxed) & ~1u;
	const uint32_t kept = s->depth < STACK_MAX ? s->depth : STACK_MAX;

	atomic_store_explicit(&n->seq, seq + 1, memory_order_relaxed);
	/* as in now_open() */
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&n->depth, s->depth, memory_order_relaxed);
	atomic_store_explicit(&n->path, s->path, memory_order_relaxed);
	for (uint32_t i = kept > NOW_FRAMES ? kept - NOW_FRAMES : 0; i < kept; i++) {
		/* 0: entered before the recording */
		atomic_store_explicit(&n->frame[i % NOW_FRAMES].begin, 0, memory_order_relaxed);
		atomic_store_explicit(&n->frame[i % NOW_FRAMES].path, s->frame[i % NOW_FRAMES],
			memory_order_relaxed);
	}
	atomic_store_explicit(&n->seq, seq + 2, memory_order_release); /* as in now_close() */
}

static void lane_write(struct ring_lane *l, const struct stack *s)
{
	const uint32_t was = atomic_load_explicit(&l->tid, memory_order_relaxed);

	now_write(&l->now, s);
	if (was == s->tid)
		return;
	atomic_store_explicit(&l->tid, s->tid, memory_order_relaxed);
	atomic_store_explicit(&l->generation,
		atomic_load_explicit(&l->generation, memory_order_relaxed) + 1,
		memory_order_relaxed);
	atomic_store_explicit(&l->moves, 0, memory_order_relaxed);
	/* release: as in lane_own() */
	atomic_store_explicit(&l->state, LANE_LEFT, memory_order_release);
}

static void look_at(const struct pd_thread *t)
{
	struct stack s;
	struct lane *l;
	sigset_t mask;
	bool silent;

	agent_lock_tables(&mask);
	silent = !has_lane(t); /* it claims with the lock, and is done with its proxy behind it */
	agent_unlock_tables(&mask);
	if (!silent)
		return;
	stack_read(t, &s);
	if (s.tid == 0 || s.depth == 0) {
		proxy_end(s.tid);
		return;
	}
	agent_lock_tables(&mask);
	l = !has_lane(t) ? lane_for(s.tid) : NULL;
	if (l != NULL)
		lane_write(l->shared, &s);
	agent_unlock_tables(&mask);
}

/* A thread that ended without a word. */
static void end_dead(void)
{
	sigset_t mask;

	agent_lock_tables(&mask);
	for (uint32_t i = atomic_load_explicit(&proxies.n, memory_order_relaxed); i-- > 0;) {
		if (syscall(SYS_tgkill, getpid(), proxies.tid[i], 0) < 0 && errno == ESRCH)
			end_at(i);
	}
	agent_unlock_tables(&mask);
}

void proxy_look(void)
{
	const struct protond_host *h = core.host;
	const struct pd_thread *t = NULL;

	if (!HOST_HAS(h, next_thread) || h->next_thread == NULL || HOT->generation == 0)
		return;
	while ((t = h->next_thread(t)) != NULL)
		look_at(t);
	end_dead();
}

void proxy_end(uint32_t tid)
{
	sigset_t mask;
	uint32_t at;

	if (atomic_load_explicit(&proxies.n, memory_order_relaxed) == 0 || tid == 0)
		return;
	agent_lock_tables(&mask);
	at = find(tid);
	if (at < atomic_load_explicit(&proxies.n, memory_order_relaxed))
		end_at(at);
	agent_unlock_tables(&mask);
}
