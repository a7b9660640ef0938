/* SPDX-License-Identifier: MIT. loss.c: what was lost, why, and in which sessions; and the
 * notes.
 *
 * attempted = stored + lost, in each session. Counters of a ring never fall, so what a session lost
 * is what they said at its end less what they said at its beginning. Each SESSION record has them as
 * of its own instant. They are also read now and then (COUNTS), ahead of records that are not yet
 * drained: whoever is active is charged at once, with all that is known; a record that comes later
 * and says less takes back from those that it ends, and gives to those that it begins, what had been
 * read ahead of it. Before a verb of the daemon's they are read anew.
 *
 * Counters are a job's word. One that says more than there was time for is forged: it is one record
 * that breaks the ring's laws, and nothing more that this process counts is added to anything.
 *
 * An older agent's SESSION says no counts. There LOST records are charged by their span, and what
 * no record told waits until all of them are applied: the end of the process or of a session.
 */
#include "loss.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "journal.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "words.h"

void loss_part(struct part *part, enum lost_cause cause, uint64_t n)
{
	MUST_PART(part);
	MUST(cause > 0 && cause < LOST_CAUSE_MAX);
	part->loss[cause] = n < INT64_MAX - part->loss[cause] ? part->loss[cause] + n : INT64_MAX;
	part->loss_dirty |= 1u << cause;
}

/* The others lose no event: it is counted under (other). */
static bool is_drop(enum lost_cause cause)
{
	return cause != LOST_PATHS && cause != LOST_NAMES && cause != LOST_NODES;
}

/* Charges the sessions that record now or still wait for GPU records. */
void loss_now(struct process *p, enum lost_cause cause, uint64_t n)
{
	uint32_t i;

	MUST_PROCESS(p);
	if (is_drop(cause))
		p->drops += n;
	p->dirty = p->fold->news = true;
	for (i = 0; i < p->n_parts; i++)
		if (window_is_open(&p->part[i]->window) ||
			p->part[i]->session->row.state == SESSION_IS_FINALIZING)
			loss_part(p->part[i], cause, n);
}

static bool was_active_in(const struct part *part, uint64_t first, uint64_t last)
{
	const struct window *w = &part->window;

	return window_has(w, first) || window_has(w, last) ||
	       window_overlap(w, &part->process->clock, first, last) > 0;
}

/* Charges the sessions that were active between the first and the last event lost. */
static void loss_span(
	struct process *p, enum lost_cause cause, uint64_t n, const struct rec_lost *r)
{
	uint32_t i;

	if (is_drop(cause))
		p->drops += n;
	p->dirty = p->fold->news = true;
	for (i = 0; i < p->n_parts; i++)
		if (was_active_in(p->part[i], r->first, r->last))
			loss_part(p->part[i], cause, n);
}

static void part_lost(struct part *part, uint64_t bytes, uint64_t since_ns)
{
	const struct process *p = part->process;
	char since[WORDS_INSTANT];

	if (part->counted[NOTE_JOURNAL] == 0) {
		words_instant(since, mono_to_real(p->fold, since_ns));
		note_add(part->session, p->row.id,
			"the journal was damaged: of what process %u did since %s, events are "
			"missing",
			p->row.pid, since);
	}
	loss_part(part, LOST_JOURNAL, bytes / sizeof(struct rec_scope));
	note_count(part, NOTE_JOURNAL, bytes);
}

/* No event is smaller than a scope's record. */
void loss_journal(struct process *p, uint64_t bytes, uint64_t since_ns)
{
	const struct rec_lost span = {.first = clockmap_clock(&p->clock, since_ns),
		.last = clockmap_clock(&p->clock, p->fold->now_ns)};
	uint32_t i;

	MUST_PROCESS(p);
	p->drops += bytes / sizeof(struct rec_scope);
	p->dirty = p->fold->news = true;
	for (i = 0; i < p->n_parts; i++)
		if (window_is_open(&p->part[i]->window) ||
			was_active_in(p->part[i], span.first, span.last))
			part_lost(p->part[i], bytes, since_ns);
}

static bool cuts(const struct process *p)
{
	return (p->row.flags & PROCESS_CUTS) != 0;
}

