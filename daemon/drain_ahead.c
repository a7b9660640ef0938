/* SPDX-License-Identifier: MIT. drain_ahead.c: a GPU's finished work, ahead of its window.
 *
 * Launches come in the lanes of all threads, what became of them in one lane, the agent's, which
 * waits for room. If a window took no more of that lane than it had at the first look, then one of a
 * million launches would take 16 384 records of them, a lane: all others would be in flight in the
 * fold, beyond its ceiling, while CUPTI runs out of buffers. So after each piece of another lane as much
 * again, and more, is taken of this one, as it stands then.
 *
 * It goes no further ahead than launches are behind: not while many of its records wait for theirs.
 *
 * That breaks no order. Such a record counts with its launch, which the fold waits for, and which comes
 * behind the START that it came behind. And it goes no further than the records that may: what an agent
 * says of itself is taken with its window. DELIVERED may, as long as no session counts allocations,
 * which are joined with calls of other lanes by it.
 */
#include "drain_ahead.h"

#include <string.h>

#include "daemon.h"
#include "drain.h"
#include "entry.h"
#include "fold.h"
#include "journal.h"
#include "record.h"
#include "rings.h"

#define AHEAD_ENTRIES 4u     /* for one of a launching thread: its records are twice as large */
#define AHEAD_EARLY   16384u /* records in the fold, at most, whose launches are still in lanes */
#define AHEAD_TYPES   (1ull << REC_PAD | 1ull << REC_KERNEL | 1ull << REC_COPY | 1ull << REC_SET)

static uint64_t types(const struct ring *r)
{
	const bool allocs = (fold_want(r->all->d->fold, r->uuid) & WANT_ALLOC) != 0;

	return allocs ? AHEAD_TYPES : AHEAD_TYPES | 1ull << REC_DELIVERED;
}

/* One that is wholly known: no mark of it waits, nothing in it is bad, and it has no sums. */
static bool may_go_ahead(const struct reader_lane *l)
{
	return !l->quarantined && l->bad == 0 && l->gone <= l->head && l->first <= l->head &&
	       l->sums == l->tail && l->tail > l->head;
}

/* Bytes of the next entry, at `at` in the arena; 0: there are none. */
static int look_ahead(struct ring *r, struct reader_lane *l, uint8_t *at, uint32_t *ret_bytes)
{
	const uint32_t lane = (uint32_t)(l - r->reader.lane), most = drain_entry_bytes(r);
	const uint64_t there = l->tail - l->head;
	const uint32_t n = there < most ? (uint32_t)there : most;
	const int e = reader_copy(&r->reader, lane, l->head, n, at);

	*ret_bytes = e < 0 ? 0 : reader_only(at, n, l->head, r->reader.h.lane_bytes, types(r));
	return e;
}

static int put(struct ring *r, struct reader_lane *l, const uint8_t *at, uint32_t bytes)
{
	const struct j_lane j = {.lane = (uint32_t)(l - r->reader.lane),
		.bytes = bytes,
		.from = l->head,
		.generation = l->generation,
		.tid = l->tid};
	void *to;
	int e = entry_begin(r->all->entries, J_LANE, r->uuid, (uint32_t)sizeof(j) + bytes, &to);

	if (e < 0)
		return e;
	memcpy(to, &j, sizeof(j));
	memcpy((uint8_t *)to + sizeof(j), at, bytes);
	e = entry_end(r->all->entries, (uint32_t)sizeof(j) + bytes);
	if (e < 0)
		return e;
	l->head += bytes;
	l->kept_bytes = 0;
	return 0;
}

int ahead_take(struct ring *r, uint64_t deadline_ns, uint32_t *ret_bytes)
{
	struct reader_lane *l = &r->reader.lane[r->gpu_lane - 1];
	uint8_t *at = r->all->drain->arena + DRAIN_BYTES;
	uint32_t i, bytes = 1;
	bool more = false;
	int e = 0;

	*ret_bytes = 0;
	for (i = 0; i < AHEAD_ENTRIES && bytes != 0; i++) {
		if (l->tail == l->head)
			e = reader_lane_again(&r->reader, r->gpu_lane - 1);
		if (e < 0 || !may_go_ahead(l) || fold_early(r->all->d->fold, r->uuid) > AHEAD_EARLY)
			break;
		e = look_ahead(r, l, at, &bytes);
		if (e == 0 && bytes != 0) /* what it names is in the tables before it */
			e = drain_tables(r, &more, deadline_ns);
		if (e < 0 || more || bytes == 0)
			break;
		e = put(r, l, at, bytes);
		if (e < 0)
			break;
		*ret_bytes += bytes;
	}
	return e;
}
