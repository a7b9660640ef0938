/* SPDX-License-Identifier: MIT. drain.c: from a ring's lanes and tables into the journal and the
 * fold, one window at a time.
 *
 * A session's START or FINALIZE is a record in the lane of the thread that called it. What another
 * thread did after that call, knowing of it, must come after that record in the journal. A thread
 * that goes on in another lane marks the end of the one it leaves (THREAD_GOES_ON): what it did
 * after that must come after the mark. Lanes are read one after the other, so a window is made of
 * two looks at all tails:
 *
 * - First look: goal = tail. The window's events end here.
 * - Second look, when the first is complete. A mark that came before an event below some goal
 *   was published before that event, hence before the first look at that event's lane ended, hence
 *   is below the second look's tail of its own lane.
 * - Scan: each lane is walked up to the second look; `first` is the end of its last mark that is not
 *   later than the end of the first look. A later one need not come before any of the window's
 *   events; what has to come before it may stand in a lane behind the second look.
 * - Tables are read after the scan, so that every id in the window is below, and journaled before.
 * - Lanes up to `first`, in pieces that end with a mark, in the order of those. In a window without
 *   SESSION, where the marks of one thread alone have an order, threads take turns.
 * - All lanes up to goal, by turns. After each piece, as after those before: what the GPU did by now
 *   (drain_ahead.c).
 * - Sums that were open at the first look, as they stand now, when they are due (drain_sums.c): what
 *   was said before they were opened is folded by then.
 *
 * A window that does not fit the tick's budget (DRAIN_BYTES or DRAIN_NS) goes on in the next tick,
 * so that a firehose starves nobody. The scan keeps the bytes in an arena when they fit; what is
 * kept was checked there; what is read again is checked again. Either way only checked private
 * copies are journaled.
 */
#include "drain.h"
#include "drain_ahead.h"
#include "drain_sums.h"

#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "log.h"
#include "must.h"
#include "record.h"
#include "ring_clock.h"
#include "rings.h"

enum drain_phase { PHASE_LOOK, PHASE_SCAN, PHASE_TABLES, PHASE_FIRST, PHASE_REST, PHASE_SUMS };

/* So fine is the budget: an entry is applied in one go, and costs once for each session. */
#define LANE_MAX     (16u << 10)
#define LANE_LEAST   (2u << 10)
#define BESIDE_TRIES 8u
#define LANE_TREES   8u /* so many have all of it */
_Static_assert(LANE_LEAST >= REC_BYTES_MAX, "any record fits");

struct run {
	struct ring *r;
	uint64_t deadline_ns, bytes_left;
	uint64_t taken;
};

static bool is_spent(const struct run *x)
{
	return x->bytes_left == 0 || mono_ns() >= x->deadline_ns;
}