/* What GPU work loses may come to light after the session's end, while it waits for that work. */
static bool ends_at_cut(enum lost_cause cause)
{
	return cause == LOST_LANE_FULL || cause == LOST_NESTED || cause == LOST_NO_LANE ||
	       cause == LOST_PATHS || cause == LOST_NAMES;
}

static bool any_is_open(const struct process *p)
{
	uint32_t i;

	for (i = 0; i < p->n_parts && !window_is_open(&p->part[i]->window); i++)
		;
	return i < p->n_parts;
}

/* To those that are active, as far as is known. */
static void charge(struct process *p, enum lost_cause cause, uint64_t n)
{
	uint32_t i;

	if (n == 0)
		return;
	if (!ends_at_cut(cause) || (!cuts(p) && !any_is_open(p))) {
		loss_now(p, cause, n);
		return;
	}
	if (is_drop(cause))
		p->drops += n;
	p->dirty = p->fold->news = true;
	for (i = 0; i < p->n_parts; i++)
		if (window_is_open(&p->part[i]->window))
			loss_part(p->part[i], cause, n);
}

/* If the ring is gone and its tables with it, its records are lost and nobody broke a law. */
void loss_bad(struct process *p, uint64_t n)
{
	if (p->bare) {
		charge(p, LOST_LANE_FULL, n);
		return;
	}
	p->bad += n;
	loss_now(p, LOST_BAD, n);
}

/* 1 024 cores, and 8 ns an event: more than any machine has, less than any event takes. And a second
 * for what is said of a ring's birth. */
#define EVENTS_NS 128u
#define BIRTH_NS  1000000000u
#define TICK_NS   10000000u /* of pid_start: /proc has 100 a second */

bool loss_is_forged(struct process *p, uint64_t n)
{
	const uint64_t now = p->fold->now_ns, created = p->row.created_monotonic_ns,
		       born = p->row.pid_start * TICK_NS;
	/* The kernel's word, then the ring's: a machine may be up for months. */
	uint64_t age = born < now ? now - born : now;

	if (created != 0 && created < now && now - created < age)
		age = now - created;
	MUST_PROCESS(p);
	if ((p->row.flags & PROCESS_FORGED) == 0 && n / EVENTS_NS > age + BIRTH_NS) {
		p->row.flags |= PROCESS_FORGED;
		loss_bad(p, 1);
	}
	return (p->row.flags & PROCESS_FORGED) != 0;
}

/* LOST records bring counts piece by piece, counters bring totals. Returns what is not yet
 * charged. */
static uint64_t told_more(struct told *t, uint64_t told, uint64_t absolute)
{
	uint64_t most, more;

	t->told += told;
	most = t->told > absolute ? t->told : absolute;
	more = most > t->charged ? most - t->charged : 0;
	t->charged += more;
	return more;
}

static struct told *told_of(struct process *p, uint32_t lane, enum lost_cause cause)
{
	return cause == LOST_LANE_FULL ? &p->lane[lane].full
	       : cause == LOST_NESTED  ? &p->lane[lane].nested
				       : &p->cause[cause];
}

/* One lane's, of the process's: those are never less than all lanes' together. */
static void charge_lane(struct process *p, enum lost_cause cause, uint64_t more)
{
	charge(p, cause, told_more(&p->cause[cause], more, 0));
}

void loss_told(struct process *p, uint32_t lane, const struct rec_lost *r)
{
	uint32_t cause = REC_ID(r->hdr);
	uint64_t more;

	if (cause == 0 || cause >= LOST_CAUSE_MAX || r->last < r->first) {
		loss_bad(p, 1);
		return;
	}
	if (loss_is_forged(p, r->count))
		return;
	more = told_more(told_of(p, lane, cause), r->count, 0);
	if (more > 0 && cuts(p) && (cause == LOST_LANE_FULL || cause == LOST_NESTED))
		charge_lane(p, cause, more);
	else if (more > 0)
		loss_span(p, cause, more, r);
}

static void loss_counter(struct process *p, enum lost_cause cause, uint64_t absolute)
{
	if (!loss_is_forged(p, absolute))
		charge(p, cause, told_more(&p->cause[cause], 0, absolute));
}

static void lane_counter(struct process *p, uint32_t lane, enum lost_cause cause, uint64_t absolute)
{
	struct told *t = told_of(p, lane, cause);

	if (loss_is_forged(p, absolute))
		return;
	if (cuts(p))
		charge_lane(p, cause, told_more(t, 0, absolute));
	else
		t->seen = absolute;
}

