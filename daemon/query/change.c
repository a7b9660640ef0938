/* SPDX-License-Identifier: MIT. change.c: what can be done to a session that lives, and to jobs. */
#include "change.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attached.h"
#include "daemon.h"
#include "fold.h"
#include "host_clock.h"
#include "jobs.h"
#include "must.h"

#define CHANGE_MAGIC 0x43484e47u
#define DRAIN_MS     2000u

struct change {
	uint32_t magic;
	struct daemon *d;
	struct asker who;
	struct changed c;
	bool store;       /* query_store() */
	changed_fn *done; /* one of the two */
	ready_fn *ready;
	void *arg;
};

static struct change *change_of(void *p)
{
	struct change *c = p;

	MUST(c != NULL && c->magic == CHANGE_MAGIC);
	return c;
}

static struct change *change_new(struct daemon *d, const struct session_ref *s, void *arg)
{
	struct change *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	*c = (struct change){.magic = CHANGE_MAGIC, .d = d, .arg = arg};
	if (s != NULL)
		c->c.session = *s;
	return c;
}

/* Tells, and gives it back. */
static void change_end(struct change *c, const struct refusal *no)
{
	if (c->ready != NULL)
		c->ready(c->arg, no);
	else
		c->done(c->arg, no, no == NULL ? &c->c : NULL);
	c->magic = 0;
	free(c);
}

/* --- verbs --- */

int change_apply(struct daemon *d, struct j_verb *v)
{
	static const uint8_t no_ring[16];

	v->mono_ns = mono_ns();
	v->realtime_ns = real_ns();
	return daemon_apply(d, J_VERB, no_ring, v, sizeof(*v));
}

int change_apply_to(struct daemon *d, const struct session_ref *s, enum verb verb)
{
	struct j_verb v = {.verb = verb, .uid = s->uid};

	memcpy(v.session, s->uuid, 16);
	return change_apply(d, &v);
}

int change_failed(struct refusal *no, int r, const char *what, const char *name)
{
	return refuse(no, r,
		r == -ENOSPC ? "the journal is full, or a limit is reached; `protonctl status` "
			       "says which"
			     : "`protonctl status` shows the trouble",
		"could not %s '%s': %s", what, name, strerror(-r));
}

static int is_over(const struct session_ref *s, struct refusal *no)
{
	return refuse(no, -EALREADY, "`protonctl start NAME` begins another",
		"session %ld '%s' has been finalized; `protonview tree %ld` shows it", (long)s->id,
		s->name, (long)s->id);
}

static int change_now(struct daemon *d, struct session_ref *s, enum verb verb, const char *what,
	struct refusal *no)
{
	struct fold_session f;
	int r;

	if (!s->live || s->state == SESSION_IS_FINALIZING || session_is_over(s->state))
		return is_over(s, no);
	r = change_apply_to(d, s, verb);
	if (r < 0)
		return change_failed(no, r, what, s->name);
	if (fold_get_session(d->fold, s->uuid, &f))
		session_ref_of(s, &f);
	return 0;
}

int query_activate(struct daemon *d, struct session_ref *s, struct refusal *no)
{
	return change_now(d, s, VERB_ACTIVATE, "activate", no);
}

int query_deactivate(struct daemon *d, struct session_ref *s, struct refusal *no)
{
	return change_now(d, s, VERB_DEACTIVATE, "stop", no);
}

int query_switch(
	struct daemon *d, struct session_ref *s, uint8_t on, uint8_t off, struct refusal *no)
{
	struct j_verb v = {.verb = VERB_SWITCH, .uid = s->uid};
	struct fold_session f;
	int r;

	if (!s->live || !fold_get_session(d->fold, s->uuid, &f) || session_is_over(f.state) ||
		f.state == SESSION_IS_FINALIZING)
		return is_over(s, no);
	memcpy(v.session, s->uuid, 16);
	v.switches = (uint8_t)((f.switches | on) & ~off);
	r = change_apply(d, &v);
	return r < 0 ? change_failed(no, r, "change", s->name) : 0;
}

/* --- finalize --- */

