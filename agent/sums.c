/* SPDX-License-Identifier: MIT. sums.c: events of a thread whose lane is full, and which gets no further
 * one: added up by path, in a lane beside it, until the daemon keeps up again.
 *
 * A sum is a record (REC_SUM, REC_TOTAL) that grows behind its lane's tail and before ring_lane.sums,
 * where the daemon reads it again and again; when tail passes it, it is final. All of it counts at the
 * clock at which it was opened: a session that begins, ends or goes to its next phase cuts sums, its
 * thread closes those that are open. It looks at two words for that at each event: core.cut, for what
 * the job itself says, and the daemon's (SUMS_CUT), for what others do. Whatever began before the last
 * cut, or before there were sums, may belong to both sides of it, and is a record.
 *
 * A thread goes on with sums until the daemon has been here (SUMS_VISIT) and less came since the last
 * time than half a lane has room for. While the daemon has more to do than it should (WANT_SUMS), a
 * thread begins with them at the end of a quarter of its lane, and does not end.
 *
 *   owner                                         daemon
 *   redo: what the sum becomes                    look: tail, sums        (pread, acquire fence)
 *   redo.pos = its position + 1                   records up to tail
 *   the sum                                       [tail, sums) as it stands into the journal
 *   redo.pos = 0                                  visit, head
 *
 * A thread that dies between these stores leaves redo behind: whoever reads for the last time does it
 * again. Only the order of the stores in the program counts for that; a live reader may find one event
 * half there, and the rest the next time.
 */
#include "sums.h"

#include <string.h>

#include "agent.h"
#include "clock.h"
#include "core.h"
#include "lane.h"
#include "record.h"

#define PROBES       8u
#define KIND_TOTAL   0x80000000u
#define KIND_SURPLUS 0x40000000u
#define SPARE        (core.lane_bytes / 8) /* for records, and for what has no room under its own path */

__extension__ typedef unsigned __int128 u128;

static inline void put(uint64_t *to, uint64_t v)
{
	__atomic_store_n(to, v, __ATOMIC_RELAXED);
}

static inline void put32(uint32_t *to, uint32_t v)
{
	__atomic_store_n(to, v, __ATOMIC_RELAXED);
}

/* --- whether there are sums ------------------------------------------------------------------- */

/* Of the clock's rate the job needs to know which bucket a duration is in, and no more. */
static uint64_t tick_ns(void)
{
	const struct ring_header *h = core.header;
	const uint64_t ticks = agent_clock() - h->created_clock;
	const uint64_t ns = agent_monotonic_ns() - h->created_monotonic_ns;

	if (HOT->tsc == 0 || ticks == 0)
		return 1ull << 32;
	if (h->tsc_khz != 0 && ns < 100000000u)
		return (1000000ull << 32) / h->tsc_khz;
	return (uint64_t)(((u128)ns << 32) / ticks);
}

static inline uint64_t to_ns(uint64_t ticks)
{
	return (uint64_t)((u128)ticks * atomic_load_explicit(&core.tick_ns, memory_order_relaxed) >>
			  32);
}

/* Not before what was loaded. */
static uint64_t clock_after(void)
{
	atomic_thread_fence(memory_order_seq_cst);
#if defined(__x86_64__)
	__builtin_ia32_lfence();
#endif
	return agent_clock_inline();
}

static inline uint64_t told(void)
{
	/* acquire, here and of core.cut: a sum is opened at a clock that is later than what cut */
	return atomic_load_explicit(&core.ctl->sums, memory_order_acquire);
}

static void look(struct lane *s)
{
	s->seen = told();
	s->cut = atomic_load_explicit(&core.cut, memory_order_acquire);
	s->base = clock_after();
}

/* The daemon would rather have sums, and nobody wants single events. */
static bool are_wanted(void)
{
	return (atomic_load_explicit(&core.ctl->want, memory_order_relaxed) & WANT_SUMS) != 0;
}

static bool begin(struct lane *l, uint32_t bytes)
{
	const bool room = lane_more(l, bytes);

	if ((room && !are_wanted()) || !lane_sums_take(l))
		return false;
	atomic_store_explicit(&core.tick_ns, tick_ns(), memory_order_relaxed);
	look(l->sums);
	return true;
}

static inline bool is_moved(const struct lane *s)
{
	return told() != s->seen || atomic_load_explicit(&core.cut, memory_order_acquire) != s->cut;
}

/* The daemon was here, or a session cuts. False: there are no sums any more. */
__attribute__((cold, noinline)) static bool moved(struct lane *l)
{
	struct lane *s = l->sums;
	const uint64_t seen = s->seen, word = told();
	const bool visit = SUMS_VISIT(word) != SUMS_VISIT(seen);

	if ((core.ctl->abi & 0xffff) < RING_ABI_SUMS ||
		(visit && s->since * sizeof(struct rec_scope) < core.lane_bytes / 2 &&
			!are_wanted())) {
		lane_sums_give(l);
		return false;
	}
	if (visit)
		s->since = 0;
	if (SUMS_CUT(word) != SUMS_CUT(seen) ||
		atomic_load_explicit(&core.cut, memory_order_acquire) != s->cut) {
		lane_sums_close(s);
		look(s);
	}
	/* What else changed since is seen at the next event. */
	s->seen = word;
	return true;
}

