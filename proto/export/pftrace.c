/* SPDX-License-Identifier: MIT. pftrace.c: the format pftrace: Perfetto's own trace
 * (https://perfetto.dev/docs/reference/trace-packet-proto), for ui.perfetto.dev and
 * trace_processor: smaller than JSON, exact to the nanosecond, with typed GPU work.
 *
 * A file is packets one behind the other; they need not be in order of time, and one that is cut
 * off loses no other. Scopes are slices on their threads, a task is a track of its own, a launch is
 * an instant with an arrow to its GPU work. Operations of one stream may overlap: Perfetto puts them
 * beside each other. Names stand once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "protobuf.h"
#include "table.h"
#include "timeline.h"

#define SEQUENCE 1u
#define BEFORE_MAX \
	65536u /* scopes of a process that began before its recording and are kept back */

/* Numbers of fields and values in Perfetto's .proto files. */
enum {
	TRACE_PACKET = 1,
	PACKET_CLOCKS = 6,
	PACKET_TIME = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_GPU_EVENT = 53,
	PACKET_TRACK = 60,
	PACKET_FIRST = 87,
	PACKET_GPU_INFO = 128,
	FLAGS_CLEARED = 1,
	FLAGS_NEEDED = 2,
	CLOCKS_CLOCK = 1,
	CLOCKS_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIME = 2,
	CLOCK_ID_REALTIME = 1,
	CLOCK_ID_BOOTTIME = 6, /* what a packet's time is of, unless it says another */
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT_NAME = 6,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	PROCESS_LABELS = 8,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	EVENT_CATEGORY = 3,
	EVENT_NOTE = 4,
	EVENT_TYPE = 9,
	EVENT_NAME = 10,
	EVENT_TRACK = 11,
	EVENT_NAME_TEXT = 23,
	EVENT_COUNT = 44,
	EVENT_GPU_CORRELATION = 3000,
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,
	CORRELATION_SUBMITTED = 1,
	NOTE_BOOL = 2,
	NOTE_UINT = 3,
	NOTE_INT = 4,
	NOTE_DOUBLE = 5,
	NOTE_TEXT = 6,
	NOTE_NAME = 10,
	INTERNED_CATEGORY = 1,
	INTERNED_NAME = 2,
	INTERNED_CONTEXT = 23,
	INTERNED_SPECIFICATION = 24,
	INTERNED_IID = 1,
	INTERNED_TEXT = 2,
	SPECIFICATION_CATEGORY = 4,
	SPECIFICATION_COMPUTE = 2,
	CONTEXT_PID = 2,
	CONTEXT_API = 3,
	API_CUDA = 4,
	API_HIP = 5,
	GPU_ID = 1,
	GPU_DURATION = 2,
	GPU_CONTEXT = 5,
	GPU_GPU = 11,
	GPU_QUEUE = 13,
	GPU_STAGE = 14,
	GPU_NAME = 20,
	GPU_LAUNCH = 21,
	LAUNCH_GRID = 1,
	LAUNCH_BLOCK = 2,
	LAUNCH_ARGUMENT = 3,
	ARGUMENT_NAME = 2,
	ARGUMENT_UINT = 4,
	INFO_GPU = 1,
	INFO_NAME = 1,
	/* our own numbers of what is interned beside nodes' names */
	CATEGORY_SCOPE = 1,
	CATEGORY_TASK,
	CATEGORY_LAUNCH,
	CATEGORY_METRIC,
	CATEGORY_SUMMED,
	CATEGORY_SYNC,
	STAGE_FIRST = 1,    /* + enum cell_class */
	QUEUE_FIRST = 64,   /* + place of the stream's lanes, over all processes */
	TRACKS_PROCESS = 1, /* uuid: kind, number of the process, thread */
	TRACKS_THREAD = 2,
	TRACKS_TASK = 3,
	TRACKS_READING = 4,
	TRACKS_SUMMED = 5,
	TRACKS_SYNCS = 6,
};

struct slice {
	uint64_t begin_ns, end_ns, track;
	uint32_t category, node, depth;
	size_t at, n; /* its notes, in notes.s */
	bool begun;   /* its begin is kept back */
};

