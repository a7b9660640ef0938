/* SPDX-License-Identifier: MIT. commit.c: from the fold into the store: when a transaction is due,
 * and what waits for one (finalized sessions, ended rings, clients). */
#include "commit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "closer.h"
#include "config.h"
#include "entry.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "kept.h"
#include "log.h"
#include "loop.h"
#include "must.h"
#include "retain.h"
#include "rings.h"
#include "sink.h"
#include "store.h"
#include "turn.h"

#define HOUR_NS     3600000000000ull
#define SECOND_NS   1000000000ull
#define COMMITS_MAX 2u
#define FLIGHTS     (sizeof(((struct commits *)0)->flight) / sizeof(uint64_t))

struct asked { /* who waits for a transaction */
	struct asked *next;
	asked_fn *done;
	void *arg;
};

struct commit {
	struct protond *p;
	uint64_t position, bytes, mark;
	uint32_t round; /* of the fold */
	bool staged;    /* it holds what is staged, too */
	struct asked *asked;
};

/* Bytes of journal that the flight recorder wants kept although they are stored. */
static uint64_t flight_bytes(const struct protond *p)
{
	const uint64_t oldest =
		p->commits.flight[p->commits.flight_at]; /* the next to be overwritten */

	if (p->d.config->flight_s == 0)
		return 0;
	return oldest != 0 ? journal_bytes_since(p->d.journal, oldest) : UINT64_MAX / 2;
}

static void flight_sample(struct protond *p, uint64_t now)
{
	const uint64_t every = p->d.config->flight_s * SECOND_NS / (FLIGHTS - 1);

	if (p->d.config->flight_s == 0 || now - p->commits.flight_ns < every)
		return;
	p->commits.flight_ns = now;
	p->commits.flight[p->commits.flight_at] = journal_position(p->d.journal);
	p->commits.flight_at = (p->commits.flight_at + 1) % (uint32_t)FLIGHTS;
}

static void tell(struct asked *a, int r, const struct err *e)
{
	struct asked *next;

	for (; a != NULL; a = next) {
		next = a->next;
		a->done(a->arg, r, e);
		free(a);
	}
}

static void commit_soon(struct protond *p);

static void close_later(void *closer, int fd)
{
	closer_take(closer, fd);
}

struct seen {
	struct protond *p;
	uint32_t round;
};

static int seen_work(struct sqlite3 *db, void *arg, struct err *e)
{
	(void)db;
	(void)arg;
	(void)e;
	return 0;
}

static void seen_on_done(void *arg, int r, const struct err *e)
{
	struct seen *s = arg;

	(void)e;
	if (r == 0)
		fold_seen(s->p->d.fold, s->round);
	free(s);
}

/* A question that was asked before this was stored may have an answer without it, and must find it in
 * the fold: the fold lets go of it when this one, behind all those, is answered. */
static void see_later(struct protond *p, uint32_t round)
{
	struct seen *s = malloc(sizeof(*s));

	if (s == NULL)
		return; /* the next commit's will do */
	*s = (struct seen){.p = p, .round = round};
	store_ask(p->d.store, STORE_QUESTION, seen_work, s, seen_on_done);
}

static void commit_on_stored(void *arg, int r, const struct err *e)
{
	static struct log_cause cause, refused;
	struct commit *c = arg;
	struct protond *p = c->p;
	char quoted[600];

	MUST_LOOP(&p->d);
	MUST(p->commits.running > 0 && p->commits.running <= COMMITS_MAX);
	p->commits.running--;
	if (r == 0 && p->commits.running == 0) /* those before it, too: none overtakes another */
		p->commits.lacks = false;
	p->d.store_lacks = r < 0 && p->commits.lacks;
	fold_waiting(p->d.fold, -(int64_t)c->bytes);
	p->commits.failed = r < 0;
	p->d.store_trouble = r < 0 && e != NULL ? *e : (struct err){0};
	if (r < 0) {
		log_cause(&cause, LOG_ERR, "store_failed", "error=%d text=%s", -r,
			log_quote(quoted, sizeof(quoted), e != NULL ? e->text : ""));
	} else {
		if (c->staged && p->entries.stored)
			entry_unstage(&p->entries);
		if (c->position > p->d.stored_position)
			p->d.stored_position = c->position;
		owed_stored(&p->entries.owed, c->mark);
		journal_forget(p->d.journal, p->d.stored_position, flight_bytes(p), close_later,
			p->rings.closer);
		rings_stored(&p->rings, p->d.stored_position);
		see_later(p, c->round);
	}
	if (r == 0 && e != NULL && e->code != 0)
		log_cause(&refused, LOG_ERR, "rows_refused", "error=%d text=%s", -e->code,
			log_quote(quoted, sizeof(quoted), e->text));
	tell(c->asked, r, e);
	free(c);
	turn_trim(&p->turn);
	if (p->turn.commit_due)
		commit_soon(p);
}

