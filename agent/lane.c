/* SPDX-License-Identifier: MIT. lane.c: lanes: one per thread, one writer each, read by the daemon.
 *
 *   owner                                       daemon
 *   tail + bytes > limit? lane_slow()           t = tail                   (pread, acquire fence)
 *     h = ctl.lane[i].head      (acquire, A)    read [head, t), check the copy, make it durable
 *   write the record            (plain stores)  ctl.lane[i].head = t       (release, pairs with A)
 *   tail += bytes               (release)
 *
 * Positions count bytes and never wrap. `limit` folds four questions into the one comparison of the
 * hot path: is this the end of the lap, is there room, is there a loss to be told first, is this
 * the end of a quarter, where a napping daemon is woken. A record that does not fit behind the last
 * one of a lap is preceded by PAD. A thread that dies between the stores has not moved tail: the
 * record never was.
 *
 * A lane outlives its thread: the next thread takes one that was left and is at least half empty,
 * else a fresh one, else the emptiest, and goes on at the same tail, after a THREAD record.
 *
 * A burst: a thread whose lane is full goes on in another, so far as its share goes (BURST_SHARE),
 * and leaves a mark behind, for which each lane keeps room: THREAD with THREAD_GOES_ON. What stands
 * before a mark comes before what its thread wrote elsewhere afterwards; the daemon knows that from
 * the order of the marks' clocks (daemon/drain.c). Lanes that nobody needs any more give their
 * memory back within two seconds.
 *
 * With no further lane, scopes and metrics go into sums (sums.c), which have a lane of their own
 * beside the full one; what cannot be summed goes there too, where the full one has no room. Without
 * a lane for sums the newest record is refused and counted; what was refused is told by LOST as soon
 * as there is room.
 */
#include "lane.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "clock.h"
#include "named.h"
#include "record.h"
#include "ring_file.h"
#include "sync.h"

#define MARK_BYTES (sizeof(struct rec_thread) + 16u) /* with the longest pad before it */
/* Of all lanes that may get memory. In a burst one thread leaves at most so many full ones behind,
 * and all of them leave a quarter to threads that are yet to come. */
#define BURST_SHARE(max) ((max) / 8 + 1)
#define BURST_ALL(max)   ((max) - (max) / 4)

static struct ring_lane *shared_at(uint32_t i)
{
	return (struct ring_lane *)(void *)((unsigned char *)core.header + core.at.lanes) + i;
}

/* True: `bytes` contiguous bytes are free at l->tail, and `spare` behind them. */
static bool room_with(struct lane *l, uint32_t bytes, uint32_t spare)
{
	const uint64_t cap = core.lane_bytes;
	const uint64_t off = l->tail & (cap - 1);
	const uint64_t pad = off + bytes > cap ? cap - off : 0;
	/* A: the daemon is done with all before head; pairs with its release after the drain */
	const uint64_t head =
		atomic_load_explicit(&core.ctl->lane[l->index].head, memory_order_acquire);
	uint64_t stop;

	/* A head beyond tail or behind what was said before is not to be believed. */
	if (head <= l->tail && head > l->head)
		l->head = head;
	if (l->tail + pad + bytes + spare - l->head > cap)
		return false;
	if (pad != 0) {
		uint64_t *p = (uint64_t *)(void *)(l->data + off);

		*p = REC_HDR(0, REC_PAD, 0, 0, pad) | l->lap;
		lane_commit(l, (uint32_t)pad);
	}
	l->lap = (l->tail / cap & 0xff) << 16;
	stop = ((l->tail + bytes - 1) & ~(cap / 4 - 1)) + cap / 4;
	l->limit = stop < l->head + cap - spare ? stop : l->head + cap - spare;
	if (l->sums != NULL) /* its owner's next scope is not a record */
		l->limit = 0;
	return true;
}

static bool room(struct lane *l, uint32_t bytes)
{
	return room_with(l, bytes, MARK_BYTES);
}

static bool lane_further(struct lane *l);

