/* SPDX-License-Identifier: MIT. verbs_look.c: the control verbs that look into running jobs: where
 * and top. */
#include "verbs.h"

#include <string.h>

#include "device_terms.h"
#include "ended.h"
#include "fold.h"
#include "hist.h"
#include "holders.h"
#include "host_clock.h"
#include "params.h"
#include "top.h"
#include "where.h"

#define PATH_SHOWN       1024u
#define PROPERTIES_SHOWN 256u
#define ITEM_ROOM        (16u << 10)
#define THREAD_ROOM      (4u << 10)
#define ENDED_ROOM       (4u << 10)
#define TOP_DEFAULT      200u
#define TOP_MAX          5000u

/* --- where --- */

static void kv_path(
	struct wire_buf *b, const struct where *w, const struct where_job *j, uint32_t path)
{
	char text[PATH_SHOWN];
	const size_t n = where_path(w, j, path, text, sizeof(text));

	wire_str(b, "path");
	wire_strn(b, text, n);
}

static void kv_properties(
	struct wire_buf *b, const struct where *w, const struct where_job *j, uint32_t path)
{
	char text[PROPERTIES_SHOWN];
	const size_t n = where_properties(w, j, path, text, sizeof(text));

	if (n == 0)
		return;
	wire_str(b, "properties");
	wire_strn(b, text, n);
}

/* s[0..n): its open scopes begin here, outermost first. Returns how many there are. */
static uint32_t where_thread(struct wire_buf *b, struct where *w, const struct where_job *j,
	const struct where_scope *s, uint32_t n)
{
	struct thread_usage u;
	uint32_t k;

	wire_map(b);
	wire_kv_u64(b, "tid", s->tid);
	if (where_usage(w, j, s->tid, &u)) {
		wire_kv_u64(b, "cpu_ns", u.cpu_ns);
		wire_kv_u64(b, "run_queue_ns", u.run_queue_ns);
		wire_kv_u64(b, "minor_faults", u.minor_faults);
		wire_kv_u64(b, "major_faults", u.major_faults);
	}
	wire_str(b, "open");
	wire_array(b);
	for (k = 0; k < n && s[k].lane == s->lane && s[k].tid == s->tid; k++) {
		if (wire_buf_room(b) < THREAD_ROOM)
			continue;
		wire_map(b);
		kv_path(b, w, j, s[k].path);
		kv_properties(b, w, j, s[k].path);
		wire_kv_u64(b, "depth", s[k].depth);
		wire_kv_u64(b, "since_ns", s[k].since_ns);
		wire_close(b);
	}
	wire_close(b);
	wire_close(b);
	return k;
}

static void where_in_flight(struct wire_buf *b, struct where *w, const struct where_job *j)
{
	const uint32_t n = where_launches(w, j);
	uint32_t i;

	wire_str(b, "launches");
	wire_array(b);
	for (i = 0; i < n && wire_buf_room(b) > THREAD_ROOM; i++) {
		const struct fold_launch *f = &w->launch[i];

		wire_map(b);
		wire_str(b, "kernel");
		wire_strn(b, f->name != NULL ? f->name : "",
			f->name != NULL ? strnlen(f->name, PATH_SHOWN) : 0);
		kv_path(b, w, j, f->path);
		wire_kv_u64(b, "since_ns", f->mono_ns);
		wire_kv_bool(b, "running", f->running);
		wire_kv_u64(b, "device", f->device);
		wire_kv_u64(b, "stream", f->stream);
		wire_close(b);
	}
	wire_close(b);
}