static void spend(struct run *x, uint64_t bytes)
{
	x->bytes_left -= bytes < x->bytes_left ? bytes : x->bytes_left;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint32_t drain_entry_bytes(const struct ring *r)
{
	const uint32_t trees = fold_trees(r->all->d->fold, r->uuid);
	const uint32_t n = trees > LANE_TREES ? LANE_MAX * LANE_TREES / trees & ~7u : LANE_MAX;

	return n < LANE_LEAST ? LANE_LEAST : n;
}

static uint64_t ring_clock_now(const struct ring *r)
{
	return (r->reader.h.clock == RING_CLOCK_TSC ? clock_tsc : clock_mono).clock();
}

/* The lane is never read again; its loss is said in-band, where the lane ends for us: of whoever is
 * recording since the last look. */
static int quarantine(struct ring *r, uint32_t lane, enum lost_cause why)
{
	static struct log_cause cause;
	struct reader_lane *l = &r->reader.lane[lane];
	struct {
		struct j_lane j;
		struct rec_lost lost;
	} e = {
		.j = {.lane = lane,
			.bytes = sizeof(struct rec_lost),
			.from = l->head,
			.generation = l->generation,
			.tid = l->tid},
		.lost = {.hdr = REC_HDR(sizeof(struct rec_lost), REC_LOST,
				 l->head / r->reader.h.lane_bytes, 0, why),
			.count = 1,
			.first = r->look_clock,
			.last = ring_clock_now(r)},
	};
	int x = entry_put(r->all->entries, J_LANE, r->uuid, &e, sizeof(e));

	if (x < 0)
		return x;
	l->quarantined = true;
	log_cause(&cause, LOG_WARN, "lane_quarantined", "pid=%u lane=%u at=%llu", r->pid, lane,
		(unsigned long long)l->head);
	return 0;
}

int drain_give_up(struct ring *r)
{
	struct reader *f = &r->reader;
	bool moved;
	int x = drain_counts(r);
	uint32_t i;

	if (x == 0)
		x = reader_lanes(f, true, &moved);
	for (i = 0; x == 0 && i < f->n_seen; i++)
		if (!f->lane[i].quarantined && f->lane[i].sums > f->lane[i].head)
			x = quarantine(r, i, LOST_GIVEN_UP);
	if (x == -ENOSPC || x == -ENOMEM)
		return x;
	r->unreadable = true;
	return 0;
}

/* What the journal lost was written over: the fold finds the gap where the next entry begins. */
static int leave_gone(struct ring *r, uint32_t lane)
{
	struct reader_lane *l = &r->reader.lane[lane];
	const struct j_lane j = {
		.lane = lane, .from = l->gone, .generation = l->generation, .tid = l->tid};
	const int x = entry_put(r->all->entries, J_LANE, r->uuid, &j, sizeof(j));

	if (x < 0)
		return x;
	l->head = l->tail = l->goal = l->first = l->next = l->scanned = l->gone;
	l->kept_bytes = l->bad = 0;
	return 0;
}

static int broke(struct ring *r, uint32_t lane)
{
	struct reader_lane *l = &r->reader.lane[lane];

	if (l->gone > l->head && !l->quarantined)
		return leave_gone(r, lane);
	l->goal = l->first = l->head;
	l->bad = (uint8_t)((l->bad & ~READER_BAD_TAIL) + 1);
	return l->bad >= READER_BAD_TICKS && !l->quarantined ? quarantine(r, lane, LOST_BAD) : 0;
}

static int look(struct ring *r, bool *ret_any)
{
	struct reader *f = &r->reader;
	bool moved;
	uint32_t i;
	int x = reader_lanes(f, false, &moved);

	*ret_any = false;
	for (i = 0; x == 0 && i < f->n_seen; i++) {
		struct reader_lane *l = &f->lane[i];

		l->goal = l->quarantined ? l->head : l->tail;
		l->first = l->next = l->scanned = l->head;
		l->starts = false;
		*ret_any |= l->goal > l->head || (l->bad & READER_BAD_TAIL) != 0;
	}
	if (x == 0)
		*ret_any |= sums_look(r);
	if (x < 0 || !*ret_any)
		return x;
	r->look_clock = ring_clock_now(r);
	r->sessions = false;
	if (f->n_seen > 1)
		x = reader_lanes(f, false, &moved);
	for (i = 0; x == 0 && i < f->n_seen; i++) {
		if ((f->lane[i].bad & READER_BAD_TAIL) != 0)
			x = broke(r, i);
	}
	return x;
}

/* One piece of a lane. -EBADMSG: a law is broken at `scanned`. */
static int scan_piece(struct run *x, struct reader_lane *l, uint32_t lane, uint64_t *goal)
{
	struct drain *d = x->r->all->drain;
	const struct reader *f = &x->r->reader;
	const uint32_t n = (uint32_t)least(l->tail - l->scanned, READER_PIECE);
	const bool keep = d->arena_used + n <= DRAIN_BYTES && l->kept_bytes == l->scanned - l->head;
	uint8_t *to = d->arena + (keep ? d->arena_used : DRAIN_BYTES);
	struct reader_marks s;
	struct reader_walk w;
	int e = reader_copy(f, lane, l->scanned, n, to);

	if (e < 0)
		return e;
	spend(x, n / 4); /* looking is cheaper than taking */
	w = reader_walk(to, n, l->scanned, f->h.lane_bytes,
		l->goal > l->scanned ? (uint32_t)least(l->goal - l->scanned, n) : 0);
	l->starts |= w.start_end != 0;
	x->r->sessions |= w.sessions || w.broken;
	if (w.mark_end != 0) {
		s = reader_marks(to, w.reached, l->scanned, f->h.lane_bytes, x->r->look_clock);
		if (s.clock <= x->r->look_clock)
			l->first = l->scanned + s.end;
	}
	if (w.whole != 0)
		*goal = l->scanned + w.whole;
	if (keep) {
		if (l->kept_bytes == 0)
			l->kept = d->arena_used;
		l->kept_bytes += w.reached;
		d->arena_used += w.reached;
	}
	if (w.last == REC_KERNEL || w.last == REC_COPY || w.last == REC_SET)
		x->r->gpu_lane = lane + 1;
	l->scanned += w.reached;
	return w.broken || w.reached == 0 ||
			       (n == l->tail - l->scanned + w.reached && w.reached != n)
		       ? -EBADMSG
		       : 0;
}

static int scan_lane(struct run *x, uint32_t lane)
{
	struct reader_lane *l = &x->r->reader.lane[lane];
	uint64_t goal = l->head;
	int e = 0;

	l->kept_bytes = 0;
	while (e == 0 && l->scanned < l->tail)
		e = scan_piece(x, l, lane, &goal);
	if (e != 0 && e != -EBADMSG)
		return e;
	l->goal = goal > l->first ? goal : l->first;
	if (e == -EBADMSG && l->scanned == l->head)
		return broke(x->r, lane); /* no progress */
	if (l->goal > l->head)
		l->bad = 0;
	return 0;
}

int drain_tables(struct ring *r, bool *ret_more, uint64_t deadline_ns)
{
	static const enum j_table_which order[] = {
		TABLE_NAMES, TABLE_PATHS, TABLE_CONFIGS, TABLE_DEVICES}; /* a path names a name */
	struct reader_extent extent;
	uint32_t i, bytes;
	void *to;
	int x = reader_extent(&r->reader, &extent);

	*ret_more = false;
	for (i = 0; x == 0 && i < 4;) {
		if (!reader_has_new(&r->reader, order[i], &extent)) {
			i++;
			continue;
		}
		if (mono_ns() >= deadline_ns) {
			*ret_more = true;
			break;
		}
		x = entry_begin(r->all->entries, J_TABLE, r->uuid, READER_TABLE_BYTES, &to);
		if (x == 0)
			x = reader_table(
				&r->reader, order[i], &extent, to, READER_TABLE_BYTES, &bytes);
		if (x == 0)
			x = entry_end(r->all->entries, bytes);
	}
	return x;
}

/* n bytes from head on, or the whole records of them up to a START, which may end another session,
 * with all that is open or in flight: as checked bytes at `to`. Returns how many; 0: the law is
 * broken. */
static int64_t copy_checked(struct run *x, uint32_t lane, uint64_t upto, uint32_t n, uint8_t *to)
{
	const struct reader *f = &x->r->reader;
	struct reader_lane *l = &f->lane[lane];
	struct reader_walk w;
	int e;

	if (l->kept_bytes >= n) {
		memcpy(to, x->r->all->drain->arena + l->kept, n);
		if (n == upto - l->head && !l->starts)
			return n; /* the scan walked over it, and upto is a record's end */
	} else {
		e = reader_copy(f, lane, l->head, n, to);
		if (e < 0)
			return e;
	}
	w = reader_walk(to, n, l->head, f->h.lane_bytes, n);
	return w.start_end != 0 ? w.start_end : w.whole;
}

static int take_piece(struct run *x, uint32_t lane, uint64_t upto)
{
	struct ring *r = x->r;
	struct reader_lane *l = &r->reader.lane[lane];
	struct j_lane j = {
		.lane = lane, .from = l->head, .generation = l->generation, .tid = l->tid};
	const uint32_t most = (uint32_t)least(upto - l->head, drain_entry_bytes(r));
	uint32_t ahead;
	int64_t n;
	void *to;
	int e = entry_begin(r->all->entries, J_LANE, r->uuid, (uint32_t)sizeof(j) + most, &to);

	if (e < 0)
		return e;
	n = copy_checked(x, lane, upto, most, (uint8_t *)to + sizeof(j));
	if (n > 0 && l->gone > l->head && !reader_has_still(&r->reader, lane, l->head))
		n = 0;
	if (n <= 0)
		return n < 0 ? (int)n
			     : broke(r, lane); /* what was begun is given up by the next begin */
	j.bytes = (uint32_t)n;
	memcpy(to, &j, sizeof(j));
	e = entry_end(r->all->entries, (uint32_t)sizeof(j) + j.bytes);
	if (e < 0)
		return e;
	/* Now, not when the scan finds it: a tick may end between the two, and look in vain. */
	r->all->entries->saw_session |= r->phase == PHASE_FIRST;
	l->head += j.bytes;
	l->kept += j.bytes;
	l->kept_bytes -= l->kept_bytes < j.bytes ? l->kept_bytes : j.bytes;
	x->taken += j.bytes;
	spend(x, j.bytes);
	if (r->gpu_lane != 0 && r->gpu_lane != lane + 1) {
		e = ahead_take(r, x->deadline_ns, &ahead);
		x->taken += ahead;
		spend(x, ahead);
	}
	if (e < 0)
		return e;
	return r->all->entries->staged > FLUSH_BYTES && !entry_flush(r->all->entries) ? -ENOSPC : 0;
}

/* Bytes of a THREAD that these begin with: all behind it is of that thread. */
static uint32_t own_thread(const uint8_t *p, uint32_t n)
{
	uint64_t h = 0;

	memcpy(&h, p, n < sizeof(h) ? n : sizeof(h));
	return REC_TYPE(h) == REC_THREAD && !REC_IS_MARK(h) && n > REC_BYTES(h) &&
			       REC_BYTES(h) >= sizeof(struct rec_thread)
		       ? REC_BYTES(h)
		       : 0;
}

/* Where the lane's next one ends, or the last that is not later than `until`. What cannot be walked
 * is taken as it is, and found to be bad there. */
static int find_next(struct run *x, uint32_t lane, uint64_t until)
{
	const struct reader *f = &x->r->reader;
	struct reader_lane *l = &f->lane[lane];
	const bool kept = l->kept_bytes >= l->first - l->head;
	struct reader_marks s;
	uint64_t at;
	uint8_t *from;
	uint32_t n, own;
	int e;

	l->next = l->first;
	l->next_clock = 0;
	l->next_mixed = false;
	for (at = l->head; at < l->first; at += s.reached) {
		n = (uint32_t)least(l->first - at, READER_PIECE);
		from = x->r->all->drain->arena + (kept ? l->kept + (at - l->head) : DRAIN_BYTES);
		e = kept ? 0 : reader_copy(f, lane, at, n, from);
		if (e < 0)
			return e;
		spend(x, kept ? 0 : n / 4);
		own = at == l->head ? own_thread(from, n) : 0;
		s = reader_marks(from + own, n - own, at + own, f->h.lane_bytes, until);
		s.end += s.end != 0 ? own : 0;
		s.reached += s.reached != 0 ? own : 0;
		if (s.end != 0) {
			l->next = at + s.end;
			l->next_clock = s.clock;
			l->next_tid = s.tid;
			l->next_mixed |= s.mixed;
		}
		if (s.end != 0 || s.reached == 0)
			break;
	}
	return 0;
}

/* One lane's worth of the current phase. */
static int step_lane(struct run *x)
{
	struct ring *r = x->r;
	struct reader_lane *l = &r->reader.lane[r->cursor];
	uint32_t bytes;
	int e;

	if (r->phase == PHASE_SCAN) {
		e = l->quarantined ? 0 : scan_lane(x, r->cursor);
		r->cursor++;
		return e;
	}
	if (r->phase == PHASE_SUMS) {
		e = sums_take(r, r->cursor, &bytes);
		spend(x, bytes);
		if (e == 0 && bytes != 0)
			return 0; /* there may be more in this lane */
		r->cursor++;
		return e == -EBADMSG ? broke(r, r->cursor - 1) : e;
	}
	r->cursor++;
	if (l->head >= l->goal || l->quarantined)
		return 0;
	return take_piece(x, r->cursor - 1, l->goal);
}

static void window_end(struct ring *r)
{
	r->whole_ns = r->look_ns;
	sums_end(r);
}

static void next_phase(struct ring *r)
{
	r->cursor = 0;
	r->phase = r->phase == PHASE_SUMS ? PHASE_LOOK : r->phase + 1;
	if (r->phase == PHASE_LOOK)
		window_end(r);
}

/* Where the window has no SESSION, what is before a mark needs to come behind the marks of its own thread
 * alone. */
static bool is_free(const struct ring *r, const struct reader_lane *l)
{
	const struct reader_lane *o = r->reader.lane, *end = o + r->reader.n_seen;

	for (; o < end; o++)
		if (o != l && o->head < o->first && !o->quarantined &&
			o->next_clock <= l->next_clock && o->next_tid == l->next_tid)
			return false;
	return !l->next_mixed;
}

/* The lane behind `best`, round and round, that is free, so that all threads' launches of a time come
 * at about one time: else one's of a whole lane would be in flight before another's come. */
static uint32_t beside(const struct ring *r, uint32_t best)
{
	uint32_t i = r->cursor, k, tries = 0;

	for (k = 0; k < r->reader.n_seen && tries < BESIDE_TRIES && !r->sessions; k++) {
		const struct reader_lane *l;

		i = i + 1 < r->reader.n_seen ? i + 1 : 0;
		l = &r->reader.lane[i];
		if (l->head >= l->first || l->quarantined)
			continue;
		if (is_free(r, l))
			return i;
		tries++;
	}
	return best;
}

/* A session that one thread starts another may end, and use: its records stand in two lanes, and
 * all that is before the one below must not be taken before the other. */
static int step_first(struct run *x)
{
	struct ring *r = x->r;
	struct reader_lane *l, *best = NULL;
	uint64_t second = UINT64_MAX;
	uint32_t i;
	int e = 0;

	for (i = 0; e == 0 && i < r->reader.n_seen; i++) {
		l = &r->reader.lane[i];
		if (l->head >= l->first || l->quarantined)
			continue;
		if (r->cursor == i && l->head < l->next && r->sessions)
			return take_piece(x, i, l->next);
		if (l->next <= l->head)
			e = find_next(x, i, 0);
		if (best == NULL || l->next_clock < best->next_clock) {
			second = best != NULL ? best->next_clock : second;
			best = l;
		} else if (l->next_clock < second) {
			second = l->next_clock;
		}
	}
	if (e == 0 && best == NULL)
		next_phase(r);
	if (e < 0 || best == NULL)
		return e;
	r->cursor = beside(r, (uint32_t)(best - r->reader.lane));
	l = &r->reader.lane[r->cursor];
	return r->sessions ? find_next(x, r->cursor, second) : take_piece(x, r->cursor, l->next);
}

bool drain_goes_on(const struct ring *r)
{
	return (r->state == RING_LIVE || r->state == RING_GONE) && r->adopted && !r->unreadable &&
	       r->reader.lane != NULL;
}

bool drain_is_past(struct ring *r, uint64_t ns)
{
	if (!drain_goes_on(r) || (r->whole_ns > ns && r->sums_ns > ns))
		return true;
	r->sums_asked = true;
	r->asked_ns = ns > r->asked_ns ? ns : r->asked_ns;
	return false;
}

static bool lanes_left(const struct ring *r)
{
	const struct reader_lane *l = r->reader.lane, *end = l + r->reader.n_seen;

	while (l < end && (l->head >= l->goal || l->quarantined))
		l++;
	return l < end;
}

static int step(struct run *x)
{
	struct ring *r = x->r;
	bool more;
	int e;

	if (r->phase == PHASE_TABLES) {
		e = drain_tables(r, &more, x->deadline_ns);
		if (e < 0 || more)
			return e;
		entry_anchor(r->all->entries, 1000000000u);
		next_phase(r);
		return 0;
	}
	if (r->phase == PHASE_FIRST)
		return step_first(x);
	if (r->cursor < r->reader.n_seen)
		return step_lane(x);
	if (r->phase == PHASE_REST && lanes_left(r))
		r->cursor = 0;
	else
		next_phase(r);
	return 0;
}

/* What an earlier call kept has been written over since. */
static void forget_kept(struct ring *r)
{
	uint32_t i;

	r->all->drain->arena_used = 0;
	for (i = 0; r->phase != PHASE_LOOK && i < r->reader.n_seen; i++)
		r->reader.lane[i].kept_bytes = 0;
}

static void set_budget(struct run *x)
{
	struct ring *r = x->r;
	const uint64_t now = mono_ns(), ms = (now - r->taken_ns) / 1000000;

	r->taken_ns = now;
	x->deadline_ns = now + r->all->drain->ns;
	x->bytes_left = DRAIN_BYTES;
	if (r->all->drain->behind && ms < DRAIN_BYTES * 1000ull / BEHIND_BYTES_S)
		x->bytes_left = ms * BEHIND_BYTES_S / 1000;
}

/* Where nothing comes, the counters are said again: an entry is what goes on with the joining. */
static int join_more(struct ring *r, bool came, bool *ret_more)
{
	if (came || r->joining)
		r->joining = fold_is_joining(r->all->d->fold, r->uuid);
	if (came || !r->joining)
		return 0;
	*ret_more = true;
	r->counts_sum = 0;
	return drain_counts(r);
}

int64_t drain_ring(struct ring *r, bool *ret_more)
{
	struct run x = {.r = r};
	bool fresh = false, any = true;
	int e = 0;

	MUST(r->magic == RING_IS_ALIVE && r->adopted && r->reader.lane != NULL);
	MUST(r->state == RING_LIVE || r->state == RING_GONE);
	set_budget(&x);
	forget_kept(r);
	do { /* one step at least, however late it is: else a busy machine would see nothing at all
	      */
		if (r->phase == PHASE_LOOK) {
			if (fresh)
				break; /* one whole window that began in this call is enough */
			fresh = true;
			r->look_ns = mono_ns();
			e = look(r, &any);
			if (e == 0 && !any)
				window_end(r);
			if (e < 0 || !any)
				break;
			next_phase(r);
		}
		e = step(&x);
	} while (e == 0 && !is_spent(&x));
	*ret_more = r->phase != PHASE_LOOK;
	if (x.taken > 0)
		r->now_sum = 0; /* the fold took what was left out of its NOW */
	if (e == 0)
		e = join_more(r, x.taken > 0, ret_more);
	return e < 0 ? e : (int64_t)x.taken;
}

static uint64_t sum_words(const void *p, size_t bytes)
{
	const uint8_t *b = p;
	uint64_t sum = 0, word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), b += sizeof(word)) {
		memcpy(&word, b, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3u;
	}
	return sum;
}

