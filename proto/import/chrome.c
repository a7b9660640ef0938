/* SPDX-License-Identifier: MIT. chrome.c: reads Chrome's trace events as JSON, plain or packed by
 * gzip: those of PyTorch's profiler (Kineto), of Proton, our own, and anybody's.
 *
 * An event whose args have a call_stack stands there; else a scope stands in what is open on its
 * thread, and GPU work in what was open where it was launched (place.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "calls.h"
#include "gpu_terms.h"
#include "json_stream.h"
#include "kineto_head.h"
#include "readers.h"
#include "xla.h"

#define SPANS_MAX 65536u /* begun and not ended, of those that may overlap */

/* What an event's category says it is. */
enum meaning {
	IS_SCOPE,
	IS_FRAME,
	IS_API,
	IS_LAUNCH,
	IS_KERNEL,
	IS_COPY,
	IS_SET,
	IS_SYNC,
	IS_RECORD,
	IS_LEFT
};

/* clang-format off */
static const struct category {
	const char *word;
	enum meaning is;
	enum import_left left;
	bool kineto; /* nobody else has it */
} categories[] = {
	{"cpu_op",              IS_SCOPE,  0, true},
	{"user_annotation",     IS_SCOPE,  0, true},
	{"cpu_instant_event",   IS_SCOPE,  0, true},
	{"python_function",     IS_FRAME,  0, true},
	{"cuda_runtime",        IS_API,    0, true},
	{"cuda_driver",         IS_API,    0, true},
	{"hip_runtime",         IS_API,    0, true},
	{"Runtime",             IS_API,    0, true},
	{"launch",              IS_LAUNCH, 0, false},
	{"kernel",              IS_KERNEL, 0, false},
	{"gpu_memcpy",          IS_COPY,   0, false},
	{"Memcpy",              IS_COPY,   0, false},
	{"gpu_memset",          IS_SET,    0, false},
	{"Memset",              IS_SET,    0, false},
	{"gpu_user_annotation", IS_LEFT,   LEFT_PROJECTIONS, true},
	{"cuda_sync",           IS_SYNC,   0, false},
	{"cuda_event",          IS_RECORD, 0, true},
	{"overhead",            IS_LEFT,   LEFT_WAITS, true},
	{"Trace",               IS_LEFT,   LEFT_PROJECTIONS, true},
};
/* clang-format on */

struct span { /* begun, of those that may overlap others of their thread */
	struct stage_slice slice;
	uint32_t id, cat;
};

struct chrome {
	struct stage *s;
	struct json_stream in;
	struct text word; /* of the value at hand */
	char step[KINETO_STEP_MAX];
	struct span *span;
	uint32_t n_spans, cap_spans;
	bool correlated; /* some event had a correlation: no arrow is needed */
};

struct event {
	struct json_slice cat, name, ph, pid, tid, ts, dur, id, args;
};

/* What is read of its args. */
struct args {
	struct json_slice call_stack, name, labels, grid, block, metrics;
	struct json_slice kernel, copy, set, module, hlo; /* XLA's */
	struct json_slice event;                          /* our own: "0x…" */
	int64_t event_id, wait_stream, wait_record;       /* the last: its record's correlation */
	int64_t correlation, device, context, stream, bytes, registers, shared, graph, device_type;
	uint8_t flags;
	bool is_graph;
};

/* --- values */

static int bad(struct chrome *c)
{
	return json_stream_bad(
		&c->in, json_stream_offset(&c->in) - c->in.value.n, "this event is not JSON");
}

/* A string as it is, a number as it is written. */
static int name_of(struct chrome *c, struct json_slice v, uint32_t *ret)
{
	c->word.n = 0;
	if (!json_string(v, &c->word))
		text_add(&c->word, v.s, v.n);
	if (c->word.failed || !stage_name(c->s, c->word.n > 0 ? c->word.s : "", c->word.n, ret))
		return stage_no_memory(c->s);
	return 0;
}

static bool micros(struct chrome *c, struct json_slice v, int64_t *ret)
{
	bool fraction;

	if (!json_decimal(v, 3, ret, &fraction))
		return false;
	c->s->whole_micros &= !fraction;
	return true;
}

static bool is_true(struct json_slice v)
{
	return v.n == 4 && memcmp(v.s, "true", 4) == 0;
}

/* --- args */