static void where_job(struct wire_buf *b, struct where *w, const struct where_job *j)
{
	const uint32_t n = where_scopes(w, j);
	uint32_t i = 0;

	wire_map(b);
	wire_kv_u64(b, "pid", j->pid);
	kv_uuid(b, "ring", j->ring);
	wire_kv_i64(b, "rank", j->rank);
	wire_kv_str(b, "command", j->command);
	wire_kv_str(b, "ended", NULL);
	wire_kv_u64(b, "delivered_ns", j->delivered_ns);
	wire_kv_u64(b, "in_flight", j->open_launches);
	wire_str(b, "threads");
	wire_array(b);
	while (i < n && wire_buf_room(b) > THREAD_ROOM)
		i += where_thread(b, w, j, &w->scope[i], n - i);
	wire_close(b);
	where_in_flight(b, w, j);
	wire_close(b);
}

/* Its notes as far as there is room. False: not all of them. */
static bool ended_notes(struct wire_buf *b, const struct ended_job *j)
{
	uint32_t i;

	for (i = 0; i < j->n_notes && (i == 0 || wire_buf_room(b) > ENDED_ROOM); i++)
		wire_str(b, j->note[i]);
	return i == j->n_notes;
}

static bool ended_job(struct wire_buf *b, const struct ended_job *j)
{
	bool all;

	wire_map(b);
	wire_kv_i64(b, "pid", j->pid);
	wire_kv_i64(b, "rank", j->rank);
	wire_kv_str(b, "command", j->command);
	wire_kv_str(b, "ended", j->end);
	wire_kv_bin(b, "ring", j->ring, j->ring_bytes);
	wire_kv_i64(b, "session", j->session);
	wire_kv_str(b, "session_name", j->session_name);
	wire_str(b, "notes");
	wire_array(b);
	all = ended_notes(b, j);
	wire_close(b);
	wire_close(b);
	return all;
}

/* Into a buffer of its own: it goes in whole, or not at all. Returns how many jobs. */
static uint32_t ended_items(struct wire_buf *items, const struct ended_list *l, bool *ret_more)
{
	uint32_t i = 0;
	bool all = true;

	for (i = 0; i < l->n && all && wire_buf_room(items) > ENDED_ROOM; i++)
		all = ended_job(items, &l->job[i]);
	*ret_more = l->more || !all || i < l->n;
	return i;
}

/* The array of jobs is open. */
static void where_ended(void *arg, const struct refusal *no, const struct ended_list *l)
{
	struct request *q = request_of(arg);
	struct wire_buf items;
	uint32_t n;
	bool more;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	wire_buf_init(&items, WIRE_FRAME_MAX / 4);
	n = ended_items(&items, l, &more);
	if (items.failed == 0 && wire_buf_room(&q->out) > items.n)
		wire_raw(&q->out, items.bytes, items.n, n);
	else
		more = true;
	wire_buf_free(&items);
	wire_close(&q->out);
	wire_kv_bool(&q->out, "more", more);
	request_done(q, NULL);
}

/* Live jobs from their rings; what the store knows of ended ones follows, when one was named. */
static void where_looked(void *arg, const struct refusal *no, struct where *w)
{
	struct request *q = request_of(arg);
	const bool of_session = wire_get(q->params, "session") != NULL;
	const uint32_t pid = (uint32_t)wire_u64_or(q->params, "pid", 0);
	struct wire_buf *b;
	uint32_t i;

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	b = request_result(q);
	wire_kv_u64(b, "now_ns", w->now_ns);
	wire_kv_u64(b, "left_out", w->left_out);
	if (of_session) {
		wire_str(b, "session");
		wire_map(b);
		kv_session(b, &q->session);
		wire_close(b);
	}
	wire_str(b, "jobs");
	wire_array(b);
	for (i = 0; i < w->n && wire_buf_room(b) > ITEM_ROOM; i++)
		where_job(b, w, &w->job[i]);
	if (of_session || pid != 0) {
		query_ended(q->d, &q->who, of_session ? q->session.id : 0, pid, where_ended, q);
		return;
	}
	wire_close(b);
	request_done(q, NULL);
}

static void where_found(struct request *q)
{
	const bool of_session = wire_get(q->params, "session") != NULL;
	struct where_wish wish = {.session = of_session ? &q->session : NULL};

	if (param_pid(q, &wish.pid, "see `protonctl help where`"))
		query_where(q->d, &q->who, &wish, where_looked, q);
}

