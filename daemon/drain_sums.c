/* SPDX-License-Identifier: MIT. drain_sums.c: sums that threads have open behind their lanes' tails
 * (agent/sums.c), as they stand, into journal and fold.
 *
 * A sum goes on growing, and is journaled again; the fold counts what is more than it knew. The bytes
 * are looked at no sooner than the window's other phases are over. What was open at the first look was
 * opened after everything that it must come behind had been published, so that the fold has that. It
 * may have been closed since, and the lane gone on behind it: its place is not used again before head
 * passes it, and head is ours.
 *
 * Of a dead process the redo word is done: nobody comes back to do it.
 */
#include "drain_sums.h"

#include <string.h>

#include "drain.h"
#include "entry.h"
#include "host_clock.h"
#include "journal.h"
#include "must.h"
#include "ring_ctl.h"
#include "rings.h"

bool sums_look(struct ring *r)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < r->reader.n_seen; i++) {
		struct reader_lane *l = &r->reader.lane[i];

		l->open = l->quarantined ? l->head : l->sums;
		l->open_at = 0;
		any |= l->open > l->tail && !l->quarantined;
	}
	r->sums_due = any &&
		      (r->sums_asked || r->state == RING_GONE || mono_ns() - r->sums_ns >= SUMS_NS);
	r->sums_more = false;
	return r->sums_due && any;
}

static uint64_t sum_of(const uint8_t *b, uint32_t bytes)
{
	uint64_t sum = 1, word;

	for (; bytes >= 8; bytes -= 8, b += 8) {
		memcpy(&word, b, 8);
		sum = (sum ^ word) * 0x100000001b3u;
		sum ^= sum >> 29;
	}
	return sum;
}

/* Whole records at `from`, as one entry. Returns how many bytes, or an error. */
static int64_t put_piece(struct ring *r, uint32_t lane, uint64_t from, const uint8_t *b, uint32_t n)
{
	const struct reader_lane *l = &r->reader.lane[lane];
	const struct reader_walk w = reader_walk(b, n, from, r->reader.h.lane_bytes, n);
	const struct j_lane j = {.lane = lane,
		.bytes = w.whole,
		.from = from,
		.generation = l->generation,
		.tid = l->tid};
	void *to;
	int e;

	if (w.whole == 0)
		return -EBADMSG;
	e = entry_begin(r->all->entries, J_SUMS, r->uuid, (uint32_t)sizeof(j) + w.whole, &to);
	if (e < 0)
		return e;
	memcpy(to, &j, sizeof(j));
	memcpy((uint8_t *)to + sizeof(j), b, w.whole);
	e = entry_end(r->all->entries, (uint32_t)sizeof(j) + w.whole);
	if (e == 0 && r->all->entries->staged > FLUSH_BYTES && !entry_flush(r->all->entries))
		e = -ENOSPC;
	return e < 0 ? e : (int64_t)w.whole;
}

static int copy(struct ring *r, uint32_t lane, uint64_t from, uint32_t n)
{
	uint8_t *b = r->all->drain->arena;
	const int e = reader_copy(&r->reader, lane, from, n, b);

	return e == 0 && r->state == RING_GONE ? reader_redo(&r->reader, lane, from, n, b) : e;
}

/* A piece of the lane, as it stands then, and only if any of it has changed: all are looked at before
 * the first piece. */
int sums_take(struct ring *r, uint32_t lane, uint32_t *ret_bytes)
{
	struct reader_lane *l = &r->reader.lane[lane];
	const uint64_t all = l->open > l->head ? l->open - l->head : 0;
	/* An honest lane has half a lap of them: of more, the rest is read when it is final. */
	const uint32_t n = (uint32_t)(all < DRAIN_BYTES ? all : DRAIN_BYTES);
	const uint32_t left = n - l->open_at, most = drain_entry_bytes(r),
		       piece = left < most ? left : most;
	int64_t x;

	*ret_bytes = 0;
	if (!r->sums_due || l->quarantined || left == 0)
		return 0;
	x = copy(r, lane, l->head + l->open_at, l->open_at == 0 ? n : piece);
	if (x < 0)
		return (int)x;
	if (l->open_at == 0) {
		const uint64_t sum = sum_of(r->all->drain->arena, n);

		if (sum == l->open_sum)
			return 0;
		l->open_sum = sum;
	}
	x = put_piece(r, lane, l->head + l->open_at, r->all->drain->arena, piece);
	if (x == -EBADMSG && l->open_at != 0 && all > n)
		return 0; /* the end of what is looked at cuts a record */
	if (x < 0) {
		l->open_sum = 0;
		return (int)x;
	}
	*ret_bytes = (uint32_t)x;
	l->open_at += (uint32_t)x;
	r->sums_more = true;
	return 0;
}

/* The job may go back to records now. */
void sums_end(struct ring *r)
{
	uint32_t i;
	bool any = false;

	for (i = 0; i < r->reader.n_seen && !any; i++)
		any = r->reader.lane[i].open > r->reader.lane[i].head;
	if (any && !r->sums_due)
		return;
	r->sums_ns = r->look_ns;
	r->sums_asked = false;
	r->summing = r->sums_more;
	if (!any)
		return;
	r->visit++;
	ring_say_sums(r);
}
