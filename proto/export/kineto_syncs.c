/* SPDX-License-Identifier: MIT. kineto_syncs.c: calls that wait, as Kineto has them beside the runtime's:
 * rows cuda_sync of the GPU, here of a row for each thread, since threads wait side by side. */
#include "kineto_syncs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LANE_SYNCS   4200u  /* of a thread's calls that wait; tids stay below 2^32 */
#define RECORDED_MAX 65536u /* events; what waits for further ones does not say for which */

static const char *sync_name(uint8_t class)
{
	return class == CLASS_STREAM_SYNC   ? "Stream Sync"
	       : class == CLASS_EVENT_SYNC  ? "Event Sync"
	       : class == CLASS_DEVICE_SYNC ? "Context Sync"
	       : class == CLASS_STREAM_WAIT ? "Stream Wait Event"
					    : NULL;
}

struct event_key {
	const struct kineto_syncs *k;
	uint32_t process;
	uint64_t event;
};

static bool same_event(const void *arg, uint32_t at)
{
	const struct event_key *key = arg;
	const struct recorded *x = &key->k->recorded[at];

	return x->process == key->process && x->event == key->event;
}

static struct recorded *recorded_of(
	struct kineto_syncs *k, uint32_t process, uint64_t event, bool add)
{
	const struct event_key key = {k, process, event};
	const uint32_t hash = table_mix(event, process);
	uint32_t at = table_find(&k->by_event, hash, same_event, &key);

	if (at == TABLE_NONE && add && k->n_recorded < RECORDED_MAX &&
		ROOM_FOR(k->recorded, k->cap_recorded, k->n_recorded) &&
		table_add(&k->by_event, hash, k->n_recorded) == 0)
		at = k->n_recorded++;
	return at == TABLE_NONE ? NULL : &k->recorded[at];
}

static void note_record(struct kineto_syncs *k, uint32_t process, const struct trace_call *c)
{
	struct recorded *r = recorded_of(k, process, c->event, true);

	if (r != NULL)
		*r = (struct recorded){c->event, process, c->stream, c->correlation};
}

/* Streams have one number on several GPUs, and a call does not say whose. SORTED_NONE: not known. */
static uint32_t gpu_of_sync(const struct sorted *s, uint32_t process, uint32_t stream)
{
	uint32_t i, gpu = SORTED_NONE;

	for (i = 0; i < s->n_lanes; i++) {
		const struct sorted_lane *l = &s->lane[i];

		if (s->gpu[l->gpu].process != process || l->gpu == gpu ||
			(stream != UINT32_MAX && l->stream != stream))
			continue;
		if (gpu != SORTED_NONE)
			return SORTED_NONE;
		gpu = l->gpu;
	}
	return gpu;
}

static void name_row(struct kineto_syncs *k, struct chrome *c, const struct sorted *s,
	uint32_t thread, int64_t pid)
{
	char words[32];

	if (k->named[thread] == pid)
		return;
	k->named[thread] = pid;
	snprintf(words, sizeof(words), "syncs of thread %u", s->thread[thread].tid);
	chrome_metadata(c, "thread_name", pid, chrome_lane_tid(s->thread[thread].tid, LANE_SYNCS),
		"name", words, 0);
}

/* For which record it waited. */
static void put_event(
	struct sorted *s, uint32_t process, const struct trace_call *c, const struct recorded *r)
{
	struct text *t = &s->w->out;
	uint32_t i;

	text_fmt(t,
		",\"wait_on_stream\":%" PRId64 ",\"wait_on_cuda_event_record_corr_id\":%" PRId64
		",\"wait_on_cuda_event_id\":%" PRIu64,
		r == NULL || r->stream == UINT32_MAX ? -1 : (int64_t)r->stream,
		r == NULL ? -1 : (int64_t)r->correlation, c->event);
	for (i = 0; i < s->n_gpus; i++)
		if (s->gpu[i].process == process &&
			chrome_object(t, "event name", s->gpu[i].streams, GPU_EVENT(c->event)))
			break;
}

void kineto_sync(struct kineto_syncs *k, struct chrome *c, struct sorted *s,
	const struct sorted_scope *x, bool ordinals)
{
	const struct trace_call *call = &x->call;
	const struct sorted_thread *th = &s->thread[x->thread];
	const char *name = sync_name(call->class);
	const uint32_t gpu = gpu_of_sync(s, th->process, call->stream);
	const int64_t pid = gpu == SORTED_NONE ? s->process[th->process].pid
			    : ordinals         ? s->gpu[gpu].ordinal
					       : s->gpu[gpu].pid;

	if (call->class == CLASS_EVENT_RECORD)
		note_record(k, th->process, call);
	if (name == NULL)
		return;
	name_row(k, c, s, x->thread, pid);
	chrome_event(c, "X", gpu_classes[call->class].trace, name, pid,
		chrome_lane_tid(th->tid, LANE_SYNCS), x->begin_ns);
	text_str(c->t, ",\"dur\":");
	chrome_micros(c->t, x->end_ns - x->begin_ns);
	text_fmt(c->t,
		",\"args\":{\"cuda_sync_kind\":\"%s\",\"stream\":%" PRId64 ",\"correlation\":%u",
		name, call->stream == UINT32_MAX ? -1 : (int64_t)call->stream, call->correlation);
	if (gpu != SORTED_NONE)
		text_fmt(c->t, ",\"device\":%u", s->gpu[gpu].ordinal);
	if (call->event != 0)
		put_event(s, th->process, call, recorded_of(k, th->process, call->event, false));
	text_str(c->t, "}}");
}

bool kineto_syncs_init(struct kineto_syncs *k, uint32_t n_threads)
{
	k->named = calloc((size_t)n_threads + 1, sizeof(*k->named));
	return k->named != NULL;
}

void kineto_syncs_fini(struct kineto_syncs *k)
{
	free(k->recorded);
	free(k->named);
	table_fini(&k->by_event);
}
