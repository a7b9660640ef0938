/* SPDX-License-Identifier: MIT. where.c: what each thread of a running job is in. */
#include "where.h"

#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "host_clock.h"
#include "journal.h"
#include "must.h"

#define LOOK_MAGIC 0x4c4f4f4bu

struct look {
	uint32_t magic;
	struct asker who;
	uint32_t pid; /* 0: any */
	bool of_session;
	uint8_t session[16];
	where_fn *done;
	void *arg;
	struct j_now now[WHERE_SCOPES];
	struct where w;
};

static struct look *look_of(void *p)
{
	struct look *l = p;

	MUST(l != NULL && l->magic == LOOK_MAGIC);
	return l;
}

static void look_add(void *arg, const struct fold_process *p)
{
	struct look *l = look_of(arg);
	struct where_job *j;

	if (p->ended || !asker_may(&l->who, p->uid) ||
		(l->pid != 0 && p->pid != l->pid && p->ns_pid != l->pid))
		return;
	if (l->w.n == WHERE_JOBS) {
		l->w.left_out++;
		return;
	}
	j = &l->w.job[l->w.n++];
	*j = (struct where_job){.pid = p->pid,
		.rank = p->rank,
		.in_namespace = p->ns_pid != p->pid,
		.delivered_ns = p->delivered_ns,
		.open_launches = p->open_launches};
	memcpy(j->ring, p->ring, 16);
	if (p->command != NULL)
		memcpy(j->command, p->command, strnlen(p->command, sizeof(j->command) - 1));
}

static void look_drop_others(struct look *l)
{
	uint32_t i, n = 0;

	for (i = 0; i < l->w.n; i++)
		if (fold_is_member(l->w.d->fold, l->session, l->w.job[i].ring))
			l->w.job[n++] = l->w.job[i];
	l->w.n = n;
}

static void look_drained(void *arg, bool ends)
{
	struct look *l = look_of(arg);

	(void)ends;
	fold_each_process(l->w.d->fold, look_add, l);
	if (l->of_session)
		look_drop_others(l);
	l->w.now_ns = mono_ns();
	l->done(l->arg, NULL, &l->w);
	l->magic = 0;
	free(l);
}

void query_where(struct daemon *d, const struct asker *a, const struct where_wish *wish,
	where_fn *done, void *arg)
{
	struct look *l = calloc(1, sizeof(*l));
	struct refusal no;

	if (l != NULL) {
		l->magic = LOOK_MAGIC;
		l->who = *a;
		l->pid = wish->pid;
		l->of_session = wish->session != NULL;
		if (l->of_session)
			memcpy(l->session, wish->session->uuid, 16);
		l->done = done;
		l->arg = arg;
		l->w.d = d;
		if (l->of_session) {
			look_drained(l, false);
			return;
		}
		if (daemon_when_drained(d, asker_sees(a), LOOK_MS, look_drained, l) == 0)
			return;
		l->magic = 0;
		free(l);
	}
	refuse_memory(&no);
	done(arg, &no, NULL);
}

uint32_t where_scopes(struct where *w, const struct where_job *j)
{
	struct look *l = look_of((char *)w - offsetof(struct look, w));
	const uint32_t n = fold_open_scopes(w->d->fold, j->ring, l->now, WHERE_SCOPES);
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct j_now *now = &l->now[i];

		w->scope[i] = (struct where_scope){.lane = now->lane,
			.tid = now->tid,
			.depth = now->depth,
			.path = now->path,
			.since_ns = now->begin + 1 > 1
					    ? fold_mono_ns(w->d->fold, j->ring, now->begin)
					    : 0};
	}
	return n;
}

uint32_t where_launches(struct where *w, const struct where_job *j)
{
	return fold_open_launches(w->d->fold, j->ring, w->launch, WHERE_LAUNCHES);
}

bool where_usage(struct where *w, const struct where_job *j, uint32_t tid, struct thread_usage *ret)
{
	if (j->in_namespace || w->n_usages == WHERE_USAGES)
		return false;
	w->n_usages++;
	return thread_usage_read(j->pid, tid, ret);
}

size_t where_path(
	const struct where *w, const struct where_job *j, uint32_t path, char *buf, size_t n)
{
	const int all = fold_path_text(w->d->fold, j->ring, path, buf, n);

	if (all < 0)
		return 0;
	return (size_t)all < n ? (size_t)all : n - 1;
}

size_t where_properties(
	const struct where *w, const struct where_job *j, uint32_t path, char *buf, size_t n)
{
	return fold_properties_text(w->d->fold, j->ring, path, buf, n);
}
