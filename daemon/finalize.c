/* SPDX-License-Identifier: MIT. finalize.c: sessions that are finalizing. */
#include "finalize.h"

#include <stdlib.h>
#include <string.h>

#include "drain.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "loop.h"
#include "rings.h"
#include "turn.h"

static int put_verb(struct protond *p, enum verb verb, const uint8_t session[16], uint32_t uid)
{
	struct j_verb v = {
		.verb = verb, .uid = uid, .mono_ns = mono_ns(), .realtime_ns = real_ns()};

	memcpy(v.session, session, 16);
	return daemon_apply(&p->d, J_VERB, NULL, &v, sizeof(v));
}

bool finalize_is_waiting(const struct protond *p, const uint8_t session[16])
{
	const struct finalizer *f;

	for (f = p->finalizers; f != NULL; f = f->next) {
		if (memcmp(f->session, session, 16) == 0)
			return true;
	}
	return false;
}

/* Of all jobs of the session, and of nobody else's, who may write for ever. Asks for what lacks. */
static bool is_drained(const struct protond *p, const struct finalizer *f)
{
	bool whole = true;
	struct ring *r;

	for (r = p->rings.first; r != NULL; r = r->next) {
		if (fold_is_member(p->d.fold, f->session, r->uuid))
			whole &= drain_is_there(r, f->asked_ns);
	}
	return whole;
}

/* True: over, and `done` waits for the transaction. gone: the ring of a dead process, or NULL; all
 * of it is in the fold. */
static bool finalize_end(
	struct protond *p, const struct finalizer *f, uint64_t now, const uint8_t *gone)
{
	const bool late = now >= f->deadline_ns;
	struct fold_session s;
	bool whole;

	if (!fold_get_session(p->d.fold, f->session, &s) || session_is_over(s.state))
		return true;
	whole = gone != NULL && memcmp(s.owner, gone, 16) == 0;
	if (now < f->not_before_ns || (!fold_is_settled(p->d.fold, f->session) && !late))
		return false;
	/* Ticks bring it, in pieces: no more than was there when it was asked. The deadline is for
	 * what the GPU has not delivered. */
	if (!whole && !is_drained(p, f))
		return false;
	/* What the drain brought may be in flight again. */
	if (!late && !fold_is_settled(p->d.fold, f->session))
		return false;
	return put_verb(p, VERB_FINALIZED, f->session, s.uid) != -ENOSPC;
}

/* As many as a tick's time is for. False: there may be more. */
bool finalize_check(struct protond *p, const uint8_t *gone)
{
	struct finalizer **at = &p->finalizers, *f, *over = NULL;
	const uint64_t now = mono_ns();
	bool whole;

	while ((f = *at) != NULL && (over == NULL || mono_ns() - now < p->drain.ns)) {
		if (!finalize_end(p, f, now, gone)) {
			at = &f->next;
			continue;
		}
		*at = f->next;
		f->next = over;
		over = f;
	}
	whole = f == NULL;
	while ((f = over) != NULL) { /* off the list first: done may finalize another one */
		over = f->next;
		daemon_commit(&p->d, f->done, f->arg);
		free(f);
	}
	return whole;
}

int finalize_add(struct protond *p, const struct finalizer *f)
{
	struct finalizer *copy = malloc(sizeof(*copy));

	if (copy == NULL)
		return -ENOMEM;
	*copy = *f;
	copy->asked_ns = mono_ns();
	copy->next = p->finalizers;
	p->finalizers = copy;
	(void)is_drained(p, copy);
	turn_hurry(&p->turn);
	return 0;
}

static void refuse(asked_fn *done, void *arg, int r, const char *words)
{
	struct err e;

	(void)err_set(&e, r, "%s", words);
	if (done != NULL)
		done(arg, r, &e);
}

void finalize_soon(struct protond *p, const uint8_t session[16], uint64_t deadline_ns,
	asked_fn *done, void *arg)
{
	struct finalizer f = {.deadline_ns = deadline_ns, .done = done, .arg = arg};

	memcpy(f.session, session, 16);
	if (finalize_add(p, &f) < 0)
		refuse(done, arg, -ENOMEM, "no memory to finalize a session");
}

void daemon_finalize(
	struct daemon *d, const uint8_t session[16], uint32_t timeout_ms, asked_fn *done, void *arg)
{
	struct protond *p = protond_of(d);
	const uint64_t deadline = mono_ns() + timeout_ms * 1000000ull;
	struct fold_session s;
	int r;

	if (fold_get_session(d->fold, session, &s) &&
		(s.state == SESSION_IS_ACTIVE || s.state == SESSION_IS_INACTIVE)) {
		r = put_verb(p, VERB_FINALIZE, session, s.uid);
		if (r < 0) {
			refuse(done, arg, r,
				"the session cannot be finalized: no room in the journal");
			return;
		}
	}
	finalize_soon(p, session, deadline, done, arg);
}