void verb_where(struct request *q)
{
	if (wire_get(q->params, "session") != NULL)
		param_session(q, where_found);
	else
		where_found(q);
}

/* --- top --- */

struct top {
	struct wire_buf *b;
	const struct daemon *d;
	const struct session_ref *session;
	uint32_t left_out;
};

/* How `path` falls into names, and the durations. */
static void top_more(struct wire_buf *b, const struct fold_cell *c)
{
	uint8_t packed[HIST_PACKED_MAX(HIST_BUCKETS)];
	uint32_t i;

	wire_str(b, "parts");
	wire_array(b);
	for (i = 0; i < c->n_parts; i++)
		wire_u64(b, c->part[i]);
	wire_close(b);
	wire_kv_bin(b, "hist", packed, hist_pack(c->hist, packed));
}

static void top_cell(void *arg, const struct fold_cell *c)
{
	struct top *t = arg;

	if (wire_buf_room(t->b) < ITEM_ROOM) {
		t->left_out++;
		return;
	}
	wire_map(t->b);
	wire_str(t->b, "path");
	wire_strn(t->b, c->path, strnlen(c->path, PATH_SHOWN));
	wire_kv_u64(t->b, "kind", c->kind);
	wire_kv_u64(t->b, "class", c->class);
	wire_kv_u64(t->b, "count", c->count);
	wire_kv_u64(t->b, "sum_ns", c->sum_ns);
	wire_kv_u64(t->b, "max_ns", c->max_ns);
	if (c->hist != NULL)
		top_more(t->b, c);
	wire_close(t->b);
}

static void top_busy(void *arg, const struct fold_busy *b)
{
	struct top *t = arg;
	uint32_t q;

	if (wire_buf_room(t->b) < THREAD_ROOM)
		return;
	wire_map(t->b);
	wire_kv_u64(t->b, "pid", b->pid);
	wire_kv_u64(t->b, "number", b->number);
	if (b->uuid != NULL)
		wire_kv_bin(t->b, "uuid", b->uuid, 16);
	wire_str(t->b, "name");
	wire_strn(t->b, b->name, strnlen(b->name, 64));
	wire_kv_u64(t->b, "busy_ns", b->busy_ns);
	if (b->part_ns != NULL) {
#define X(name, column, ...) wire_kv_u64(t->b, #column, b->part_ns[PART_##name]);
		GPU_PARTS_STORED(X)
#undef X
	}
	if (b->reading != NULL) {
		wire_str(t->b, "reading");
		wire_map(t->b);
		for (q = 0; q < DEVICE_N; q++)
			if ((b->known >> q & 1) != 0)
				wire_kv_f64(t->b, device_words((enum device_quantity)q)->name,
					(double)b->reading[q]);
		wire_close(t->b);
	}
	wire_close(t->b);
}

static void top_told(void *arg, const struct fold_told *of)
{
	struct top *t = arg;

	if (wire_buf_room(t->b) < THREAD_ROOM)
		return;
	wire_map(t->b);
	wire_kv_u64(t->b, "pid", of->pid);
	wire_str(t->b, "name");
	wire_strn(t->b, of->name, strnlen(of->name, 64));
	wire_kv_f64(t->b, "sum", of->sum);
	wire_close(t->b);
}

static void top_job(void *arg, const struct fold_process *p)
{
	struct top *t = arg;

	if (wire_buf_room(t->b) < THREAD_ROOM)
		return;
	wire_map(t->b);
	wire_kv_u64(t->b, "pid", p->pid);
	wire_kv_i64(t->b, "rank", p->rank);
	wire_kv_u64(t->b, "events", p->events);
	wire_kv_u64(t->b, "launches", p->launches);
	wire_kv_u64(t->b, "kernels", p->kernels);
	wire_kv_u64(t->b, "drops", p->drops);
	wire_kv_u64(t->b, "gpu", p->gpu_state);
	wire_kv_bool(t->b, "member", query_top_member(t->d, t->session, p));
	wire_kv_u64(t->b, "resident", query_top_resident(p));
	wire_close(t->b);
}

