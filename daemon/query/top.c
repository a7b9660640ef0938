/* SPDX-License-Identifier: MIT. top.c: what a live session has recorded so far. */
#include "top.h"

#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "must.h"
#include "resident.h"

#define TOP_MAGIC 0x544f5021u

struct top_wait {
	uint32_t magic;
	struct daemon *d;
	struct asker who;
	top_session_fn *done;
	void *arg;
};

static void top_drained(void *arg, bool ends)
{
	struct top_wait *t = arg;
	struct session_ref s;
	struct refusal no;

	(void)ends;
	MUST(t != NULL && t->magic == TOP_MAGIC);
	if (query_newest_live(t->d, &t->who, &s)) {
		t->done(t->arg, NULL, &s);
	} else {
		refuse(&no, -ENOENT,
			"start one with `protonctl run -- CMD`, or `protonctl start NAME --all`",
			"no session is live");
		t->done(t->arg, &no, NULL);
	}
	t->magic = 0;
	free(t);
}

void query_top_session(struct daemon *d, const struct asker *a, top_session_fn *done, void *arg)
{
	struct top_wait *t = calloc(1, sizeof(*t));
	struct refusal no;

	if (t != NULL) {
		*t = (struct top_wait){
			.magic = TOP_MAGIC, .d = d, .who = *a, .done = done, .arg = arg};
		if (daemon_when_drained(d, asker_sees(a), LOOK_MS, top_drained, t) == 0)
			return;
		free(t);
	}
	refuse_memory(&no);
	done(arg, &no, NULL);
}

int query_top_check(const struct session_ref *s, struct refusal *no)
{
	if (s->live)
		return 0;
	return refuse(no, -EALREADY, "",
		"session %ld '%s' has been finalized; `protonview tree %ld` shows it", (long)s->id,
		s->name, (long)s->id);
}

struct top_jobs {
	const struct asker *who;
	fold_process_fn *fn;
	void *arg;
};

static void top_job(void *arg, const struct fold_process *p)
{
	const struct top_jobs *t = arg;

	if (!p->ended && asker_may(t->who, p->uid))
		t->fn(t->arg, p);
}

void query_top_jobs(const struct daemon *d, const struct asker *a, fold_process_fn *fn, void *arg)
{
	struct top_jobs t = {.who = a, .fn = fn, .arg = arg};

	fold_each_process(d->fold, top_job, &t);
}

struct top_of {
	const struct daemon *d;
	const struct session_ref *s;
	uint64_t agents_ns;
	uint32_t pid;
	uint8_t ring[16];
	bool found;
};

static void top_add(void *arg, const struct fold_process *p)
{
	struct top_of *of = arg;

	if (!query_top_member(of->d, of->s, p))
		return;
	of->agents_ns += p->agent_ns;
	if (p->pid != of->pid || of->found)
		return;
	memcpy(of->ring, p->ring, sizeof(of->ring));
	of->found = true;
}

bool query_top_member(
	const struct daemon *d, const struct session_ref *s, const struct fold_process *p)
{
	return fold_is_member(d->fold, s->uuid, p->ring);
}

uint64_t query_top_cost(const struct daemon *d, const struct session_ref *s)
{
	struct top_of of = {.d = d, .s = s};
	struct fold_session f;

	if (!fold_get_session(d->fold, s->uuid, &f))
		return 0;
	fold_each_process(d->fold, top_add, &of);
	return of.agents_ns + f.daemon_ns;
}

void query_top_busy(
	const struct daemon *d, const struct session_ref *s, fold_busy_fn *fn, void *arg)
{
	fold_each_busy(d->fold, s->uuid, fn, arg);
}

void query_top_told(
	const struct daemon *d, const struct session_ref *s, fold_told_fn *fn, void *arg)
{
	fold_each_told(d->fold, s->uuid, fn, arg);
}

void query_top_cells(struct daemon *d, const struct session_ref *s, const struct top_wish *w,
	fold_cell_fn *fn, void *arg)
{
	struct top_of of = {.d = d, .s = s, .pid = w->pid};
	struct fold_top_wish wish = {.n = w->n, .hist = w->hist, .device = w->device};

	if (w->pid != 0) {
		fold_each_process(d->fold, top_add, &of);
		if (!of.found)
			return;
		wish.ring = of.ring;
	}
	fold_top(d->fold, s->uuid, &wish, fn, arg);
}

void query_top_memory(
	const struct daemon *d, const struct session_ref *s, fold_memory_fn *fn, void *arg)
{
	fold_each_memory(d->fold, s->uuid, fn, arg);
}

uint64_t query_top_resident(const struct fold_process *p)
{
	return p->ended ? 0 : resident_bytes(p->pid);
}
