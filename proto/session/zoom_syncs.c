/* SPDX-License-Identifier: MIT. zoom_syncs.c: what a call that waits waited for: the call that recorded its
 * event, and the work whose end let it come back. */
#include "zoom_int.h"

#define CHUNKS_MAX 16u /* read for one question, the likeliest first: further ones are not known */

struct finding {
	struct zoom *w;
	uint32_t chunk, process;
	const struct trace_call *call;
	uint64_t begin, begin_ns, end_ns; /* begin: by the ring's clock */
	bool waits;                       /* the thread, not a stream */
	/* any: the stream is not known, as CUPTI does not always say which is the default one: it
	 * is the only one that had work end in the call; several: there is more than one */
	bool any, several;
	uint32_t read;
	struct found {
		uint32_t chunk, at; /* chunk ZOOM_NONE: nothing */
		uint32_t stream;
		uint64_t best; /* the greatest of what decides */
		uint64_t ns;
	} record, work;
};

/* --- the record of an event: handles are used again, so it is the last one before */

static void record_in(struct finding *f, uint32_t chunk, const struct trace_chunk *c)
{
	struct trace_process *p = &f->w->process[f->process].p;
	const struct trace_scope *s = c->scope;
	uint32_t i;

	for (i = 0; i < c->n[TRACE_N_SCOPES]; i++, s++) {
		if ((s->flags & TRACE_CALL) == 0 || s->call.class != CLASS_EVENT_RECORD ||
			s->call.event != f->call->event || s->begin >= f->begin ||
			(f->record.chunk != ZOOM_NONE && s->begin <= f->record.best))
			continue;
		f->record = (struct found){chunk, i, s->call.stream, s->begin,
			trace_time_ring(&f->w->time, p, s->begin)};
	}
}

static int find_record(struct finding *f, struct err *e)
{
	struct trace_chunk c;
	uint32_t i = f->chunk + 1 < f->w->n_chunks ? f->chunk + 1 : f->chunk; /* a lane read late */
	int r = 0;

	for (i++; i-- > 0 && r == 0 && f->read < CHUNKS_MAX;) {
		if (f->w->chunk[i].process != f->process)
			continue;
		if (f->record.chunk != ZOOM_NONE && i < f->chunk)
			break;
		f->read++;
		r = zoom_read_chunk(f->w, i, trace_chunk_read_times, &c, e);
		if (r < 0)
			break;
		record_in(f, i, &c);
		trace_chunk_fini(&c);
	}
	return r;
}

/* --- the work */

/* Streams have one number on several GPUs, and a call does not say whose: then it is not known. */
static bool is_of_one_gpu(const struct finding *f, uint32_t stream)
{
	uint32_t i, device = ZOOM_NONE;

	for (i = 0; i < f->w->n_lanes; i++) {
		const struct zoomed_lane *l = &f->w->lane[i];

		if (l->kind != ZOOM_STREAM || l->process != f->process ||
			(stream != UINT32_MAX && l->number != stream))
			continue;
		if (device != ZOOM_NONE && device != l->device)
			return false;
		device = l->device;
	}
	return true;
}

static bool is_awaited(const struct finding *f, const struct trace_chunk *c,
	const struct trace_op *o, uint64_t launched)
{
	const bool by_record = f->record.chunk != ZOOM_NONE;
	const uint32_t stream = by_record ? f->record.stream : f->call->stream;

	if (f->call->class == CLASS_COPY_WAIT)
		return launched != ZOOM_NEVER && o->correlation == f->call->correlation;
	if (launched == ZOOM_NEVER ? !f->waits
				   : launched > (by_record ? f->record.ns : f->begin_ns))
		return false;
	return f->call->class == CLASS_DEVICE_SYNC || f->any ||
	       c->stream[o->stream].stream == stream;
}

