/* SPDX-License-Identifier: MIT. verbs_look.c: the control verbs that look into running jobs: where
 * and top. Neither asks anything of a job: both read what its ring says anyway. */
#include "control.h"

#include <stdlib.h>
#include <string.h>

#define JOBS_SHOWN     256u
#define NOW_MAX        4096u /* open scopes of one job */
#define LAUNCHES_SHOWN 16u
#define PATH_SHOWN     1024u
#define ITEM_ROOM      (16u << 10)
#define THREAD_ROOM    (4u << 10)
#define TOP_DEFAULT    200u
#define TOP_MAX        5000u

struct look_job {
	uint8_t ring[16];
	uint32_t pid;
	int32_t rank;
	uint64_t delivered_ns, open_launches;
	bool ended;
	char command[256];
};

struct look {
	struct request *q;
	uint32_t pid; /* 0: any */
	bool of_session;
	uint32_t n, left_out;
	struct look_job job[JOBS_SHOWN];
	struct j_now now[NOW_MAX];
	struct fold_launch launch[LAUNCHES_SHOWN];
};

static void look_add(void *arg, const struct fold_process *p)
{
	struct look *l = arg;
	struct look_job *j;

	if (p->ended || !request_may(l->q, p->uid) ||
		(l->pid != 0 && p->pid != l->pid && p->ns_pid != l->pid))
		return;
	if (l->n == JOBS_SHOWN) {
		l->left_out++;
		return;
	}
	j = &l->job[l->n++];
	*j = (struct look_job){.pid = p->pid,
		.rank = p->rank,
		.delivered_ns = p->delivered_ns,
		.open_launches = p->open_launches,
		.ended = p->ended};
	memcpy(j->ring, p->ring, 16);
	if (p->command != NULL)
		memcpy(j->command, p->command, strnlen(p->command, sizeof(j->command) - 1));
}

