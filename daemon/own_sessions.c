/* SPDX-License-Identifier: MIT. own_sessions.c: what the daemon itself does to sessions: a job's
 * automatic one, the end of those whose jobs are gone, and what is wanted of a job that has no ring
 * yet. */
#include "own_sessions.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "config.h"
#include "engine.h"
#include "entry.h"
#include "finalize.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "log.h"
#include "loop.h"
#include "rings.h"

#define INTERRUPTED_NS 10000000000ull /* so long it takes to see who lives of a former life */
#define HOLD_NS        1000000000ull  /* a job that finalizes may ask for the export next */

/* Last component of the first word of a shell-quoted command. */
static void command_name(const char *command, char *ret, size_t n)
{
	const char quote = *command == '\'' || *command == '"' ? *command : '\0';
	const char *s = quote != '\0' ? command + 1 : command;
	const char *end = quote != '\0' ? strchr(s, quote) : strchr(s, ' ');
	const char *slash, *from = s;
	size_t bytes = end != NULL ? (size_t)(end - s) : strlen(s);

	for (slash = s; slash < s + bytes; slash++) {
		if (*slash == '/' && slash + 1 < s + bytes)
			from = slash + 1;
	}
	bytes -= (size_t)(from - s);
	(void)snprintf(ret, n, "%.*s", (int)(bytes < n ? bytes : n - 1), from);
	if (ret[0] == '\0')
		(void)snprintf(ret, n, "job");
}

struct run_of {
	const struct ring *r;
	bool found;
};

static void run_each(void *arg, const struct fold_session *s)
{
	struct run_of *x = arg;

	if ((s->source == SOURCE_RUN || s->source == SOURCE_AUTO) &&
		fold_is_member(x->r->all->d->fold, s->uuid, x->r->uuid))
		x->found = true;
}

/* It begins with the ring: what was recorded before the daemon saw it is in it. */
static uint64_t age_of(const struct ring *r, uint64_t now)
{
	const uint64_t created = r->reader.h.created_monotonic_ns;

	return created != 0 && created < now ? now - created : 0;
}

/* Not for a job of `protonctl run`, whose session is there from the first event to the last, nor for
 * a forked child in its parent's. */
void session_auto(struct ring *r, const char *command)
{
	static struct log_cause cause;
	const struct daemon *d = r->all->d;
	const uint64_t now = mono_ns(), age = age_of(r, now);
	struct j_verb v = {
		.verb = VERB_START,
		.uid = r->uid,
		.mono_ns = now - age,
		.realtime_ns = real_ns() - (int64_t)age,
		.source = SOURCE_AUTO,
		.match = MATCH_RING,
		.pid = r->pid,
		.data = SESSION_TREE,
		.context = SESSION_SHADOW,
		.cpu = SESSION_CPU_ON,
		.gpu = d->config->mode == AUTO_FULL || r->gpu_on ? SESSION_GPU_WANTED
								 : SESSION_GPU_NONE,
	};
	struct run_of run = {.r = r};
	int x;

	fold_each_session(d->fold, run_each, &run);
	if (d->config->mode == AUTO_OFF || run.found)
		return;
	memcpy(v.ring, r->uuid, 16);
	if (getrandom(v.session, sizeof(v.session), 0) != (ssize_t)sizeof(v.session))
		return;
	command_name(command, v.name, sizeof(v.name));
	(void)snprintf(v.domains, sizeof(v.domains), "%s", d->config->auto_nvtx_domains);
	(void)snprintf(
		v.backend, sizeof(v.backend), "%s", v.gpu == SESSION_GPU_WANTED ? "cupti" : "none");
	x = entry_put(r->all->entries, J_VERB, NULL, &v, sizeof(v));
	if (x < 0)
		log_cause(&cause, LOG_WARN, "no_auto_session", "pid=%u error=%d", r->pid, -x);
}

/* Sessions that stood for particular jobs end with them; those of a user, a token or a pattern may
 * see another job yet, and end when somebody says so. */
static bool ends_with_jobs(const struct fold_session *s)
{
	return s->n_processes > 0 && s->n_live == 0 &&
	       (s->source == SOURCE_AUTO || s->source == SOURCE_JOB || s->match == MATCH_PID ||
		       s->match == MATCH_RING);
}

struct closing {
	struct protond *p;
	uint32_t n, cap;
	struct finalizer *f;
};