static void take_arg(struct args *a, struct json_slice key, struct json_slice v)
{
	/* clang-format off */
	const struct { const char *word; int64_t *number; } numbers[] = {
		{"correlation", &a->correlation}, {"device", &a->device}, {"context", &a->context},
		{"stream", &a->stream}, {"bytes", &a->bytes}, {"registers per thread", &a->registers},
		{"shared memory", &a->shared}, {"graph id", &a->graph},
		{"correlation_id", &a->correlation}, {"cuda_graph_id", &a->graph},
		{"wait_on_cuda_event_id", &a->event_id}, {"event_id", &a->event_id},
		{"Device Type", &a->device_type},
		{"wait_on_stream", &a->wait_stream}, {"wait_on_cuda_event_record_corr_id", &a->wait_record}};
	const struct { const char *word; struct json_slice *slice; } slices[] = {
		{"call_stack", &a->call_stack}, {"name", &a->name}, {"labels", &a->labels},
		{"grid", &a->grid}, {"block", &a->block}, {"metrics", &a->metrics},
		{"kernel_details", &a->kernel}, {"memcpy_details", &a->copy}, {"memset_details", &a->set},
		{"hlo_module", &a->module}, {"hlo_op", &a->hlo},
		{"event", &a->event}};
	const struct { const char *word; uint8_t flag; } flags[] = {
		{"open", TRACE_OPEN}, {"began_before", TRACE_BEGAN_BEFORE}, {"unwound", TRACE_UNWOUND}};
	/* clang-format on */
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (json_is(key, numbers[i].word))
			*numbers[i].number = json_integer(v, *numbers[i].number);
	for (i = 0; i < sizeof(slices) / sizeof(*slices); i++)
		if (json_is(key, slices[i].word))
			*slices[i].slice = v;
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (json_is(key, flags[i].word) && is_true(v))
			a->flags |= flags[i].flag;
	a->is_graph |= json_is(key, "graph") && is_true(v);
}

static bool read_args(struct json_slice of, struct args *ret)
{
	struct json j = json_of(of);
	struct json_slice key, v;

	*ret = (struct args){.correlation = -1, .device = -1, .stream = -1, .wait_stream = -1};
	if (of.n == 0 || !json_open(&j, '{'))
		return true;
	while (json_next(&j, '}', &key, &v))
		take_arg(ret, key, v);
	ret->is_graph |= ret->graph > 0;
	return !j.bad;
}

/* The node of ["ROOT", …]; STAGE_NONE: there is no such list. The last one is a leaf of `kind`. */
static int stack_node(struct chrome *c, struct json_slice of, uint8_t kind, uint32_t *ret)
{
	struct json j = json_of(of);
	struct json_slice v, next = {NULL, 0};
	bool more, first = true;
	uint32_t name;
	int r;

	*ret = STAGE_NONE;
	if (of.n == 0 || !json_open(&j, '[') || !json_next(&j, ']', NULL, &v))
		return 0;
	*ret = 0;
	for (more = true; more; v = next, first = false) {
		more = json_next(&j, ']', NULL, &next);
		if (first && json_is(v, "ROOT"))
			continue;
		r = name_of(c, v, &name);
		if (r == 0 && !stage_child(c->s, *ret, more ? NODE_SCOPE : kind, name, ret))
			r = stage_no_memory(c->s);
		if (r < 0)
			return r;
	}
	return j.bad ? bad(c) : 0;
}

static void three(struct json_slice of, uint32_t ret[3])
{
	struct json j = json_of(of);
	struct json_slice v;
	int i;

	if (!json_open(&j, '['))
		return;
	for (i = 0; i < 3 && json_next(&j, ']', NULL, &v); i++)
		ret[i] = json_clamp32(json_integer(v, 0));
}

/* --- events */

static int thread_of(struct chrome *c, const struct event *ev, uint32_t *ret)
{
	uint32_t pid, tid, process;
	int r = name_of(c, ev->pid, &pid);

	if (r == 0)
		r = name_of(c, ev->tid, &tid);
	if (r == 0 &&
		(!stage_process(c->s, pid, &process) || !stage_thread(c->s, process, tid, ret)))
		r = stage_no_memory(c->s);
	return r;
}

