/* SPDX-License-Identifier: MIT. chrome_trace.c: the format chrome_trace: Chrome's trace events.
 *
 * Threads and tasks stand under their process; each stream under the GPU as its process sees it. A
 * launch is a point on its thread, with an arrow to its first operation.
 *
 * A session whose files are Triton's Proton's has its events and no others: of one process, pid 0,
 * scopes and kernels, by numbers of their own for threads and streams; of 3.6 kernels alone. */
#include <inttypes.h>
#include <stdio.h>

#include "chrome_events.h"
#include "session_terms.h"

#define READINGS_PID 6000000 /* above all of Linux, and all GPUs */

struct form {
	struct chrome c;
	uint64_t tasks;
	struct text last; /* Proton's: the newest kernel, which is to end the file */
};

static struct form *form(struct timeline *w)
{
	return w->mine;
}

static struct chrome *chrome(struct timeline *w)
{
	return &form(w)->c;
}

/* "call_stack":["ROOT",...] */
static void call_stack(struct timeline *w, uint32_t node)
{
	uint32_t up[TRACE_DEPTH_MAX], n = trace_names_path(&w->names, node, up);

	text_str(&w->out, "\"call_stack\":[");
	while (n-- > 0) {
		text_json(&w->out, w->known[up[n]].name);
		if (n > 0)
			text_char(&w->out, ',');
	}
	text_char(&w->out, ']');
}

/* --- metrics */

static void chrome_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	chrome_event(chrome(w), "i", "metric", w->known[h->node].name, w->at.pid, h->tid, ns);
	text_str(&w->out, ",\"s\":\"t\",\"args\":{");
	call_stack(w, h->node);
	text_str(&w->out, ",\"metrics\":{");
	text_json(&w->out, h->name);
	text_char(&w->out, ':');
	chrome_held(&w->out, h);
	text_str(&w->out, "}}}");
}

/* --- scopes */

/* Handles are the process's: one GPU's row has its name. */
static void call_args(struct timeline *w, const struct trace_call *c)
{
	uint32_t i;

	chrome_call(&w->out, c);
	for (i = 0; c->event != 0 && i < w->n_gpus; i++)
		if (chrome_object(&w->out, "event name", w->gpu[i].streams, GPU_EVENT(c->event)))
			break;
}

static void scope_args(struct timeline *w, const struct timeline_scope *s)
{
	struct text *t = &w->out;

	text_str(t, ",\"args\":{");
	call_stack(w, s->node);
	chrome_color(t, &w->known[s->node]);
	if ((s->flags & TRACE_CALL) != 0)
		call_args(w, &s->call);
	if (s->n_metrics > 0) {
		text_str(t, ",\"metrics\":{");
		chrome_taken(w, t, s->n_metrics);
		text_char(t, '}');
	}
	if ((s->flags & TRACE_OPEN) != 0)
		text_str(t, ",\"open\":true");
	if ((s->flags & TRACE_BEGAN_BEFORE) != 0)
		text_str(t, ",\"began_before\":true");
	if ((s->flags & TRACE_UNWOUND) != 0)
		text_str(t, ",\"unwound\":true");
	text_str(t, "}}");
}

static void chrome_scope(struct timeline *w, const struct timeline_scope *s)
{
	const char *name = w->known[s->node].name;
	struct text *t = &w->out;

	if ((s->flags & TRACE_SPAN) == 0) {
		chrome_event(chrome(w), "X",
			(s->flags & TRACE_CALL) != 0 ? gpu_classes[s->call.class].trace : "scope",
			name, w->at.pid,
			chrome_lane_tid(s->tid, timeline_is_sync(s) ? CHROME_SYNCS : 0),
			s->begin_ns);
		text_str(t, ",\"dur\":");
		chrome_micros(t, s->end_ns - s->begin_ns);
		scope_args(w, s);
		return;
	}
	form(w)->tasks++;
	chrome_event(chrome(w), "b", "task", name, w->at.pid, s->tid, s->begin_ns);
	text_str(t, ",\"id\":");
	chrome_number(t, form(w)->tasks);
	scope_args(w, s);
	chrome_event(chrome(w), "e", "task", name, w->at.pid, s->tid, s->end_ns);
	text_str(t, ",\"id\":");
	chrome_number(t, form(w)->tasks);
	text_char(t, '}');
}