struct slices {
	struct slice *v;
	uint32_t n, cap;
	struct text notes;
};

struct pftrace {
	bool begun;
	struct text packet, event, part, piece, interned;
	struct slices now, before; /* of the chunk; of the process, kept back */
	const struct slice **open; /* a thread's, while they are written */
	uint32_t cap_open;
	uint64_t n_processes, n_operations, n_tasks;
	uint32_t queue, n_queues; /* the first of this process; all that were told */
	bool stage_told[CLASS_MAX], context_told, summed_told;
};

static struct pftrace *mine(struct timeline *w)
{
	return w->mine;
}

/* --- packets */

/* Ends the packet at hand: everything else in it was put to f->packet. */
static void put_packet(struct timeline *w, bool names)
{
	struct pftrace *f = mine(w);

	if (f->interned.n > 0)
		pb_message(&f->packet, PACKET_INTERNED, &f->interned);
	pb_number(&f->packet, PACKET_SEQUENCE, SEQUENCE);
	if (!f->begun)
		pb_number(&f->packet, PACKET_FIRST, 1);
	if (!f->begun || names)
		pb_number(&f->packet, PACKET_FLAGS,
			(f->begun ? 0 : FLAGS_CLEARED) | (names ? FLAGS_NEEDED : 0));
	f->begun = true;
	pb_message(&w->out, TRACE_PACKET, &f->packet);
}

/* Of the wall: the ring's time of a replay's operations is before the machine began. */
static uint64_t trace_time(const struct timeline *w, uint64_t ns)
{
	return (uint64_t)w->zero_ns + ns;
}

static uint64_t track(uint64_t kind, uint64_t process, uint64_t number)
{
	return kind << 60 | (process & 0xfffffff) << 32 | (number & UINT32_MAX);
}

static void intern(struct pftrace *f, uint32_t list, uint64_t iid, const char *s)
{
	pb_number(&f->piece, INTERNED_IID, iid);
	pb_string(&f->piece, INTERNED_TEXT, s);
	pb_message(&f->interned, list, &f->piece);
}

/* The number of a node's name, which is told with its first event. */
static uint64_t name_of(struct timeline *w, uint32_t node)
{
	struct known *k = &w->known[node];

	if (!k->told)
		intern(mine(w), INTERNED_NAME, (uint64_t)node + 1, k->name);
	k->told = true;
	return (uint64_t)node + 1;
}

/* --- notes of an event */

static void note_uint(struct pftrace *f, struct text *to, const char *name, uint64_t v)
{
	pb_string(&f->part, NOTE_NAME, name);
	pb_number(&f->part, NOTE_UINT, v);
	pb_message(to, EVENT_NOTE, &f->part);
}

static void note_metric(struct pftrace *f, struct text *to, const struct held *h)
{
	pb_string(&f->part, NOTE_NAME, h->name);
	if (h->type == VALUE_STR)
		pb_string(&f->part, NOTE_TEXT, h->text);
	else if (h->type == VALUE_F64)
		pb_fixed64(&f->part, NOTE_DOUBLE, h->bits);
	else
		pb_number(&f->part, h->type == VALUE_I64 ? NOTE_INT : NOTE_UINT, h->bits);
	pb_message(to, EVENT_NOTE, &f->part);
}

static void note_flag(struct pftrace *f, struct text *to, const char *name, bool is)
{
	if (!is)
		return;
	pb_string(&f->part, NOTE_NAME, name);
	pb_number(&f->part, NOTE_BOOL, 1);
	pb_message(to, EVENT_NOTE, &f->part);
}

static void note_text(struct pftrace *f, struct text *to, const char *name, const char *text)
{
	pb_string(&f->part, NOTE_NAME, name);
	pb_string(&f->part, NOTE_TEXT, text);
	pb_message(to, EVENT_NOTE, &f->part);
}

static void note_color(struct pftrace *f, struct text *to, uint32_t color)
{
	char words[8];

	if (color == 0)
		return;
	(void)snprintf(words, sizeof(words), "#%06" PRIx32, color & (NAMED_COLOR - 1));
	note_text(f, to, "color", words);
}

