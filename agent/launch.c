/* SPDX-License-Identifier: MIT. launch.c: what a backend writes: launches, on the threads that make
 * them, and records of finished work, on the agent's own. */
#include "agent.h"
#include "clock.h"
#include "guard.h"
#include "lane.h"
#include "scope.h"
#include "sums.h"
#include "sync.h"

#define PUT_WAIT_NS 60000000000ull

/* --- records ---------------------------------------------------------------------------------- */

bool agent_put(const void *rec, uint32_t bytes)
{
	struct lane *l = agent_on_backend ? core.agent : NULL;
	struct pd_thread *t;

	if (!agent_on_backend) {
		t = core.host->thread();
		if (t != NULL && t->generation != HOT->generation)
			(void)scope_sync(t);
		l = t != NULL ? t->engine : NULL;
	}
	if (l == NULL) {
		agent_count(&core.counts->drop_no_lane, 1);
		return false;
	}
	return lane_put(l, rec, bytes);
}

/* Waits in short naps: the daemon drains by itself and has no way to say so. */
bool agent_put_wait(const void *rec, uint32_t bytes)
{
	struct lane *l = core.agent;
	uint64_t since = 0, head;

	if (l == NULL) {
		agent_count(&core.counts->drop_no_lane, 1);
		return false;
	}
	head = l->head;
	while (unlikely(l->tail + bytes > l->limit) && !lane_room(l, bytes)) {
		const uint64_t now = agent_monotonic_ns();

		if (since == 0 || l->head != head) {
			since = now;
			head = l->head;
		}
		if (now - since > PUT_WAIT_NS || (core.ending_ns != 0 && now > core.ending_ns))
			break;
		if (core.backend != NULL && core.backend->waits != NULL)
			core.backend->waits();
		agent_wait(&core.flush_done, atomic_load(&core.flush_done), 1);
	}
	return lane_put(l, rec, bytes);
}

/* --- launches --------------------------------------------------------------------------------- */

