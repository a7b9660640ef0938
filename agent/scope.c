/* SPDX-License-Identifier: MIT. scope.c: where each thread stands: scopes, states, ops, contexts.
 *
 * Entering a scope moves the thread to a child path and notes the clock; leaving it writes one
 * SCOPE record and moves back. Nothing else happens on the hot path: the guard, one look into the
 * lane's cache of (parent, name), the clock, the now block, the frame.
 *
 * t->generation says which recording the thread's path ids belong to. When it is not the current
 * one (the thread's first event, a new recording, after a signal handler interfered) the cold path
 * works the whole stack out anew: scope_sync(). generation 0 is "nothing is recorded": then only
 * the stack of name ids moves.
 *
 * A thread with neither scope nor context of its own has path PATH_ROOT, which means for the main
 * thread the root and for all others "where the main thread is": scope_follow(), one load an event.
 */
#include "scope.h"

#include "agent.h"
#include "clock.h"
#include "counters.h"
#include "guard.h"
#include "intern.h"
#include "named.h"
#include "proxy.h"
#include "record.h"
#include "sums.h"

static inline void depth_set(struct pd_thread *t, uint32_t depth)
{
	__atomic_store_n(&t->depth, depth, __ATOMIC_RELAXED); /* scope_main_snapshot() reads it */
}

static inline void frame_set(struct pd_thread *t, uint32_t at, uint32_t name, uint32_t path)
{
	__atomic_store_n(
		(pair *)(void *)&t->frame[at], (uint64_t)path << 32 | name, __ATOMIC_RELAXED);
}

/* Depth first: a signal handler in between then uses the frames above. */
static inline void frame_push(struct pd_thread *t, uint32_t name, uint32_t path, uint64_t begin)
{
	const uint32_t depth = t->depth;

	depth_set(t, depth + 1);
	atomic_signal_fence(memory_order_seq_cst);
	frame_set(t, depth, name, path);
	t->frame[depth].begin = begin;
}

static inline void path_set(struct pd_thread *t, uint32_t path)
{
	__atomic_store_n(&t->path, path, __ATOMIC_RELAXED); /* scope_follow() reads it */
}

/* --- the now block: a seqlock with one writer ------------------------------------------------- */

/* seq and depth are one word, so that the odd seq costs no store of its own. seq is read back from
 * the ring: nobody else writes there, and a wrong one would only mislead the reader. */
static inline uint32_t now_open(struct ring_now *n, uint32_t depth, uint32_t path)
{
	const uint32_t seq = atomic_load_explicit(&n->seq, memory_order_relaxed);

	__atomic_store_n((pair *)(void *)n, (uint64_t)depth << 32 | (seq + 1), __ATOMIC_RELAXED);
#ifndef __SANITIZE_THREAD__ /* knows no fences; all of these are atomics to it */
	/* what follows may not become visible before the odd seq; pairs with the reader's second
	 * look at seq */
	atomic_thread_fence(memory_order_release);
#endif
	atomic_store_explicit(&n->path, path, memory_order_relaxed);
	return seq;
}

static inline void now_close(struct ring_now *n, uint32_t seq)
{
	/* release: pairs with the reader's first look at seq */
	atomic_store_explicit(&n->seq, seq + 2, memory_order_release);
}

static inline void now_frame(struct ring_now *n, uint32_t at, uint32_t path, uint64_t begin)
{
	atomic_store_explicit(&n->frame[at % NOW_FRAMES].begin, begin, memory_order_relaxed);
	atomic_store_explicit(&n->frame[at % NOW_FRAMES].path, path, memory_order_relaxed);
}

/* Where nothing but depth and path moves. */
static inline void now_at(struct lane *l, uint32_t depth, uint32_t path)
{
	struct ring_now *n = &l->shared->now;

	now_close(n, now_open(n, depth, path));
}

/* --- paths ------------------------------------------------------------------------------------ */