static void note_sync(struct timeline *w, struct text *to, const struct trace_call *c)
{
	struct pftrace *f = mine(w);
	char name[GPU_LABEL_BYTES] = "";
	uint32_t i;

	note_uint(f, to, "correlation", c->correlation);
	if (c->stream != UINT32_MAX)
		note_uint(f, to, "stream", c->stream);
	if (c->event != 0)
		note_uint(f, to, "event", c->event);
	for (i = 0; c->event != 0 && name[0] == '\0' && i < w->n_gpus; i++)
		gpu_object_name(w->gpu[i].streams, GPU_EVENT(c->event), name);
	if (name[0] != '\0')
		note_text(f, to, "event name", name);
}

static void scope_notes(struct timeline *w, const struct timeline_scope *s, struct text *to)
{
	struct pftrace *f = mine(w);

	for (uint32_t i = 0; i < s->n_metrics; i++)
		note_metric(f, to, &w->held[w->taken[i]]);
	note_color(f, to, w->known[s->node].color);
	if (timeline_is_sync(s))
		note_sync(w, to, &s->call);
	note_flag(f, to, "open", (s->flags & TRACE_OPEN) != 0);
	note_flag(f, to, "began_before", (s->flags & TRACE_BEGAN_BEFORE) != 0);
	note_flag(f, to, "unwound", (s->flags & TRACE_UNWOUND) != 0);
}

/* --- scopes */

static void put_begin(struct timeline *w, const struct slice *s, const char *notes)
{
	struct pftrace *f = mine(w);

	pb_number(&f->event, EVENT_TYPE, TYPE_BEGIN);
	pb_number(&f->event, EVENT_TRACK, s->track);
	pb_number(&f->event, EVENT_CATEGORY, s->category);
	pb_number(&f->event, EVENT_NAME, name_of(w, s->node));
	text_add(&f->event, notes, s->n);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, s->begin_ns));
	pb_message(&f->packet, PACKET_EVENT, &f->event);
	put_packet(w, true);
}

static void put_end(struct timeline *w, uint64_t uuid, uint64_t ns)
{
	struct pftrace *f = mine(w);

	pb_number(&f->event, EVENT_TYPE, TYPE_END);
	pb_number(&f->event, EVENT_TRACK, uuid);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, ns));
	pb_message(&f->packet, PACKET_EVENT, &f->event);
	put_packet(w, false);
}

static void put_track(struct timeline *w, uint64_t uuid, uint64_t parent, const char *name)
{
	struct pftrace *f = mine(w);

	pb_number(&f->event, TRACK_UUID, uuid);
	if (parent != 0)
		pb_number(&f->event, TRACK_PARENT, parent);
	if (name != NULL)
		pb_string(&f->event, TRACK_NAME, name);
	pb_message(&f->packet, PACKET_TRACK, &f->event);
	put_packet(w, false);
}

static uint64_t thread_track(struct timeline *w, uint32_t tid)
{
	return track(TRACKS_THREAD, mine(w)->n_processes, tid);
}

static uint64_t syncs_track(struct timeline *w, uint32_t tid)
{
	return track(TRACKS_SYNCS, mine(w)->n_processes, tid);
}

/* It may overlap others of its thread. */
static void put_task(struct timeline *w, const struct timeline_scope *s)
{
	struct pftrace *f = mine(w);
	const uint64_t uuid = track(TRACKS_TASK, f->n_tasks >> 32, f->n_tasks);
	const size_t at = f->now.notes.n;
	struct slice slice = {
		.begin_ns = s->begin_ns, .track = uuid, .category = CATEGORY_TASK, .node = s->node};

	f->n_tasks++;
	scope_notes(w, s, &f->now.notes);
	slice.n = f->now.notes.n - at;
	put_track(w, uuid, thread_track(w, s->tid), w->known[s->node].name);
	put_begin(w, &slice, f->now.notes.s + at);
	put_end(w, uuid, s->end_ns);
	f->now.notes.n = at;
}