/* Scopes begin and end within it as they like: it has a lane beside its thread. */
static void chrome_burst(struct timeline *w, const struct timeline_burst *b)
{
	char words[64];

	snprintf(words, sizeof(words), BURST_WORDS, b->n);
	chrome_event(chrome(w), "X", "summed", words, w->at.pid,
		chrome_lane_tid(b->tid, CHROME_SUMMED), b->begin_ns);
	text_str(&w->out, ",\"dur\":");
	chrome_micros(&w->out, b->end_ns - b->begin_ns);
	text_str(&w->out, ",\"args\":{\"count\":");
	chrome_number(&w->out, b->n);
	text_str(&w->out, "}}");
}

/* --- what the GPU did */

static void op_args(struct timeline *w, const struct timeline_op *p)
{
	const struct trace_config *g = p->config;
	const struct trace_op *o = p->op;
	struct text *t = &w->out;

	text_str(t, ",\"args\":{");
	call_stack(w, p->node);
	text_fmt(t, ",\"device\":%u,\"context\":%u,\"stream\":%u", p->gpu->ordinal,
		p->stream->context, p->stream->stream);
	(void)chrome_object(t, "context name", p->gpu->streams, GPU_CONTEXT(p->stream->context));
	if ((o->flags & TRACE_UNLAUNCHED) == 0)
		text_fmt(t, ",\"correlation\":%u", o->correlation);
	if ((o->flags & TRACE_GRAPH) != 0)
		text_str(t, ",\"graph\":true");
	if (g != NULL)
		text_fmt(t,
			",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"registers per thread\":%u,"
			"\"shared memory\":%" PRIu64,
			g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1], g->block[2],
			g->registers, (uint64_t)g->static_shared + g->dynamic_shared);
	if (!gpu_class_is_kernel(o->class)) {
		text_fmt(t, ",\"bytes\":%" PRIu64, o->bytes);
		if (o->end > o->start) {
			text_str(t, ",\"memory bandwidth (GB/s)\":");
			text_fixed(t, (double)o->bytes / (double)(o->end - o->start), 3, 0);
		}
	}
	text_str(t, "}}");
}

static void arrow(struct timeline *w, const struct timeline_op *o, int64_t pid, uint64_t tid,
	int64_t gpu_pid, uint64_t lane)
{
	chrome(w)->flows++;
	chrome_arrow_from(chrome(w), "flow", "launch->kernel", pid, tid, o->launch_ns);
	chrome_arrow_to(chrome(w), "flow", "launch->kernel", gpu_pid, lane,
		o->start_ns > o->launch_ns ? o->start_ns : o->launch_ns);
}

/* The launch, a point on its thread, and the arrow from there. */
static void launch(struct timeline *w, const struct timeline_op *o)
{
	const bool graph = (o->op->flags & TRACE_GRAPH) != 0;
	struct text *t = &w->out;

	chrome_event(chrome(w), "X", "launch",
		graph ? "launch graph" : gpu_classes[o->op->class].launch, w->at.pid, o->tid,
		o->launch_ns);
	text_fmt(t, ",\"dur\":0,\"args\":{\"correlation\":%u}}", o->op->correlation);
	arrow(w, o, w->at.pid, o->tid, o->gpu->pid, chrome_lane_tid(o->stream->stream, o->lane));
}

static void chrome_op(struct timeline *w, const struct timeline_op *o)
{
	chrome_event(chrome(w), "X", gpu_classes[o->op->class].trace, w->known[o->node].name,
		o->gpu->pid, chrome_lane_tid(o->stream->stream, o->lane), o->start_ns);
	text_str(&w->out, ",\"dur\":");
	chrome_micros(&w->out, o->end_ns - o->start_ns);
	op_args(w, o);
	if (o->launch)
		launch(w, o);
}