/* As many of each thread as there is room for all threads. */
static uint32_t read_now(const struct reader *f, uint32_t room, struct j_now *ret)
{
	uint32_t i, k, n = 0, live = 0;

	for (i = 0; i < f->n_seen; i++)
		live += reader_is_owned(f, i);
	for (i = 0; i < f->n_seen; i++) {
		if (!reader_is_owned(f, i))
			continue;
		k = reader_now(f, i, ret + n, room / live);
		/* Added to a sum, and its thread has not said yet that it has left. */
		if (k > 0 && ret[n + k - 1].begin != 0 &&
			ret[n + k - 1].begin == reader_summed(f, i))
			k--;
		n += k;
	}
	return n;
}

/* The blocks first, then the tables that their paths are in, then the entry; where the tables take
 * too long, another time. */
int drain_now_block(struct ring *r)
{
	struct j_now *now = (struct j_now *)(void *)r->all->drain->arena;
	const uint64_t room = NOW_SCOPES_USER / (1 + rings_of(r->all, r->uid));
	uint64_t sum;
	uint32_t bytes;
	bool more;
	int x;

	forget_kept(r);
	bytes = read_now(&r->reader, (uint32_t)least(room, NOW_SCOPES), now) *
		(uint32_t)sizeof(*now);
	sum = sum_words(now, bytes) | 1;
	if (sum == r->now_sum)
		return 0;
	x = drain_tables(r, &more, mono_ns() + r->all->drain->ns);
	if (x == 0 && more)
		x = -EAGAIN;
	if (x == 0)
		x = entry_put(r->all->entries, J_NOW, r->uuid, now, bytes);
	r->now_sum = x == 0 ? sum : 0;
	return x;
}