static uint32_t depth_of(const struct timeline *w, uint32_t node)
{
	uint32_t n = 0;

	for (; node != PROFILE_NONE && n < TRACE_DEPTH_MAX; node = w->known[node].parent)
		n++;
	return n;
}

static struct slice *keep(struct timeline *w, const struct timeline_scope *s, struct slices *to)
{
	struct slice *kept;

	if (!ROOM_FOR(to->v, to->cap, to->n)) {
		w->out.failed = true;
		return NULL;
	}
	kept = &to->v[to->n++];
	*kept = (struct slice){.begin_ns = s->begin_ns,
		.end_ns = s->end_ns,
		.track = timeline_is_sync(s) ? syncs_track(w, s->tid) : thread_track(w, s->tid),
		.category = timeline_is_sync(s) ? CATEGORY_SYNC : CATEGORY_SCOPE,
		.node = s->node,
		.depth = depth_of(w, s->node)};
	return kept;
}

static void keep_notes(
	struct timeline *w, const struct timeline_scope *s, struct slices *of, struct slice *kept)
{
	if (kept == NULL)
		return;
	kept->at = of->notes.n;
	scope_notes(w, s, &of->notes);
	kept->n = of->notes.n - kept->at;
}

static void pf_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct pftrace *f = mine(w);
	struct slice *kept;

	if ((s->flags & TRACE_SPAN) != 0) {
		put_task(w, s);
		return;
	}
	kept = keep(w, s, &f->now);
	if (kept != NULL && (s->flags & TRACE_BEGAN_BEFORE) != 0 && f->before.n < BEFORE_MAX) {
		kept->begun = true;
		keep_notes(w, s, &f->before, keep(w, s, &f->before));
	} else {
		keep_notes(w, s, &f->now, kept);
	}
}

/* By track, then the outer one first. */
static int slice_order(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

/* Begins and ends of one instant are read in the order in which they stand here: what is inside ends
 * first, and begins last. */
static void put_slices(struct timeline *w, struct slices *of)
{
	struct pftrace *f = mine(w);
	uint32_t n = 0;

	if (of->n > 1)
		qsort(of->v, of->n, sizeof(*of->v), slice_order);
	for (uint32_t i = 0; i < of->n; i++) {
		const struct slice *s = &of->v[i];

		for (; n > 0 && (f->open[n - 1]->track != s->track ||
					f->open[n - 1]->end_ns <= s->begin_ns);
			n--)
			put_end(w, f->open[n - 1]->track, f->open[n - 1]->end_ns);
		if (!s->begun)
			put_begin(w, s, of->notes.s + s->at);
		if (!ROOM_FOR(f->open, f->cap_open, n)) {
			w->out.failed = true;
			return;
		}
		f->open[n++] = s;
	}
	while (n-- > 0)
		put_end(w, f->open[n]->track, f->open[n]->end_ns);
}

static void pf_chunk_end(struct timeline *w)
{
	struct pftrace *f = mine(w);

	put_slices(w, &f->now);
	f->now.n = 0;
	f->now.notes.n = 0;
}

/* All that were open when recording began did so in one instant: only now is it known which. */
static void put_before(struct timeline *w)
{
	struct slices *of = &mine(w)->before;

	if (of->n > 1)
		qsort(of->v, of->n, sizeof(*of->v), slice_order);
	for (uint32_t i = 0; i < of->n; i++)
		put_begin(w, &of->v[i], of->notes.s + of->v[i].at);
	of->n = 0;
	of->notes.n = 0;
}

static void pf_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	struct pftrace *f = mine(w);

	pb_number(&f->event, EVENT_TYPE, TYPE_INSTANT);
	pb_number(&f->event, EVENT_TRACK, thread_track(w, h->tid));
	pb_number(&f->event, EVENT_CATEGORY, CATEGORY_METRIC);
	pb_number(&f->event, EVENT_NAME, name_of(w, h->node));
	note_metric(f, &f->event, h);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, ns));
	pb_message(&f->packet, PACKET_EVENT, &f->event);
	put_packet(w, true);
}