static void lost_add(struct lost *x)
{
	x->last = agent_clock_inline();
	if (x->count++ == 0)
		x->first = x->last;
}

static bool lost_tell(struct lane *l, struct lost *x, enum lost_cause cause)
{
	const struct lost told = *x;
	struct rec_lost *r;

	if (told.count == 0)
		return true;
	if (!room(l, sizeof(*r)))
		return false;
	/* What a signal handler has added since stays, for the next LOST. */
	__atomic_fetch_sub(&x->count, told.count, __ATOMIC_RELAXED);
	r = (struct rec_lost *)(void *)(l->data + (l->tail & (core.lane_bytes - 1)));
	*r = (struct rec_lost){.hdr = REC_HDR(sizeof(*r), REC_LOST, 0, 0, cause) | l->lap,
		.count = told.count,
		.first = told.first,
		.last = told.last};
	lane_commit(l, sizeof(*r));
	return true;
}

bool lane_room(struct lane *l, uint32_t bytes)
{
	return lost_tell(l, &l->full, LOST_LANE_FULL) && lost_tell(l, &l->nested, LOST_NESTED) &&
	       room(l, bytes);
}

void lane_wake(const struct lane *l, uint64_t least)
{
	uint32_t nap, was = atomic_load_explicit(&core.nap, memory_order_relaxed);

	/* Between our store of tail and this load, as between the daemon's store of nap and its
	 * look at tails: one of the two sees the other's. */
	atomic_thread_fence(memory_order_seq_cst);
	nap = atomic_load_explicit(&core.ctl->nap, memory_order_relaxed);
	if (nap != 0 && nap != was && l->tail - l->head >= least && core.wakes &&
		atomic_compare_exchange_strong(&core.nap, &was, nap))
		core.host->wake();
}

bool lane_more(struct lane *l, uint32_t bytes)
{
	const bool ok = lane_room(l, bytes);

	lane_wake(l, core.lane_bytes / 8);
	return ok || (l->sums == NULL && lane_further(l) && lane_room(l, bytes));
}

