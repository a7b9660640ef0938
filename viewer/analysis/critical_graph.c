/* SPDX-License-Identifier: MIT. critical_graph.c: events become nodes and edges. */
#include "critical_graph.h"

#include <stdlib.h>
#include <string.h>

#include "critical_label.h"
#include "runs.h"
#include "table.h"

#define NONE    UINT32_MAX
#define THREADS 64u  /* that launch work; further ones' scopes are not looked at */
#define STREAMS 64u  /* that a wait for all of a GPU is a wait for */
#define BACK    256u /* waits before a launch that are looked at */
#define SKEW_NS \
	50000u /* of the GPU's clock from the host's, at most; 8 to 9 us were measured on an H200 */

/* In this order at the same time, so that all edges lead on. */
enum place_kind { AT_OP_END, AT_HOST, AT_OP_START };

struct place { /* a node, before it has a number */
	uint64_t ns;
	uint32_t of; /* op, or moment of the host */
	uint8_t kind;
};

struct moment { /* of the host, in order */
	uint64_t ns;
	uint32_t begins, ends; /* a scope; NONE */
	uint32_t place;
};

struct recorded { /* an event: what was before it on its stream */
	uint64_t event;
	uint32_t op;
};

struct building {
	const struct events *e;
	struct critical_graph *to;
	uint64_t begin_ns, end_ns;
	uint32_t thread[THREADS], n_threads;
	struct moment *moment;
	uint32_t n_moments;
	struct place *place;
	uint32_t n_places;
	uint32_t *op_start, *op_end;      /* places; NONE: not in it */
	uint32_t *by_stream, n_by_stream; /* launched ops, by stream and launch */
	uint32_t stream[STREAMS], n_streams;
	uint32_t *before; /* of an op: the one that ended last before it on its stream; NONE */
	uint32_t *
		awaited; /* of a scope that is a wait for an event: the work before its record; NONE */
	uint32_t *wait, n_waits; /* scopes that make a stream wait, by stream and time */
	struct recorded *record;
	uint32_t n_records, cap_records;
	struct table records;
	struct critical_labels labels;
	uint32_t *stack, n_stack, cap_stack; /* scopes that are open, as they began */
	bool failed;
};

static uint32_t label_of(struct building *b, enum critical_part part, uint32_t node)
{
	return critical_label(&b->labels, b->to, part, node);
}

static enum critical_part part_of_op(const struct event_op *o)
{
	return !gpu_class_is_kernel(o->class) ? CRITICAL_COPY
	       : o->class == CLASS_COMM       ? CRITICAL_COMM
					      : CRITICAL_COMPUTE;
}

/* What the host does: the scope that began last of those that are open. */
static uint32_t label_of_host(struct building *b)
{
	const struct event_scope *s;
	const char *name;

	if (b->n_stack == 0)
		return label_of(b, CRITICAL_NOTHING, NONE);
	s = &b->e->scope[b->stack[b->n_stack - 1]];
	name = b->e->known[s->node].name;
	if ((s->flags & TRACE_CALL) != 0)
		return label_of(b, CRITICAL_CALL, s->node);
	return label_of(b,
		strcmp(name, "dataloader") == 0 || strncmp(name, "enumerate(DataLoader)#", 22) == 0
			? CRITICAL_LOADER
			: CRITICAL_HOST,
		s->node);
}

/* --- who takes part */

static bool is_of(const struct building *b, uint32_t tid)
{
	uint32_t i;

	for (i = 0; i < b->n_threads; i++)
		if (b->thread[i] == tid)
			return true;
	return false;
}

static void add_thread(struct building *b, uint32_t tid)
{
	if (b->n_threads < THREADS && !is_of(b, tid))
		b->thread[b->n_threads++] = tid;
}

static bool in_it(const struct building *b, uint64_t ns)
{
	return ns >= b->begin_ns && ns <= b->end_ns;
}

