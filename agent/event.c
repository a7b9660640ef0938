/* SPDX-License-Identifier: MIT. event.c: records that a program asks for by name: metrics, spans
 * and the marks of its sessions. */
#include "event.h"

#include <stdio.h>

#include "agent.h"
#include "capture.h"
#include "clock.h"
#include "guard.h"
#include "intern.h"
#include "lane.h"
#include "record.h"
#include "scope.h"
#include "sums.h"
#include "sync.h"

#define SESSION_TRIES 1000 /* of 1 ms: a mark that is lost would lose a session */

static uint64_t metric_bits(uint32_t type, uint64_t bits)
{
	return type == METRIC_STR ? table_name_of((uint32_t)bits) : bits;
}

/* context: where it belongs; 0: where the thread stands. */
static inline __attribute__((always_inline)) void metric_put(
	const struct pd_thread *t, const struct rec_metric *m, uint64_t context)
{
	struct lane *l = t->engine;
	struct rec_metric r = *m;
	bool op = false;

	r.hdr = REC_HDR(sizeof(r), REC_METRIC, 0, REC_FLAGS(m->hdr),
		context == 0 ? scope_where(t, l, &op) : table_context_path(context));
	r.clock = agent_clock_inline();
	r.name = table_name_of(m->name);
	r.value = metric_bits(REC_FLAGS(m->hdr), m->value);
	if (unlikely(atomic_load_explicit(&core.captures, memory_order_relaxed) != 0) &&
		capture_metric(t, &r, false))
		return;
	if (unlikely((HOT->want & WANT_PYTHON) != 0)) /* else 0, as it came */
		r.python = scope_python(l, op);
	if (likely(l->tail + sizeof(r) <= l->limit) || !sums_metric(l, &r))
		(void)lane_put(l, &r, sizeof(r));
}

static void span_put(struct lane *l, uint64_t context, uint64_t begin)
{
	struct rec_scope r = {.begin = begin, .end = agent_clock_inline()};
	const uint32_t before = begin == 0 ? SCOPE_BEGAN_BEFORE : 0;

	if (begin == 0)
		r.begin = atomic_load_explicit(&HOT->began, memory_order_relaxed);
	r.hdr = REC_HDR(sizeof(r), REC_SCOPE, 0, before | SCOPE_SPAN, table_context_path(context));
	if (likely(l->tail + sizeof(r) <= l->limit) || !sums_scope(l, &r))
		(void)lane_put(l, &r, sizeof(r));
}

/* With the guard and a lane: true; what is refused is counted. */
static bool event_in(struct pd_thread *t)
{
	if (t->busy != 0 && !guard_heal(t)) {
		guard_refused(t);
		return false;
	}
	guard_in(t);
	if (t->generation == HOT->generation || scope_sync(t))
		return true;
	agent_count(&core.counts->drop_no_lane, 1);
	guard_out(t);
	return false;
}

static inline bool metrics_on(void)
{
	return HOT->generation != 0 && (HOT->want & WANT_METRICS) != 0;
}

bool agent_metrics_on(void)
{
	return metrics_on();
}

uint32_t agent_cut(void)
{
	return HOT->generation + atomic_load_explicit(&core.cut, memory_order_relaxed) +
	       SUMS_CUT(atomic_load_explicit(&core.ctl->sums, memory_order_relaxed));
}

/* Inlined for each: a metric where the thread stands pays nothing for the other. */
static inline __attribute__((always_inline)) void metric_at(
	struct pd_thread *t, uint64_t context, uint32_t name, uint32_t type, uint64_t bits)
{
	const struct rec_metric m = {.hdr = REC_HDR(0, 0, 0, type, 0), .name = name, .value = bits};
	const int e = errno;

	if (!metrics_on())
		return;
	if (event_in(t)) {
		metric_put(t, &m, context);
		guard_out(t);
	}
	errno = e;
}

void agent_metric_at(
	struct pd_thread *t, uint64_t context, uint32_t name, uint32_t type, uint64_t bits)
{
	metric_at(t, context, name, type, bits);
}

void agent_metric(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t bits)
{
	metric_at(t, 0, name, type, bits);
}

void agent_lost(struct pd_thread *t, uint32_t cause, uint64_t n)
{
	struct rec_lost r = {.hdr = REC_HDR(sizeof(r), REC_LOST, 0, 0, cause), .count = n};
	const int e = errno;

	if (HOT->generation == 0)
		return;
	if (event_in(t)) {
		r.first = r.last = agent_clock_inline();
		(void)lane_put(t->engine, &r, sizeof(r));
		guard_out(t);
	}
	errno = e;
}

void event_block(struct pd_thread *t, const struct engine_block *b)
{
	struct rec_block r = {.address = b->address,
		.bytes = b->bytes,
		.reserved = b->reserved,
		.active = b->active,
		.split = b->split,
		.requested = b->requested,
		.device = b->device};
	const int e = errno;
	bool op;

	if (HOT->generation == 0 || (HOT->want & WANT_ALLOC) == 0)
		return;
	if (event_in(t)) {
		r.hdr = REC_HDR(sizeof(r), REC_BLOCK, 0, b->op, scope_where(t, t->engine, &op));
		r.clock = agent_clock_inline();
		(void)lane_put(t->engine, &r, sizeof(r));
		guard_out(t);
	}
	errno = e;
}