/* The daemon's own CPU time goes with what it was spent on. */
static void put_cost(struct protond *p)
{
	struct rusage u;
	struct j_cost cost;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return;
	cost.cpu_ns = (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * SECOND_NS +
		      (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	if (cost.cpu_ns - p->commits.cost_ns < 1000000)
		return;
	if (entry_put(&p->entries, J_COST, NULL, &cost, sizeof(cost)) == 0)
		p->commits.cost_ns = cost.cpu_ns;
}

static void tell_failed(struct asked *a, int r, const char *words)
{
	struct err e;

	(void)err_set(&e, r, "%s", words);
	tell(a, r, &e);
}

/* Collects and submits for all who asked so far. */
static void commit_begin(struct protond *p)
{
	struct daemon *d = &p->d;
	struct batch batch = {0};
	struct asked *asked = p->commits.asked;
	struct commit *c;
	int r;

	p->commits.asked = NULL;
	p->turn.commit_due = false;
	MUST(p->commits.running < COMMITS_MAX && !p->commits.closed);
	put_cost(p);
	/* The rows must not be ahead of the journal: their position is where a restart goes on.
	 * Where it cannot grow, perhaps because it holds so much that is not stored, what is staged
	 * waits for this transaction and is never written. */
	if (!entry_flush(&p->entries) && !journal_is_whole(d->journal)) {
		tell_failed(asked, -ENOSPC,
			"the journal cannot be written: the runtime directory's file system is "
			"full");
		return;
	}
	c = malloc(sizeof(*c));
	r = c != NULL ? fold_collect(d->fold, &batch) : -ENOMEM;
	if (r < 0) {
		free(c);
		tell_failed(asked, r, "no memory for a transaction");
		return;
	}
	p->entries.stored = p->entries.stuck;
	batch.journal = journal_position(d->journal);
	*c = (struct commit){.p = p,
		.position = batch.journal,
		.bytes = batch_bytes(&batch),
		.mark = owed_mark(&p->entries.owed),
		.round = fold_round(d->fold),
		.staged = p->entries.stored,
		.asked = asked};
	p->commits.running++;
	p->commits.lacks = p->commits.lacks || !batch_is_upkeep(&batch);
	fold_waiting(d->fold, (int64_t)c->bytes);
	p->commits.last_ns = mono_ns();
	sinks_put(d->sinks, &batch, commit_on_stored, c);
}

bool commit_is_due(const struct protond *p)
{
	return p->turn.commit_due && !p->commits.closed && p->commits.running < COMMITS_MAX;
}

bool commit_next(struct protond *p)
{
	if (!commit_is_due(p))
		return false;
	commit_begin(p);
	return true;
}

/* In a turn of the loop of its own, if there are turns: a collect takes milliseconds. */
static void commit_soon(struct protond *p)
{
	if (p->turn.stopping || p->d.intake == NULL)
		(void)commit_next(p);
	else
		turn_soon(&p->turn);
}

/* One runs and one waits, at most: who asks meanwhile shares the next one, so that a thousand
 * sessions that end at once are a few transactions. A store that fails keeps its batches and tries
 * again by itself: it gets few, the journal has the rest. */
void daemon_commit(struct daemon *d, asked_fn *done, void *arg)
{
	struct protond *p = protond_of(d);
	struct asked *a = NULL, **last;
	struct err e = {0};

	if (p->commits.closed)
		(void)err_set(&e, -ECANCELED, "protond ends; the journal has it");
	else if (d->store_trouble.code != 0 && store_queued(d->store) > COMMITS_MAX)
		e = d->store_trouble;
	else if (done != NULL && (a = malloc(sizeof(*a))) == NULL)
		(void)err_set(&e, -ENOMEM, "no memory for a transaction");
	if (e.code != 0) {
		if (done != NULL)
			done(arg, e.code, &e);
		return;
	}
	if (a != NULL) {
		*a = (struct asked){.done = done, .arg = arg};
		for (last = &p->commits.asked; *last != NULL; last = &(*last)->next)
			;
		*last = a;
	}
	p->turn.commit_due = true;
	commit_soon(p);
}

void commit_end(struct protond *p)
{
	struct asked *asked = p->commits.asked;

	p->commits.closed = true;
	p->commits.asked = NULL;
	tell_failed(asked, -ECANCELED, "protond ends; the journal has it");
}

static bool ring_waits(const struct protond *p)
{
	const struct ring *r;

	for (r = p->rings.first; r != NULL; r = r->next) {
		if (r->state == RING_ENDED)
			return true;
	}
	return false;
}

/* Jobs that do nothing are no reason to write to a disk each second. */
#define UPKEEP_NS (30 * SECOND_NS)

void commit_periodic(struct protond *p)
{
	const uint64_t now = mono_ns();

	flight_sample(p, now);
	retain_if_due(&p->config, p->d.store, &p->commits.pruned_ns, now);
	if (p->commits.running == 0 &&
		(fold_has_news(p->d.fold) || p->commits.failed || p->entries.stuck ||
			ring_waits(p) ||
			(fold_is_dirty(p->d.fold) && now - p->commits.last_ns > UPKEEP_NS)))
		daemon_commit(&p->d, NULL, NULL);
}

void commit_if_large(struct protond *p)
{
	const bool large = journal_bytes_since(p->d.journal, p->d.stored_position) >
				   p->d.config->journal_mb << 20 ||
			   owed_is_large(&p->entries.owed);

	/* New rows are collected a few at a time, so that no collect holds the loop up for long. */
	if (p->commits.running < COMMITS_MAX &&
		(fold_fresh(p->d.fold) >= FRESH_MAX || (large && p->commits.running == 0)))
		daemon_commit(&p->d, NULL, NULL);
}

bool commit_waits(const struct protond *p)
{
	return store_queued(p->d.store) != 0 && (p->commits.lacks || !p->commits.failed);
}