int drain_counts(struct ring *r)
{
	struct reader *f = &r->reader;
	struct ring_counts counts;
	struct j_drop *drop;
	uint32_t i, n = 0, bytes;
	uint64_t sum;
	bool moved;
	void *to;
	/* All lanes at the end, and now and then: looks find lanes claimed from below only. */
	int x = reader_lanes(f, r->state == RING_GONE || r->sweeps++ % 8 == 0, &moved);

	if (x == 0)
		x = reader_counts(f, &counts);
	if (x == 0)
		x = entry_begin(r->all->entries, J_COUNTS, r->uuid,
			(uint32_t)(sizeof(counts) + f->h.n_lanes * sizeof(*drop)), &to);
	if (x < 0)
		return x;
	memcpy(to, &counts, sizeof(counts));
	drop = (struct j_drop *)(void *)((uint8_t *)to + sizeof(counts));
	for (i = 0; i < f->n_seen; i++) {
		const struct reader_lane *l = &f->lane[i];

		if (l->drop_full != 0 || l->drop_nested != 0)
			drop[n++] = (struct j_drop){i, 0, l->drop_full, l->drop_nested};
	}
	bytes = (uint32_t)(sizeof(counts) + n * sizeof(*drop));
	sum = sum_words(to, bytes);
	if (sum == r->counts_sum)
		return 0;
	r->counts_sum = sum;
	return entry_end(r->all->entries, bytes);
}