uint32_t scope_follow(const struct lane *l)
{
	const struct pd_thread *m = atomic_load_explicit(&HOT->main, memory_order_relaxed);

	if (HOT->inherit_copy != 0 && l != NULL)
		return l->inherited;
	if (unlikely(m == NULL)) {
		m = core.host->main_thread();
		if (m == NULL)
			return PATH_ROOT;
		atomic_store_explicit(&HOT->main, m, memory_order_relaxed);
	}
	/* acquire: pairs with the release in scope_sync(): path belongs to that generation */
	if (__atomic_load_n(&m->generation, __ATOMIC_ACQUIRE) == HOT->generation)
		return __atomic_load_n(&m->path, __ATOMIC_RELAXED);
	return atomic_load_explicit(&HOT->main_path, memory_order_relaxed);
}

static inline uint32_t cache_hash(uint32_t parent, uint32_t name)
{
	return ((parent * 0x9e3779b1u) ^ (name * 0x85ebca6bu)) * 0xc2b2ae35u;
}

/* The line that it may be in. */
static inline struct path_slot *cache_line(struct lane *l, uint32_t parent, uint32_t name)
{
	return &l->cache[cache_hash(parent, name) >> (32 - CACHE_BITS) & ~(CACHE_WAYS - 1)];
}

static inline bool slot_is(const struct path_slot *s, uint32_t parent, uint32_t name)
{
	return s->name == name && s->parent == parent;
}

static void cache_keep(struct path_slot *line, const struct path_slot *s)
{
	uint32_t i;

	for (i = 0; i < CACHE_WAYS && line[i].name != 0; i++)
		;
	line[i < CACHE_WAYS ? i : cache_hash(s->parent, s->name) % CACHE_WAYS] = *s;
}

/* An empty slot has name 0, which is never kept: each use of that one is counted. Nor is a scope at
 * the root of a thread that follows another: what it stands in differs from one to the next. */
static uint32_t child(const struct pd_thread *t, uint32_t parent, uint32_t name)
{
	struct path_slot *line = cache_line(t->engine, parent, name);
	struct path_slot s = {.parent = parent, .name = name};
	bool keep = false;

	for (uint32_t i = 0; i < CACHE_WAYS && name != 0; i++)
		if (slot_is(&line[i], parent, name))
			return line[i].path;
	s.path = table_scope(parent, name, &keep);
	if (keep && (parent != PATH_ROOT || t->is_main != 0))
		cache_keep(line, &s);
	return s.path;
}

uint32_t scope_where(const struct pd_thread *t, const struct lane *l, bool *ret_op)
{
	uint32_t path = scope_stand(t, l);

	*ret_op = false;
	if (t->states > 0) {
		const uint32_t end = t->states < STATES_MAX ? t->states : STATES_MAX;
		uint32_t at = end - 1;

		while (at > 0 && (t->state[at] & STATE_BELOW) != 0)
			at--;
		for (; at < end; at++)
			path = agent_path_child(
				path, PATH_KIND_STATE, table_name_of(t->state[at] & ~STATE_BELOW));
	}
	if (t->op != 0) {
		path = agent_path_child(path, PATH_KIND_OP, table_name_of(t->op));
		*ret_op = true;
	}
	return path;
}

/* What the now block says, t->path being `path`. */
static uint32_t shown(const struct pd_thread *t, const struct lane *l, uint32_t path)
{
	bool op;

	if (unlikely(scope_marked(t)))
		return scope_where(t, l, &op);
	return path;
}

/* The path of the innermost open scope; base_depth is right. */
static uint32_t top_path(const struct pd_thread *t, const struct lane *l)
{
	const uint32_t kept = t->depth < STACK_MAX ? t->depth : STACK_MAX;

	return kept > t->base_depth ? t->frame[kept - 1].path : l->base_path;
}

/* --- a thread's first event, and after anything that made its paths unsure -------------------- */

static void now_write(struct lane *l, const struct pd_thread *t)
{
	const uint32_t kept = t->depth < STACK_MAX ? t->depth : STACK_MAX;
	struct ring_now *n = &l->shared->now;
	const uint32_t seq = now_open(n, t->depth, shown(t, l, t->path));

	for (uint32_t i = kept > NOW_FRAMES ? kept - NOW_FRAMES : 0; i < kept; i++)
		now_frame(n, i, t->frame[i].path, t->frame[i].begin);
	now_close(n, seq);
}

