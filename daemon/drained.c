/* SPDX-License-Identifier: MIT. drained.c: who waits until what jobs have written by now is in the
 * fold. Ticks bring it, in pieces: a drain all at once would hold everybody up. */
#include "drained.h"

#include <stdlib.h>
#include <string.h>

#include "drain.h"
#include "host_clock.h"
#include "loop.h"
#include "rings.h"
#include "turn.h"

struct drained {
	struct drained *next;
	uint64_t asked_ns, deadline_ns;
	uint8_t ring[16]; /* zeroes: all */
	drained_fn *fn;
	void *arg;
};

static bool is_over(const struct protond *p, const struct drained *w, uint64_t now)
{
	static const uint8_t all[16];
	const struct ring *r;

	if (now >= w->deadline_ns)
		return true;
	for (r = p->rings.first; r != NULL; r = r->next) {
		if (!drain_is_past(r, w->asked_ns) &&
			(memcmp(w->ring, all, 16) == 0 || memcmp(w->ring, r->uuid, 16) == 0))
			return false;
	}
	return true;
}

static void call_all(struct drained *w, bool ends)
{
	struct drained *next;

	for (; w != NULL; w = next) {
		next = w->next;
		w->fn(w->arg, ends);
		free(w);
	}
}

void drained_check(struct protond *p)
{
	struct drained **at = &p->drained, *ready = NULL, **last = &ready, *w;
	const uint64_t now = mono_ns();

	while ((w = *at) != NULL) {
		if (!is_over(p, w, now)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*last = w;
		last = &w->next;
	}
	if (ready != NULL)
		drain_note(&p->rings);
	call_all(ready, false);
}

void drained_end(struct protond *p)
{
	struct drained *w = p->drained;

	p->drained = NULL;
	call_all(w, true);
}

int when_drained(
	struct protond *p, const uint8_t ring[16], uint64_t deadline_ns, drained_fn *fn, void *arg)
{
	struct drained *w = calloc(1, sizeof(*w)), **at = &p->drained;

	if (w == NULL)
		return -ENOMEM;
	*w = (struct drained){
		.asked_ns = mono_ns(), .deadline_ns = deadline_ns, .fn = fn, .arg = arg};
	if (ring != NULL)
		memcpy(w->ring, ring, 16);
	while (*at != NULL)
		at = &(*at)->next;
	*at = w;
	turn_hurry(&p->turn);
	return 0;
}

int daemon_when_drained(struct daemon *d, uint32_t timeout_ms, drained_fn *fn, void *arg)
{
	return when_drained(protond_of(d), NULL, mono_ns() + timeout_ms * 1000000ull, fn, arg);
}
