/* SPDX-License-Identifier: MIT. chrome_trace.c: the format chrome_trace: Chrome's trace events.
 *
 * Threads and tasks stand under their process; each stream under the GPU as its process sees it. A
 * launch is a point on its thread, with an arrow to its first operation.
 *
 * A session whose files are Triton's Proton's has its events and no others: of one process, pid 0,
 * scopes and kernels, by numbers of their own for threads and streams; of 3.6 kernels alone. */
#include <inttypes.h>
#include <stdio.h>

#include "session_terms.h"
#include "timeline.h"

#define LANE_TID 1000000u /* of a stream's second lane and on */
#define NO_PID   (-1)

struct chrome {
	bool any; /* event or device so far */
	uint64_t flows, tasks;
};

static struct chrome *chrome(struct timeline *w)
{
	return w->mine;
}

/* --- pieces */

static void number(struct text *t, uint64_t v)
{
	char buf[24];
	size_t at = sizeof(buf);

	do {
		buf[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	text_add(t, buf + at, sizeof(buf) - at);
}

/* Microseconds with three decimals: exact. */
static void micros(struct text *t, uint64_t ns)
{
	char rest[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
		(char)('0' + ns % 10)};

	number(t, ns / 1000);
	text_add(t, rest, sizeof(rest));
}

static void comma(struct timeline *w)
{
	if (chrome(w)->any)
		text_char(&w->out, ',');
	chrome(w)->any = true;
}

/* {"ph":P,"cat":C,"name":N,"pid":,"tid":,"ts": */
static void event(struct timeline *w, const char *ph, const char *cat, const char *name,
	int64_t pid, uint64_t tid, uint64_t ns)
{
	struct text *t = &w->out;

	comma(w);
	text_str(t, "\n{\"ph\":\"");
	text_str(t, ph);
	text_str(t, "\",\"cat\":\"");
	text_str(t, cat);
	text_str(t, "\",\"name\":");
	text_json(t, name);
	if (pid != NO_PID) {
		text_str(t, ",\"pid\":");
		number(t, (uint64_t)pid);
	}
	text_str(t, ",\"tid\":");
	number(t, tid);
	text_str(t, ",\"ts\":");
	micros(t, ns);
}

/* words, or NULL and a number */
static void metadata(struct timeline *w, const char *what, int64_t pid, uint64_t tid,
	const char *key, const char *words, uint64_t index)
{
	struct text *t = &w->out;

	comma(w);
	text_str(t, "\n{\"ph\":\"M\",\"name\":\"");
	text_str(t, what);
	text_str(t, "\",\"pid\":");
	number(t, (uint64_t)pid);
	text_str(t, ",\"tid\":");
	number(t, tid);
	text_str(t, ",\"args\":{\"");
	text_str(t, key);
	text_str(t, "\":");
	if (words != NULL)
		text_json(t, words);
	else
		number(t, index);
	text_str(t, "}}");
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

static void held_value(struct text *t, const struct held *h)
{
	double f;

	memcpy(&f, &h->bits, sizeof(f));
	if (h->type == VALUE_STR)
		text_json(t, h->text);
	else if (h->type == VALUE_F64)
		text_json_f64(t, f);
	else if (h->type == VALUE_I64)
		text_fmt(t, "%" PRId64, (int64_t)h->bits);
	else
		number(t, h->bits);
}

/* "name":value, of n places in held; what was set more than once: a list, in that order. */
static void taken_values(struct timeline *w, uint32_t n)
{
	struct text *t = &w->out;
	uint32_t at, next, i;

	for (at = 0; at < n; at = next) {
		const char *name = w->held[w->taken[at]].name;

		for (next = at + 1; next < n; next++)
			if (strcmp(w->held[w->taken[next]].name, name) != 0)
				break;
		text_str(t, at > 0 ? "," : "");
		text_json(t, name);
		text_str(t, next - at > 1 ? ":[" : ":");
		for (i = at; i < next; i++) {
			text_str(t, i > at ? "," : "");
			held_value(t, &w->held[w->taken[i]]);
		}
		text_str(t, next - at > 1 ? "]" : "");
	}
}

static void chrome_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	event(w, "i", "metric", w->known[h->node].name, w->at.pid, h->tid, ns);
	text_str(&w->out, ",\"s\":\"t\",\"args\":{");
	call_stack(w, h->node);
	text_str(&w->out, ",\"metrics\":{");
	text_json(&w->out, h->name);
	text_char(&w->out, ':');
	held_value(&w->out, h);
	text_str(&w->out, "}}}");
}

/* --- scopes */

static void scope_args(struct timeline *w, const struct timeline_scope *s)
{
	struct text *t = &w->out;

	text_str(t, ",\"args\":{");
	call_stack(w, s->node);
	if (s->n_metrics > 0) {
		text_str(t, ",\"metrics\":{");
		taken_values(w, s->n_metrics);
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
		event(w, "X", "scope", name, w->at.pid, s->tid, s->begin_ns);
		text_str(t, ",\"dur\":");
		micros(t, s->end_ns - s->begin_ns);
		scope_args(w, s);
		return;
	}
	chrome(w)->tasks++;
	event(w, "b", "task", name, w->at.pid, s->tid, s->begin_ns);
	text_str(t, ",\"id\":");
	number(t, chrome(w)->tasks);
	scope_args(w, s);
	event(w, "e", "task", name, w->at.pid, s->tid, s->end_ns);
	text_str(t, ",\"id\":");
	number(t, chrome(w)->tasks);
	text_char(t, '}');
}

/* --- what the GPU did */

static uint64_t lane_tid(uint32_t stream, uint32_t lane)
{
	return (uint64_t)LANE_TID * lane + stream;
}

static void op_args(struct timeline *w, const struct timeline_op *p)
{
	const struct trace_config *g = p->config;
	const struct trace_op *o = p->op;
	struct text *t = &w->out;

	text_str(t, ",\"args\":{");
	call_stack(w, p->node);
	text_fmt(t, ",\"device\":%u,\"context\":%u,\"stream\":%u", p->gpu->ordinal,
		p->stream->context, p->stream->stream);
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
			text_fixed3(t, (double)o->bytes / (double)(o->end - o->start));
		}
	}
	text_str(t, "}}");
}

