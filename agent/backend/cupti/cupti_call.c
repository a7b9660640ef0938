/* SPDX-License-Identifier: MIT. cupti_call.c: calls that wait for the GPU or tell it what to wait
 * for, and with the switch api every other, as their callbacks see them. One CALL record at the
 * call's end, in the thread's own lane.
 *
 * No activity record is asked for: CUPTI's SYNCHRONIZATION records know neither thread nor scope,
 * leave out calls that found nothing to wait for, and cost a buffer; the callback has all that they
 * say. What of the driver a runtime call calls has the runtime call's correlation id, and is part of
 * it.
 */
#include <string.h>

#include "cupti_call.h"
#include "gpu_terms.h"

#define RUNTIME_MAX 512u
#define NO_STREAM   UINT32_MAX
#define NAME_MOST   128u

struct wait {
	uint8_t class; /* 0: none */
	uint8_t stream, event;
	bool memory, waits; /* for WANT_ALLOC, for WANT_SYNC */
};

/* clang-format off */
#define OF_MEMORY(class) ((class) == CLASS_ALLOC || (class) == CLASS_FREE || (class) == CLASS_REGISTER)
#define X(name, number, class, stream, event) \
	[number] = {CLASS_##class, stream, event, OF_MEMORY(CLASS_##class), true},
#define Y(name, number, class) [number] = {CLASS_##class, NOT_THERE, NOT_THERE, true, false},
static const struct wait driver[CBID_MAX] = {DRIVER_CALL_CBIDS(X) DRIVER_MEMORY_CBIDS(Y)};
static const struct wait runtime[RUNTIME_MAX] = {RUNTIME_CALL_CBIDS(X) RUNTIME_MEMORY_CBIDS(Y)};
#undef X
#undef Y
#define X(name, n, word, record, id, ...) [n] = (id),
static const uint8_t kind_of[CLASS_MAX] = {GPU_CLASSES(X)};
#undef X
static const bool blocks[CBID_MAX] = {
#define X(name, number) [number] = true,
	BLOCKING_COPY_CBIDS(X)
#undef X
};
static const bool tells_else[RUNTIME_MAX] = {
#define X(name, number) [number] = true,
	RESULT_ELSE_CBIDS(X)
#undef X
};
static const bool reads_runtime[CBID_MAX] = {
#define X(name, number) [number] = true,
	RUNTIME_READ_CBIDS(X)
};
static const bool reads_driver[CBID_MAX] = {
	DRIVER_READ_CBIDS(X)
#undef X
};
/* clang-format on */

/* The outermost call that the thread is in; and inside of it, where it is a call of the switch api
 * alone, the outermost of the others. One whose end was never told (the subscriber left meanwhile)
 * stays until the next. */
struct open_call {
	uint64_t begin; /* 0: in none */
	uint32_t correlation, callback;
};
static _Thread_local __attribute__((tls_model("initial-exec"))) struct open_call outermost, inner;

static const struct wait *wait_of(uint32_t domain, uint32_t cbid)
{
	static const struct wait none;

	if (domain == DOMAIN_DRIVER && cbid < CBID_MAX)
		return &driver[cbid];
	return domain == DOMAIN_RUNTIME && cbid < RUNTIME_MAX ? &runtime[cbid] : &none;
}

/* Ring names of calls, as in cupti_name.c but by number; NAME_NONE: not asked for yet. */
static _Atomic uint32_t names[2][CBID_MAX];

static _Atomic uint32_t *name_at(uint32_t domain, uint32_t cbid)
{
	return cbid < CBID_MAX ? &names[domain == DOMAIN_RUNTIME][cbid] : NULL;
}

/* Of "cudaMalloc_v3020" without the version; "cuMemAlloc_v2" is another call than cuMemAlloc. */
static size_t name_bytes(const char *function)
{
	const size_t n = strnlen(function, NAME_MOST);
	size_t at = n;

	while (at > 0 && function[at - 1] >= '0' && function[at - 1] <= '9')
		at--;
	return n - at >= 4 && at > 2 && function[at - 1] == 'v' && function[at - 2] == '_' ? at - 2
											   : n;
}

/* Inside agent_enter(): once for each call that the program makes. */
static void name_ask(_Atomic uint32_t *at, const char *function)
{
	if (function != NULL && function[0] != '\0')
		atomic_store_explicit(
			at, agent_name(function, name_bytes(function)), memory_order_relaxed);
}

static uint64_t param(const struct cupti_callback *d, uint8_t at)
{
	uint64_t v = 0;

	if (at != NOT_THERE && d->params != NULL)
		memcpy(&v, (const char *)d->params + at, sizeof(v));
	return v;
}

/* A default stream has no handle of its own to find it by: every context has one. Any other may be of
 * another context than the thread's, which CUPTI would refuse. */
bool cupti_stream_id(void *context, void *stream, bool of_thread, uint32_t *ret)
{
	const uintptr_t handle = (uintptr_t)stream;

	if (cupti.api.stream_id == NULL)
		return false;
	if (handle > STREAM_OF_THREAD)
		return cupti.api.stream_id(NULL, stream, 0, ret) == CUPTI_OK;
	of_thread = handle == STREAM_OF_THREAD || (handle == STREAM_DEFAULT && of_thread);
	return context != NULL && cupti.api.stream_id(context, NULL, of_thread, ret) == CUPTI_OK;
}

static uint32_t stream_of(const struct cupti_callback *d, const struct wait *w)
{
	void *handle = (void *)(uintptr_t)param(d, w->stream);
	const bool of_thread = d->function != NULL && strstr(d->function, "_ptsz") != NULL;
	uint32_t id;

	if (w->stream == NOT_THERE || d->params == NULL ||
		!cupti_stream_id(d->context, handle, of_thread, &id))
		return NO_STREAM;
	return id;
}

bool cupti_call_params(
	uint32_t domain, uint32_t cbid, const struct cupti_callback *d, struct cupti_dump_ids *ret)
{
	const struct wait *w = wait_of(domain, cbid);

	if (w->class == 0 || d->site != SITE_EXIT || d->params == NULL ||
		(w->stream == NOT_THERE && w->event == NOT_THERE))
		return false;
	ret->node = param(d, w->event);
	ret->original = param(d, w->stream);
	ret->graph = stream_of(d, w);
	return true;
}

/* CALL_ flags of what is at its end. */
static uint32_t api_flags(uint32_t domain, uint32_t cbid, const struct cupti_callback *d)
{
	int32_t result = CUDA_OK;

	if (!cupti_is_odd(ODD_API))
		return 0;
	if (d->ret_value != NULL &&
		!(domain == DOMAIN_RUNTIME && cbid < RUNTIME_MAX && tells_else[cbid]))
		memcpy(&result, d->ret_value, sizeof(result));
	return CALL_API | (result != CUDA_OK && result != CUDA_NOT_READY ? CALL_FAILED : 0);
}

/* What is asked for: of few calls the stream, of the first of each its name. False: refused. */
static bool call_ask(struct rec_call *r, const struct cupti_callback *d, const struct wait *w,
	_Atomic uint32_t *name)
{
	int saved;

	if (!agent_enter(&saved))
		return false;
	if (w->class != 0)
		r->stream = stream_of(d, w);
	if (name != NULL && r->name == NAME_NONE)
		name_ask(name, d->function);
	agent_leave(saved);
	return true;
}

/* It waits for nothing, and WANT_ALLOC may want it. */
static uint32_t only_memory(const struct wait *w)
{
	return w->memory && !w->waits ? CALL_ONLY_MEMORY : 0;
}

/* flags: CALL_ of the switch api, none of a call inside of another. */
static void call_ended(
	struct open_call *of, uint32_t flags, const struct cupti_callback *d, const struct wait *w)
{
	const uint32_t domain = of->callback >> 16, cbid = of->callback & 0xffff;
	_Atomic uint32_t *name = flags != 0 ? name_at(domain, cbid) : NULL;
	struct rec_call r = {.hdr = REC_HDR(0, REC_CALL, 0, flags | only_memory(w), 0),
		.begin = of->begin,
		.event = w->class != 0 ? param(d, w->event) : 0,
		.correlation = d->correlation,
		.context = d->context_uid,
		.stream = NO_STREAM,
		.epoch = (uint16_t)atomic_load_explicit(&cupti.epoch, memory_order_relaxed),
		.kind = kind_of[w->class != 0 ? w->class : CLASS_API]};

	of->begin = 0;
	if (w->class == 0 && flags == 0)
		return;        /* api went off just now */
	r.end = agent_clock(); /* what is asked for is not part of it */
	if (name != NULL)
		r.name = atomic_load_explicit(name, memory_order_relaxed);
	if (w->class != 0 || (name != NULL && r.name == NAME_NONE)) {
		if (!call_ask(&r, d, w, name))
			return; /* counted */
		if (name != NULL)
			r.name = atomic_load_explicit(name, memory_order_relaxed);
	}
	(void)agent_call(&r);
}

/* Without the switch api, too. */
static bool is_wanted_else(const struct wait *w)
{
	return (w->waits && atomic_load_explicit(&cupti.waits, memory_order_relaxed)) ||
	       (w->memory && atomic_load_explicit(&cupti.allocs, memory_order_relaxed));
}

static bool is_wanted(const struct wait *w)
{
	return cupti_is_odd(ODD_API) || is_wanted_else(w);
}

static bool is_in(const struct open_call *c, const struct cupti_callback *d)
{
	return c->begin != 0 && c->correlation == d->correlation;
}

/* What begins inside of the outermost call is part of it, but for what sync or alloc would have had
 * without api. */
static bool is_part(const struct cupti_callback *d, const struct wait *w)
{
	return is_in(&inner, d) || !is_wanted_else(w) ||
	       is_wanted_else(wait_of(outermost.callback >> 16, outermost.callback & 0xffff));
}

void cupti_call(uint32_t domain, uint32_t cbid, const struct cupti_callback *d)
{
	const struct wait *w = wait_of(domain, cbid);
	const uint32_t callback = domain << 16 | cbid;
	struct open_call *to = &outermost;

	if (!is_wanted(w) || atomic_load_explicit(&cupti.level, memory_order_relaxed) != LEVEL_ON)
		return;
	if (d->site == SITE_EXIT) {
		if (is_in(&outermost, d) && outermost.callback == callback)
			call_ended(&outermost, api_flags(domain, cbid, d), d, w);
		else if (is_in(&inner, d) && inner.callback == callback)
			call_ended(&inner, 0, d, w);
		return;
	}
	if (domain == DOMAIN_DRIVER && is_in(&outermost, d)) {
		if (is_part(d, w))
			return;
		to = &inner;
	} else {
		inner.begin = 0;
	}
	to->correlation = d->correlation;
	to->callback = callback;
	to->begin = agent_clock();
}

__attribute__((hot)) bool cupti_call_usual(
	uint32_t domain, uint32_t cbid, const struct cupti_callback *d)
{
	struct open_call *const o = &outermost;
	const bool in = is_in(o, d);
	uint32_t name;
	int32_t result = CUDA_OK;

	if (domain == DOMAIN_DRIVER && in && o->callback != (DOMAIN_DRIVER << 16 | cbid))
		return driver[cbid].class == 0; /* a part of it */
	if (d->site == SITE_ENTER) {
		inner.begin = 0;
		o->correlation = d->correlation;
		o->callback = domain << 16 | cbid;
		o->begin = agent_clock();
		return true;
	}
	if (!in || o->callback != (domain << 16 | cbid) || wait_of(domain, cbid)->class != 0)
		return false;
	name = atomic_load_explicit(name_at(domain, cbid), memory_order_relaxed);
	if (d->ret_value != NULL)
		memcpy(&result, d->ret_value, sizeof(result));
	if (name == NAME_NONE || result != CUDA_OK ||
		!agent_called(d->correlation, name,
			(uint16_t)atomic_load_explicit(&cupti.epoch, memory_order_relaxed),
			o->begin))
		return false;
	o->begin = 0;
	return true;
}

uint32_t cupti_copy_took(uint32_t cbid, uint64_t begin, uint32_t *ret_name)
{
	const uint64_t took = (agent_clock() - begin) / LAUNCH_UNIT;

	*ret_name = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
	return LAUNCH_TIMED | (blocks[cbid] ? LAUNCH_BLOCKS : 0);
}

void cupti_call_enable(void)
{
	const char *all = agent_env("PROTOND_API_ALL");
	const bool reads = all != NULL && strcmp(all, "1") == 0;
	uint32_t cbid;

	for (cbid = 0; cbid < CBID_MAX; cbid++)
		if (is_wanted(&driver[cbid]) && (reads || !reads_driver[cbid]))
			/* refused: this library has no such call */
			(void)cupti.api.enable_callback(1, cupti.subscriber, DOMAIN_DRIVER, cbid);
	for (cbid = 0; cbid < CBID_MAX; cbid++)
		if (is_wanted(wait_of(DOMAIN_RUNTIME, cbid)) && (reads || !reads_runtime[cbid]))
			(void)cupti.api.enable_callback(1, cupti.subscriber, DOMAIN_RUNTIME, cbid);
}