/* All of the stack as it is now, which a signal handler may change meanwhile. */
static void sync_stack(struct pd_thread *t, struct lane *l)
{
	const uint32_t kept = t->depth < STACK_MAX ? t->depth : STACK_MAX;
	uint32_t path;

	if (t->base_depth > kept)
		t->base_depth = kept;
	l->base_path = table_context_path(t->context);
	path = t->is_main != 0 ? PATH_ROOT : scope_follow(l);
	for (uint32_t i = 0; i < kept; i++) {
		if (i == t->base_depth && t->context != 0)
			path = l->base_path;
		if (t->frame[i].path == PATH_ROOT) /* entered while nothing was recorded */
			frame_set(t, i, t->frame[i].name, child(t, path, t->frame[i].name));
		path = t->frame[i].path;
	}
	l->op_python = 0;
	path_set(t, top_path(t, l));
	now_write(l, t);
}

__attribute__((cold, noinline)) bool scope_sync(struct pd_thread *t)
{
	const uint32_t generation = HOT->generation;
	uint32_t meanwhile;

	if (t->engine == NULL) {
		lane_claim(t->tid, true, &t->engine);
		if (t->engine == NULL)
			return false;
		proxy_end(t->tid);
		((struct lane *)t->engine)->inherited =
			t->is_main != 0 ? PATH_ROOT : scope_follow(NULL);
	}
	do {
		meanwhile = GENERATION_SYNCS;
		__atomic_store_n(&t->generation, meanwhile, __ATOMIC_RELAXED);
		sync_stack(t, t->engine);
		/* Unless a handler's scope made it 0. Release: path belongs to this generation;
		 * pairs with the acquire in scope_follow() */
	} while (!__atomic_compare_exchange_n(
		&t->generation, &meanwhile, generation, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return true;
}

/* Another thread's stack, read while it may move: a moment's path, good until the main thread's own
 * next event. Its paths are not used, for they may be older than what they stand in. */
uint32_t scope_main_snapshot(void)
{
	const struct pd_thread *m = core.host->main_thread();
	uint32_t depth, path = PATH_ROOT;

	if (m == NULL)
		return PATH_ROOT;
	depth = __atomic_load_n(&m->depth, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < depth && i < STACK_MAX; i++) {
		const uint32_t name = __atomic_load_n(&m->frame[i].name, __ATOMIC_RELAXED);
		bool keep;

		path = table_scope(path, name, &keep);
	}
	return path;
}

/* --- the stack while nothing is recorded ------------------------------------------------------ */

static void quiet_enter(struct pd_thread *t, uint32_t name)
{
	if (t->depth < STACK_MAX)
		frame_push(t, name, PATH_ROOT, 0);
	else
		depth_set(t, t->depth + 1);
}

static void quiet_exit(struct pd_thread *t)
{
	const uint32_t depth = t->depth - 1;

	depth_set(t, depth);
	if (depth < t->base_depth)
		t->base_depth = depth;
}

/* --- enter ------------------------------------------------------------------------------------ */

static void enter_with(struct pd_thread *t, struct lane *l, uint32_t name)
{
	const uint32_t depth = t->depth;
	const uint32_t path = child(t, scope_stand(t, l), name);
	struct ring_now *n = &l->shared->now;
	uint64_t begin;
	uint32_t seq;

	if (HOT->cpu == CPU_COUNTED)
		counters_enter(t, l);
	begin = HOT->cpu != CPU_OFF ? agent_clock_inline() : 0;
	frame_push(t, name, path, begin);
	path_set(t, path);
	seq = now_open(n, depth + 1, shown(t, l, path));
	now_frame(n, depth, path, begin);
	now_close(n, seq);
}

/* The handler's scopes are kept like quiet ones; scope_sync() gives them paths if they stay,
 * because the handler jumps away. */
static void nested_enter(struct pd_thread *t, uint32_t name)
{
	const uint32_t depth = t->depth;

	quiet_enter(t, name);
	if (depth < STACK_MAX && HOT->cpu != CPU_OFF)
		t->frame[depth].begin = agent_clock_inline();
	t->generation = 0;
}

/* With the guard held, and maybe without paths of this recording. */
__attribute__((cold, noinline)) static void enter_held(struct pd_thread *t, uint32_t name)
{
	const int e = errno;

	if (t->generation != HOT->generation && !scope_sync(t))
		quiet_enter(t, name);
	else if (t->depth >= STACK_MAX)
		depth_set(t, t->depth + 1);
	else
		enter_with(t, t->engine, name);
	guard_out(t);
	errno = e;
}

__attribute__((cold, noinline)) static void enter_cold(struct pd_thread *t, uint32_t name)
{
	if (t->busy != 0 && !guard_heal(t)) {
		nested_enter(t, name);
	} else if (HOT->generation == 0) {
		quiet_enter(t, name);
	} else {
		guard_in(t);
		enter_held(t, name);
	}
}

/* The same as enter_with() where nothing is out of the ordinary. Whatever is goes to the cold
 * functions by a jump, so that this one needs no stack frame. */
void scope_enter(struct pd_thread *t, uint32_t name)
{
	struct lane *l = t->engine;
	const uint32_t depth = t->depth, parent = t->path;
	const struct path_slot *s, *end;
	struct ring_now *n;
	uint64_t begin = 0;
	uint32_t path, seq;

	if (unlikely((t->busy | (t->generation ^ HOT->match)) != 0)) {
		enter_cold(t, name);
		return;
	}
	guard_in(t);
	s = cache_line(l, parent, name);
	for (end = s + CACHE_WAYS; s < end && unlikely(!slot_is(s, parent, name)); s++)
		;
	if (unlikely(s == end || scope_marked(t) || depth >= STACK_MAX)) {
		enter_held(t, name);
		return;
	}
	path = s->path;
	n = &l->shared->now;
	if (likely(HOT->cpu == CPU_TSC)) {
		begin = agent_tsc();
	} else if (unlikely(HOT->cpu != CPU_OFF)) {
		enter_held(t, name);
		return;
	}
	frame_push(t, name, path, begin);
	path_set(t, path);
	seq = now_open(n, depth + 1, path);
	now_frame(n, depth, path, begin);
	now_close(n, seq);
	guard_out(t);
}

/* --- exit ------------------------------------------------------------------------------------- */

static inline void scope_write(
	struct lane *l, const struct pd_frame *f, uint64_t end, uint32_t flags)
{
	uint64_t *p = (uint64_t *)(void *)(l->data + (l->tail & l->mask));

	p[0] = REC_HDR(sizeof(struct rec_scope), REC_SCOPE, 0, flags, f->path) | l->lap;
	p[1] = f->begin;
	p[2] = end;
	lane_commit(l, sizeof(struct rec_scope));
}

/* The lane's end, of whatever sort. */
static void scope_put(struct lane *l, struct pd_frame f, uint64_t end, uint32_t flags)
{
	const struct rec_scope r = {.hdr = REC_HDR(sizeof(r), REC_SCOPE, 0, flags, f.path),
		.begin = f.begin,
		.end = end};

	if (!sums_scope(l, &r))
		(void)lane_put(l, &r, sizeof(r));
}

static void scope_record(struct lane *l, struct pd_frame f, uint32_t flags)
{
	const uint64_t end = agent_clock_inline();

	if (f.begin == FRAME_INHERITED) /* the parent counts it */
		return;
	if (f.begin == 0) {
		f.begin = atomic_load_explicit(&HOT->began, memory_order_relaxed);
		flags |= SCOPE_BEGAN_BEFORE;
	}
	if (likely(l->tail + sizeof(struct rec_scope) <= l->limit))
		scope_write(l, &f, end, flags);
	else
		scope_put(l, f, end, flags);
}

static void exit_with(struct pd_thread *t, struct lane *l, uint32_t flags)
{
	const uint32_t depth = t->depth - 1;
	uint32_t path;

	if (HOT->cpu != CPU_OFF)
		scope_record(l, t->frame[depth], flags);
	if (HOT->cpu == CPU_COUNTED)
		counters_exit(t, l);
	depth_set(t, depth);
	if (depth < t->base_depth)
		t->base_depth = depth;
	path = depth > t->base_depth ? t->frame[depth - 1].path : l->base_path;
	path_set(t, path);
	now_at(l, depth, shown(t, l, path));
}

/* A scope that the stack did not keep counts as the innermost kept one, without time of its own. */
static void exit_deep(struct pd_thread *t, struct lane *l, uint32_t flags)
{
	const struct pd_frame f = {
		.path = t->frame[STACK_MAX - 1].path, .begin = agent_clock_inline()};

	if (HOT->cpu != CPU_OFF)
		scope_record(l, f, flags);
	depth_set(t, t->depth - 1);
	now_at(l, t->depth, shown(t, l, t->path));
}

/* With the guard held, and maybe without paths of this recording. */
static void exit_held_as(struct pd_thread *t, uint32_t flags)
{
	const int e = errno;

	if (t->generation != HOT->generation && !scope_sync(t)) {
		if (HOT->cpu != CPU_OFF)
			agent_count(&core.counts->drop_no_lane, 1);
		quiet_exit(t);
	} else if (t->depth > STACK_MAX) {
		exit_deep(t, t->engine, flags);
	} else if (t->depth > 0) {
		exit_with(t, t->engine, flags);
	}
	guard_out(t);
	errno = e;
}

__attribute__((cold, noinline)) static void exit_held(struct pd_thread *t)
{
	exit_held_as(t, 0);
}

__attribute__((cold, noinline)) static void exit_cold(struct pd_thread *t, uint32_t flags)
{
	if (t->depth == 0)
		return;
	if (t->busy != 0 && !guard_heal(t)) {
		if (HOT->cpu != CPU_OFF)
			guard_refused(t);
		quiet_exit(t);
		t->generation = 0;
	} else if (HOT->generation == 0) {
		quiet_exit(t);
	} else {
		guard_in(t);
		exit_held_as(t, flags);
	}
}

/* As scope_enter(): what exit_with() does where nothing is out of the ordinary. */
void scope_exit(struct pd_thread *t)
{
	struct lane *l = t->engine;
	const uint32_t depth = t->depth - 1; /* of 0: beyond STACK_MAX */
	const struct pd_frame *f = &t->frame[depth];
	uint32_t path;

	if (unlikely((t->busy | (t->generation ^ HOT->match)) != 0)) {
		exit_cold(t, 0);
		return;
	}
	guard_in(t);
	if (unlikely(depth >= STACK_MAX || depth < t->base_depth || scope_marked(t))) {
		exit_held(t);
		return;
	}
	if (likely(HOT->cpu == CPU_TSC)) {
		if (unlikely(l->tail + sizeof(struct rec_scope) > l->limit ||
			     f->begin + 1 <= 1)) { /* 0, or FRAME_INHERITED */
			exit_held(t);
			return;
		}
		scope_write(l, f, agent_tsc(), 0);
	} else if (unlikely(HOT->cpu != CPU_OFF)) {
		exit_held(t);
		return;
	}
	path = depth > t->base_depth ? t->frame[depth - 1].path : l->base_path;
	depth_set(t, depth);
	path_set(t, path);
	now_at(l, depth, path);
	guard_out(t);
}

void agent_scope_enter(struct pd_thread *t, uint32_t name)
{
	if (HOT->opened != 0)
		scope_enter(t, name);
	else
		quiet_enter(t, name);
}

void agent_scope_exit(struct pd_thread *t)
{
	if (HOT->opened != 0)
		scope_exit(t);
	else if (t->depth > 0)
		quiet_exit(t);
}

void scope_unwind(struct pd_thread *t, uint32_t depth)
{
	while (t->depth > depth)
		exit_cold(t, SCOPE_UNWOUND);
}

/* --- states, ops, contexts -------------------------------------------------------------------- */

/* Runs `act` with the guard held and paths of this recording, or not at all: what it does is done
 * again by scope_sync(). */
static void moved(struct pd_thread *t, void (*act)(struct pd_thread *, struct lane *))
{
	const int e = errno;

	if (t->busy != 0 && !guard_heal(t)) {
		t->generation = 0;
	} else if (HOT->generation != 0) {
		guard_in(t);
		if (t->generation == HOT->generation)
			act(t, t->engine);
		else
			(void)scope_sync(t);
		guard_out(t);
	}
	errno = e;
}

static void state_moved(struct pd_thread *t, struct lane *l)
{
	l->op_python = 0;
	now_at(l, t->depth, shown(t, l, t->path));
}

static void context_moved(struct pd_thread *t, struct lane *l)
{
	if (t->base_depth > t->depth)
		t->base_depth = t->depth;
	l->base_path = table_context_path(t->context);
	path_set(t, top_path(t, l));
	state_moved(t, l);
}

void scope_state_changed(struct pd_thread *t)
{
	moved(t, state_moved);
}

void scope_context_changed(struct pd_thread *t)
{
	moved(t, context_moved);
}

uint32_t agent_where(bool *ret_op)
{
	struct pd_thread *t = !agent_on_backend ? core.host->thread() : NULL;

	*ret_op = false;
	if (t == NULL || HOT->generation == 0)
		return PATH_ROOT;
	if (unlikely(t->generation != HOT->generation) && !scope_sync(t))
		return t->is_main != 0 ? PATH_ROOT : scope_follow(NULL);
	return scope_where(t, t->engine, ret_op);
}

static uint32_t python_stack(void)
{
	uint32_t names[PATH_DEPTH_MAX - 1], i, path = PATH_ROOT;

	for (i = core.host->stack(names, PATH_DEPTH_MAX - 1); i-- > 0;)
		path = agent_path_child(path, PATH_KIND_FRAME, table_name_of(names[i]));
	return path;
}

/* An op's metrics come from another place in the program than its launch, and belong to it. */
uint32_t scope_python(struct lane *l, bool op)
{
	if (likely((HOT->want & WANT_PYTHON) == 0) || agent_on_backend)
		return PATH_ROOT;
	if (!op || l == NULL)
		return python_stack();
	if (l->op_python == 0)
		l->op_python = python_stack() + 1;
	return l->op_python - 1;
}

/* Its lane may become another thread's meanwhile: then its end is near. */
__attribute__((no_sanitize("thread"))) uint32_t scope_of(const struct pd_thread *t)
{
	const struct lane *l = __atomic_load_n(&t->engine, __ATOMIC_RELAXED);
	uint32_t path;

	if (l == NULL || __atomic_load_n(&t->generation, __ATOMIC_RELAXED) != HOT->generation) {
		path = proxy_path(t); /* it has said nothing since the recording began */
	} else {
		path = atomic_load_explicit(&l->shared->now.path, memory_order_relaxed);
		if (path == PATH_ROOT && __atomic_load_n(&t->is_main, __ATOMIC_RELAXED) == 0)
			path = scope_follow(l);
	}
	return path;
}

/* --- the end of a thread ---------------------------------------------------------------------- */

/* The guard is not given back: a signal handler on this thread would claim another lane for a block
 * that is done with. libprotond makes a new block for what comes later. */
void scope_thread_exit(struct pd_thread *t)
{
	struct lane *l;

	if (HOT->opened == 0) {
		agent_self = NULL;
		return;
	}
	t->busy = 0;
	if (t->depth > 0)
		scope_unwind(t, 0);
	guard_in(t);
	named_forget(t->tid);
	agent_self = NULL; /* not before: a handler that launches keeps it again */
	l = t->engine;
	t->engine = NULL;
	t->generation = 0;
	if (l == NULL)
		return;
	counters_end(l);
	lane_release(l, t->is_main == 0);
}
