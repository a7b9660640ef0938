/* SPDX-License-Identifier: MIT. events.c: the events of a process in memory. */
#include "events.h"

#include <stdlib.h>

#include "runs.h"
#include "table.h"
#include "timeline_reading.h"

struct reading {
	struct events to;
	events_fn *fn;
	void *arg;
	bool failed, many;
	int r; /* of fn */
};

static void on_open(struct timeline *w)
{
	struct reading *r = w->mine;

	r->to.w = w;
	spans_open(&r->to.spans, w);
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	r->to.n_scopes = r->to.n_ops = 0;
	spans_process(&r->to.spans);
}

/* What lies wholly outside of a window is of no use to anybody. */
static bool is_near(const struct spans *sp, uint64_t begin, uint64_t end)
{
	return sp->window.n > 0 && end >= sp->window.v[0].begin &&
	       begin <= sp->window.v[sp->window.n - 1].end;
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct reading *r = w->mine;
	struct events *e = &r->to;

	spans_scope(&e->spans, w, s);
	if (!is_near(&e->spans, s->begin_ns, s->end_ns))
		return;
	r->many |= e->n_scopes == EVENTS_MAX;
	if (r->many || !ROOM_FOR(e->scope, e->cap_scopes, e->n_scopes))
		r->failed = true;
	else
		e->scope[e->n_scopes++] = (struct event_scope){
			s->begin_ns, s->end_ns, s->tid, s->node, s->flags, s->call};
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;
	struct events *e = &r->to;

	if (o->end_ns <= o->start_ns || !is_near(&e->spans, o->start_ns, o->end_ns))
		return;
	r->many |= e->n_ops == EVENTS_MAX;
	if (r->many || !ROOM_FOR(e->op, e->cap_ops, e->n_ops))
		r->failed = true;
	else
		e->op[e->n_ops++] = (struct event_op){.start_ns = o->start_ns,
			.end_ns = o->end_ns,
			.launch_ns = o->launch_ns,
			.bytes = o->op->bytes,
			.node = o->node,
			.tid = o->tid,
			.device = o->gpu->ordinal,
			.context = o->stream->context,
			.stream = o->stream->stream,
			.correlation = o->op->correlation,
			.class = gpu_class_known(o->op->class),
			.launched = (o->op->flags & TRACE_UNLAUNCHED) == 0};
}

/* Outer before inner. */
static int scope_order(const void *a, const void *b)
{
	const struct event_scope *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static int op_order(const void *a, const void *b)
{
	const struct event_op *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	struct events *e = &r->to;

	(void)spans_settle(&e->spans);
	r->failed |= e->spans.failed;
	if (r->failed || r->r < 0)
		return;
	runs_sort(e->scope, e->n_scopes, sizeof(*e->scope), scope_order);
	runs_sort(e->op, e->n_ops, sizeof(*e->op), op_order);
	e->known = w->known;
	r->r = r->fn(r->arg, e);
}

int events_read(events_fn *fn, void *arg, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.process_end = on_process_end};
	const struct profile_select all = spans_whole(s);
	struct reading r = {.fn = fn, .arg = arg};
	int status, verdict;

	spans_begin(&r.to.spans, s);
	status = reading_run(&form, &r, &r.failed, db, id, &all, ret_left, e);
	if (r.r < 0)
		status = r.r;
	else if (r.many)
		status = err_set(e, -E2BIG,
			"a process has more than %u events there; give a shorter --window A..B",
			EVENTS_MAX);
	else if (status == 0 || r.to.spans.many) {
		verdict = spans_verdict(&r.to.spans,
			!spans_asked(s) || r.to.spans.times > 0 || s->to_ns != 0 || s->one_phase,
			e);
		status = verdict < 0 ? verdict : status;
	}
	spans_fini(&r.to.spans);
	free(r.to.scope);
	free(r.to.op);
	return status;
}
