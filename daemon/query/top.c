/* SPDX-License-Identifier: MIT. top.c: what a live session has recorded so far. */
#include "top.h"

#include <stdlib.h>

#include "daemon.h"
#include "must.h"

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
	return refuse(no, -EALREADY, "`protonview tree` shows it",
		"session %ld '%s' has been finalized", (long)s->id, s->name);
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

void query_top_cells(
	struct daemon *d, const struct session_ref *s, uint32_t n, fold_cell_fn *fn, void *arg)
{
	fold_top(d->fold, s->uuid, n, fn, arg);
}