/* Where nothing is launched and no step is asked for: the thread of the longest scope. */
static void add_longest(struct building *b)
{
	const struct event_scope *s, *longest = NULL;

	for (s = b->e->scope; s < b->e->scope + b->e->n_scopes; s++)
		if ((s->flags & TRACE_SPAN) == 0 && s->begin_ns < b->end_ns &&
			s->end_ns > b->begin_ns &&
			(longest == NULL ||
				s->end_ns - s->begin_ns > longest->end_ns - longest->begin_ns))
			longest = s;
	if (longest != NULL)
		add_thread(b, longest->tid);
}

static void find_threads(struct building *b, uint32_t tid)
{
	const struct event_op *o;

	if (tid != 0)
		add_thread(b, tid);
	for (o = b->e->op; o < b->e->op + b->e->n_ops; o++) {
		if (!o->launched || !in_it(b, o->launch_ns))
			continue;
		add_thread(b, o->tid);
		if (o->end_ns <= b->end_ns)
			continue;
		b->to->behind++;
		if (o->end_ns - b->end_ns > b->to->behind_ns)
			b->to->behind_ns = o->end_ns - b->end_ns;
	}
	if (b->n_threads == 0)
		add_longest(b);
}

/* --- nodes */

static void add_moment(struct building *b, uint64_t ns, uint32_t begins, uint32_t ends)
{
	b->moment[b->n_moments++] = (struct moment){ns, begins, ends, 0};
}

static uint64_t clip(const struct building *b, uint64_t ns)
{
	return ns < b->begin_ns ? b->begin_ns : ns > b->end_ns ? b->end_ns : ns;
}

/* Where it stands among those of its time: the first, ends, launches, begins. */
static int moment_rank(const struct moment *m)
{
	return m->ends != NONE ? 0 : m->begins != NONE ? 2 : 1;
}

/* Of those that end the inner first, of those that begin the outer. */
static int moment_order(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	const int p = moment_rank(x), q = moment_rank(y);

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (p != q)
		return p - q;
	if (p == 0)
		return x->ends > y->ends ? -1 : x->ends < y->ends;
	return x->begins < y->begins ? -1 : x->begins > y->begins;
}

/* Has a part of its time in it, on a thread that takes part. What is of a task overlaps others. */
static bool takes_part(const struct building *b, const struct event_scope *s)
{
	return (s->flags & TRACE_SPAN) == 0 && s->end_ns > s->begin_ns && s->end_ns > b->begin_ns &&
	       s->begin_ns < b->end_ns && is_of(b, s->tid);
}

/* Begins and launches come nearly in order, ends are made so: three pieces in order are soon one. */
static void find_moments(struct building *b)
{
	const struct event_scope *const scope = b->e->scope;
	const struct event_op *o;
	uint32_t i, begins;

	b->moment = malloc((2ul * b->e->n_scopes + b->e->n_ops + 1) * sizeof(*b->moment));
	b->failed |= b->moment == NULL;
	for (i = 0; i < b->e->n_scopes && !b->failed; i++)
		if (takes_part(b, &scope[i]))
			add_moment(b, clip(b, scope[i].begin_ns), i, NONE);
	begins = b->n_moments;
	for (i = 0; i < begins; i++)
		add_moment(
			b, clip(b, scope[b->moment[i].begins].end_ns), NONE, b->moment[i].begins);
	if (begins > 1)
		qsort(b->moment + begins, begins, sizeof(*b->moment), moment_order);
	for (o = b->e->op; o < b->e->op + b->e->n_ops && !b->failed; o++)
		if (o->launched && in_it(b, o->launch_ns))
			add_moment(b, o->launch_ns, NONE, NONE);
	if (!b->failed)
		runs_sort(b->moment, b->n_moments, sizeof(*b->moment), moment_order);
}

static void add_place(struct building *b, uint64_t ns, uint32_t of, enum place_kind kind)
{
	b->place[b->n_places++] = (struct place){ns, of, (uint8_t)kind};
}

static int place_order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->of < y->of ? -1 : x->of > y->of;
}

static bool ends_in_it(const struct building *b, const struct event_op *o)
{
	return o->end_ns > b->begin_ns && o->end_ns <= b->end_ns;
}

