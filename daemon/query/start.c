/* SPDX-License-Identifier: MIT. start.c: a new session, and which jobs it is for. */
#include "start.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon.h"
#include "fold.h"
#include "jobs.h"
#include "must.h"
#include "words.h"

#define START_MAGIC 0x53545254u

struct start {
	uint32_t magic;
	struct changed c;
	changed_fn *done;
	void *arg;
};

/* Attached jobs that the new session is for. */
struct matching {
	const struct j_verb *v;
	uint32_t n;
};

static void matching_look(void *arg, const struct live_job *j)
{
	struct matching *m = arg;

	switch (m->v->match) {
	case MATCH_USER:
		if (j->uid != m->v->uid)
			return;
		break;
	case MATCH_COMMAND:
		if (j->uid != m->v->uid || !words_match(m->v->command, j->command))
			return;
		break;
	default:
		return;
	}
	m->n++;
}

struct same_name {
	uint32_t uid;
	const char *name;
	bool found;
};

static void same_name_look(void *arg, const struct fold_session *s)
{
	struct same_name *n = arg;

	if (s->uid == n->uid && !session_is_over(s->state) && s->state != SESSION_IS_FINALIZING &&
		strcmp(s->name, n->name) == 0)
		n->found = true;
}

int query_name_is_free(const struct daemon *d, uint32_t uid, const char *name, struct refusal *no)
{
	struct same_name n = {.uid = uid, .name = name};

	fold_each_session(d->fold, same_name_look, &n);
	return !n.found ? 0
			: refuse(no, -EEXIST, "finalize it first, or choose another name",
				  "a session named '%s' is live already", name);
}

/* Fills in whose it is. What is cheap comes first, and what is refused matches no command. */
static int start_check(const struct daemon *d, const struct asker *a, struct j_verb *v,
	struct matching *m, struct refusal *no)
{
	if (v->match == MATCH_PID)
		m->n = jobs_of_pid(d, a, v->pid, &v->uid); /* root's look at a user's job is his */
	if (v->match == MATCH_PID && m->n == 0 &&
		(v->pid > INT32_MAX || (kill((pid_t)v->pid, 0) < 0 && errno == ESRCH)))
		return refuse(no, -ESRCH, "`protonctl jobs` lists those that record",
			"there is no process %u", v->pid);
	if (v->match == MATCH_PID && m->n == 0)
		return refuse(no, -ESRCH,
			"start it with `protonctl run`, link libprotond, or set the variables that "
			"`protonctl env` prints",
			"process %u was not started with protond", v->pid);
	if (v->source == SOURCE_RUN && v->match != MATCH_PID)
		v->pid = a->pid; /* who will end it */
	/* A run has its token, and many may start at once. */
	return v->source == SOURCE_RUN ? 0 : query_name_is_free(d, v->uid, v->name, no);
}

static int start_failed(
	const struct daemon *d, const struct j_verb *v, int r, bool refused, struct refusal *no)
{
	r = r < 0 ? r : -ENOSPC;
	if (!refused)
		return change_failed(no, r, "start", v->name);
	no->next = "`protonctl sessions` lists them; sessions_per_uid in protond.conf";
	return fold_refused_words(d->fold, v->uid, r, &no->err);
}

static int start_apply(
	struct daemon *d, struct j_verb *v, struct session_ref *ret, struct refusal *no)
{
	const uint64_t refused = fold_refused(d->fold).n;
	struct fold_session s;
	int r = getrandom(v->session, sizeof(v->session), 0) == (ssize_t)sizeof(v->session) ? 0
											    : -EIO;

	if (r == 0)
		r = change_apply(d, v);
	if (r < 0 || !fold_get_session(d->fold, v->session, &s))
		return start_failed(d, v, r, fold_refused(d->fold).n != refused, no);
	session_ref_of(ret, &s);
	return 0;
}

/* Whoever was there records, or did not say so in time. */
static void started(void *arg, int r, const struct err *e)
{
	struct start *s = arg;

	(void)e;
	MUST(s != NULL && s->magic == START_MAGIC);
	s->c.settled = r == 0;
	s->done(s->arg, NULL, &s->c);
	s->magic = 0;
	free(s);
}

void query_start(struct daemon *d, const struct asker *a, const struct j_verb *wish,
	changed_fn *done, void *arg)
{
	struct start *s = calloc(1, sizeof(*s));
	struct j_verb v = *wish;
	struct matching m = {.v = &v};
	struct refusal no;
	int r;

	v.verb = VERB_START;
	v.uid = a->uid;
	r = s != NULL ? start_check(d, a, &v, &m, &no) : refuse_memory(&no);
	if (r == 0)
		r = start_apply(d, &v, &s->c.session, &no);
	if (r < 0) {
		free(s);
		done(arg, &no, NULL);
		return;
	}
	if (v.match != MATCH_PID)
		jobs_each_live(d, matching_look, &m);
	s->magic = START_MAGIC;
	s->c.jobs = m.n;
	s->done = done;
	s->arg = arg;
	daemon_settle(d, &(struct settle_who){v.uid, v.match == MATCH_PID ? v.pid : 0},
		JOBS_ANSWER_MS, started, s);
}
