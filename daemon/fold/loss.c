/* SPDX-License-Identifier: MIT. loss.c: what was lost, why, and in which sessions; and the
 * notes. */
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

void loss_part(struct part *part, enum lost_cause cause, uint64_t n)
{
	MUST_PART(part);
	MUST(cause > 0 && cause < LOST_CAUSE_MAX);
	part->loss[cause] += n;
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

/* If the ring is gone and its tables with it, its records are lost and nobody broke a law. */
void loss_bad(struct process *p, uint64_t n)
{
	if (p->bare) {
		loss_now(p, LOST_LANE_FULL, n);
		return;
	}
	p->bad += n;
	loss_now(p, LOST_BAD, n);
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

void loss_told(struct process *p, uint32_t lane, const struct rec_lost *r)
{
	uint32_t cause = REC_ID(r->hdr);
	struct told *t;
	uint64_t more;

	if (cause == 0 || cause >= LOST_CAUSE_MAX || r->count > INT64_MAX || r->last < r->first) {
		loss_bad(p, 1);
		return;
	}
	t = cause == LOST_LANE_FULL ? &p->lane[lane].full
	    : cause == LOST_NESTED  ? &p->lane[lane].nested
				    : &p->cause[cause];
	more = told_more(t, r->count, 0);
	if (more > 0)
		loss_span(p, cause, more, r);
}

static void loss_counter(
	struct process *p, struct told *t, enum lost_cause cause, uint64_t absolute)
{
	uint64_t more = absolute > INT64_MAX ? 0 : told_more(t, 0, absolute);

	if (more > 0)
		loss_now(p, cause, more);
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
	};
	uint32_t i;

	for (i = 0; i < sizeof(ring) / sizeof(ring[0]); i++)
		loss_counter(p, &p->cause[ring[i].cause], ring[i].cause, ring[i].n);
	for (i = 0; i < n; i++) {
		if (d[i].lane >= p->row.n_lanes) {
			loss_bad(p, 1);
			continue;
		}
		if (!process_lanes(p, d[i].lane + 1))
			return;
		loss_counter(p, &p->lane[d[i].lane].full, LOST_LANE_FULL, d[i].full);
		loss_counter(p, &p->lane[d[i].lane].nested, LOST_NESTED, d[i].nested);
	}
	if (c->agent_ns > p->row.agent_ns && c->agent_ns <= INT64_MAX)
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
