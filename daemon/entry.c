/* SPDX-License-Identifier: MIT. entry.c: entries on their way into journal and fold. */
#include "entry.h"

#include <string.h>

#include "daemon.h"
#include "host_clock.h"
#include "journal.h"
#include "log.h"
#include "must.h"
#include "poison.h"
#include "ring_clock.h"
#include "ring_ctl.h"
#include "rings.h"
#include "turn.h"

int entry_begin(
	struct entries *s, uint16_t type, const uint8_t ring[16], uint32_t bytes, void **ret)
{
	static const uint8_t nobody[16];
	struct journal_entry *e = s->replayed;

	MUST_LOOP(s->d);
	s->begun = true;
	if (e == NULL)
		return s->stuck ? -ENOSPC
				: journal_stage(s->d->journal, type, ring != NULL ? ring : nobody,
					  bytes, ret);
	if (bytes > JOURNAL_ENTRY_MAX - sizeof(*e))
		return -EMSGSIZE;
	*e = (struct journal_entry){.magic = JOURNAL_MAGIC, .type = type, .mono_ns = mono_ns()};
	if (ring != NULL)
		memcpy(e->ring, ring, 16);
	*ret = e + 1;
	return 0;
}

int entry_end(struct entries *s, uint32_t bytes)
{
	const struct journal_entry *e = s->replayed;
	int r;

	MUST(s->begun);
	s->begun = false;
	if (e == NULL) {
		e = journal_commit(s->d->journal, bytes);
		s->staged += e->bytes;
		s->put += e->bytes;
	} else {
		const uint32_t whole = (uint32_t)sizeof(*e) + ((bytes + 7) & ~7u);

		memset((uint8_t *)(s->replayed + 1) + bytes, 0, whole - sizeof(*e) - bytes);
		s->replayed->bytes = whole;
	}
	r = poison_apply(s->poison, s->d, e);
	if (r == -ENOMEM)
		turn_fatal(s->turn, "out_of_memory");
	return r;
}

int entry_put(struct entries *s, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	void *to;
	int r = entry_begin(s, type, ring, bytes, &to);

	if (r < 0)
		return r;
	memcpy(to, payload, bytes);
	return entry_end(s, bytes);
}

/* What was drained is durable: the jobs may have the room back. */
static void release(struct entries *s)
{
	struct ring *r;

	s->staged = 0;
	for (r = s->rings->first; r != NULL; r = r->next) {
		if (r->state == RING_LIVE)
			ring_release(r);
		else if (r->state == RING_ENDED && r->end_position == 0)
			r->end_position = journal_position(s->d->journal);
	}
}

void entry_unstage(struct entries *s)
{
	s->stored = s->stuck = false;
	s->d->journal_trouble = 0;
	journal_unstage(s->d->journal);
	release(s);
	turn_hurry(s->turn);
}

bool entry_flush(struct entries *s)
{
	static struct log_cause cause;
	int x;

	MUST_LOOP(s->d);
	if (s->stored)
		return false;
	/* Nobody would find it there after a crash: the store takes what is staged, and only then
	 * the jobs have the room back. */
	if (s->adrift && s->staged != 0) {
		s->stuck = true;
		if (!s->turn->stopping)
			s->turn->commit_due = true;
		turn_soon(s->turn);
		return false;
	}
	x = journal_flush(s->d->journal);
	s->stuck = x < 0;
	s->d->journal_trouble = x;
	if (x < 0) {
		log_cause(&cause, LOG_ERR, "journal_full",
			"error=%d dir=%s next=\"make room there\"", -x, s->d->runtime);
		return false;
	}
	if (s->staged != 0)
		release(s);
	return true;
}

static bool uses_tsc(const struct entries *s)
{
	const struct ring *r;

	for (r = s->rings->first; r != NULL; r = r->next) {
		if (r->reader.lane != NULL && r->reader.h.clock == RING_CLOCK_TSC)
			return true;
	}
	return false;
}

void entry_anchor(struct entries *s, uint64_t at_most_every_ns)
{
	const uint64_t now = mono_ns();
	const bool tsc = uses_tsc(s);
	struct j_anchor a;

	if (s->anchor_ns != 0 && now - s->anchor_ns < at_most_every_ns)
		return;
	clock_anchor(
		tsc ? &clock_tsc : &clock_mono, tsc ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC, &a);
	if (entry_put(s, J_ANCHOR, NULL, &a, sizeof(a)) == 0)
		s->anchor_ns = now;
}