/* Scopes begin and end within it as they like: it has a track below its thread's. */
static void pf_burst(struct timeline *w, const struct timeline_burst *b)
{
	struct pftrace *f = mine(w);
	const uint64_t uuid = track(TRACKS_SUMMED, f->n_processes, b->tid);
	char words[64];

	if (b->first)
		put_track(w, uuid, thread_track(w, b->tid), "summed");
	if (!f->summed_told)
		intern(f, INTERNED_CATEGORY, CATEGORY_SUMMED, "summed");
	f->summed_told = true;
	snprintf(words, sizeof(words), BURST_WORDS, b->n);
	pb_number(&f->event, EVENT_TYPE, TYPE_BEGIN);
	pb_number(&f->event, EVENT_TRACK, uuid);
	pb_number(&f->event, EVENT_CATEGORY, CATEGORY_SUMMED);
	pb_string(&f->event, EVENT_NAME_TEXT, words);
	note_uint(f, &f->event, "count", b->n);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, b->begin_ns));
	pb_message(&f->packet, PACKET_EVENT, &f->event);
	put_packet(w, true);
	put_end(w, uuid, b->end_ns);
}

/* --- what the GPU did */

static void specification(struct pftrace *f, uint64_t iid, const char *name)
{
	pb_number(&f->piece, INTERNED_IID, iid);
	pb_string(&f->piece, INTERNED_TEXT, name);
	pb_number(&f->piece, SPECIFICATION_CATEGORY, SPECIFICATION_COMPUTE);
	pb_message(&f->interned, INTERNED_SPECIFICATION, &f->piece);
}

static uint64_t stage_of(struct pftrace *f, uint8_t class)
{
	if (!f->stage_told[class])
		specification(f, STAGE_FIRST + class, gpu_classes[class].trace);
	f->stage_told[class] = true;
	return STAGE_FIRST + class;
}

static uint64_t queue_of(struct timeline *w, const struct timeline_op *o)
{
	struct pftrace *f = mine(w);
	char words[GPU_STREAM_WORDS + 32], name[GPU_STREAM_WORDS];
	const struct gpu_seen *g;
	uint32_t i = 0;

	while (i < w->n_lanes &&
		(w->lane[i].device != o->stream->device || w->lane[i].stream != o->stream->stream))
		i++;
	for (; f->queue + i >= f->n_queues; f->n_queues++) {
		const struct lane_set *l = &w->lane[f->n_queues - f->queue];

		g = timeline_gpu(w, l->device);
		gpu_stream_words(g != NULL ? g->streams : NULL, l->stream, 0, name);
		snprintf(words, sizeof(words), "%s (pid %lld)", name, (long long)w->at.pid);
		specification(f, QUEUE_FIRST + f->n_queues, words);
	}
	return QUEUE_FIRST + f->queue + i;
}

static uint64_t context_of(struct timeline *w)
{
	struct pftrace *f = mine(w);
	const bool hip = w->l.p->n_devices > 0 && strcmp(w->l.p->device[0].type, "HIP") == 0;

	if (!f->context_told) {
		pb_number(&f->piece, INTERNED_IID, f->n_processes);
		pb_number(&f->piece, CONTEXT_PID, (uint64_t)w->at.pid);
		pb_number(&f->piece, CONTEXT_API, hip ? API_HIP : API_CUDA);
		pb_message(&f->interned, INTERNED_CONTEXT, &f->piece);
	}
	f->context_told = true;
	return f->n_processes;
}

static void put_size(struct pftrace *f, uint32_t field, const uint32_t v[3])
{
	for (uint32_t i = 0; i < 3; i++)
		pb_number(&f->piece, i + 1, v[i]);
	pb_message(&f->part, field, &f->piece);
}

static void argument(struct pftrace *f, const char *name, uint64_t v)
{
	pb_string(&f->piece, ARGUMENT_NAME, name);
	pb_number(&f->piece, ARGUMENT_UINT, v);
	pb_message(&f->part, LAUNCH_ARGUMENT, &f->piece);
}