static void finalize_again(void *arg, const struct refusal *no, const struct session_ref *s)
{
	struct change *c = change_of(arg);

	if (s != NULL)
		c->c.session = *s;
	if (no != NULL && no->err.code == -ENOMEM)
		no = NULL; /* with what is known */
	change_end(c, no);
}

static void finalize_on_done(void *arg, int r, const struct err *e)
{
	struct change *c = change_of(arg);
	struct session_ref *s = &c->c.session;
	struct fold_session f;
	struct refusal no;

	if (r < 0) {
		refuse_err(&no, e,
			"what was recorded is in the journal and will be stored; `protonctl "
			"status` "
			"shows the trouble");
		change_end(c, &no);
		return;
	}
	if (fold_get_session(c->d->fold, s->uuid, &f)) {
		session_ref_of(s, &f);
		change_end(c, NULL);
		return;
	}
	/* The fold let go of it: the store's figures are the last ones. */
	query_session_again(c->d, &c->who, s->uuid, finalize_again, c);
}

void query_finalize(struct daemon *d, const struct asker *a, const struct session_ref *s,
	uint32_t timeout_ms, changed_fn *done, void *arg)
{
	struct change *c = change_new(d, s, arg);
	struct refusal no;

	if (c == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	c->who = *a;
	c->done = done;
	if (!s->live || session_is_over(s->state))
		change_end(c, NULL); /* said twice is said once */
	else
		daemon_finalize(d, s->uuid, timeout_ms, finalize_on_done, c);
}

/* --- drain, store --- */

static void store_on_done(void *arg, int r, const struct err *e)
{
	struct refusal no;

	if (r < 0)
		refuse_err(&no, e, NEXT_DOCTOR);
	change_end(change_of(arg), r < 0 ? &no : NULL);
}

static void drain_on_done(void *arg, bool ends)
{
	struct change *c = change_of(arg);

	(void)ends;
	if (c->store)
		daemon_commit(c->d, store_on_done, c);
	else
		change_end(c, NULL);
}

static void drain(
	struct daemon *d, const struct session_ref *s, bool store, ready_fn *done, void *arg)
{
	struct change *c;
	struct refusal no;

	if (!s->live) {
		done(arg, NULL);
		return;
	}
	c = change_new(d, s, arg);
	if (c != NULL) {
		c->store = store;
		c->ready = done;
		if (daemon_when_drained(
			    d, s->uid != 0 ? (int64_t)s->uid : -1, DRAIN_MS, drain_on_done, c) == 0)
			return;
		c->magic = 0;
		free(c);
	}
	refuse_memory(&no);
	done(arg, &no);
}

void query_drain(struct daemon *d, const struct session_ref *s, ready_fn *done, void *arg)
{
	drain(d, s, false, done, arg);
}

void query_store(struct daemon *d, const struct session_ref *s, ready_fn *done, void *arg)
{
	drain(d, s, true, done, arg);
}

/* --- pause, resume, the end --- */

static void paused_or_resumed(void *arg, int r, const struct err *e)
{
	struct change *c = change_of(arg);

	(void)e;
	c->c.settled = r == 0;
	change_end(c, NULL);
}

void query_pause(struct daemon *d, const struct asker *a, uint32_t pid, bool pause,
	changed_fn *done, void *arg)
{
	struct change *c;
	struct refusal no;
	uint32_t uid;

	if (pid != 0 && jobs_of_pid(d, a, pid, &uid) == 0) {
		refuse(&no, -ENOENT, "`protonctl jobs` lists those that are",
			"no job with pid %u is attached", pid);
		done(arg, &no, NULL);
		return;
	}
	c = change_new(d, NULL, arg);
	if (c == NULL) {
		refuse_memory(&no);
		done(arg, &no, NULL);
		return;
	}
	c->done = done;
	c->c.jobs = attached_pause(d->intake, pid, a->privileged ? UINT32_MAX : a->uid, pause);
	daemon_settle(d, &(struct settle_who){a->privileged ? 0 : a->uid, pid}, JOBS_ANSWER_MS,
		paused_or_resumed, c);
}

int query_may_stop(const struct asker *a, struct refusal *no)
{
	if (a->uid == 0 || a->uid == geteuid())
		return 0;
	return refuse(no, -EPERM, "use `systemctl stop protond.socket protond.service`",
		"only root and the daemon's own user may stop protond");
}