/* Work that ends in it; what goes on behind it no path to its end needs. Node 0 is where it begins, the last where it ends. */
static void find_places(struct building *b)
{
	const struct event_op *o;
	uint32_t i;

	b->place = malloc((b->n_moments + 2ul * b->e->n_ops + 1) * sizeof(*b->place));
	b->failed |= b->place == NULL;
	if (b->failed)
		return;
	for (i = 0; i < b->n_moments; i++)
		add_place(b, b->moment[i].ns, i, AT_HOST);
	for (i = 0; i < b->e->n_ops; i++) {
		o = &b->e->op[i];
		b->op_start[i] = b->op_end[i] = NONE;
		if (ends_in_it(b, o) && o->start_ns >= b->begin_ns)
			add_place(b, o->start_ns, i, AT_OP_START);
	}
	for (i = 0; i < b->e->n_ops; i++)
		if (ends_in_it(b, &b->e->op[i]))
			add_place(b, b->e->op[i].end_ns, i, AT_OP_END);
	runs_sort(b->place, b->n_places, sizeof(*b->place), place_order);
	for (i = 0; i < b->n_places; i++)
		if (b->place[i].kind == AT_HOST)
			b->moment[b->place[i].of].place = i + 1;
		else if (b->place[i].kind == AT_OP_START)
			b->op_start[b->place[i].of] = i + 1;
		else
			b->op_end[b->place[i].of] = i + 1;
}

/* --- streams and events */