/* The builtin asks for a line that is only read, unless told of a newer CPU. */
static inline void prefetch_to_write(const void *p)
{
#if defined(__x86_64__)
	__asm__("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* With the guard held, or without a thread. What a launch counts up and its failure counts down is
 * one counter: a sum that is read meanwhile is then wrong by what is under way, and no more. */
static void launches_add(struct pd_thread *t, uint64_t n)
{
	struct lane *l = t != NULL ? t->engine : NULL;

	if (l != NULL) /* only the owner writes it */
		atomic_store_explicit(&l->launches,
			atomic_load_explicit(&l->launches, memory_order_relaxed) + n,
			memory_order_relaxed);
	else
		agent_count(&core.launches, n);
}

__attribute__((cold, noinline)) static bool launch_cold(
	uint32_t flags, const struct rec_launch *known)
{
	struct rec_launch_ended ended = {.launch = *known};
	struct rec_launch *r = &ended.launch;
	const uint32_t bytes = (flags & LAUNCH_ENDS) != 0 ? sizeof(ended) : sizeof(*r);
	struct pd_thread *t = NULL;
	bool op = false;
	uint32_t path;
	int saved;

	if (!agent_enter(&saved))
		return false;
	ended.end = agent_clock_inline();
	if (!agent_on_backend)
		agent_self = t = core.host->thread();
	path = agent_where(&op);
	r->hdr = REC_HDR(bytes, REC_LAUNCH, 0, flags | (op ? LAUNCH_OP : 0), path);
	r->clock = r->clock != 0 ? r->clock : ended.end;
	r->python = scope_python(t != NULL ? t->engine : NULL, op);
	(void)agent_put(&ended, bytes); /* refused: counted; its activity still comes */
	launches_add(t, 1);
	agent_leave(saved);
	return true;
}

static inline void launch_write(struct lane *l, const struct rec_launch r)
{
	*(struct rec_launch *)(void *)(l->data + (l->tail & l->mask)) = r;
	lane_commit(l, sizeof(r));
	prefetch_to_write(l->data + ((l->tail + 64) & l->mask)); /* for the launch after the next */
	/* only the owner writes it */
	atomic_store_explicit(&l->launches,
		atomic_load_explicit(&l->launches, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Between two launches a program runs through megabytes of other code, so that what counts here is
 * cache lines, its own and those of what it reads. A forked child, where HOT is wiped, has a clock
 * that is not the TSC. */
__attribute__((hot)) bool agent_launch(uint32_t flags, uint32_t correlation, uint32_t name,
	uint16_t epoch, uint16_t api, uint64_t clock)
{
	struct pd_thread *t = agent_self;
	struct rec_launch r = {.clock = clock,
		.correlation = correlation,
		.name = name,
		.epoch = epoch,
		.api = api};
	struct lane *l;

	if (unlikely(t == NULL || (t->busy | (t->generation ^ HOT->match)) != 0))
		return launch_cold(flags, &r);
	guard_in(t);
	l = t->engine;
	if (unlikely(HOT->tsc == 0 || (HOT->want & WANT_PYTHON) != 0 || scope_marked(t) ||
		     l->tail + sizeof(r) > l->limit)) {
		guard_out(t);
		return launch_cold(flags, &r);
	}
	r.hdr = REC_HDR(sizeof(r), REC_LAUNCH, 0, flags, scope_stand(t, l)) | l->lap;
	r.clock = clock != 0 ? clock : agent_tsc();
	launch_write(l, r);
	guard_out(t);
	return true;
}

bool agent_launch_ended(uint32_t flags, const struct rec_launch *known)
{
	return launch_cold(flags | LAUNCH_ENDS, known);
}

bool agent_call(const struct rec_call *call)
{
	struct rec_call r = *call;
	struct pd_thread *t = NULL;
	bool op = false;
	int saved;

	if (!agent_enter(&saved))
		return false;
	if (!agent_on_backend)
		agent_self = t = core.host->thread();
	r.hdr = REC_HDR(sizeof(r), REC_CALL, 0, REC_FLAGS(call->hdr), agent_where(&op));
	r.python = scope_python(t != NULL ? t->engine : NULL, op);
	(void)agent_put(&r, sizeof(r)); /* refused: counted */
	agent_leave(saved);
	return true;
}

/* Where there is no room for a record of it. False: there may be, or it is not summed. */
__attribute__((cold, noinline)) static bool called_summed(
	const struct pd_thread *t, struct lane *l, const struct rec_called *r, uint64_t took)
{
	const uint32_t path = agent_path_child(scope_stand(t, l), PATH_KIND_CALL, r->name);
	const struct rec_scope sum = {.hdr = REC_HDR(0, REC_SCOPE, 0, 0, path),
		.begin = r->begin,
		.end = r->begin + took};
	struct agent_step step;

	return agent_path_step(path, &step) && step.kind == PATH_KIND_CALL && sums_call(l, &sum);
}

/* As agent_launch(): the shorter it is, the fewer lines it takes from the program. */
__attribute__((hot)) bool agent_called(
	uint32_t correlation, uint32_t name, uint16_t epoch, uint64_t begin)
{
	struct pd_thread *t = agent_self;
	struct rec_called r = {
		.begin = begin, .correlation = correlation, .name = name, .epoch = epoch};
	struct lane *l;
	uint64_t took;
	bool summed;

	if (unlikely(t == NULL || (t->busy | (t->generation ^ HOT->match)) != 0))
		return false;
	guard_in(t);
	l = t->engine;
	took = agent_tsc() - begin;
	if (unlikely(HOT->tsc == 0 || (HOT->want & WANT_PYTHON) != 0 || scope_marked(t) ||
		     took > UINT32_MAX)) {
		guard_out(t);
		return false;
	}
	if (unlikely(l->tail + sizeof(r) > l->limit)) {
		summed = called_summed(t, l, &r, took);
		guard_out(t);
		return summed;
	}
	r.hdr = REC_HDR(sizeof(r), REC_CALLED, 0, 0, scope_stand(t, l)) | l->lap;
	r.took = (uint32_t)took;
	*(struct rec_called *)(void *)(l->data + (l->tail & l->mask)) = r;
	lane_commit(l, sizeof(r));
	prefetch_to_write(l->data + ((l->tail + 64) & l->mask));
	guard_out(t);
	return true;
}

void agent_launch_failed(void)
{
	struct pd_thread *t = agent_self;

	if (t != NULL && t->busy == 0) {
		guard_in(t);
		launches_add(t, UINT64_MAX);
		guard_out(t);
	} else {
		launches_add(NULL, UINT64_MAX);
	}
}

uint64_t agent_launched(void)
{
	uint64_t n = atomic_load_explicit(&core.launches, memory_order_relaxed);

	for (uint32_t i = 0; i < core.lanes_used; i++)
		n += atomic_load_explicit(&core.lanes[i].launches, memory_order_relaxed);
	return n;
}