static void put_details(struct pftrace *f, const struct timeline_op *o)
{
	const struct trace_config *c = o->config;

	if (c != NULL) {
		put_size(f, LAUNCH_GRID, c->grid);
		put_size(f, LAUNCH_BLOCK, c->block);
	}
	argument(f, "device", o->gpu->ordinal);
	argument(f, "stream", o->stream->stream);
	argument(f, "context", o->stream->context);
	if (c != NULL) {
		argument(f, "registers_per_thread", c->registers);
		argument(f, "shared_mem_static", c->static_shared);
		argument(f, "shared_mem_dynamic", c->dynamic_shared);
	}
	if (!gpu_class_is_kernel(o->op->class))
		argument(f, "bytes", o->op->bytes);
	if ((o->op->flags & TRACE_UNLAUNCHED) == 0)
		argument(f, "correlation", o->op->correlation);
	pb_message(&f->event, GPU_LAUNCH, &f->part);
}

/* An instant, and the arrow from there. */
static void put_launch(struct timeline *w, const struct timeline_op *o)
{
	const bool graph = (o->op->flags & TRACE_GRAPH) != 0;
	struct pftrace *f = mine(w);

	pb_number(&f->event, EVENT_TYPE, TYPE_INSTANT);
	pb_number(&f->event, EVENT_TRACK, thread_track(w, o->tid));
	pb_number(&f->event, EVENT_CATEGORY, CATEGORY_LAUNCH);
	pb_string(&f->event, EVENT_NAME_TEXT,
		graph ? "launch graph" : gpu_classes[o->op->class].launch);
	note_uint(f, &f->event, "correlation", o->op->correlation);
	pb_number(&f->part, CORRELATION_SUBMITTED, f->n_operations);
	pb_message(&f->event, EVENT_GPU_CORRELATION, &f->part);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, o->launch_ns));
	pb_message(&f->packet, PACKET_EVENT, &f->event);
	put_packet(w, true);
}

static void pf_op(struct timeline *w, const struct timeline_op *o)
{
	struct pftrace *f = mine(w);

	f->n_operations++;
	pb_number(&f->event, GPU_ID, f->n_operations);
	pb_number(&f->event, GPU_DURATION, o->end_ns - o->start_ns);
	pb_number(&f->event, GPU_CONTEXT, context_of(w));
	pb_number(&f->event, GPU_GPU, o->gpu->ordinal);
	pb_number(&f->event, GPU_QUEUE, queue_of(w, o));
	pb_number(&f->event, GPU_STAGE, stage_of(f, o->op->class));
	pb_number(&f->event, GPU_NAME, name_of(w, o->node));
	put_details(f, o);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, o->start_ns));
	pb_message(&f->packet, PACKET_GPU_EVENT, &f->event);
	put_packet(w, true);
	if (o->launch)
		put_launch(w, o);
}

/* --- processes, and the file */

static void pf_process(struct timeline *w)
{
	struct pftrace *f = mine(w);
	char words[32];

	f->n_processes++;
	f->queue = f->n_queues;
	f->context_told = false;
	pb_number(&f->event, TRACK_UUID, track(TRACKS_PROCESS, f->n_processes, 0));
	pb_number(&f->part, PROCESS_PID, (uint64_t)w->at.pid);
	pb_string(&f->part, PROCESS_NAME, w->at.command);
	if (w->at.ranked) {
		snprintf(words, sizeof(words), "rank %lld", (long long)w->at.rank);
		pb_string(&f->part, PROCESS_LABELS, words);
	}
	pb_message(&f->event, TRACK_PROCESS, &f->part);
	pb_message(&f->packet, PACKET_TRACK, &f->event);
	put_packet(w, false);
}

static void pf_process_end(struct timeline *w)
{
	struct pftrace *f = mine(w);
	char words[THREAD_NAME_MAX];

	put_before(w);
	for (uint32_t i = 0; i < w->n_threads; i++) {
		const struct named *t = &w->thread[i];

		pb_number(&f->event, TRACK_UUID, thread_track(w, t->tid));
		pb_number(&f->part, THREAD_PID, (uint64_t)w->at.pid);
		pb_number(&f->part, THREAD_TID, t->tid);
		pb_string(&f->part, THREAD_NAME,
			thread_name(w->at.command, w->at.pid, t->tid, t->name, words));
		pb_message(&f->event, TRACK_THREAD, &f->part);
		pb_message(&f->packet, PACKET_TRACK, &f->event);
		put_packet(w, false);
		if (t->synced)
			put_track(w, syncs_track(w, t->tid), thread_track(w, t->tid), "syncs");
	}
}