/* Where there is room for a record of l's owner. NULL: nowhere, and that is counted. */
__attribute__((cold, noinline)) static struct lane *lane_slow(struct lane *l, uint32_t bytes)
{
	_Atomic uint64_t *n;

	if (lane_more(l, bytes))
		return l;
	if (l->sums != NULL) {
		lane_sums_close(l->sums);
		if (room(l->sums, bytes))
			return l->sums;
	}
	lost_add(&l->full);
	l->limit = 0;
	n = &l->shared->drop_full; /* of the lane that it is in now; only the owner writes it */
	atomic_store_explicit(
		n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
	return NULL;
}

__attribute__((cold)) void lane_nested(struct lane *l)
{
	_Atomic uint64_t *n = &l->shared->drop_nested;

	lost_add(&l->nested);
	l->limit = 0; /* the next record takes the slow path, where this is told */
	atomic_store_explicit(
		n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

void lane_lost(uint64_t *ret_lost)
{
	const struct ring_counts *c = core.counts;
	const struct {
		enum lost_cause cause;
		const _Atomic uint64_t *n;
	} of_ring[] = {
		{LOST_NO_LANE, &c->drop_no_lane},
		{LOST_GPU_DROPPED, &c->gpu_dropped},
		{LOST_GPU_REFUSED, &c->gpu_refused},
		{LOST_GPU_INVALID, &c->gpu_invalid},
		{LOST_GPU_UNKNOWN, &c->gpu_unknown},
		{LOST_PATHS, &c->paths_refused},
		{LOST_NAMES, &c->names_refused},
	};
	const uint32_t used = atomic_load_explicit(&core.lanes_used, memory_order_relaxed);

	memset(ret_lost, 0, CUT_CAUSES * sizeof(*ret_lost));
	for (uint32_t i = 0; i < sizeof(of_ring) / sizeof(of_ring[0]); i++)
		ret_lost[of_ring[i].cause - 1] =
			atomic_load_explicit(of_ring[i].n, memory_order_relaxed);
	for (uint32_t i = 0; i < used; i++) {
		const struct ring_lane *s = shared_at(i);

		ret_lost[LOST_LANE_FULL - 1] +=
			atomic_load_explicit(&s->drop_full, memory_order_relaxed);
		ret_lost[LOST_NESTED - 1] +=
			atomic_load_explicit(&s->drop_nested, memory_order_relaxed);
	}
}

bool lane_put(struct lane *l, const void *rec, uint32_t bytes)
{
	uint64_t *p;

	if (unlikely(l->tail + bytes > l->limit)) {
		l = lane_slow(l, bytes);
		if (l == NULL)
			return false;
	}
	p = (uint64_t *)(void *)(l->data + (l->tail & l->mask));
	memcpy(p, rec, bytes);
	*p |= l->lap;
	lane_commit(l, bytes);
	return true;
}

/* --- claiming --------------------------------------------------------------------------------- */

static uint64_t data_at(const struct lane *l)
{
	return core.at.data + (uint64_t)l->index * core.lane_bytes;
}

/* With the lock: one that never had an owner. */
struct lane *lane_first(void)
{
	struct lane *l = &core.lanes[core.lanes_used];

	l->index = core.lanes_used;
	l->shared = shared_at(l->index);
	l->data = (unsigned char *)core.header + data_at(l);
	l->mask = core.lane_bytes - 1;
	for (uint32_t i = 0; i < CACHE_WAYS; i++)
		l->cache[i].parent = UINT32_MAX; /* where (root, 0) would be looked for */
	return l;
}

/* With the lock: one without memory. Backed before the first store: a full tmpfs must not fault the
 * job. lane_populate() is to follow, without the lock. */
static struct lane *lane_fresh(uint32_t max)
{
	const bool bare = core.n_bare > 0;
	struct lane *l;

	if (core.lanes_backed >= max || (!bare && core.lanes_used >= core.n_lanes))
		return NULL;
	l = bare ? &core.lanes[core.free_lane[core.n_lanes - core.n_bare]] : lane_first();
	if (ring_back(data_at(l), core.lane_bytes) < 0) {
		core.lanes_backed_max = core.lanes_backed; /* asked once, not at each event */
		return NULL;
	}
	if (bare)
		core.n_bare--;
	else
		core.lanes_used++;
	core.lanes_backed++;
	return l;
}

/* All of its pages at once, else each would be a fault. */
static void lane_populate(const struct lane *l)
{
#ifdef MADV_POPULATE_WRITE
	const int e = errno;

	(void)madvise(l->data, core.lane_bytes, MADV_POPULATE_WRITE);
	errno = e;
#endif
}

/* With the lock, of a lane without an owner: bytes that the daemon is done with. */
static uint64_t space(struct lane *l)
{
	/* A: as in room() */
	const uint64_t head =
		atomic_load_explicit(&core.ctl->lane[l->index].head, memory_order_acquire);

	if (head <= l->tail && head > l->head)
		l->head = head;
	return core.lane_bytes - (l->tail - l->head);
}

/* With the lock: where in free_lane is one with `least` bytes free, the latest left first; else the
 * emptiest. n_free: there is none. */
static uint32_t lane_emptiest(uint64_t least, bool *ret_enough)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);
	uint32_t best = n;
	uint64_t most = 0;

	*ret_enough = false;
	for (uint32_t i = n; i-- > 0 && !*ret_enough;) {
		const uint64_t bytes = space(&core.lanes[core.free_lane[i]]);

		if (best != n && bytes <= most)
			continue;
		best = i;
		most = bytes;
		*ret_enough = bytes >= least;
	}
	return best;
}

/* With the lock: a lane that was left in a burst is no longer its last owner's. */
static void lane_forgets(struct lane *l)
{
	l->idle = false;
	if (l->mover == NULL)
		return;
	l->mover = NULL;
	atomic_store_explicit(&l->shared->tid, 0, memory_order_relaxed);
	/* release: as in lane_release() */
	atomic_store_explicit(&l->shared->state, LANE_EXITED, memory_order_release);
}

/* With the lock: a lane that another thread left, if the new owner can say THREAD there. */
static struct lane *lane_left(uint32_t at)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);
	struct lane *l = at < n ? &core.lanes[core.free_lane[at]] : NULL;

	if (l == NULL || !lane_room(l, sizeof(struct rec_thread)))
		return NULL;
	lane_forgets(l);
	core.free_lane[at] = core.free_lane[n - 1];
	atomic_store_explicit(&core.n_free, n - 1, memory_order_relaxed);
	return l;
}