/* True: what has begun then is to be summed. */
static inline bool is_summed(struct lane *l, uint64_t began, uint32_t bytes)
{
	if (l->sums == NULL && !begin(l, bytes))
		return false;
	if (is_moved(l->sums) && !moved(l))
		return false;
	return began >= l->sums->base;
}

/* --- finding and opening ---------------------------------------------------------------------- */

static inline bool is_open(const struct lane *s, const struct sum_slot *x)
{
	return x->pos >= s->tail && x->pos < s->end;
}

/* Where it is, or would be. While none is closed, none that is open stands behind one that is not. */
static inline struct sum_slot *slot_of(struct lane *s, uint32_t path, uint32_t kind)
{
	const uint32_t home = (path * 0x9e3779b1u + kind * 0x85ebca6bu) >> (32 - SUM_SLOT_BITS);
	struct sum_slot *x = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		x = &s->slot[(home + i) % SUM_SLOTS];
		if ((x->path == path && x->kind == kind) || !is_open(s, x))
			break;
	}
	return x; /* the last one is another's: that one is found no more, and stays as it is */
}

static inline void *record_at(const struct lane *s, uint64_t pos)
{
	return s->data + (pos & s->mask);
}

static bool has_room(struct lane *s, uint64_t end, uint64_t spare)
{
	uint64_t head;

	if (end + spare - s->head <= core.lane_bytes)
		return true;
	/* A: as in room_with() */
	head = atomic_load_explicit(&core.ctl->lane[s->index].head, memory_order_acquire);
	if (head <= s->tail && head > s->head)
		s->head = head;
	return end + spare - s->head <= core.lane_bytes;
}

/* Where the next one may stand; UINT64_MAX: there is no room. */
static uint64_t place(struct lane *s, uint32_t bytes, uint64_t spare)
{
	const uint64_t cap = core.lane_bytes;
	const uint64_t at = s->end > s->tail ? s->end : s->tail, off = at & (cap - 1);
	const uint64_t pad = off + bytes > cap ? cap - off : 0;

	if (at + pad + bytes - s->tail > cap / 2)
		lane_sums_close(s);
	if (!has_room(s, at + pad + bytes, spare))
		return UINT64_MAX;
	if (pad != 0)
		put(record_at(s, at), REC_HDR(0, REC_PAD, (uint8_t)(at / cap), 0, pad));
	return at + pad;
}

/* A sum of one event. False: there is no room. */
static bool open_sum(struct lane *s, struct sum_slot *x, const void *rec, uint32_t bytes,
	const struct sum_slot *key)
{
	const uint64_t pos = place(s, bytes, (key->kind & KIND_SURPLUS) != 0 ? 0 : SPARE);
	uint64_t hdr;

	if (pos == UINT64_MAX)
		return false;
	memcpy(record_at(s, pos), rec, bytes);
	memcpy(&hdr, rec, sizeof(hdr));
	put(record_at(s, pos), hdr | (pos / core.lane_bytes & 0xff) << 16);
	s->end = pos + bytes;
	/* release: with it, the record is there to be read */
	atomic_store_explicit(&s->shared->sums, s->end, memory_order_release);
	*x = (struct sum_slot){key->path, key->kind, pos};
	return true;
}

/* --- adding ----------------------------------------------------------------------------------- */

static inline void redo_set(struct ring_redo *x, uint64_t pos, uint64_t count, uint64_t sum,
	uint64_t value, uint64_t last)
{
	atomic_store_explicit(&x->count, count, memory_order_relaxed);
	atomic_store_explicit(&x->sum, sum, memory_order_relaxed);
	atomic_store_explicit(&x->value, value, memory_order_relaxed);
	atomic_store_explicit(&x->last, last, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&x->pos, pos + 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void redo_clear(struct ring_redo *x)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&x->pos, 0, memory_order_relaxed);
}

static inline void add_scope(struct lane *s, uint64_t pos, uint32_t at, uint64_t d, uint64_t last)
{
	struct rec_sum *r = record_at(s, pos);
	struct ring_redo *x = &s->shared->redo;
	const uint32_t n = r->count[at] + 1;
	const uint64_t time = r->time + d;

	redo_set(x, pos, (uint64_t)at << 32 | n, time, d, last);
	put32(&r->count[at], n);
	put(&r->time, time);
	if (d < r->min)
		put(&r->min, d);
	if (d > r->max)
		put(&r->max, d);
	put(&r->last, last);
	redo_clear(x);
}