static void top_memory(void *arg, const struct fold_memory *m)
{
	struct top *t = arg;

	if (wire_buf_room(t->b) < THREAD_ROOM)
		return;
	wire_map(t->b);
	wire_kv_u64(t->b, "pid", m->pid);
	wire_kv_i64(t->b, "device", m->device);
	wire_kv_str(t->b, "kind", held_kind_words[m->account->kind]);
	wire_kv_u64(t->b, "now", m->account->live);
	wire_kv_u64(t->b, "peak", m->account->peak);
	wire_close(t->b);
}

/* Of the request. False: the answer is given. */
static bool top_wish(struct request *q, uint8_t device[16], struct top_wish *ret)
{
	uint64_t n = TOP_DEFAULT;

	*ret = (struct top_wish){.pid = 0};
	if (wire_get_u64(q->params, "n", &n) < 0 || n > TOP_MAX) {
		request_wrong(q, "n must be at most 5000", "see `protonctl help top`");
		return false;
	}
	ret->n = (uint32_t)n;
	if (wire_get_bool(q->params, "detail", &ret->hist) < 0) {
		request_wrong(q, "detail must be true or false", "see `protonctl help top`");
		return false;
	}
	if (!param_pid(q, &ret->pid, "see `protonctl help top`"))
		return false;
	if (wire_get(q->params, "device") == NULL)
		return true;
	if (wire_get_bin(q->params, "device", device, 16) < 0) {
		request_wrong(q, "device must be 16 bytes, a uuid", "see `protonctl help top`");
		return false;
	}
	ret->device = device;
	return true;
}

static void top_answer(struct request *q)
{
	struct top t = {.d = q->d, .session = &q->session};
	uint8_t device[16];
	struct top_wish wish;
	struct refusal no;

	if (query_top_check(&q->session, &no) < 0) {
		request_refuse(q, &no);
		return;
	}
	if (!top_wish(q, device, &wish))
		return;
	t.b = request_result(q);
	kv_session(t.b, &q->session);
	wire_kv_str(t.b, "session", q->session.name);
	wire_kv_u64(t.b, "now_ns", mono_ns());
	wire_kv_u64(t.b, "duration_ns", q->session.duration_ns);
	wire_str(t.b, "jobs");
	wire_array(t.b);
	query_top_jobs(q->d, &q->who, top_job, &t);
	wire_close(t.b);
	wire_kv_u64(t.b, "cost_ns", query_top_cost(q->d, &q->session));
	wire_str(t.b, "memory");
	wire_array(t.b);
	query_top_memory(q->d, &q->session, top_memory, &t);
	wire_close(t.b);
	wire_str(t.b, "devices");
	wire_array(t.b);
	query_top_busy(q->d, &q->session, top_busy, &t);
	wire_close(t.b);
	wire_str(t.b, "told");
	wire_array(t.b);
	query_top_told(q->d, &q->session, top_told, &t);
	wire_close(t.b);
	wire_str(t.b, "cells");
	wire_array(t.b);
	query_top_cells(q->d, &q->session, &wish, top_cell, &t);
	wire_close(t.b);
	wire_kv_u64(t.b, "left_out", t.left_out);
	request_done(q, NULL);
}

static void top_newest(void *arg, const struct refusal *no, const struct session_ref *s)
{
	struct request *q = request_of(arg);

	if (no != NULL) {
		request_refuse(q, no);
		return;
	}
	q->session = *s;
	top_answer(q);
}

void verb_top(struct request *q)
{
	if (wire_get(q->params, "session") != NULL)
		param_session(q, top_answer);
	else
		query_top_session(q->d, &q->who, top_newest, q);
}