static const struct category *category_of(struct json_slice cat)
{
	size_t i;

	for (i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		if (cat.n == strlen(categories[i].word) + 2 &&
			strncasecmp(cat.s + 1, categories[i].word, cat.n - 2) == 0)
			return &categories[i];
	return NULL;
}

static int left(struct chrome *c, enum import_left why)
{
	c->s->taken.left[why]++;
	return 0;
}

/* Its number is a value, and no part of its path. */
static int step_name(struct chrome *c, struct stage_slice *x)
{
	if (x->n_values == 0) {
		x->values = c->step;
		x->n_values = strlen(c->step);
	}
	return stage_name(c->s, "step", 4, &x->name) ? 0 : stage_no_memory(c->s);
}

/* A scope or an API call, as far as it is one; x->end is not set. */
static int slice_of(struct chrome *c, const struct event *ev, enum meaning is, const struct args *a,
	struct stage_slice *x)
{
	static const uint8_t kinds[] = {[IS_SCOPE] = SLICE_SCOPE,
		[IS_FRAME] = SLICE_FRAME,
		[IS_API] = SLICE_API,
		[IS_LAUNCH] = SLICE_LAUNCH};
	int r;

	*x = (struct stage_slice){
		.correlation = is == IS_API || is == IS_LAUNCH ? a->correlation : -1,
		.kind = kinds[is],
		.flags = a->flags};
	if (a->metrics.n > 1 && a->metrics.s[0] == '{') {
		x->values = a->metrics.s;
		x->n_values = a->metrics.n;
	}
	c->correlated |= x->correlation >= 0;
	if (!micros(c, ev->ts, &x->begin))
		return left(c, LEFT_BROKEN) + 1;
	r = thread_of(c, ev, &x->thread);
	if (r == 0)
		r = kineto_step(ev->cat, ev->name, c->step) ? step_name(c, x)
							    : name_of(c, ev->name, &x->name);
	return r < 0 ? r
		     : stack_node(c, a->call_stack,
			       is == IS_FRAME ? NODE_FRAME
			       : is == IS_API && c->s->name[x->name].s[0] != '\0' &&
					       call_class(c->s->name[x->name].s) != CLASS_CPU
				       ? NODE_CALL
				       : NODE_SCOPE,
			       &x->node);
}

static uint8_t class_of(struct chrome *c, enum meaning is, uint32_t name)
{
	const char *text = c->s->name[name].s;

	if (is == IS_KERNEL)
		return gpu_kernel_is_comm(text) ? CLASS_COMM : CLASS_COMPUTE;
	return is == IS_SET ? CLASS_MEMSET : is == IS_COPY ? copy_class(text) : CLASS_OTHER;
}

/* Its module and operation, which say where it is from when no launch does. */
static int xla_node(
	struct chrome *c, const struct args *a, uint8_t kind, uint32_t leaf, uint32_t *ret)
{
	const struct json_slice part[] = {a->module, a->hlo};
	uint32_t name;
	size_t i;
	int r;

	*ret = 0;
	for (i = 0; i < sizeof(part) / sizeof(*part); i++) {
		if (part[i].n == 0)
			continue;
		r = name_of(c, part[i], &name);
		if (r < 0)
			return r;
		if (!stage_child(c->s, *ret, NODE_SCOPE, name, ret))
			return stage_no_memory(c->s);
	}
	return stage_child(c->s, *ret, kind, leaf, ret) ? 0 : stage_no_memory(c->s);
}

static int config_of(struct chrome *c, const struct args *a, uint32_t *ret)
{
	struct trace_config g = {
		.registers = json_clamp32(a->registers), .dynamic_shared = json_clamp32(a->shared)};

	*ret = STAGE_NONE;
	if (a->kernel.n > 0)
		xla_config(a->kernel, &g);
	else if (a->grid.n == 0)
		return 0;
	three(a->grid, g.grid);
	three(a->block, g.block);
	return stage_config(c->s, &g, ret) ? 0 : stage_no_memory(c->s);
}

static int take_op(struct chrome *c, const struct event *ev, enum meaning is, const struct args *a)
{
	struct stage_op o = {.context = json_clamp32(a->context),
		.bytes = a->bytes > 0 ? (uint64_t)a->bytes : 0,
		.correlation = a->correlation,
		.flags = a->is_graph ? TRACE_GRAPH : 0};
	int64_t length;
	uint32_t thread;
	int r;

	if (!micros(c, ev->ts, &o.start) || !micros(c, ev->dur, &length) ||
		__builtin_add_overflow(o.start, length, &o.end))
		return left(c, LEFT_BROKEN);
	r = thread_of(c, ev, &thread);
	if (r == 0)
		r = name_of(c, ev->name, &o.name);
	if (r < 0)
		return r;
	o.process = c->s->thread[thread].process;
	o.thread = thread;
	c->correlated |= a->correlation >= 0;
	c->s->taken.left[LEFT_VALUES] += a->metrics.n > 0;
	o.class = class_of(c, is, o.name);
	o.device = a->device >= 0 ? json_clamp32(a->device) : 0;
	o.stream = a->stream >= 0 ? json_clamp32(a->stream) : c->s->thread[thread].tid;
	r = stack_node(c, a->call_stack, gpu_classes[o.class].node, &o.node);
	if (a->kernel.n + a->copy.n + a->set.n > 0) {
		xla_place(c->s, thread, &o);
		o.bytes = xla_bytes(a->copy);
		if (r == 0 && a->module.n > 0)
			r = xla_node(c, a, gpu_classes[o.class].node, o.name, &o.node);
	}
	if (r == 0)
		r = config_of(c, a, &o.config);
	return r < 0 ? r : stage_op(c->s, &o);
}

static int take_slice(
	struct chrome *c, const struct event *ev, enum meaning is, const struct args *a)
{
	struct stage_slice x;
	int64_t length;
	int r = slice_of(c, ev, is, a, &x);

	if (r != 0)
		return r < 0 ? r : 0;
	if (!micros(c, ev->dur, &length) || __builtin_add_overflow(x.begin, length, &x.end))
		return left(c, LEFT_BROKEN);
	return stage_slice(c->s, &x);
}

/* A record of waiting: Kineto's, beside the call's own row, or the call itself, as our own traces have it. */
static int take_sync(struct chrome *c, const struct event *ev, const struct args *a)
{
	struct stage_sync x = {.correlation = a->correlation, .stream = stage_stream(a->stream)};
	uint32_t thread, name;
	int64_t length;
	int r = name_of(c, ev->name, &name);

	if (r == 0)
		r = thread_of(c, ev, &thread);
	if (r < 0)
		return r;
	x.process = c->s->thread[thread].process;
	if (!micros(c, ev->ts, &x.begin) || !micros(c, ev->dur, &length) || length < 0 ||
		__builtin_add_overflow(x.begin, length, &x.end))
		return left(c, LEFT_BROKEN);
	x.class = call_class(c->s->name[name].s);
	if (x.class != CLASS_CPU) {
		r = take_slice(c, ev, IS_API, a);
	} else {
		x.class = record_class(c->s->name[name].s);
		c->s->source = FROM_KINETO;
	}
	if (r < 0)
		return r;
	if (a->event_id > 0)
		x.event = (uint64_t)a->event_id;
	else if (a->event.n > 3 && memcmp(a->event.s, "\"0x", 3) == 0)
		x.event = strtoull(a->event.s + 1, NULL, 16); /* to its quote */
	r = stage_sync(c->s, &x);
	if (r < 0 || a->wait_record <= 0)
		return r;
	x.stream = stage_stream(a->wait_stream);
	x.correlation = a->wait_record;
	x.hearsay = true;
	return stage_recorded(c->s, &x);
}

/* Its time is the GPU's, or none. */
static int take_record(struct chrome *c, const struct event *ev, const struct args *a)
{
	struct stage_sync x = {.correlation = a->correlation,
		.stream = stage_stream(a->stream),
		.event = a->event_id > 0 ? (uint64_t)a->event_id : 0};
	uint32_t thread;
	int r = thread_of(c, ev, &thread);

	if (r < 0)
		return r;
	x.process = c->s->thread[thread].process;
	return stage_recorded(c->s, &x);
}

/* Values at the moment of x, in what is open then: they wait for no end. */
static int set_values(struct chrome *c, struct stage_slice *x)
{
	struct stage_slice v = *x;

	x->n_values = 0;
	v.kind = SLICE_VALUE;
	v.end = v.begin;
	v.correlation = -1;
	return v.n_values > 0 ? stage_slice(c->s, &v) : 0;
}

/* "i" with values: a metric that was set in no scope's time, or its scope is gone. Or torch's allocator. */
static int take_instant(struct chrome *c, const struct event *ev, const struct args *a)
{
	const bool memory = a->device_type == KINETO_CUDA && json_is(ev->name, "[memory]");
	struct stage_slice x;
	int r;

	if (!memory && a->metrics.n == 0)
		return left(c, LEFT_INSTANTS);
	r = slice_of(c, ev, IS_SCOPE, a, &x);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!memory)
		return set_values(c, &x);
	x.kind = SLICE_MEMORY;
	x.end = x.begin;
	x.values = ev->args.s;
	x.n_values = ev->args.n;
	return stage_slice(c->s, &x);
}