bool event_captured(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t which)
{
	struct rec_metric r = {.value = which};
	const int e = errno;
	bool taken = false, op;

	if (HOT->generation == 0 || (HOT->want & WANT_METRICS) == 0)
		return false;
	if (event_in(t)) {
		r.hdr = REC_HDR(sizeof(r), REC_METRIC, 0, type, agent_where(&op));
		r.name = table_name_of(name);
		taken = capture_metric(t, &r, true);
		guard_out(t);
	}
	errno = e;
	return taken;
}

void agent_span(struct pd_thread *t, uint64_t context, uint64_t begin)
{
	const int e = errno;

	if (HOT->generation == 0 || HOT->cpu == CPU_OFF || context == 0)
		return;
	if (event_in(t)) {
		span_put(t->engine, context, begin);
		guard_out(t);
	}
	errno = e;
}

uint64_t agent_span_begin(void)
{
	return HOT->generation != 0 ? agent_clock() : 0;
}

static uint32_t name_or_none(uint32_t local)
{
	return local != 0 ? table_name_of(local) : NAME_NONE;
}

/* --- which of the job's own sessions are inactive ---------------------------------------------
 *
 * What is captured into a CUDA graph while one is inactive is not in it when the graph runs, though
 * it may be active then. Session functions never run together. */
static struct {
	uint32_t n, number[JOB_SESSIONS];
	bool inactive[JOB_SESSIONS];
} own;

void event_forked(void)
{
	own.n = 0;
}

uint32_t event_captured_path(uint32_t path)
{
	const uint32_t except = atomic_load_explicit(&core.except, memory_order_relaxed);

	if (HOT->generation == 0)
		return path;
	/* At the root it is a level, too: PATH_ROOT alone is what nobody saw captured. */
	return except != 0 || path == PATH_ROOT ? agent_path_child(path, PATH_KIND_EXCEPT, except)
						: path;
}

bool agent_markers_off(void)
{
	return atomic_load_explicit(&core.markers_off, memory_order_relaxed);
}

uint32_t agent_where_captured(void)
{
	bool op;

	return event_captured_path(agent_where(&op));
}

static void own_change(uint32_t at, uint32_t verb)
{
	if (verb == SESSION_ACTIVATE || verb == SESSION_DEACTIVATE)
		own.inactive[at] = verb == SESSION_DEACTIVATE;
	if (verb != SESSION_FINALIZE)
		return;
	own.n--;
	memmove(&own.number[at], &own.number[at + 1], (own.n - at) * sizeof(own.number[0]));
	memmove(&own.inactive[at], &own.inactive[at + 1], (own.n - at) * sizeof(own.inactive[0]));
}

static void own_sessions(uint32_t verb, uint32_t session)
{
	char text[JOB_SESSIONS * 11 + 1];
	size_t used = 0;

	if (verb == SESSION_START && own.n < JOB_SESSIONS) {
		own.number[own.n] = session;
		own.inactive[own.n++] = false;
	}
	for (uint32_t i = own.n; i-- > 0;)
		if (session == SESSION_ALL || session == own.number[i])
			own_change(i, verb);
	for (uint32_t i = 0; i < own.n; i++)
		if (own.inactive[i])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u",
				used > 0 ? "," : "", own.number[i]);
	atomic_store_explicit(
		&core.except, used > 0 ? agent_name(text, used) : 0, memory_order_relaxed);
}

/* Dated and with its counts once there is room: what is lost meanwhile was lost before it. */
static bool session_put(struct lane *l, const struct rec_session *of)
{
	struct rec_session_cut r = {.session = *of};

	for (int i = 0; i < SESSION_TRIES; i++) {
		if (lane_room(l, sizeof(r))) {
			r.session.clock = agent_clock_inline();
			lane_lost(r.lost);
			return lane_put(l, &r, sizeof(r));
		}
		agent_wait(&core.flush_done, atomic_load(&core.flush_done), 1);
	}
	return false;
}

/* It is published: what comes from now on belongs behind it. */
static void session_said(const struct lane *l)
{
	/* release: who sees it finds the record there, and is at a later clock */
	atomic_fetch_add_explicit(&core.cut, 1, memory_order_release);
	lane_wake(l, 0);
}

/* Session functions may wait, and are not called from signal handlers. */
int event_session(struct pd_thread *t, uint32_t verb, uint32_t session, uint32_t name,
	const struct session_options *o)
{
	struct rec_session r = {
		.hdr = REC_HDR(sizeof(struct rec_session_cut), REC_SESSION, 0, verb, session)};
	int ret = 0;

	if (HOT->opened == 0)
		return -ENOTCONN;
	if (t->busy != 0 && !guard_heal(t))
		return -EBUSY;
	guard_in(t);
	if (verb == SESSION_START && o != NULL) {
		r.backend = name_or_none(o->backend);
		r.mode = name_or_none(o->mode);
		r.hook = name_or_none(o->hook);
		r.data = o->data;
		r.context = o->context;
		r.cpu = o->cpu;
		r.switches = o->switches;
		if ((o->flags & SESSION_DOMAINS) != 0)
			r.domains = name_or_none(o->domains);
	}
	if (o != NULL)
		r.flags = o->flags & ~SESSION_DOMAINS;
	if (verb == SESSION_FINALIZE)
		r.format = name_or_none(name);
	else
		r.name = name_or_none(name);
	if (t->engine == NULL && !scope_sync(t))
		ret = -ENOSPC;
	else if (!session_put(t->engine, &r))
		ret = -EAGAIN;
	else
		session_said(t->engine);
	if (ret == 0)
		own_sessions(verb, session);
	guard_out(t);
	return ret;
}