/* --- processes */

static void chrome_process(struct timeline *w)
{
	char words[32];

	chrome_metadata(chrome(w), "process_name", w->at.pid, 0, "name", w->at.command, 0);
	if (w->at.ranked) {
		snprintf(words, sizeof(words), "rank %lld", (long long)w->at.rank);
		chrome_metadata(chrome(w), "process_labels", w->at.pid, 0, "labels", words, 0);
	}
	chrome_metadata(chrome(w), "process_sort_index", w->at.pid, 0, "sort_index", NULL,
		(uint64_t)(w->at.ranked ? w->at.rank : w->at.pid));
}

static void name_beside(struct timeline *w, uint32_t tid, uint32_t lane, const char *what)
{
	char words[THREAD_NAME_MAX];

	snprintf(words, sizeof(words), "%u, %s", tid, what);
	chrome_metadata(
		chrome(w), "thread_name", w->at.pid, chrome_lane_tid(tid, lane), "name", words, 0);
}

static void name_threads(struct timeline *w)
{
	char words[THREAD_NAME_MAX];
	uint32_t i;

	for (i = 0; i < w->n_threads; i++) {
		const struct named *t = &w->thread[i];

		chrome_metadata(chrome(w), "thread_name", w->at.pid, t->tid, "name",
			thread_name(w->at.command, w->at.pid, t->tid, t->name, words), 0);
		if (t->summed)
			name_beside(w, t->tid, CHROME_SUMMED, "summed");
		if (t->synced)
			name_beside(w, t->tid, CHROME_SYNCS, "syncs");
	}
}

static void name_lanes(struct timeline *w, const struct lane_set *set, const struct gpu_seen *g)
{
	const int64_t gpu_pid = g->pid;
	char words[GPU_STREAM_WORDS];
	uint32_t k;

	for (k = 0; k < set->n; k++) {
		gpu_stream_words(g->streams, set->stream, k, words);
		chrome_metadata(chrome(w), "thread_name", gpu_pid, chrome_lane_tid(set->stream, k),
			"name", words, 0);
		chrome_metadata(chrome(w), "thread_sort_index", gpu_pid,
			chrome_lane_tid(set->stream, k), "sort_index", NULL,
			(uint64_t)set->stream * LANES_MAX + k);
	}
}

static void chrome_process_end(struct timeline *w)
{
	const struct gpu_seen *g;
	char words[160];
	uint32_t i;

	name_threads(w);
	for (i = 0; i < w->n_gpus; i++) {
		g = &w->gpu[i];
		if (g->pid == 0)
			continue; /* it had nothing to do */
		snprintf(words, sizeof(words), "GPU %u%s%.*s (of pid %lld)", g->ordinal,
			*g->name != '\0' ? " " : "", (int)text_cut(g->name, 100), g->name,
			(long long)w->at.pid);
		chrome_metadata(chrome(w), "process_name", g->pid, 0, "name", words, 0);
		chrome_metadata(
			chrome(w), "process_sort_index", g->pid, 0, "sort_index", NULL, g->pid);
	}
	for (i = 0; i < w->n_lanes; i++) {
		g = timeline_gpu(w, w->lane[i].device);
		if (g != NULL)
			name_lanes(w, &w->lane[i], g);
	}
}

/* --- as Triton's Proton has it */

#define STREAM_TID 200000u

/* Threads have numbers there, in the order of their first event. */
static uint64_t proton_tid(const struct timeline *w, uint32_t tid)
{
	uint32_t i = 0;

	while (i < w->n_threads && w->thread[i].tid != tid)
		i++;
	return i;
}