/* --- arrows, where nothing else says which launch some GPU work is of */

/* By category and id, which are anything; no vendor's correlation is as large. */
static int64_t arrow_key(const struct event *ev)
{
	const struct json_slice part[] = {ev->cat, ev->id};
	uint64_t h = 14695981039346656037u;
	size_t i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < part[i].n; k++)
			h = (h ^ (unsigned char)part[i].s[k]) * 1099511628211u;
	return (int64_t)(h >> 2 | 1ull << 61);
}

static int take_arrow(struct chrome *c, const struct event *ev, const struct args *a, bool begins)
{
	struct stage_slice x;
	int r;

	c->s->taken.left[LEFT_FLOWS]++;
	if (c->correlated || json_is(ev->cat, "fwdbwd"))
		return 0;
	r = slice_of(c, ev, IS_LAUNCH, a, &x);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!begins)
		return stage_arrow(c->s, x.thread, x.begin, arrow_key(ev));
	x.kind = SLICE_ARROW;
	x.end = x.begin;
	x.node = STAGE_NONE;
	x.n_values = 0;
	x.correlation = arrow_key(ev);
	return stage_slice(c->s, &x);
}

/* B and E; an E has the name of what it ends, or none. */
static int take_edge(struct chrome *c, const struct event *ev, enum meaning is,
	const struct args *a, bool begins)
{
	struct stage_slice x;
	int r = slice_of(c, ev, is, a, &x);

	if (r == 0 && begins)
		r = set_values(c, &x);
	else if (r == 0)
		c->s->taken.left[LEFT_VALUES] += x.n_values > 0;
	return r != 0 ? (r < 0 ? r : 0) : stage_edge(c->s, begins, &x);
}