static void work_in(struct finding *f, uint32_t chunk, const struct trace_chunk *c)
{
	struct trace_process *p = &f->w->process[f->process].p;
	const struct trace_op *o = c->op;
	uint64_t launched, end, best;
	uint32_t i, stream;

	for (i = 0; i < c->n[TRACE_N_OPS]; i++, o++) {
		launched = (o->flags & TRACE_UNLAUNCHED) != 0
				   ? ZOOM_NEVER
				   : trace_time_ring(&f->w->time, p, o->launched);
		end = trace_time_real(&f->w->time, o->start) + (o->end - o->start);
		best = f->waits ? end : launched;
		if (!is_awaited(f, c, o, launched) ||
			(f->waits && (end <= f->begin_ns || ((launched == ZOOM_NEVER || f->any) &&
								    end > f->end_ns))))
			continue;
		stream = c->stream[o->stream].stream;
		f->several |= f->any && f->work.chunk != ZOOM_NONE && stream != f->work.stream;
		if (f->work.chunk == ZOOM_NONE || best >= f->work.best)
			f->work =
				(struct found){chunk, c->n[TRACE_N_SCOPES] + i, stream, best, end};
	}
}

static bool may_have_work(const struct finding *f, const struct zoomed_chunk *k)
{
	if (k->process != f->process || k->n[TRACE_N_OPS] == 0)
		return false;
	return f->waits ? k->t0 < f->end_ns && k->t1 > f->begin_ns : k->launch0 <= f->record.ns;
}

static int find_work(struct finding *f, struct err *e)
{
	struct trace_chunk c;
	uint32_t i;
	int r = 0;

	f->read = 0;
	for (i = f->w->n_chunks; i-- > 0 && r == 0 && f->read < CHUNKS_MAX;) {
		if (!may_have_work(f, &f->w->chunk[i]))
			continue;
		f->read++;
		r = zoom_read_chunk(f->w, i, trace_chunk_read, &c, e);
		if (r < 0)
			break;
		work_in(f, i, &c);
		trace_chunk_fini(&c);
	}
	return r;
}

/* --- */

static int place_of(
	const struct finding *f, const struct found *of, struct zoom_place *ret, struct err *e)
{
	int r = of->chunk == ZOOM_NONE ? 0 : zoom_place_of(f->w, of->chunk, of->at, ret, e);

	ret->stream = of->stream;
	return r;
}

int zoom_sync(struct zoom *w, uint32_t chunk, const struct trace_scope *s, struct zoom_event *ret,
	struct err *e)
{
	const uint8_t class = s->call.class;
	const bool by_event = class == CLASS_EVENT_SYNC || class == CLASS_STREAM_WAIT;
	struct finding f = {.w = w,
		.chunk = chunk,
		.process = w->chunk[chunk].process,
		.call = &s->call,
		.begin = s->begin,
		.begin_ns = ret->start_ns,
		.end_ns = ret->end_ns,
		.waits = class != CLASS_STREAM_WAIT,
		.any = class == CLASS_STREAM_SYNC && s->call.stream == UINT32_MAX,
		.record = {.chunk = ZOOM_NONE},
		.work = {.chunk = ZOOM_NONE}};
	int r = 0;

	if (by_event && s->call.event != 0)
		r = find_record(&f, e);
	if (r < 0 || (by_event && f.record.chunk == ZOOM_NONE) ||
		(!by_event && class != CLASS_STREAM_SYNC && class != CLASS_DEVICE_SYNC &&
			class != CLASS_COPY_WAIT))
		return r;
	f.any |= by_event && f.waits && f.record.stream == UINT32_MAX;
	if (class == CLASS_COPY_WAIT ||
		is_of_one_gpu(&f, by_event ? f.record.stream : s->call.stream))
		r = find_work(&f, e);
	if (r == 0)
		r = place_of(&f, &f.record, &ret->record, e);
	return r < 0 || f.several ? r : place_of(&f, &f.work, &ret->ended_by, e);
}