/* With the lock: one that was left and is at least half empty, else a fresh one, else any. A full
 * one would cost its next owner events while others stand by. */
static struct lane *lane_next(bool *ret_fresh)
{
	bool enough;
	const uint32_t at = lane_emptiest(core.lane_bytes / 2, &enough);
	struct lane *l = enough ? lane_left(at) : lane_fresh(core.lanes_backed_max);

	*ret_fresh = l != NULL && !enough;
	return l != NULL || enough ? l : lane_left(at);
}

/* With the lock: the daemon looks no further than one lane beyond the last that has an owner. */
static void lane_own(struct lane *l, uint32_t tid, enum lane_state state)
{
	struct ring_lane *s = l->shared;
	const uint32_t gen = atomic_load_explicit(&s->generation, memory_order_relaxed) + 1;
	struct rec_thread r = {.clock = agent_clock_inline(), .tid = tid, .generation = gen};

	atomic_store_explicit(&s->tid, tid, memory_order_relaxed);
	atomic_store_explicit(&s->generation, gen, memory_order_relaxed);
	atomic_store_explicit(&s->moves, l->moves, memory_order_relaxed);
	/* release: tid, generation and moves are the new owner's */
	atomic_store_explicit(&s->state, state, memory_order_release);
	r.hdr = REC_HDR(sizeof(r), REC_THREAD, 0, state == LANE_SUMS ? THREAD_SUMS : 0, l->name);
	(void)lane_put(l, &r, sizeof(r));
}

void lane_claim(uint32_t tid, bool own_name, void **ret_lane)
{
	char name[16] = "protond";
	const char *given;
	struct lane *l;
	sigset_t mask;
	uint32_t id, bytes;
	bool fresh;

	if (core.lanes == NULL)
		return;
	/* relaxed: a wrong guess is set right under the lock or at the next event */
	if (atomic_load_explicit(&core.lanes_none, memory_order_relaxed))
		return;
	if (own_name)
		(void)prctl(PR_GET_NAME, name, 0, 0, 0);
	given = own_name ? named_thread(tid, &bytes) : NULL;
	id = given != NULL ? agent_name(given, bytes) : agent_name(name, strlen(name));
	agent_lock_tables(&mask);
	l = lane_next(&fresh);
	if (l != NULL) {
		l->base_path = PATH_ROOT;
		l->inherited = PATH_ROOT;
		l->name = id;
		l->moves = 0;
		l->waits = RING_LANES_MAX;
		atomic_store_explicit(&l->shared->now.depth, 0, memory_order_relaxed);
		lane_own(l, tid, LANE_LIVE);
		core.n_unsummed++;
		*ret_lane = l; /* before a handler may jump away with it */
	} else {
		atomic_store_explicit(&core.lanes_none, true, memory_order_relaxed);
	}
	agent_unlock_tables(&mask);
	if (l != NULL && fresh)
		lane_populate(l);
}

/* With the lock. */
static void lane_push(const struct lane *l)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);

	core.free_lane[n] = (uint32_t)(l - core.lanes);
	atomic_store_explicit(&core.n_free, n + 1, memory_order_relaxed);
}

static void lane_free(const struct lane *l)
{
	lane_push(l);
	lane_retry();
}

/* --- bursts ----------------------------------------------------------------------------------- */

/* The last record of a thread in a lane that it leaves for another: the daemon takes all up to here
 * before what the thread wrote there. */