int drain_tables_again(struct ring *r, bool *ret_more)
{
	struct entries *to = r->all->entries;
	int x;

	to->replayed = malloc(JOURNAL_ENTRY_MAX);
	if (to->replayed == NULL)
		return -ENOMEM;
	x = drain_tables(r, ret_more, UINT64_MAX);
	free(to->replayed);
	to->replayed = NULL;
	return x;
}

bool drain_is_noted(struct ring *r, uint64_t ns)
{
	if (!drain_goes_on(r) || r->noted_ns > ns)
		return true;
	r->note_ns = r->note_ns != 0 ? r->note_ns : ns;
	return false;
}

/* False: the journal is full, or there is more in its tables. The counters first: with them the
 * fold believes what the last NOW said is open (now.h), and the lanes were read since. */
static bool note(struct ring *r)
{
	struct entries *to = r->all->entries;
	const uint64_t now = mono_ns(), before = to->put;
	int x;

	if (fold_is_joining(r->all->d->fold, r->uuid))
		r->counts_sum = 0;
	x = drain_counts(r);
	if (x != -ENOSPC)
		x = drain_now_block(r);
	r->joining = true; /* the next quiet look at the lanes goes on with it */
	owed_put(&to->owed, r->uid, to->put - before);
	if (x == -ENOSPC || x == -EAGAIN)
		return false;
	r->note_ns = 0;
	r->noted_ns = now;
	return true;
}

/* Who has waited longest; of another user than the last one, if there is one. */
static struct ring *next_noted(const struct rings *all)
{
	struct ring *r, *best = NULL;
	bool same, best_same = true;

	for (r = all->first; r != NULL; r = r->next) {
		same = r->uid == all->drain->noted_uid;
		if (r->note_ns == 0 || !drain_goes_on(r) ||
			owed_is_over(&all->entries->owed, r->uid) ||
			(best != NULL && (same != best_same ? same : r->note_ns >= best->note_ns)))
			continue;
		best = r;
		best_same = same;
	}
	return best;
}

bool drain_notes(struct rings *all)
{
	const uint64_t deadline = mono_ns() + all->drain->ns;
	struct ring *r = next_noted(all);
	bool whole = true;
	uint32_t first;

	if (r == NULL)
		return true;
	first = r->uid;
	do {
		all->drain->noted_uid = r->uid;
		whole = note(r);
		r = next_noted(all);
	} while (whole && r != NULL &&
		 (mono_ns() < deadline || (all->drain->noted_uid == first && r->uid != first)));
	entry_anchor(all->entries, 10000000);
	return r == NULL;
}
