/* SPDX-License-Identifier: MIT. queue_depth.c: launches outstanding on streams. */
#include "queue_depth.h"

#include <stdlib.h>

#include "table.h"
#include "timeline_reading.h"

struct reading {
	struct queue_depth *d;
	struct queue_op *op; /* of the process at hand */
	uint32_t n, cap;
	bool failed;
};

/* --- one stream */

static int by_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_stream(const struct queue_op *a, const struct queue_op *b)
{
	if (a->gpu != b->gpu)
		return by_number(a->gpu, b->gpu);
	if (a->context != b->context)
		return by_number(a->context, b->context);
	return by_number(a->stream, b->stream);
}

static int by_launch(const struct queue_op *a, const struct queue_op *b)
{
	if (a->launch_ns != b->launch_ns)
		return by_number(a->launch_ns, b->launch_ns);
	if (a->tid != b->tid)
		return by_number(a->tid, b->tid);
	return by_number(a->correlation, b->correlation);
}

static int by_all(const void *a, const void *b)
{
	const int r = by_stream(a, b);

	return r != 0 ? r : by_launch(a, b);
}

static int by_end(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return by_number(*x, *y);
}

/* Operations of one launch become one. Returns how many launches there are. */
static uint32_t merge(struct queue_op *v, uint32_t n)
{
	uint32_t i, kept = 0;

	for (i = 0; i < n; i++) {
		if (kept == 0 || by_launch(&v[kept - 1], &v[i]) != 0)
			v[kept++] = v[i];
		else if (v[i].end_ns > v[kept - 1].end_ns)
			v[kept - 1].end_ns = v[i].end_ns;
	}
	return kept;
}

/* v: launches of one stream in order; end: room for as many. What is done by then was launched before: an end
 * is behind its launch, whatever two clocks say. */
static void walk(struct queue_depth_row *row, const struct queue_op *v, uint64_t *end, uint32_t n)
{
	uint32_t i, done = 0;

	for (i = 0; i < n; i++)
		end[i] = v[i].end_ns > v[i].launch_ns ? v[i].end_ns : v[i].launch_ns + 1;
	qsort(end, n, sizeof(*end), by_end);
	for (i = 0; i < n; i++) {
		for (; done < i && end[done] <= v[i].launch_ns; done++)
			;
		row->sum += i - done;
		row->full += i - done >= QUEUE_FULL;
		row->max = i - done > row->max ? i - done : row->max;
	}
	row->launches = n;
}

int queue_depth_add(struct queue_depth *d, struct queue_op *v, uint32_t n)
{
	uint64_t *end = calloc(n > 0 ? n : 1, sizeof(*end));
	uint32_t i, to;
	int r = end == NULL ? -ENOMEM : 0;

	if (n > 1)
		qsort(v, n, sizeof(*v), by_all);
	for (i = 0; i < n && r == 0; i = to) {
		for (to = i + 1; to < n && by_stream(&v[i], &v[to]) == 0; to++)
			;
		if (!ROOM_FOR(d->row, d->cap, d->n)) {
			r = -ENOMEM;
			break;
		}
		d->row[d->n] = (struct queue_depth_row){
			.gpu = v[i].gpu, .context = v[i].context, .stream = v[i].stream};
		walk(&d->row[d->n++], &v[i], end, merge(&v[i], to - i));
	}
	free(end);
	return r;
}

/* --- the timeline */

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	r->n = 0;
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;

	if ((o->op->flags & TRACE_UNLAUNCHED) != 0)
		r->d->unlaunched++;
	else if (r->n == QUEUE_DEPTH_MAX)
		r->d->left_out++;
	else if (!ROOM_FOR(r->op, r->cap, r->n))
		r->failed = true;
	else
		r->op[r->n++] = (struct queue_op){.launch_ns = o->launch_ns,
			.end_ns = o->end_ns,
			.gpu = o->gpu->ordinal,
			.context = o->stream->context,
			.stream = o->stream->stream,
			.tid = o->tid,
			.correlation = o->op->correlation};
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	uint32_t i = r->d->n;

	r->failed = r->failed || queue_depth_add(r->d, r->op, r->n) < 0;
	for (; i < r->d->n; i++) {
		r->d->row[i].pid = w->at.pid;
		r->d->row[i].rank = w->at.ranked ? w->at.rank : -1;
	}
}

int queue_depth_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form form = {
		.process = on_process, .op = on_op, .process_end = on_process_end};
	struct reading r = {.d = arg};
	const int status = reading_run(&form, &r, &r.failed, db, id, s, ret_left, e);

	free(r.op);
	return status;
}

void queue_depth_fini(struct queue_depth *d)
{
	free(d->row);
	*d = (struct queue_depth){0};
}