static void mark_put(struct lane *l)
{
	const struct rec_thread r = {
		.hdr = REC_HDR(sizeof(r), REC_THREAD, 0, THREAD_GOES_ON, l->name),
		.clock = agent_clock_inline(),
		.tid = atomic_load_explicit(&l->shared->tid, memory_order_relaxed),
		.generation = atomic_load_explicit(&l->shared->generation, memory_order_relaxed)};

	if (room_with(l, sizeof(r), 0)) /* always: room() keeps it */
		(void)lane_put(l, &r, sizeof(r));
}

#define SWAP(field)                                        \
	do {                                               \
		const __typeof__(a->field) was = a->field; \
		a->field = b->field;                       \
		b->field = was;                            \
	} while (0)

static void places_swap(struct lane *a, struct lane *b)
{
	SWAP(tail);
	SWAP(limit);
	SWAP(data);
	SWAP(lap);
	SWAP(shared);
	SWAP(head);
	SWAP(index);
	SWAP(full);
	SWAP(nested);
}

/* The new place is nobody's yet; the old one keeps what it says, for who looks before it is. */
static void now_move(struct ring_now *to, const struct ring_now *from)
{
	const uint32_t seq = atomic_load_explicit(&to->seq, memory_order_relaxed) & ~1u;

	atomic_store_explicit(&to->seq, seq + 1, memory_order_relaxed);
	/* as in now_open() */
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&to->depth, from->depth, memory_order_relaxed);
	atomic_store_explicit(&to->path, from->path, memory_order_relaxed);
	for (uint32_t i = 0; i < NOW_FRAMES; i++) {
		atomic_store_explicit(
			&to->frame[i].begin, from->frame[i].begin, memory_order_relaxed);
		atomic_store_explicit(
			&to->frame[i].path, from->frame[i].path, memory_order_relaxed);
	}
	atomic_store_explicit(&to->seq, seq + 2, memory_order_release); /* as in now_close() */
}

static bool sums_known(void)
{
	return (core.ctl->abi & 0xffff) >= RING_ABI_SUMS;
}

/* With the lock: without the place in free_lane, or a fresh one, each thread could still have sums: of
 * a burst that took more, the others would drop what comes next. */
static bool sums_could(uint32_t taken)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);
	const uint32_t owners = core.n_unsummed - (core.agent != NULL ? 1u : 0u);
	const uint32_t need = owners + (taken == n ? 1u : 0u);
	const uint32_t places = core.n_lanes - core.lanes_used + core.n_bare;
	uint32_t could = core.lanes_backed_max - core.lanes_backed;

	could = could < places ? could : places;
	for (uint32_t i = 0; i < n && could < need && sums_known(); i++)
		could += i != taken && space(&core.lanes[core.free_lane[i]]) >= core.lane_bytes / 2;
	return could >= need || !sums_known();
}

/* With the lock: where l's owner goes on, or NULL and l->waits. */
static struct lane *burst_next(struct lane *l, bool *ret_fresh)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);
	const uint32_t max = core.lanes_backed_max;
	const struct lane *oldest = l, *x;
	uint32_t mine = 0, at;
	struct lane *to;
	bool enough;

	at = lane_emptiest(core.lane_bytes / 2, &enough);
	for (uint32_t i = 0; i < n && !enough; i++) {
		x = &core.lanes[core.free_lane[i]];
		if (x->mover != l)
			continue;
		if (mine++ == 0 || (int32_t)(x->moved - oldest->moved) < 0)
			oldest = x;
	}
	if (!sums_could(enough ? at : n))
		to = NULL;
	else
		to = enough                    ? lane_left(at)
		     : mine < BURST_SHARE(max) ? lane_fresh(BURST_ALL(max))
					       : NULL;
	*ret_fresh = !enough;
	l->waits = to == NULL ? oldest->index : RING_LANES_MAX;
	l->waits_head = oldest->head;
	return to;
}

/* Nothing is asked for at each event that is refused. */
static bool may_move(const struct lane *l)
{
	if (l == core.agent) /* its thread can wait */
		return false;
	return l->waits == RING_LANES_MAX || atomic_load_explicit(&core.ctl->lane[l->waits].head,
						     memory_order_relaxed) != l->waits_head;
}