/* A counter each, of no process. */
static void pf_reading(struct timeline *w, const struct timeline_reading *r)
{
	struct pftrace *f = mine(w);
	uint64_t bits;

	memcpy(&bits, &r->value->v, sizeof(bits));
	if (r->first) {
		pb_number(&f->event, TRACK_UUID, track(TRACKS_READING, 0, r->track));
		pb_string(&f->event, TRACK_NAME, r->name);
		pb_string(&f->part, COUNTER_UNIT_NAME, r->value->unit);
		pb_message(&f->event, TRACK_COUNTER, &f->part);
		pb_message(&f->packet, PACKET_TRACK, &f->event);
		put_packet(w, false);
	}
	pb_number(&f->event, EVENT_TYPE, TYPE_COUNTER);
	pb_number(&f->event, EVENT_TRACK, track(TRACKS_READING, 0, r->track));
	pb_fixed64(&f->event, EVENT_COUNT, bits);
	pb_number(&f->packet, PACKET_TIME, trace_time(w, r->begin_ns));
	pb_message(&f->packet, PACKET_EVENT, &f->event);
	put_packet(w, false);
}

static void clock_is(struct pftrace *f, uint64_t id, uint64_t ns)
{
	pb_number(&f->part, CLOCK_ID, id);
	pb_number(&f->part, CLOCK_TIME, ns);
	pb_message(&f->event, CLOCKS_CLOCK, &f->part);
}

static void pf_open(struct timeline *w)
{
	struct pftrace *f = mine(w);

	clock_is(f, CLOCK_ID_BOOTTIME, trace_time(w, 0));
	clock_is(f, CLOCK_ID_REALTIME, trace_time(w, 0));
	pb_number(&f->event, CLOCKS_PRIMARY, CLOCK_ID_BOOTTIME);
	pb_message(&f->packet, PACKET_CLOCKS, &f->event);
	intern(f, INTERNED_CATEGORY, CATEGORY_SCOPE, "scope");
	intern(f, INTERNED_CATEGORY, CATEGORY_TASK, "task");
	intern(f, INTERNED_CATEGORY, CATEGORY_LAUNCH, "launch");
	intern(f, INTERNED_CATEGORY, CATEGORY_METRIC, "metric");
	intern(f, INTERNED_CATEGORY, CATEGORY_SYNC, "cuda_sync");
	put_packet(w, false);
}

/* By their place in the list is how they are named. */
static void pf_device(struct timeline *w, const struct timeline_device *d)
{
	struct pftrace *f = mine(w);

	pb_string(&f->part, INFO_NAME, d->name);
	pb_message(&f->event, INFO_GPU, &f->part);
}

static void pf_opened(struct timeline *w)
{
	struct pftrace *f = mine(w);

	if (f->event.n == 0)
		return;
	pb_message(&f->packet, PACKET_GPU_INFO, &f->event);
	put_packet(w, false);
}

int pftrace_write(struct sqlite3 *db, int64_t id, const struct profile_select *s, FILE *to,
	struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form form = {.open = pf_open,
		.device = pf_device,
		.opened = pf_opened,
		.process = pf_process,
		.scope = pf_scope,
		.op = pf_op,
		.metric = pf_metric,
		.burst = pf_burst,
		.chunk_end = pf_chunk_end,
		.process_end = pf_process_end,
		.reading = pf_reading};
	struct pftrace f = {.begun = false};
	const int r = timeline_write(&form, &f, db, id, s, to, ret_left, e);

	text_fini(&f.packet);
	text_fini(&f.event);
	text_fini(&f.part);
	text_fini(&f.piece);
	text_fini(&f.interned);
	text_fini(&f.now.notes);
	text_fini(&f.before.notes);
	free(f.now.v);
	free(f.before.v);
	free(f.open);
	return r;
}