static void kv_path(struct look *l, const uint8_t ring[16], uint32_t path)
{
	char text[PATH_SHOWN];
	int n = fold_path_text(l->q->d->fold, ring, path, text, sizeof(text));

	if (n < 0)
		n = 0;
	wire_str(&l->q->out, "path");
	wire_strn(&l->q->out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* now[i..] of one lane: its open scopes, outermost first. Returns how many there are. */
static uint32_t where_thread(struct look *l, const struct look_job *j, uint32_t i, uint32_t n)
{
	struct wire_buf *b = &l->q->out;
	const struct j_now *now = &l->now[i];
	uint32_t k;

	wire_map(b);
	wire_kv_u64(b, "tid", now->tid);
	wire_str(b, "open");
	wire_array(b);
	for (k = 0; i + k < n && now[k].lane == now->lane && now[k].tid == now->tid; k++) {
		if (wire_buf_room(b) < THREAD_ROOM)
			continue;
		wire_map(b);
		kv_path(l, j->ring, now[k].path);
		wire_kv_u64(b, "depth", now[k].depth);
		wire_kv_u64(b, "since_ns",
			now[k].begin + 1 > 1 ? fold_mono_ns(l->q->d->fold, j->ring, now[k].begin)
					     : 0);
		wire_close(b);
	}
	wire_close(b);
	wire_close(b);
	return k;
}

static void where_launches(struct look *l, const struct look_job *j)
{
	struct wire_buf *b = &l->q->out;
	const uint32_t n = fold_open_launches(l->q->d->fold, j->ring, l->launch, LAUNCHES_SHOWN);
	uint32_t i;

	wire_str(b, "launches");
	wire_array(b);
	for (i = 0; i < n && wire_buf_room(b) > THREAD_ROOM; i++) {
		const struct fold_launch *f = &l->launch[i];

		wire_map(b);
		wire_str(b, "kernel");
		wire_strn(b, f->name != NULL ? f->name : "",
			f->name != NULL ? strnlen(f->name, PATH_SHOWN) : 0);
		kv_path(l, j->ring, f->path);
		wire_kv_u64(b, "since_ns", f->mono_ns);
		wire_kv_bool(b, "running", f->running);
		wire_kv_u64(b, "device", f->device);
		wire_kv_u64(b, "stream", f->stream);
		wire_close(b);
	}
	wire_close(b);
}

static void where_job(struct look *l, const struct look_job *j)
{
	struct wire_buf *b = &l->q->out;
	const uint32_t n = intake_now(l->q->d->intake, j->ring, l->now, NOW_MAX);
	uint32_t i = 0;

	wire_map(b);
	wire_kv_u64(b, "pid", j->pid);
	wire_kv_bin(b, "ring", j->ring, 16);
	wire_kv_i64(b, "rank", j->rank);
	wire_kv_str(b, "command", j->command);
	wire_kv_str(b, "ended", NULL);
	wire_kv_u64(b, "delivered_ns", j->delivered_ns);
	wire_kv_u64(b, "in_flight", j->open_launches);
	wire_str(b, "threads");
	wire_array(b);
	while (i < n && wire_buf_room(b) > THREAD_ROOM)
		i += where_thread(l, j, i, n);
	wire_close(b);
	where_launches(l, j);
	wire_close(b);
}

/* Live jobs from their rings; what the store knows of ended ones follows, when one was named. */
static void where_drained(void *arg, bool ends)
{
	struct request *q = arg;
	struct look *l = q->work;
	struct wire_buf *b;
	uint32_t i, pid = l->pid;

	(void)ends;
	fold_each_process(q->d->fold, look_add, l);
	b = request_result(q);
	wire_kv_u64(b, "now_ns", mono_ns());
	wire_kv_u64(b, "left_out", l->left_out);
	wire_str(b, "jobs");
	wire_array(b);
	for (i = 0; i < l->n && wire_buf_room(b) > ITEM_ROOM; i++)
		if (!l->of_session || fold_is_member(q->d->fold, q->session.uuid, l->job[i].ring))
			where_job(l, &l->job[i]);
	if (l->of_session || pid != 0) {
		query_ended(q, l->of_session, pid);
		return;
	}
	wire_close(b);
	request_done(q, NULL);
}

static void where_found(struct request *q)
{
	where_drained(q, false);
}

void verb_where(struct request *q)
{
	struct look *l = calloc(1, sizeof(*l));
	uint64_t pid = 0;
	struct err e;

	if (l == NULL || wire_get_u64(q->params, "pid", &pid) < 0 || pid > INT32_MAX) {
		free(l);
		(void)err_set(&e, -EINVAL, "where takes {pid} or {session}");
		request_fail(q, &e, "protonctl help where");
		return;
	}
	l->q = q;
	l->pid = (uint32_t)pid;
	l->of_session = wire_get(q->params, "session") != NULL;
	q->work = l;
	if (l->of_session)
		query_session(q, where_found);
	else
		request_when_drained(q, LOOK_MS, where_drained);
}

/* --- top
 * ------------------------------------------------------------------------------------------ */

struct top {
	struct request *q;
	uint32_t left_out;
};

static void top_cell(void *arg, const struct fold_cell *c)
{
	struct top *t = arg;
	struct wire_buf *b = &t->q->out;

	if (wire_buf_room(b) < ITEM_ROOM) {
		t->left_out++;
		return;
	}
	wire_map(b);
	wire_str(b, "path");
	wire_strn(b, c->path, strnlen(c->path, PATH_SHOWN));
	wire_kv_u64(b, "kind", c->kind);
	wire_kv_u64(b, "class", c->class);
	wire_kv_u64(b, "count", c->count);
	wire_kv_u64(b, "sum_ns", c->sum_ns);
	wire_kv_u64(b, "max_ns", c->max_ns);
	wire_close(b);
}

static void top_job(void *arg, const struct fold_process *p)
{
	struct top *t = arg;
	struct wire_buf *b = &t->q->out;

	if (p->ended || !request_may(t->q, p->uid) || wire_buf_room(b) < THREAD_ROOM)
		return;
	wire_map(b);
	wire_kv_u64(b, "pid", p->pid);
	wire_kv_i64(b, "rank", p->rank);
	wire_kv_u64(b, "events", p->events);
	wire_kv_u64(b, "launches", p->launches);
	wire_kv_u64(b, "kernels", p->kernels);
	wire_kv_u64(b, "drops", p->drops);
	wire_kv_u64(b, "gpu", p->gpu_state);
	wire_close(b);
}

static void top_answer(struct request *q)
{
	struct top t = {.q = q};
	uint64_t n = TOP_DEFAULT;
	struct wire_buf *b;
	struct err e;

	if (wire_get_u64(q->params, "n", &n) < 0 || n > TOP_MAX || !q->session.live) {
		(void)err_set(&e, q->session.live ? -EINVAL : -EALREADY,
			q->session.live ? "n: at most 5000" : "that session has been finalized");
		request_fail(q, &e, q->session.live ? "" : "protonview tree shows it");
		return;
	}
	b = request_result(q);
	wire_kv_i64(b, "id", q->session.id);
	wire_kv_str(b, "session", q->session.name);
	wire_kv_u64(b, "now_ns", mono_ns());
	wire_kv_u64(b, "duration_ns", q->session.duration_ns);
	wire_str(b, "jobs");
	wire_array(b);
	fold_each_process(q->d->fold, top_job, &t);
	wire_close(b);
	wire_str(b, "cells");
	wire_array(b);
	fold_top(q->d->fold, q->session.uuid, (uint32_t)n, top_cell, &t);
	wire_close(b);
	wire_kv_u64(b, "left_out", t.left_out);
	request_done(q, NULL);
}

static void top_newest(void *arg, bool ends)
{
	struct request *q = arg;
	struct err e;

	(void)ends;
	if (query_newest_live(q, &q->session) == 0) {
		top_answer(q);
		return;
	}
	(void)err_set(&e, -ENOENT, "no session is live");
	request_fail(q, &e, "protonctl run -- CMD, or protonctl start NAME --all");
}

void verb_top(struct request *q)
{
	if (wire_get(q->params, "session") != NULL)
		query_session(q, top_answer);
	else
		request_when_drained(q, LOOK_MS, top_newest);
}