/* The lane is full: its owner goes on in another, which gets the place of the full one. */
static bool lane_further(struct lane *l)
{
	struct lane *to;
	sigset_t mask;
	uint32_t tid;
	bool fresh;

	if (!may_move(l))
		return false;
	tid = atomic_load_explicit(&l->shared->tid, memory_order_relaxed);
	agent_lock_tables(&mask);
	to = burst_next(l, &fresh);
	if (to != NULL) {
		mark_put(l);
		now_move(&to->shared->now, &l->shared->now);
		places_swap(l, to);
		to->mover = l;
		to->moved = l->moves++;
		lane_own(l, tid, LANE_LIVE);
		/* release: as in lane_release() */
		atomic_store_explicit(&to->shared->state, LANE_LEFT, memory_order_release);
		lane_push(to);
	}
	agent_unlock_tables(&mask);
	if (to != NULL && fresh)
		lane_populate(l);
	return to != NULL;
}

/* --- lanes of sums ---------------------------------------------------------------------------- */

#define SUMS_RETRY 64u /* refused events between two tries to get one */

/* With the lock: one that was left and is at least half empty, else a fresh one, else one that has
 * a quarter. */
static struct lane *sums_next(bool *ret_fresh)
{
	bool enough;
	const uint32_t at = lane_emptiest(core.lane_bytes / 2, &enough);
	struct lane *s = enough ? lane_left(at) : lane_fresh(core.lanes_backed_max);

	*ret_fresh = s != NULL && !enough;
	if (s != NULL || enough || at >= atomic_load_explicit(&core.n_free, memory_order_relaxed) ||
		space(&core.lanes[core.free_lane[at]]) < core.lane_bytes / 4)
		return s;
	return lane_left(at);
}

bool lane_sums_take(struct lane *l)
{
	struct lane *s;
	sigset_t mask;
	bool fresh;

	if (l == core.agent || l->full.count % SUMS_RETRY != 0 || !sums_known())
		return false;
	agent_lock_tables(&mask);
	s = sums_next(&fresh);
	if (s != NULL) {
		s->name = l->name;
		s->moves = 0;
		s->sums = NULL;
		s->since = s->end = 0;
		memset(s->slot, 0, sizeof(s->slot));
		lane_own(s, atomic_load_explicit(&l->shared->tid, memory_order_relaxed), LANE_SUMS);
		l->sums = s;
		l->limit = 0;
		core.n_unsummed--;
	}
	agent_unlock_tables(&mask);
	if (s != NULL && fresh)
		lane_populate(s);
	return s != NULL;
}

/* With the lock. */
static void sums_give(struct lane *l)
{
	struct lane *s = l->sums;

	if (s == NULL)
		return;
	lane_sums_close(s);
	l->sums = NULL;
	core.n_unsummed++;
	atomic_store_explicit(&s->shared->tid, 0, memory_order_relaxed);
	/* release: as in lane_release() */
	atomic_store_explicit(&s->shared->state, LANE_EXITED, memory_order_release);
	lane_push(s);
}

void lane_sums_give(struct lane *l)
{
	sigset_t mask;

	agent_lock_tables(&mask);
	sums_give(l);
	agent_unlock_tables(&mask);
}

/* --- given back ------------------------------------------------------------------------------- */

/* With the lock: l's owner is gone, and is in none of the lanes that it left. */
static void burst_forget(const struct lane *l)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		if (core.lanes[core.free_lane[i]].mover == l)
			lane_forgets(&core.lanes[core.free_lane[i]]);
	}
}

/* With the lock: one to be given back is taken from the stack. */
static struct lane *trim_one(void)
{
	const uint32_t n = atomic_load_explicit(&core.n_free, memory_order_relaxed);

	for (uint32_t i = 0; i < n; i++) {
		struct lane *l = &core.lanes[core.free_lane[i]];

		if (!l->idle)
			continue;
		lane_forgets(l);
		core.free_lane[i] = core.free_lane[n - 1];
		atomic_store_explicit(&core.n_free, n - 1, memory_order_relaxed);
		return l;
	}
	return NULL;
}