static void held_as_text(struct text *t, const struct held *h)
{
	double f;

	memcpy(&f, &h->bits, sizeof(f));
	if (h->type == VALUE_STR)
		text_str(t, h->text);
	else if (h->type == VALUE_F64)
		text_fmt(t, "%f", f);
	else if (h->type == VALUE_I64)
		text_fmt(t, "%" PRId64, (int64_t)h->bits);
	else
		chrome_number(t, h->bits);
}

/* What was built, as a string. Without memory there will be no file. */
static const char *built(struct timeline *w, struct text *words)
{
	text_char(words, '\0');
	w->out.failed |= words->failed;
	return words->failed ? "" : words->s;
}

/* "a: <m, 1.000000>, <n, 2>" */
static void proton_name(struct timeline *w, const struct timeline_scope *s, struct text *name)
{
	uint32_t i;

	text_str(name, w->known[s->node].name);
	for (i = 0; i < s->n_metrics; i++) {
		text_str(name, i == 0 ? ": <" : ", <");
		text_str(name, w->held[w->taken[i]].name);
		text_str(name, ", ");
		held_as_text(name, &w->held[w->taken[i]]);
		text_char(name, '>');
	}
}

static void proton_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct text *t = &w->out, words = {0};
	uint32_t i;

	proton_name(w, s, &words);
	chrome_event(chrome(w), "X", s->n_metrics > 0 ? "metric" : "scope", built(w, &words), 0,
		proton_tid(w, s->tid), s->begin_ns);
	text_str(t, ",\"dur\":");
	chrome_micros(t, s->end_ns - s->begin_ns);
	text_str(t, ",\"args\":{");
	call_stack(w, s->node);
	text_str(t, ",\"scope_id\":");
	chrome_number(t, form(w)->tasks++);
	for (i = 0; i < s->n_metrics; i++) {
		words.n = 0;
		held_as_text(&words, &w->held[w->taken[i]]);
		text_str(t, i == 0 ? ",\"metrics\":{" : ",");
		text_json(t, w->held[w->taken[i]].name);
		text_char(t, ':');
		text_json(t, built(w, &words));
	}
	text_str(t, s->n_metrics > 0 ? "}}}" : "}}");
	text_fini(&words);
}

static void proton_last(struct timeline *w)
{
	struct text *last = &form(w)->last;

	if (last->n > 0)
		chrome_comma(chrome(w));
	text_add(&w->out, last->s, last->n);
	w->out.failed |= last->failed;
	last->n = 0;
}

static void proton_kernel(
	struct timeline *w, const struct timeline_op *o, int64_t pid, uint64_t tid)
{
	chrome_event(chrome(w), "X", "kernel", w->known[o->node].name, pid, tid, o->start_ns);
	text_str(&w->out, ",\"dur\":");
	chrome_micros(&w->out, o->end_ns - o->start_ns);
	text_str(&w->out, ",\"args\":{");
	call_stack(w, o->node);
	text_str(&w->out, "}}");
}

/* Code written for Proton's traces looks for a kernel at their end. */
static void proton_op(struct timeline *w, const struct timeline_op *o)
{
	struct chrome *c = chrome(w);
	const bool alone = w->l.p->head.files == MODE_PROTON_36;
	const uint32_t stream = o->stream->stream;
	const uint64_t tid = alone ? stream : (uint64_t)STREAM_TID + stream;
	size_t at;
	bool any;

	if (!gpu_class_is_kernel(o->op->class))
		return;
	proton_last(w);
	if (o->launch && !alone)
		arrow(w, o, 0, proton_tid(w, o->tid), 0, tid);
	at = w->out.n;
	any = c->any;
	c->any = false; /* the comma comes when it is known what stands before it */
	proton_kernel(w, o, alone ? CHROME_NO_PID : 0, tid);
	c->any = any;
	text_add(&form(w)->last, w->out.s + at, w->out.n - at);
	w->out.n = at;
}

static void proton_lane(struct timeline *w, const char *kind, uint32_t n, uint64_t tid)
{
	char words[48];

	snprintf(words, sizeof(words), "%s %u", kind, n);
	chrome_metadata(chrome(w), "thread_name", 0, tid, "name", words, 0);
	chrome_metadata(chrome(w), "thread_sort_index", 0, tid, "sort_index", NULL, tid);
}