/* b and e: of a task, which may overlap others of its thread. */
static int take_span(struct chrome *c, const struct event *ev, const struct args *a, bool begins)
{
	struct span x = {.id = 0};
	uint32_t i;
	int r = slice_of(c, ev, IS_SCOPE, a, &x.slice);

	if (r == 0)
		r = name_of(c, ev->id, &x.id);
	if (r == 0)
		r = name_of(c, ev->cat, &x.cat);
	if (r == 0 && begins)
		r = set_values(c, &x.slice);
	if (r != 0)
		return r < 0 ? r : 0;
	c->s->taken.left[LEFT_VALUES] += x.slice.n_values > 0;
	for (i = c->n_spans; i-- > 0 && !begins;)
		if (c->span[i].id == x.id && c->span[i].cat == x.cat &&
			c->s->thread[c->span[i].slice.thread].process ==
				c->s->thread[x.slice.thread].process) {
			x.slice.end = x.slice.begin;
			x.slice.begin = c->span[i].slice.begin;
			x.slice.node = c->span[i].slice.node;
			x.slice.name = c->span[i].slice.name;
			x.slice.thread = c->span[i].slice.thread;
			x.slice.flags = c->span[i].slice.flags | TRACE_SPAN;
			c->span[i] = c->span[--c->n_spans];
			return stage_slice(c->s, &x.slice);
		}
	if (!begins || c->n_spans == SPANS_MAX)
		return left(c, LEFT_OPEN);
	if (!ROOM_FOR(c->span, c->cap_spans, c->n_spans))
		return stage_no_memory(c->s);
	if (x.slice.node == STAGE_NONE &&
		!stage_child(c->s, 0, NODE_SCOPE, x.slice.name, &x.slice.node))
		return stage_no_memory(c->s);
	c->span[c->n_spans++] = x;
	return 0;
}

