/* SPDX-License-Identifier: MIT. drained.c: who waits until what jobs have written by now is in the
 * fold. Ticks bring it, in pieces: a drain all at once would hold everybody up. Who need not wait any
 * longer is told in the order of asking, users in turn. */
#include "drained.h"

#include <stdlib.h>
#include <string.h>

#include "drain.h"
#include "entry.h"
#include "fair.h"
#include "host_clock.h"
#include "intake.h"
#include "loop.h"
#include "offered.h"
#include "rings.h"
#include "turn.h"

#define ANSWER_NS 1000000u /* for those that are told in one tick */
#define DOOR_PART 8u       /* of the time of who asks about all: somebody may connect without end */
#define BEHIND    16u      /* users of whom it is remembered, within a tick, that one waits */

struct drained {
	struct drained *next;
	struct fair_place place; /* waits there: it is to be told */
	uint64_t asked_ns, deadline_ns;
	uint64_t door_ns; /* until then it waits for those who have just connected, too */
	uint8_t ring[16]; /* zeroes: all of uid's */
	int64_t uid;      /* -1: everybody's; of a ring: whose it is */
	drained_fn *fn;
	void *arg;
};

static bool is_of_all(const struct drained *w)
{
	static const uint8_t all[16];

	return memcmp(w->ring, all, 16) == 0;
}

static bool concerns(const struct drained *w, const struct ring *r)
{
	return is_of_all(w) ? w->uid < 0 || w->uid == r->uid : memcmp(w->ring, r->uuid, 16) == 0;
}

/* Whoever asks about one ring knows what he wrote there: it comes once the ring is a process, for
 * which the journal may lack room. Who asks about all does not wait for one that cannot be. */
static bool is_adopted(const struct drained *w, const struct ring *r)
{
	return is_of_all(w) ? offered_is_past(r, w->asked_ns) : r->adopted || r->unreadable;
}

/* Asks for what lacks: of those that have just connected, and of the rings. */
static bool is_there(const struct protond *p, const struct drained *w)
{
	bool whole = intake_was_clear(p->d.intake, w->asked_ns) || mono_ns() >= w->door_ns;
	struct ring *r;

	for (r = p->rings.first; r != NULL; r = r->next) {
		if (concerns(w, r))
			whole &= drain_is_there(r, w->asked_ns) && is_adopted(w, r);
	}
	return whole;
}

struct behind {
	const struct fair_user *user[BEHIND];
	uint32_t n;
};

/* Of one user's questions about all of his jobs none is answered before the first. */
static bool is_behind(const struct behind *b, const struct drained *w)
{
	uint32_t i;

	for (i = 0; i < b->n && b->user[i] != w->place.user; i++)
		;
	return i < b->n && is_of_all(w);
}

static void mark_ready(struct protond *p)
{
	const uint64_t now = mono_ns();
	struct behind b = {.n = 0};
	struct drained *w;
	bool behind;

	for (w = p->drained; w != NULL; w = w->next) {
		behind = is_behind(&b, w);
		if (now >= w->deadline_ns || (!behind && is_there(p, w)))
			fair_wait(&w->place);
		else if (!behind && is_of_all(w) && b.n < BEHIND)
			b.user[b.n++] = w->place.user;
	}
}

static void tell(struct protond *p, struct drained *w, bool ends)
{
	struct drained **at = &p->drained;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	fair_leave(&w->place);
	w->fn(w->arg, ends);
	free(w);
}

/* At least one. The others wait for the next tick: what they are told may be long to answer. */
void drained_check(struct protond *p)
{
	struct fair_place *next;
	uint64_t until;

	if (p->drained == NULL)
		return;
	(void)intake_is_clear(p->d.intake, mono_ns());
	mark_ready(p);
	until = mono_ns() + ANSWER_NS;
	do {
		next = fair_next(&p->told);
		if (next == NULL)
			return;
		tell(p, container_of(next, struct drained, place), false);
	} while (mono_ns() < until);
	turn_soon(&p->turn);
}

static uint32_t count_left(const struct protond *p, uint64_t ns)
{
	struct ring *r;
	uint32_t n = 0;

	for (r = p->rings.first; r != NULL; r = r->next)
		n += !drain_is_there(r, ns);
	return n;
}

uint32_t drained_whole(struct protond *p, uint64_t deadline_ns)
{
	const uint64_t now = mono_ns();
	struct ring *r;
	int64_t n;
	bool more;

	p->drain.behind = false;
	while (!intake_is_clear(p->d.intake, now) && mono_ns() < deadline_ns)
		;
	while (count_left(p, now) != 0 && !p->entries.stuck && mono_ns() < deadline_ns) {
		for (r = p->rings.first; r != NULL && mono_ns() < deadline_ns; r = r->next) {
			if (drain_is_past(r, now))
				continue;
			n = drain_ring(r, &more);
			r->unreadable = n < 0 && n != -ENOSPC && n != -ENOMEM;
		}
		(void)drain_notes(&p->rings);
	}
	(void)entry_flush(&p->entries);
	return count_left(p, now);
}

void drained_end(struct protond *p)
{
	while (p->drained != NULL)
		tell(p, p->drained, true);
}

static int wait_for(struct protond *p, const struct drained *wish)
{
	struct drained *w = malloc(sizeof(*w)), **at = &p->drained;

	if (w == NULL)
		return -ENOMEM;
	*w = *wish;
	if (fair_join(&p->told, &w->place, (uint32_t)w->uid) < 0) {
		free(w);
		return -ENOMEM;
	}
	w->asked_ns = mono_ns();
	(void)is_there(p, w);
	while (*at != NULL)
		at = &(*at)->next;
	*at = w;
	turn_hurry(&p->turn);
	return 0;
}

int when_drained(
	struct protond *p, const uint8_t ring[16], uint64_t deadline_ns, drained_fn *fn, void *arg)
{
	const struct ring *r = ring_find(&p->rings, ring);
	struct drained w = {.deadline_ns = deadline_ns,
		.door_ns = deadline_ns,
		.uid = r != NULL ? (int64_t)r->uid : -1,
		.fn = fn,
		.arg = arg};

	memcpy(w.ring, ring, 16);
	return wait_for(p, &w);
}

int daemon_when_drained(
	struct daemon *d, int64_t uid, uint32_t timeout_ms, drained_fn *fn, void *arg)
{
	const uint64_t now = mono_ns(), ns = timeout_ms * 1000000ull;
	const struct drained w = {.deadline_ns = now + ns,
		.door_ns = now + ns / DOOR_PART,
		.uid = uid,
		.fn = fn,
		.arg = arg};

	return wait_for(protond_of(d), &w);
}