static bool scope_to(struct lane *s, const struct rec_scope *r, uint32_t path, uint32_t surplus)
{
	const uint64_t d = r->end > r->begin ? r->end - r->begin : 0;
	const uint32_t bucket = hist_bucket(to_ns(d)), at = bucket % SUM_BUCKETS;
	const struct sum_slot key = {path, bucket / SUM_BUCKETS | surplus, 0};
	struct sum_slot *x = slot_of(s, path, key.kind);
	struct rec_sum new;

	if (likely(x->path == path && x->kind == key.kind && is_open(s, x)) &&
		likely(((const struct rec_sum *)record_at(s, x->pos))->count[at] != UINT32_MAX)) {
		add_scope(s, x->pos, at, d, r->end);
		return true;
	}
	new = (struct rec_sum){
		.hdr = REC_HDR(sizeof(new), REC_SUM, 0, surplus != 0 ? SUM_SURPLUS : 0, path),
		.opened = r->end > s->base ? r->end : s->base,
		.last = r->end,
		.time = d,
		.min = d,
		.max = d,
		.first = bucket - at};
	new.count[at] = 1;
	return open_sum(s, x, &new, sizeof(new), &key);
}

/* False: that is no whole number any more, or too large a one. */
static bool value_add(uint8_t type, uint64_t sum, uint64_t bits, uint64_t *ret)
{
	double a, b;
	int64_t v;

	switch (type) {
	case METRIC_I64:
		if (__builtin_add_overflow((int64_t)sum, (int64_t)bits, &v))
			return false;
		*ret = (uint64_t)v;
		return true;
	case METRIC_U64:
		return !__builtin_add_overflow(sum, bits, ret);
	case METRIC_F64:
		memcpy(&a, &sum, sizeof(a));
		memcpy(&b, &bits, sizeof(b));
		a += b;
		memcpy(ret, &a, sizeof(a));
		return true;
	default:
		*ret = 0;
		return true;
	}
}

static bool add_metric(struct lane *s, uint64_t pos, const struct rec_metric *m)
{
	struct rec_total *r = record_at(s, pos);
	struct ring_redo *x = &s->shared->redo;
	const uint64_t n = r->count + 1;
	uint64_t sum;

	if (!value_add(REC_FLAGS(m->hdr) & METRIC_TYPE_BITS, r->sum, m->value, &sum))
		return false;
	redo_set(x, pos, n, sum, m->value, m->clock);
	put(&r->count, n);
	put(&r->sum, sum);
	put(&r->latest, m->value);
	put(&r->last, m->clock);
	redo_clear(x);
	return true;
}

static bool metric_to(struct lane *s, const struct rec_metric *m, uint32_t path, uint32_t surplus)
{
	const uint8_t type = REC_FLAGS(m->hdr); /* with METRIC_COUNTED: below KIND_SURPLUS */
	const struct sum_slot key = {
		path, KIND_TOTAL | surplus | (uint32_t)type << 24 | m->name, 0};
	struct sum_slot *x = slot_of(s, path, key.kind);
	struct rec_total new;

	if (x->path == path && x->kind == key.kind && is_open(s, x) && add_metric(s, x->pos, m))
		return true;
	new = (struct rec_total){.hdr = REC_HDR(sizeof(new), REC_TOTAL, 0,
					 type | (surplus != 0 ? SUM_SURPLUS : 0), path),
		.opened = m->clock > s->base ? m->clock : s->base,
		.last = m->clock,
		.count = 1,
		.sum = (type & METRIC_TYPE_BITS) == METRIC_STR ? 0 : m->value,
		.latest = m->value,
		.name = m->name};
	return open_sum(s, x, &new, sizeof(new), &key);
}

/* Where there is no room for a sum, the lane may have some for a record; else (other) has. */
bool sums_scope(struct lane *l, const struct rec_scope *r)
{
	if (!is_summed(l, r->begin, sizeof(*r)))
		return false;
	if (!scope_to(l->sums, r, REC_ID(r->hdr), 0) &&
		(lane_room(l, sizeof(*r)) || !scope_to(l->sums, r, PATH_OTHER, KIND_SURPLUS)))
		return false;
	l->sums->since++;
	return true;
}

bool sums_call(struct lane *l, const struct rec_scope *r)
{
	if (!is_summed(l, r->begin, sizeof(struct rec_call)) ||
		!scope_to(l->sums, r, REC_ID(r->hdr), 0))
		return false;
	l->sums->since++;
	return true;
}

bool sums_metric(struct lane *l, const struct rec_metric *r)
{
	if (!is_summed(l, r->clock, sizeof(*r)))
		return false;
	if (!metric_to(l->sums, r, REC_ID(r->hdr), 0) &&
		(lane_room(l, sizeof(*r)) || !metric_to(l->sums, r, PATH_OTHER, KIND_SURPLUS)))
		return false;
	l->sums->since++;
	return true;
}