void loss_rest(struct process *p)
{
	uint32_t i;

	MUST_PROCESS(p);
	for (i = 0; i < p->cap_lanes && !cuts(p); i++) {
		struct lane *l = &p->lane[i];

		charge(p, LOST_LANE_FULL, told_more(&l->full, 0, l->full.seen));
		charge(p, LOST_NESTED, told_more(&l->nested, 0, l->nested.seen));
	}
}

void loss_cut(struct process *p, const uint8_t *counts, uint32_t bytes)
{
	const uint32_t n = bytes / sizeof(uint64_t);
	uint64_t at;
	uint32_t i;

	MUST_PROCESS(p);
	for (i = 1; i <= CUT_CAUSES && i <= n && cuts(p); i++) {
		memcpy(&at, counts + (i - 1) * sizeof(at), sizeof(at));
		if (loss_is_forged(p, at))
			return;
		loss_counter(p, i, at);
		p->ahead[i] = p->cause[i].charged - at;
	}
}

void loss_cut_end(struct process *p)
{
	memset(p->ahead, 0, sizeof(p->ahead));
}

void loss_switched(struct part *part, bool opened)
{
	const uint64_t *ahead = part->process->ahead;
	uint32_t i;

	MUST_PART(part);
	for (i = 1; i <= CUT_CAUSES; i++) {
		if (ahead[i] == 0 || (!opened && !ends_at_cut(i)))
			continue;
		loss_part(part, i, opened ? ahead[i] : 0);
		if (!opened)
			part->loss[i] -= ahead[i] < part->loss[i] ? ahead[i] : part->loss[i];
	}
}

void loss_counts(struct process *p, const struct ring_counts *c, const struct j_drop *d, uint32_t n)
{
	const struct {
		enum lost_cause cause;
		uint64_t n;
	} ring[] = {
		{LOST_PATHS, c->paths_refused},
		{LOST_NAMES, c->names_refused},
		{LOST_NO_LANE, c->drop_no_lane},
		{LOST_GPU_DROPPED, c->gpu_dropped},
		{LOST_GPU_REFUSED, c->gpu_refused},
		{LOST_GPU_INVALID, c->gpu_invalid},
		{LOST_GPU_UNKNOWN, c->gpu_unknown},
		{LOST_CHILDREN, c->children_lost},
	};
	uint32_t i;

	for (i = 0; i < sizeof(ring) / sizeof(ring[0]); i++)
		loss_counter(p, ring[i].cause, ring[i].n);
	for (i = 0; i < n; i++) {
		if (d[i].lane >= p->row.n_lanes) {
			loss_bad(p, 1);
			continue;
		}
		if (!process_lanes(p, d[i].lane + 1))
			return;
		lane_counter(p, d[i].lane, LOST_LANE_FULL, d[i].full);
		lane_counter(p, d[i].lane, LOST_NESTED, d[i].nested);
	}
	if (c->agent_ns > p->row.agent_ns && !loss_is_forged(p, c->agent_ns))
		p->row.agent_ns = c->agent_ns;
	p->dirty = true;
}

const char *note_words(enum note_kind kind)
{
	static const char *const words[] = {
#define X(name, text) text,
		NOTES(X)
#undef X
	};

	return words[kind];
}

void note_count(struct part *part, enum note_kind kind, uint64_t n)
{
	MUST_PART(part);
	MUST(kind < NOTE_MAX);
	if (part->counted[kind] == 0)
		part->counted_ns[kind] = part->session->fold->now_ns;
	part->counted[kind] += n;
	part->counted_dirty |= 1u << kind;
	part->session->fold->news = true;
}

void note_add(struct session *s, int64_t process, const char *fmt, ...)
{
	struct note *n;
	va_list ap;

	MUST_SESSION(s);
	if (s->n_notes >= NOTES_MAX)
		return;
	if (!ROOM_FOR(s->note, s->cap_notes, s->n_notes)) {
		s->fold->no_memory = true;
		return;
	}
	s->fold->news = true;
	n = &s->note[s->n_notes++];
	*n = (struct note){.process = process, .ns = s->fold->now_ns};
	va_start(ap, fmt);
	vsnprintf(n->text, sizeof(n->text), fmt, ap);
	va_end(ap);
}