struct end {
	int64_t pid;
	uint64_t tid;
};

static void arrow(struct timeline *w, const struct timeline_op *o, struct end from, struct end to)
{
	struct text *t = &w->out;

	chrome(w)->flows++;
	event(w, "s", "flow", "launch->kernel", from.pid, from.tid, o->launch_ns);
	text_str(t, ",\"id\":");
	number(t, chrome(w)->flows);
	text_char(t, '}');
	event(w, "f", "flow", "launch->kernel", to.pid, to.tid,
		o->start_ns > o->launch_ns ? o->start_ns : o->launch_ns);
	text_str(t, ",\"id\":");
	number(t, chrome(w)->flows);
	text_str(t, ",\"bp\":\"e\"}");
}

/* The launch, a point on its thread, and the arrow from there. */
static void launch(struct timeline *w, const struct timeline_op *o)
{
	const bool graph = (o->op->flags & TRACE_GRAPH) != 0;
	struct text *t = &w->out;

	event(w, "X", "launch", graph ? "launch graph" : gpu_classes[o->op->class].launch,
		w->at.pid, o->tid, o->launch_ns);
	text_fmt(t, ",\"dur\":0,\"args\":{\"correlation\":%u}}", o->op->correlation);
	arrow(w, o, (struct end){w->at.pid, o->tid},
		(struct end){o->gpu->pid, lane_tid(o->stream->stream, o->lane)});
}

static void chrome_op(struct timeline *w, const struct timeline_op *o)
{
	event(w, "X", gpu_classes[o->op->class].trace, w->known[o->node].name, o->gpu->pid,
		lane_tid(o->stream->stream, o->lane), o->start_ns);
	text_str(&w->out, ",\"dur\":");
	micros(&w->out, o->end_ns - o->start_ns);
	op_args(w, o);
	if (o->launch)
		launch(w, o);
}

/* --- processes */

static void chrome_process(struct timeline *w)
{
	char words[32];

	metadata(w, "process_name", w->at.pid, 0, "name", w->at.command, 0);
	if (w->at.ranked) {
		snprintf(words, sizeof(words), "rank %lld", (long long)w->at.rank);
		metadata(w, "process_labels", w->at.pid, 0, "labels", words, 0);
	}
	metadata(w, "process_sort_index", w->at.pid, 0, "sort_index", NULL,
		(uint64_t)(w->at.ranked ? w->at.rank : w->at.pid));
}

static void name_threads(struct timeline *w)
{
	char words[THREAD_NAME_MAX];
	uint32_t i;

	for (i = 0; i < w->n_threads; i++)
		metadata(w, "thread_name", w->at.pid, w->thread[i].tid, "name",
			thread_name(w->at.command, w->at.pid, w->thread[i].tid, w->thread[i].name,
				words),
			0);
}