/* Our own "GPU 0 … (of pid 123)". */
static int owner_of(struct chrome *c, uint32_t process)
{
	const struct stage_name *title = &c->s->name[c->s->process[process].title];
	const char *at = strstr(title->s, "(of pid ");
	uint32_t key;

	if (strncmp(title->s, "GPU ", 4) != 0 || at == NULL)
		return 0;
	at += strlen("(of pid ");
	if (!stage_name(c->s, at, strspn(at, "0123456789"), &key) ||
		!stage_process(c->s, key, &c->s->process[process].owner))
		return stage_no_memory(c->s);
	return 0;
}

static int take_metadata(struct chrome *c, const struct event *ev, const struct args *a)
{
	struct stage *s = c->s;
	struct json_slice tid = ev->tid.n > 0 ? ev->tid : (struct json_slice){"0", 1};
	struct event of = *ev;
	uint32_t pid, process, thread;
	int r = name_of(c, ev->pid, &pid);

	of.tid = tid;
	if (r == 0 && !stage_process(s, pid, &process))
		r = stage_no_memory(s);
	if (r < 0)
		return r;
	if (json_is(ev->name, "process_name") && a->name.n > 0) {
		r = name_of(c, a->name, &s->process[process].title);
		return r < 0 ? r : owner_of(c, process);
	}
	if (json_is(ev->name, "process_labels") && a->labels.n > 6 &&
		memcmp(a->labels.s, "\"rank ", 6) == 0)
		s->process[process].rank =
			json_integer((struct json_slice){a->labels.s + 6, a->labels.n - 7}, -1);
	if (!json_is(ev->name, "thread_name") || a->name.n == 0)
		return 0;
	r = thread_of(c, &of, &thread);
	return r < 0 ? r : name_of(c, a->name, &s->thread[thread].title);
}

static int take_phase(struct chrome *c, const struct event *ev, const struct args *a)
{
	const struct category *cat = category_of(ev->cat);
	const enum meaning is = cat != NULL       ? cat->is
				: a->kernel.n > 0 ? IS_KERNEL
				: a->copy.n > 0   ? IS_COPY
				: a->set.n > 0    ? IS_SET
						  : IS_SCOPE;
	const char ph = ev->ph.n == 3 ? ev->ph.s[1] : '\0';

	if (cat != NULL && cat->kineto)
		c->s->source = FROM_KINETO;
	if (ph == 's' || ph == 'f')
		return take_arrow(c, ev, a, ph == 's');
	if (ph == 't')
		return left(c, LEFT_FLOWS);
	if (ph == 'M')
		return take_metadata(c, ev, a);
	if (is == IS_LEFT)
		return left(c, cat->left);
	if (is == IS_SYNC)
		return ph == 'X' ? take_sync(c, ev, a) : left(c, LEFT_WAITS);
	if (is == IS_RECORD)
		return take_record(c, ev, a);
	if (ph == 'X' && (is == IS_KERNEL || is == IS_COPY || is == IS_SET))
		return take_op(c, ev, is, a);
	if (ph == 'X')
		return take_slice(c, ev, is, a);
	if ((ph == 'B' || ph == 'E') && is <= IS_API)
		return take_edge(c, ev, is, a, ph == 'B');
	if (ph == 'b' || ph == 'e')
		return take_span(c, ev, a, ph == 'b');
	if (ph == 'i' || ph == 'I' || ph == 'n' || ph == 'R')
		return take_instant(c, ev, a);
	return left(c, ph == 'C' ? LEFT_COUNTERS : LEFT_UNNAMED);
}

static void take_member(struct event *ev, struct json_slice key, struct json_slice v)
{
	/* clang-format off */
	const struct { const char *word; struct json_slice *slice; } members[] = {
		{"ph", &ev->ph}, {"cat", &ev->cat}, {"name", &ev->name}, {"pid", &ev->pid},
		{"tid", &ev->tid}, {"ts", &ev->ts}, {"dur", &ev->dur}, {"id", &ev->id},
		{"args", &ev->args}};
	/* clang-format on */
	size_t i;

	for (i = 0; i < sizeof(members) / sizeof(*members); i++)
		if (json_is(key, members[i].word))
			*members[i].slice = v;
}

/* The element that is in the stream's value. */
static int take_event(struct chrome *c)
{
	struct json j = json_of((struct json_slice){c->in.value.s, c->in.value.n});
	struct event ev = {.ph.n = 0};
	struct json_slice key, v;
	struct args a;

	if (++c->s->taken.events % 4096 == 0)
		stage_read_part(c->s, json_stream_part(&c->in));
	if (!json_open(&j, '{'))
		return bad(c);
	while (json_next(&j, '}', &key, &v))
		take_member(&ev, key, v);
	if (j.bad || !read_args(ev.args, &a))
		return bad(c);
	return take_phase(c, &ev, &a);
}