static struct lane *lane_unused(void)
{
	struct lane *l;
	sigset_t mask;

	agent_lock_tables(&mask);
	l = trim_one();
	agent_unlock_tables(&mask);
	return l;
}

bool lane_trim(void)
{
	struct lane *l;
	sigset_t mask;
	uint32_t n;

	while ((l = lane_unused()) != NULL) {
		ring_unback(data_at(l), core.lane_bytes);
		agent_lock_tables(&mask);
		core.lanes_backed--;
		core.free_lane[core.n_lanes - ++core.n_bare] = (uint32_t)(l - core.lanes);
		agent_unlock_tables(&mask);
	}
	agent_lock_tables(&mask);
	n = atomic_load_explicit(&core.n_free, memory_order_relaxed);
	for (uint32_t i = 0; i < n; i++) {
		l = &core.lanes[core.free_lane[i]];
		l->idle = space(l) == core.lane_bytes;
	}
	agent_unlock_tables(&mask);
	return n > 0;
}

void lane_retry(void)
{
	atomic_store_explicit(&core.lanes_none, false, memory_order_relaxed);
}

/* A thread that left by the bare system call, or whose last destructor a signal handler with scopes
 * has outlived. The main thread is never gone before the process. */
static bool owner_is_gone(const struct lane *l)
{
	/* acquire: tid is this owner's; pairs with the release in lane_own() */
	if (l == core.agent ||
		atomic_load_explicit(&l->shared->state, memory_order_acquire) != LANE_LIVE)
		return false;
	return syscall(SYS_tgkill, getpid(),
		       atomic_load_explicit(&l->shared->tid, memory_order_relaxed), 0) < 0 &&
	       errno == ESRCH;
}

void lane_sweep(void)
{
	sigset_t mask;

	if (atomic_load_explicit(&core.n_free, memory_order_relaxed) != 0 ||
		core.lanes_backed < core.lanes_backed_max)
		return;
	agent_lock_tables(&mask);
	for (uint32_t i = 0; i < core.lanes_used; i++) {
		const struct lane *l = &core.lanes[i];

		if (!owner_is_gone(l))
			continue;
		burst_forget(l);
		sums_give(&core.lanes[i]);
		core.n_unsummed--;
		atomic_store_explicit(&l->shared->state, LANE_EXITED, memory_order_release);
		lane_free(l);
	}
	agent_unlock_tables(&mask);
}

/* The main thread's cache knows scopes at the root, which others stand elsewhere with: not reused.
 */
void lane_release(struct lane *l, bool reuse)
{
	sigset_t mask;

	agent_lock_tables(&mask);
	burst_forget(l);
	sums_give(l);
	core.n_unsummed--;
	/* release: all that this owner wrote, the now block included, is there */
	atomic_store_explicit(&l->shared->state, LANE_EXITED, memory_order_release);
	if (reuse)
		lane_free(l);
	agent_unlock_tables(&mask);
}

static uint64_t lanes_bytes(void)
{
	return ring_page_up((uint64_t)core.n_lanes * sizeof(struct lane));
}

static uint64_t all_bytes(void)
{
	return lanes_bytes() + (uint64_t)core.n_lanes * sizeof(uint32_t);
}

int lane_init(void)
{
	void *p = mmap(NULL, all_bytes(), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -ENOMEM;
	core.lanes = p;
	core.free_lane = (uint32_t *)(void *)((unsigned char *)p + lanes_bytes());
	core.lanes_used = core.lanes_backed = core.n_bare = core.n_unsummed = 0;
	if (core.n_lanes < core.lanes_backed_max)
		core.lanes_backed_max = core.n_lanes;
	atomic_store_explicit(&core.n_free, 0, memory_order_relaxed);
	lane_retry();
	return 0;
}

void lane_fini(void)
{
	if (core.lanes != NULL)
		munmap(core.lanes, all_bytes());
	core.lanes = NULL;
}