static void closing_each(void *arg, const struct fold_session *s)
{
	struct closing *c = arg;
	struct finalizer f = {.deadline_ns = mono_ns() + SETTLE_MS * 1000000ull};
	struct finalizer *grown;
	const bool asked = s->state == SESSION_IS_FINALIZING;

	if (session_is_over(s->state) || (!asked && !ends_with_jobs(s)) ||
		finalize_is_waiting(c->p, s->uuid))
		return;
	if (asked && s->n_live > 0)
		f.not_before_ns = mono_ns() + HOLD_NS;
	memcpy(f.session, s->uuid, 16);
	f.say = !asked;
	if (c->n == c->cap) {
		grown = reallocarray(c->f, c->cap + 64, sizeof(*grown));
		if (grown == NULL)
			return; /* the next look finds it again */
		c->f = grown;
		c->cap += 64;
	}
	c->f[c->n++] = f;
}

static bool finalize_say(struct protond *p, const struct finalizer *f)
{
	struct j_verb v = {.verb = VERB_FINALIZE, .mono_ns = mono_ns(), .realtime_ns = real_ns()};

	memcpy(v.session, f->session, 16);
	return (!f->say || entry_put(&p->entries, J_VERB, NULL, &v, sizeof(v)) >= 0) &&
	       finalize_add(p, f) == 0;
}

void sessions_close(struct protond *p)
{
	struct closing c = {.p = p};
	uint32_t i;

	if (!p->entries.saw_session)
		return;
	p->entries.saw_session = false;
	fold_each_session(p->d.fold, closing_each, &c);
	for (i = 0; i < c.n; i++) { /* not inside the walk: a verb changes what is walked */
		if (!finalize_say(p, &c.f[i]))
			p->entries.saw_session = true; /* again in the next tick */
	}
	free(c.f);
}

/* A run's session is ended by its protonctl. Where that was killed, nobody else would. */
static bool is_orphan(const struct fold_session *s)
{
	return s->source == SOURCE_RUN && s->pid != 0 && s->n_live == 0 &&
	       (s->state == SESSION_IS_ACTIVE || s->state == SESSION_IS_INACTIVE) &&
	       kill((pid_t)s->pid, 0) < 0 && errno == ESRCH;
}

static void orphan_each(void *arg, const struct fold_session *s)
{
	struct orphans *o = arg;

	if (is_orphan(s) && o->n < ORPHANS_MAX)
		memcpy(o->uuid[o->n++], s->uuid, 16);
}

/* A daemon was killed, too: it is not known when the session would have ended, but what there is of
 * it is. */
static void interrupted_each(void *arg, const struct fold_session *s)
{
	struct orphans *o = arg;

	if (s->created_ns <= o->before_ns)
		orphan_each(o, s);
}

void sessions_interrupted(struct protond *p)
{
	const uint64_t now = mono_ns();
	struct orphans o = {0};
	uint32_t i;

	if (p->former_ns == 0 || p->former_ns > now || now - p->d.started_mono_ns > INTERRUPTED_NS)
		return;
	o.before_ns = real_ns() - (int64_t)(now - p->former_ns);
	fold_each_session(p->d.fold, interrupted_each, &o);
	for (i = 0; i < o.n; i++) {
		struct j_verb v = {.verb = VERB_INTERRUPTED,
			.mono_ns = p->former_ns,
			.realtime_ns = o.before_ns};

		memcpy(v.session, o.uuid[i], 16);
		(void)entry_put(&p->entries, J_VERB, NULL, &v, sizeof(v));
	}
}

void sessions_sweep(struct protond *p)
{
	struct orphans now = {0};
	uint32_t i, k;

	fold_each_session(p->d.fold, orphan_each, &now);
	for (i = 0; i < now.n; i++) {
		struct finalizer f = {
			.deadline_ns = mono_ns() + SETTLE_MS * 1000000ull, .say = true};

		memcpy(f.session, now.uuid[i], 16);
		/* Seen at the last look, too: another of its runs came not. */
		for (k = 0; k < p->orphans.n; k++) {
			if (memcmp(p->orphans.uuid[k], now.uuid[i], 16) == 0)
				(void)finalize_say(p, &f);
		}
	}
	p->orphans = now;
}

/* What a job finalized itself is held back for its export: from a dead one none comes, and the
 * session was finalized, not cut off by the end. */
bool sessions_owner_gone(struct protond *p, const uint8_t ring[16])
{
	struct finalizer *f;
	struct fold_session s;
	bool any = false;

	sessions_close(p);
	for (f = p->finalizers; f != NULL; f = f->next) {
		if (!fold_get_session(p->d.fold, f->session, &s) || memcmp(s.owner, ring, 16) != 0)
			continue;
		f->not_before_ns = 0;
		any = true;
	}
	return !any || finalize_check(p, ring);
}