static int stream_order(const void *a, const void *b, void *of)
{
	const struct event_op *ops = of, *x = &ops[*(const uint32_t *)a],
			      *y = &ops[*(const uint32_t *)b];

	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	if (x->launch_ns != y->launch_ns)
		return x->launch_ns < y->launch_ns ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

struct lane_key {
	const struct event_op *ops, *op;
	const uint32_t *last;
};

static bool lane_is(const void *arg, uint32_t at)
{
	const struct lane_key *k = arg;
	const struct event_op *x = &k->ops[k->last[at]], *y = k->op;

	return x->device == y->device && x->context == y->context && x->stream == y->stream;
}

/* Of those of its stream that began before an op and are over when it begins, the one that ended last. They come in the order
 * in which they began. */
static void find_before(struct building *b)
{
	const struct event_op *ops = b->e->op, *o;
	uint32_t *last = NULL, i, at = 0, n = 0, cap = 0, hash = 0; /* last: of each stream */
	struct table streams = {0};

	for (i = 0; i < b->e->n_ops && !b->failed; i++) {
		const struct lane_key k = {ops, &ops[i], last};

		o = &ops[i];
		b->before[i] = NONE;
		if (n == 0 || !lane_is(&k, at)) {
			hash = table_mix((uint64_t)o->device << 32 | o->context, o->stream);
			at = table_find(&streams, hash, lane_is, &k);
		}
		if (at == TABLE_NONE) {
			at = n;
			if (!ROOM_FOR(last, cap, n) || table_add(&streams, hash, at) == -ENOMEM)
				b->failed = true;
			else
				last[n++] = i;
			continue;
		}
		if (ops[last[at]].end_ns <= o->start_ns)
			b->before[i] = last[at];
		if (ops[last[at]].end_ns <= o->end_ns)
			last[at] = i;
	}
	table_fini(&streams);
	free(last);
}

static void find_streams(struct building *b)
{
	uint32_t i;

	for (i = 0; i < b->e->n_ops; i++)
		if (b->e->op[i].launched)
			b->by_stream[b->n_by_stream++] = i;
	if (b->n_by_stream > 1)
		qsort_r(b->by_stream, b->n_by_stream, sizeof(*b->by_stream), stream_order,
			b->e->op);
	for (i = 0; i < b->n_by_stream && b->n_streams < STREAMS; i++)
		if (i == 0 || b->e->op[b->by_stream[i]].stream != b->stream[b->n_streams - 1])
			b->stream[b->n_streams++] = b->e->op[b->by_stream[i]].stream;
}

/* The last work of a stream that was launched by `ns`; NONE. */
static uint32_t last_of(const struct building *b, uint32_t stream, uint64_t ns)
{
	uint32_t low = 0, high = b->n_by_stream, middle;
	const struct event_op *o;

	while (low < high) {
		middle = low + (high - low) / 2;
		o = &b->e->op[b->by_stream[middle]];
		if (o->stream < stream || (o->stream == stream && o->launch_ns <= ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && b->e->op[b->by_stream[low - 1]].stream == stream ? b->by_stream[low - 1]
									   : NONE;
}

struct event_key {
	const struct building *b;
	uint64_t event;
};

static bool event_is(const void *arg, uint32_t at)
{
	const struct event_key *k = arg;

	return k->b->record[at].event == k->event;
}

static void add_record(struct building *b, const struct event_scope *s)
{
	const struct event_key k = {b, s->call.event};
	const uint32_t hash = table_mix(s->call.event, 0);
	uint32_t at = table_find(&b->records, hash, event_is, &k);

	if (at == TABLE_NONE) {
		at = b->n_records;
		if (!ROOM_FOR(b->record, b->cap_records, b->n_records) ||
			table_add(&b->records, hash, at) == -ENOMEM) {
			b->failed = true;
			return;
		}
		b->record[b->n_records++].event = s->call.event;
	}
	b->record[at].op = last_of(b, s->call.stream, s->begin_ns);
}

static int wait_order(const void *a, const void *b, void *of)
{
	const struct event_scope *all = of, *x = &all[*(const uint32_t *)a],
				 *y = &all[*(const uint32_t *)b];

	if (x->call.stream != y->call.stream)
		return x->call.stream < y->call.stream ? -1 : 1;
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Events by their handle, which a later record takes anew: in order of time. */
static void find_events(struct building *b)
{
	const struct event_scope *s;
	uint32_t i, at;

	for (i = 0; i < b->e->n_scopes && !b->failed; i++) {
		s = &b->e->scope[i];
		b->awaited[i] = NONE;
		if ((s->flags & TRACE_CALL) == 0)
			continue;
		b->to->waits |= gpu_classes[s->call.class].counts == COUNTS_SYNC;
		if (s->call.class == CLASS_EVENT_RECORD)
			add_record(b, s);
		if (s->call.class != CLASS_STREAM_WAIT && s->call.class != CLASS_EVENT_SYNC)
			continue;
		at = table_find(&b->records, table_mix(s->call.event, 0), event_is,
			&(struct event_key){b, s->call.event});
		if (at != TABLE_NONE)
			b->awaited[i] = b->record[at].op;
		if (s->call.class == CLASS_STREAM_WAIT && b->awaited[i] != NONE)
			b->wait[b->n_waits++] = i;
	}
	if (b->n_waits > 1)
		qsort_r(b->wait, b->n_waits, sizeof(*b->wait), wait_order, b->e->scope);
}

/* --- the GPU's clock */

/* The i-th piece of work that a call waits for: the last that was launched before it on each stream, or an event's. False: there
 * are no more. */
static bool waited(const struct building *b, const struct event_scope *s, uint32_t i, uint32_t *ret)
{
	const uint8_t class = s->call.class;

	if (i >= (class == CLASS_DEVICE_SYNC ? b->n_streams : 1) ||
		(class != CLASS_DEVICE_SYNC && class != CLASS_STREAM_SYNC &&
			class != CLASS_EVENT_SYNC))
		return false;
	*ret = class == CLASS_EVENT_SYNC    ? b->awaited[s - b->e->scope]
	       : class == CLASS_STREAM_SYNC ? last_of(b, s->call.stream, s->begin_ns)
					    : last_of(b, b->stream[i], s->begin_ns);
	return true;
}

/* By how much the work of a call that waited seems to end behind it, at most. */
static uint64_t lateness(const struct building *b)
{
	const struct event_scope *s;
	uint64_t most = 0, end;
	uint32_t i, op;

	for (s = b->e->scope; s < b->e->scope + b->e->n_scopes; s++)
		for (i = 0; (s->flags & TRACE_CALL) != 0 && waited(b, s, i, &op); i++) {
			end = op != NONE ? b->e->op[op].end_ns : 0;
			if (end > s->end_ns + most && end - s->end_ns <= SKEW_NS)
				most = end - s->end_ns;
		}
	return most;
}

/* CUPTI's times of the GPU are some microseconds beside the host's: a call that waits then seems to come back before its
 * work ended. All work is earlier by that, as far as none begins before its launch. */
static void settle_clock(struct building *b)
{
	uint64_t by = lateness(b);
	struct event_op *o, *end = b->e->op + b->e->n_ops;

	for (o = b->e->op; o < end; o++) {
		const uint64_t room = o->start_ns - (o->launched ? o->launch_ns : 0);

		if ((!o->launched || o->start_ns >= o->launch_ns) && room < by)
			by = room;
	}
	for (o = b->e->op; o < end && by > 0; o++) {
		o->start_ns -= by;
		o->end_ns -= by;
	}
}

/* --- edges */

static void add_edge(struct building *b, uint32_t from, uint32_t label, uint64_t ns)
{
	struct critical_graph *g = b->to;

	if (!ROOM_FOR(g->edge, g->cap_edges, g->n_edges))
		b->failed = true;
	else
		g->edge[g->n_edges++] = (struct longest_edge){from, label, (double)ns};
}

static bool waits_for(const struct building *b, const struct event_scope *s, uint32_t op)
{
	const struct event_op *o = &b->e->op[op];

	switch (s->call.class) {
	case CLASS_STREAM_SYNC:
		return o->stream == s->call.stream || s->call.stream == UINT32_MAX;
	case CLASS_DEVICE_SYNC:
		return true;
	case CLASS_COPY_WAIT:
		return o->launched && o->correlation == s->call.correlation;
	case CLASS_EVENT_SYNC:
		return op == b->awaited[s - b->e->scope];
	default:
		return false;
	}
}

/* The work that ended last of what a call waited for, since `from`; NONE. Of a stream that is not
 * known (CUPTI did not say), where one alone had work end in the call: what the timeline says, too. */
static uint32_t last_awaited(
	const struct building *b, const struct event_scope *s, uint64_t from, uint32_t to)
{
	const bool any = s->call.class == CLASS_STREAM_SYNC && s->call.stream == UINT32_MAX;
	const struct event_op *o;
	uint32_t i, last = NONE;

	/* Places are in order of time: back from the call's end. */
	for (i = to - 1; i-- > 0 && b->place[i].ns > from && (last == NONE || any);) {
		o = &b->e->op[b->place[i].of];
		if (b->place[i].kind != AT_OP_END || !waits_for(b, s, b->place[i].of) ||
			(o->launched && o->launch_ns > s->end_ns))
			continue;
		if (last != NONE && b->e->op[last].stream != o->stream)
			return NONE;
		last = last == NONE ? b->place[i].of : last;
	}
	return last;
}

/* What was over before, or would be later if something else were faster, bounds it, too. */
static void add_bound(struct building *b, uint32_t op, uint32_t last, uint32_t to, uint32_t node)
{
	if (op != NONE && op != last && b->op_end[op] != NONE && b->op_end[op] < to)
		add_edge(b, b->op_end[op], label_of(b, CRITICAL_RETURN, node), 0);
}

/* Edges to where a call came back. Whether it waited since `from`. */
static bool add_wait(struct building *b, const struct event_scope *s, uint64_t from, uint32_t to)
{
	const bool is_call = (s->flags & TRACE_CALL) != 0 && s->end_ns <= b->end_ns;
	const uint32_t last = is_call ? last_awaited(b, s, from, to) : NONE;
	uint32_t i, op;

	if (!is_call)
		return false;
	for (i = 0; waited(b, s, i, &op); i++)
		add_bound(b, op, last, to, s->node);
	if (last != NONE)
		add_edge(b, b->op_end[last], label_of(b, CRITICAL_RETURN, s->node),
			s->end_ns - b->e->op[last].end_ns);
	return last != NONE;
}

static void close_scope(struct building *b, uint32_t scope)
{
	uint32_t i;

	for (i = b->n_stack; i-- > 0;)
		if (b->stack[i] == scope) {
			memmove(b->stack + i, b->stack + i + 1,
				(b->n_stack - i - 1) * sizeof(*b->stack));
			b->n_stack--;
			return;
		}
}

/* What leads to a moment of the host: the one before it, and what it waited for meanwhile. */
static void host_edges(struct building *b, uint32_t at)
{
	const struct moment *m = &b->moment[at];
	const uint64_t from = at > 0 ? m[-1].ns : b->begin_ns;
	const bool mine = m->ends != NONE && b->n_stack > 0 && b->stack[b->n_stack - 1] == m->ends;
	const bool waited = mine && add_wait(b, &b->e->scope[m->ends], from, m->place);

	add_edge(b, at > 0 ? m[-1].place : 0, label_of_host(b), waited ? 0 : m->ns - from);
	if (m->ends != NONE)
		close_scope(b, m->ends);
	if (m->begins == NONE)
		return;
	if (!ROOM_FOR(b->stack, b->cap_stack, b->n_stack))
		b->failed = true;
	else
		b->stack[b->n_stack++] = m->begins;
}

struct bound { /* what work began after */
	uint32_t from;
	uint64_t ns;
	enum critical_part part;
};

/* The moment of a launch: the last one at that time. */
static uint32_t moment_at(const struct building *b, uint64_t ns)
{
	uint32_t low = 0, high = b->n_moments, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (b->moment[middle].ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 ? b->moment[low - 1].place : 0;
}

/* The work that an op's stream was made to wait for between the launch before and its own, and which ended last. */
static uint32_t event_before(const struct building *b, uint32_t op)
{
	const struct event_op *o = &b->e->op[op], *other;
	const uint32_t before = b->before[op];
	const uint64_t since =
		before != NONE && b->e->op[before].launched ? b->e->op[before].launch_ns : 0;
	uint32_t low = 0, high = b->n_waits, middle, ret = NONE, i;
	const struct event_scope *s;

	while (low < high) { /* behind the last that began by the launch */
		middle = low + (high - low) / 2;
		s = &b->e->scope[b->wait[middle]];
		if (s->call.stream < o->stream ||
			(s->call.stream == o->stream && s->begin_ns <= o->launch_ns))
			low = middle + 1;
		else
			high = middle;
	}
	for (i = 0; low > 0 && i < BACK; low--, i++) {
		s = &b->e->scope[b->wait[low - 1]];
		if (s->call.stream != o->stream || s->begin_ns < since)
			break;
		other = &b->e->op[b->awaited[b->wait[low - 1]]];
		if (other->end_ns <= o->start_ns && b->op_end[other - b->e->op] != NONE &&
			(ret == NONE || other->end_ns > b->e->op[ret].end_ns))
			ret = (uint32_t)(other - b->e->op);
	}
	return ret;
}

/* The last that it began after has the time since then; the others bound it, too, if that were faster. */
static void start_edges(struct building *b, uint32_t op)
{
	const struct event_op *o = &b->e->op[op];
	const uint32_t before = b->before[op],
		       other = o->launched && b->n_waits > 0 ? event_before(b, op) : NONE;
	struct bound v[3];
	uint32_t n = 0, i, latest = 0;

	if (o->launched && in_it(b, o->launch_ns) && o->launch_ns <= o->start_ns)
		v[n++] = (struct bound){moment_at(b, o->launch_ns), o->launch_ns, CRITICAL_LAUNCH};
	if (before != NONE && b->op_end[before] != NONE)
		v[n++] = (struct bound){b->op_end[before], b->e->op[before].end_ns, CRITICAL_GAP};
	if (other != NONE)
		v[n++] = (struct bound){b->op_end[other], b->e->op[other].end_ns, CRITICAL_EVENT};
	if (n == 0)
		v[n++] = (struct bound){0, b->begin_ns, CRITICAL_LAUNCH};
	for (i = 1; i < n; i++)
		latest = v[i].ns > v[latest].ns ? i : latest;
	for (i = 0; i < n; i++)
		add_edge(b, v[i].from, label_of(b, v[i].part, o->node),
			i == latest ? o->start_ns - v[i].ns : 0);
}

static void end_edge(struct building *b, uint32_t op)
{
	const struct event_op *o = &b->e->op[op];

	add_edge(b, b->op_start[op] == NONE ? 0 : b->op_start[op],
		label_of(b, part_of_op(o), o->node),
		o->end_ns - (o->start_ns > b->begin_ns ? o->start_ns : b->begin_ns));
}

/* A thread's step ends when that thread is done; else all must be. */
static void last_edge(struct building *b, bool of_host)
{
	const struct moment *m = b->n_moments > 0 ? &b->moment[b->n_moments - 1] : NULL;
	const struct place *p = b->n_places > 0 ? &b->place[b->n_places - 1] : NULL;

	if (!of_host && p != NULL && p->kind != AT_HOST)
		add_edge(b, b->n_places, label_of(b, CRITICAL_NOTHING, NONE), b->end_ns - p->ns);
	else
		add_edge(b, m != NULL ? m->place : 0, label_of_host(b),
			b->end_ns - (m != NULL ? m->ns : b->begin_ns));
}

/* Node 0 is the beginning, then the places, then the end. */
static void find_edges(struct building *b, bool of_host)
{
	struct critical_graph *g = b->to;
	uint32_t i;

	g->first[0] = g->first[1] = 0;
	for (i = 0; i < b->n_places && !b->failed; i++) {
		const struct place *p = &b->place[i];

		g->first[i + 1] = g->n_edges;
		if (p->kind == AT_HOST)
			host_edges(b, p->of);
		else if (p->kind == AT_OP_START)
			start_edges(b, p->of);
		else
			end_edge(b, p->of);
	}
	g->end = b->n_places + 1;
	g->n_nodes = b->n_places + 2;
	g->first[g->end] = g->n_edges;
	last_edge(b, of_host);
	g->first[g->n_nodes] = g->n_edges;
}

/* --- all */

static uint32_t *numbers(struct building *b, uint32_t n)
{
	uint32_t *ret = malloc((n + 1u) * sizeof(*ret));

	b->failed |= ret == NULL;
	return ret;
}

static void build(struct building *b, uint32_t tid)
{
	b->op_start = numbers(b, b->e->n_ops);
	b->op_end = numbers(b, b->e->n_ops);
	b->before = numbers(b, b->e->n_ops);
	b->by_stream = numbers(b, b->e->n_ops);
	b->awaited = numbers(b, b->e->n_scopes);
	b->wait = numbers(b, b->e->n_scopes);
	if (b->failed)
		return;
	find_before(b);
	find_streams(b);
	find_events(b);
	if (b->failed)
		return;
	settle_clock(b);
	find_threads(b, tid);
	if (!b->failed)
		find_moments(b);
	if (!b->failed)
		find_places(b);
	if (!b->failed)
		b->to->first = numbers(b, b->n_places + 2);
	if (b->failed)
		return;
	find_edges(b, tid != 0);
	b->failed = b->failed || b->labels.failed || critical_labels_merge(b->to) == -ENOMEM;
}

int critical_graph_new(const struct events *e, uint64_t begin_ns, uint64_t end_ns, uint32_t tid,
	struct critical_graph *ret)
{
	struct building b = {.e = e,
		.to = ret,
		.begin_ns = begin_ns,
		.end_ns = end_ns,
		.labels = {.known = e->known}};

	*ret = (struct critical_graph){.n_nodes = 0};
	build(&b, tid);
	free(b.moment);
	free(b.place);
	free(b.op_start);
	free(b.op_end);
	free(b.before);
	free(b.by_stream);
	free(b.awaited);
	free(b.wait);
	free(b.record);
	free(b.stack);
	table_fini(&b.records);
	table_fini(&b.labels.at);
	if (!b.failed)
		return 0;
	critical_graph_fini(ret);
	return -ENOMEM;
}

void critical_graph_fini(struct critical_graph *g)
{
	free(g->first);
	free(g->edge);
	free(g->label);
	*g = (struct critical_graph){.n_nodes = 0};
}
