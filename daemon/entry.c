/* SPDX-License-Identifier: MIT. entry.c: entries on their way into journal and fold. */
#include "entry.h"

#include <string.h>

#include "host_clock.h"
#include "journal.h"
#include "log.h"
#include "loop.h"
#include "must.h"
#include "poison.h"
#include "ring_clock.h"
#include "ring_ctl.h"
#include "turn.h"

int entry_begin(
	struct protond *p, uint16_t type, const uint8_t ring[16], uint32_t bytes, void **ret)
{
	static const uint8_t nobody[16];
	struct journal_entry *e = p->replayed;

	MUST_LOOP(&p->d);
	p->begun = true;
	if (e == NULL)
		return p->journal_stuck ? -ENOSPC
					: journal_stage(p->d.journal, type,
						  ring != NULL ? ring : nobody, bytes, ret);
	if (bytes > JOURNAL_ENTRY_MAX - sizeof(*e))
		return -EMSGSIZE;
	*e = (struct journal_entry){.magic = JOURNAL_MAGIC, .type = type, .mono_ns = mono_ns()};
	if (ring != NULL)
		memcpy(e->ring, ring, 16);
	*ret = e + 1;
	return 0;
}

int entry_end(struct protond *p, uint32_t bytes)
{
	const struct journal_entry *e = p->replayed;
	int r;

	MUST(p->begun);
	p->begun = false;
	if (e == NULL) {
		e = journal_commit(p->d.journal, bytes);
		p->staged += e->bytes;
	} else {
		const uint32_t whole = (uint32_t)sizeof(*e) + ((bytes + 7) & ~7u);

		memset((uint8_t *)(p->replayed + 1) + bytes, 0, whole - sizeof(*e) - bytes);
		p->replayed->bytes = whole;
	}
	r = poison_apply(p, e);
	if (r == -ENOMEM)
		turn_fatal(&p->turn, "out_of_memory");
	return r;
}

int entry_put(struct protond *p, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	void *to;
	int r = entry_begin(p, type, ring, bytes, &to);

	if (r < 0)
		return r;
	memcpy(to, payload, bytes);
	return entry_end(p, bytes);
}

/* What was drained is durable: the jobs may have the room back. */
static void release(struct protond *p)
{
	struct ring *r;

	p->staged = 0;
	for (r = p->rings; r != NULL; r = r->next) {
		if (r->state == RING_LIVE)
			ring_release(r);
		else if (r->state == RING_ENDED && r->end_position == 0)
			r->end_position = journal_position(p->d.journal);
	}
}

void protond_unstage(struct protond *p)
{
	p->stage_stored = p->journal_stuck = false;
	p->d.journal_trouble = 0;
	journal_unstage(p->d.journal);
	release(p);
	turn_hurry(&p->turn);
}

bool protond_flush(struct protond *p)
{
	static struct log_cause cause;
	int x;

	MUST_LOOP(&p->d);
	if (p->stage_stored)
		return false;
	/* Nobody would find it there after a crash: the store takes what is staged, and only then
	 * the jobs have the room back. */
	if (p->adrift && p->staged != 0) {
		p->journal_stuck = true;
		if (!p->turn.stopping)
			p->turn.commit_due = true;
		turn_soon(&p->turn);
		return false;
	}
	x = journal_flush(p->d.journal);
	p->journal_stuck = x < 0;
	p->d.journal_trouble = x;
	if (x < 0) {
		log_cause(&cause, LOG_ERR, "journal_full",
			"error=%d dir=%s next=\"make room there\"", -x, p->d.runtime);
		return false;
	}
	if (p->staged != 0)
		release(p);
	return true;
}

static bool uses_tsc(const struct protond *p)
{
	const struct ring *r;

	for (r = p->rings; r != NULL; r = r->next) {
		if (r->reader.lane != NULL && r->reader.h.clock == RING_CLOCK_TSC)
			return true;
	}
	return false;
}

void protond_anchor(struct protond *p, uint64_t at_most_every_ns)
{
	const uint64_t now = mono_ns();
	const bool tsc = uses_tsc(p);
	struct j_anchor a;

	if (p->anchor_ns != 0 && now - p->anchor_ns < at_most_every_ns)
		return;
	clock_anchor(
		tsc ? &clock_tsc : &clock_mono, tsc ? RING_CLOCK_TSC : RING_CLOCK_MONOTONIC, &a);
	if (entry_put(p, J_ANCHOR, NULL, &a, sizeof(a)) == 0)
		p->anchor_ns = now;
}
