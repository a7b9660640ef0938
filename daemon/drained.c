/* SPDX-License-Identifier: MIT. drained.c: who waits until what jobs have written by now is in the
 * fold. Ticks bring it, in pieces: a drain all at once would hold everybody up. */
#include "drained.h"

#include <stdlib.h>
#include <string.h>

#include "drain.h"
#include "entry.h"
#include "host_clock.h"
#include "intake.h"
#include "loop.h"
#include "offered.h"
#include "rings.h"
#include "turn.h"

#define ANSWER_NS 1000000u /* for those that are told in one tick */

struct drained {
	struct drained *next;
	uint64_t asked_ns, deadline_ns;
	uint8_t ring[16]; /* zeroes: all of uid's */
	int64_t uid;      /* -1: everybody's */
	drained_fn *fn;
	void *arg;
};

static bool concerns(const struct drained *w, const struct ring *r)
{
	static const uint8_t all[16];

	return memcmp(w->ring, all, 16) != 0 ? memcmp(w->ring, r->uuid, 16) == 0
					     : w->uid < 0 || w->uid == r->uid;
}

/* Asks for what lacks: of those that have just connected, and of the rings. */
static bool is_there(const struct protond *p, const struct drained *w)
{
	bool whole = intake_is_clear(p->d.intake, w->asked_ns);
	struct ring *r;

	for (r = p->rings.first; r != NULL; r = r->next) {
		if (concerns(w, r))
			whole &= drain_is_noted(r, w->asked_ns) && drain_is_past(r, w->asked_ns) &&
				 offered_is_past(r, w->asked_ns);
	}
	return whole;
}

/* At least one. The others wait for the next tick: what they are told may be long to answer. */
void drained_check(struct protond *p)
{
	struct drained **at = &p->drained, *ready = NULL, **last = &ready, *w;
	const uint64_t now = mono_ns();
	uint64_t until;
	bool told = false;

	while ((w = *at) != NULL) {
		if (!is_there(p, w) && now < w->deadline_ns) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*last = w;
		last = &w->next;
	}
	until = mono_ns() + ANSWER_NS;
	while ((w = ready) != NULL && (!told || mono_ns() < until)) {
		ready = w->next;
		w->fn(w->arg, false);
		free(w);
		told = true;
	}
	if (ready == NULL)
		return;
	*last = p->drained;
	p->drained = ready;
	turn_soon(&p->turn);
}

static uint32_t count_left(const struct protond *p, uint64_t ns)
{
	struct ring *r;
	uint32_t n = 0;

	for (r = p->rings.first; r != NULL; r = r->next)
		n += !drain_is_noted(r, ns) || !drain_is_past(r, ns);
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
	struct drained *w;

	while ((w = p->drained) != NULL) {
		p->drained = w->next;
		w->fn(w->arg, true);
		free(w);
	}
}

static int wait_for(struct protond *p, const struct drained *wish)
{
	struct drained *w = malloc(sizeof(*w)), **at = &p->drained;

	if (w == NULL)
		return -ENOMEM;
	*w = *wish;
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
	struct drained w = {.deadline_ns = deadline_ns, .fn = fn, .arg = arg};

	memcpy(w.ring, ring, 16);
	return wait_for(p, &w);
}

int daemon_when_drained(
	struct daemon *d, int64_t uid, uint32_t timeout_ms, drained_fn *fn, void *arg)
{
	const struct drained w = {.deadline_ns = mono_ns() + timeout_ms * 1000000ull,
		.uid = uid,
		.fn = fn,
		.arg = arg};

	return wait_for(protond_of(d), &w);
}
