/* SPDX-License-Identifier: MIT. apply.c: what verbs and finalizers ask of the loop: an entry of
 * theirs, and that jobs do what it says. */
#include <string.h>

#include "drain.h"
#include "entry.h"
#include "fold.h"
#include "journal.h"
#include "loop.h"
#include "offered.h"
#include "ring_ctl.h"
#include "rings.h"
#include "settle.h"
#include "wants.h"

static bool concerns(const struct protond *p, const struct j_verb *v, const struct ring *r)
{
	if (v->verb != VERB_START)
		return fold_is_member(p->d.fold, v->session, r->uuid);
	return (v->uid == 0 || v->uid == r->uid) && (v->match != MATCH_PID || v->pid == r->pid) &&
	       (v->match != MATCH_RING || memcmp(v->ring, r->uuid, 16) == 0);
}

/* What was lost up to now is of those sessions that record up to now, and what sums hold already
 * belongs before the verb, which has its clock. */
static void cut_before(struct protond *p, const struct j_verb *v)
{
	struct ring *r;

	if (v->verb == VERB_FINALIZED || v->verb >= VERB_RENAME) /* nothing of time */
		return;
	for (r = p->rings.first; r != NULL; r = r->next) {
		if (r->state != RING_LIVE || !drain_goes_on(r) || !concerns(p, v, r))
			continue;
		if (v->verb != VERB_PHASE)
			(void)drain_counts(r);
		r->cut++;
		ring_say_sums(r);
	}
}

/* Whoever is asked for is a process, though nothing was recorded in it yet. */
static void adopt_before(struct protond *p, const struct j_verb *v)
{
	struct ring *r;

	if (v->verb != VERB_START || v->match == MATCH_TOKEN)
		return;
	for (r = p->rings.first; r != NULL; r = r->next)
		if (r->state == RING_LIVE && !r->adopted && concerns(p, v, r))
			(void)offered_adopt(r);
}

int daemon_apply(struct daemon *d, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	struct protond *p = protond_of(d);
	int r;

	if (type == J_VERB) {
		adopt_before(p, payload);
		cut_before(p, payload);
	}
	r = entry_put(&p->entries, type, ring, payload, bytes);

	if (r < 0)
		return r;
	p->entries.saw_session = true;
	if (!entry_flush(&p->entries) && !p->entries.adrift)
		return -ENOSPC;
	wants_tell(p->d.intake);
	hello_tell(&p->hello, d);
	return 0;
}

void daemon_settle(struct daemon *d, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg)
{
	struct protond *p = protond_of(d);

	(void)entry_flush(&p->entries);
	wants_tell(p->d.intake);
	settle_wait(&p->settlers, who, timeout_ms, done, arg);
}