static void proton_process_end(struct timeline *w)
{
	uint32_t i;

	if (w->n_lanes == 0)
		return; /* it names no lanes then */
	chrome_metadata(chrome(w), "process_name", 0, 0, "name", "Trace", 0);
	chrome_metadata(chrome(w), "process_sort_index", 0, 0, "sort_index", NULL, 0);
	for (i = 0; i < w->n_threads; i++)
		proton_lane(w, "CPU Thread", i, i);
	for (i = 0; i < w->n_lanes; i++)
		proton_lane(w, "GPU Stream", w->lane[i].stream,
			(uint64_t)STREAM_TID + w->lane[i].stream);
}

/* "us" is no value of the format, but what it writes. */
static void proton_open(struct timeline *w)
{
	text_char(&w->out, '{');
	if (w->l.p->head.files != MODE_PROTON_36)
		text_fmt(&w->out, "\"baseTimeNanoseconds\":%" PRId64 ",", w->zero_ns);
	text_str(&w->out, "\"displayTimeUnit\":\"us\",\"traceEvents\":[");
}

static void proton_close(struct timeline *w)
{
	proton_last(w);
	text_str(&w->out, "]}\n");
}

static const struct timeline_form proton_form = {.scope = proton_scope,
	.op = proton_op,
	.process_end = proton_process_end,
	.close = proton_close};
static const struct timeline_form proton_36_form = {.op = proton_op, .close = proton_close};

/* --- the file */

static void chrome_open(struct timeline *w)
{
	chrome(w)->t = &w->out;
	if (w->l.p->head.files != MODE_NONE) {
		w->form = w->l.p->head.files == MODE_PROTON ? &proton_form : &proton_36_form;
		proton_open(w);
		return;
	}
	text_fmt(&w->out,
		"{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRId64,
		w->zero_ns);
	text_str(&w->out, ",\"traceName\":");
	text_json(&w->out, w->l.p->head.name);
	text_str(&w->out, ",\"source\":");
	text_json(&w->out, w->l.p->head.source);
	text_str(&w->out, ",\"deviceProperties\":[");
}

static void chrome_device(struct timeline *w, const struct timeline_device *d)
{
	chrome_device_properties(chrome(w), d);
}

static void chrome_opened(struct timeline *w)
{
	text_str(&w->out, "],\"traceEvents\":[");
	chrome(w)->any = false;
}

/* A counter of a process that stands behind all others. */
static void chrome_reading(struct timeline *w, const struct timeline_reading *r)
{
	if (r->track == 0 && r->first)
		chrome_metadata(chrome(w), "process_name", READINGS_PID, 0, "name",
			"GPUs and host, as read", 0);
	chrome_event(chrome(w), "C", "reading", r->name, READINGS_PID, 0, r->begin_ns);
	text_str(&w->out, ",\"args\":{\"value\":");
	text_json_f64(&w->out, r->value->v);
	text_str(&w->out, "}}");
}

static void chrome_close(struct timeline *w)
{
	text_str(&w->out, "\n],\"eventsGone\":");
	chrome_number(&w->out, w->left.gone);
	if (w->left.summed > 0)
		text_fmt(&w->out, ",\"eventsSummed\":%" PRIu64, w->left.summed);
	text_str(&w->out, "}\n");
}

int chrome_trace_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form chrome_form = {.open = chrome_open,
		.device = chrome_device,
		.opened = chrome_opened,
		.process = chrome_process,
		.scope = chrome_scope,
		.op = chrome_op,
		.metric = chrome_metric,
		.burst = chrome_burst,
		.process_end = chrome_process_end,
		.reading = chrome_reading,
		.close = chrome_close};
	struct form own = {.tasks = 0};
	int r;

	r = timeline_write(&chrome_form, &own, db, id, s, to, ret_left, e);
	text_fini(&own.last);
	return r;
}