/* --- the file */

static int events(struct chrome *c)
{
	char byte;
	int r;

	for (json_stream_skip(&c->in);;) {
		r = json_stream_peek(&c->in, &byte);
		if (r == 0 && byte == ']')
			break;
		if (r == 0)
			r = json_stream_value(&c->in);
		if (r == 0)
			r = take_event(c);
		else if (r > 0)
			r = left(c, LEFT_LONG);
		if (r == 0)
			r = json_stream_peek(&c->in, &byte);
		if (r < 0)
			return r;
		if (byte != ',' && byte != ']')
			return json_stream_bad(&c->in, json_stream_offset(&c->in),
				byte == '\0' ? "it ends too early: what wrote it did not finish"
					     : "a comma is missing");
		if (byte == ',')
			json_stream_skip(&c->in);
	}
	json_stream_skip(&c->in);
	return 0;
}

/* "key": value; of the keys that matter. */
static int member(struct chrome *c, bool *ret_events)
{
	struct json_slice key, v;
	char name[64], byte;
	int r = json_stream_value(&c->in);

	if (r < 0)
		return r;
	snprintf(name, sizeof(name), "%.*s", (int)(c->in.value.n < 63 ? c->in.value.n : 63),
		c->in.value.s);
	key = (struct json_slice){name, strlen(name)};
	r = json_stream_peek(&c->in, &byte);
	if (r == 0 && (byte != ':' || name[0] != '"'))
		return json_stream_bad(&c->in, json_stream_offset(&c->in), "it is not JSON");
	json_stream_skip(&c->in);
	if (r == 0)
		r = json_stream_peek(&c->in, &byte);
	if (r == 0 && json_is(key, "traceEvents") && byte == '[') {
		*ret_events = true;
		return events(c);
	}
	if (r == 0)
		r = json_stream_value(&c->in);
	if (r != 0)
		return r < 0 ? r : 0;
	v = (struct json_slice){c->in.value.s, c->in.value.n};
	if (json_is(key, "baseTimeNanoseconds"))
		stage_reading(c->s)->base_ns = json_integer(v, 0);
	else if (json_is(key, "distributedInfo"))
		kineto_rank(c->s, v);
	else if (json_is(key, "deviceProperties"))
		kineto_devices(c->s, v);
	return 0;
}

static int object(struct chrome *c)
{
	bool found = false;
	char byte;
	int r;

	for (json_stream_skip(&c->in);;) {
		r = json_stream_peek(&c->in, &byte);
		if (r == 0 && byte == '}')
			break;
		if (r == 0)
			r = member(c, &found);
		if (r == 0)
			r = json_stream_peek(&c->in, &byte);
		if (r < 0)
			return r;
		if (byte != ',' && byte != '}')
			return json_stream_bad(&c->in, json_stream_offset(&c->in),
				byte == '\0' ? "it ends too early: what wrote it did not finish"
					     : "a comma is missing");
		if (byte == ',')
			json_stream_skip(&c->in);
	}
	return found ? 0 : err_set(c->s->e, -EBADMSG, "%s is JSON without traceEvents", c->in.what);
}

int chrome_read(struct stage *s, int fd, const char *what)
{
	struct chrome *c = calloc(1, sizeof(*c));
	char byte = '\0';
	int r;

	if (c == NULL)
		return stage_no_memory(s);
	c->s = s;
	s->source = FROM_CHROME;
	r = json_stream_open(&c->in, fd, what, s->e);
	if (r == 0)
		r = json_stream_peek(&c->in, &byte);
	if (r == 0)
		r = byte == '[' ? events(c)
		    : byte == '{'
			    ? object(c)
			    : err_set(s->e, -EBADMSG,
				      "%s is none of the files that can be imported: %s", what,
				      "PyTorch's profile and any Chrome trace (also .gz), nsys' "
				      "SQLite export, .hatchet");
	s->taken.left[LEFT_OPEN] += c->n_spans;
	json_stream_close(&c->in);
	text_fini(&c->word);
	free(c->span);
	free(c);
	return r;
}