static void name_lanes(struct timeline *w, const struct lane_set *set, int64_t gpu_pid)
{
	char words[48];
	uint32_t k;

	for (k = 0; k < set->n; k++) {
		snprintf(words, sizeof(words), k == 0 ? "stream %u" : "stream %u, %u", set->stream,
			k + 1);
		metadata(w, "thread_name", gpu_pid, lane_tid(set->stream, k), "name", words, 0);
		metadata(w, "thread_sort_index", gpu_pid, lane_tid(set->stream, k), "sort_index",
			NULL, (uint64_t)set->stream * LANES_MAX + k);
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
		metadata(w, "process_name", g->pid, 0, "name", words, 0);
		metadata(w, "process_sort_index", g->pid, 0, "sort_index", NULL, g->pid);
	}
	for (i = 0; i < w->n_lanes; i++) {
		g = timeline_gpu(w, w->lane[i].device);
		if (g != NULL)
			name_lanes(w, &w->lane[i], g->pid);
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
		number(t, h->bits);
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
	event(w, "X", s->n_metrics > 0 ? "metric" : "scope", built(w, &words), 0,
		proton_tid(w, s->tid), s->begin_ns);
	text_str(t, ",\"dur\":");
	micros(t, s->end_ns - s->begin_ns);
	text_str(t, ",\"args\":{");
	call_stack(w, s->node);
	text_str(t, ",\"scope_id\":");
	number(t, chrome(w)->tasks++);
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

static void proton_op(struct timeline *w, const struct timeline_op *o)
{
	const bool alone = w->l.p->head.files == MODE_PROTON_36;
	const uint32_t stream = o->stream->stream;
	const uint64_t tid = alone ? stream : (uint64_t)STREAM_TID + stream;

	if (!gpu_class_is_kernel(o->op->class))
		return;
	event(w, "X", "kernel", w->known[o->node].name, alone ? NO_PID : 0, tid, o->start_ns);
	text_str(&w->out, ",\"dur\":");
	micros(&w->out, o->end_ns - o->start_ns);
	text_str(&w->out, ",\"args\":{");
	call_stack(w, o->node);
	text_str(&w->out, "}}");
	if (o->launch && !alone)
		arrow(w, o, (struct end){0, proton_tid(w, o->tid)}, (struct end){0, tid});
}

static void proton_lane(struct timeline *w, const char *kind, uint32_t n, uint64_t tid)
{
	char words[48];

	snprintf(words, sizeof(words), "%s %u", kind, n);
	metadata(w, "thread_name", 0, tid, "name", words, 0);
	metadata(w, "thread_sort_index", 0, tid, "sort_index", NULL, tid);
}

static void proton_process_end(struct timeline *w)
{
	uint32_t i;

	if (w->n_lanes == 0)
		return; /* it names no lanes then */
	metadata(w, "process_name", 0, 0, "name", "Trace", 0);
	metadata(w, "process_sort_index", 0, 0, "sort_index", NULL, 0);
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
	comma(w);
	text_fmt(&w->out, "{\"id\":%" PRIu64 ",\"name\":", d->ordinal);
	text_json(&w->out, d->name);
	text_fmt(&w->out,
		",\"computeMajor\":%" PRIu64 ",\"computeMinor\":%" PRIu64 ",\"numSms\":%" PRIu64
		",\"totalGlobalMem\":%" PRIu64 "}",
		d->arch / 10, d->arch % 10, d->num_sms, d->memory_bytes);
}

static void chrome_opened(struct timeline *w)
{
	text_str(&w->out, "],\"traceEvents\":[");
	chrome(w)->any = false;
}

static void chrome_close(struct timeline *w)
{
	text_str(&w->out, "\n],\"eventsGone\":");
	number(&w->out, w->gone);
	text_str(&w->out, "}\n");
}

int chrome_trace_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	uint64_t *ret_gone, struct err *e)
{
	static const struct timeline_form form = {.open = chrome_open,
		.device = chrome_device,
		.opened = chrome_opened,
		.process = chrome_process,
		.scope = chrome_scope,
		.op = chrome_op,
		.metric = chrome_metric,
		.process_end = chrome_process_end,
		.close = chrome_close};
	struct chrome own = {.any = false};

	return timeline_write(&form, &own, db, id, s, to, ret_gone, e);
}
