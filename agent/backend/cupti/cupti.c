/* SPDX-License-Identifier: MIT. cupti.c: the CUPTI backend's life: none, armed, on, and back.
 *
 *   NONE --start(armed)--> ARMED --start(on)--> ON --stop--> NONE (residual until finalized)
 *
 * The V1 interface: exactly one subscriber in a process. Activity kinds go on before launches are
 * told and off after that, so that at the edges there is an activity record without a launch,
 * never a launch that waits for ever. The verbs run on one thread at a time (agent.h).
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent.h"
#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_device.h"
#include "cupti_dump.h"
#include "cupti_graph.h"
#include "cupti_load.h"
#include "cupti_name.h"
#include "cupti_pool.h"
#include "cupti_state.h"
#include "cupti_walk.h"

#define FINALIZE_WAIT_MS 250u
#define FINALIZE_VERSION 24u /* 12.6: before it, finalize with graphs alive crashed */

static struct {
	bool forked;
	bool residual; /* CUPTI was on since the last finalize */
	bool graphs;   /* there were some when their table was cleared: never finalized again */
	bool stalled;  /* a forced flush was made and nothing came by itself since */
	bool told_failure;
	uint32_t want;  /* WANT_ of the switches */
	uint64_t drift; /* launches that no record will answer, known by a forced flush */
} be;

static const uint32_t kinds[] = {KIND_MEMCPY, KIND_MEMSET, KIND_CONCURRENT_KERNEL};

/* Those that a switch asks for. Refused: this library is older than the kind. */
static const struct {
	uint32_t want;
	enum cupti_kind kind;
} switched[] = {
	{WANT_OVERHEAD, KIND_OVERHEAD}, {WANT_ALLOC, KIND_MEMORY}, {WANT_ALLOC, KIND_MEMORY_POOL}};

static enum cupti_level level(void)
{
	return (enum cupti_level)atomic_load_explicit(&cupti.level, memory_order_relaxed);
}

static int fail(struct backend_error *e, int32_t code, const char *words)
{
	e->code = code;
	snprintf(e->text, sizeof(e->text), "%s", words);
	return code < 0 ? code : -EIO;
}

static void describe(struct backend_status *ret)
{
	*ret = (struct backend_status){
		.gpu = {.library_version = cupti.version, .driver_version = cupti.driver},
		.replay = cupti.replay};
	snprintf(ret->gpu.path, sizeof(ret->gpu.path), "%s", cupti.path);
}

static int cupti_probe(struct backend_status *ret, struct backend_error *e)
{
	int r = be.forked ? fail(e, -ECHILD, "a forked child has no CUPTI") : cupti_load(e);

	describe(ret);
	if (r == 0 && cupti.driver == 0 && !cupti.replay)
		return cupti_error(e, CUPTI_UNKNOWN, "the driver");
	return r;
}

static void set_attribute(uint32_t attribute, uint8_t value)
{
	size_t bytes = sizeof(value);

	(void)cupti.api.set_attribute(attribute, &bytes, &value); /* unknown to older libraries */
}

static int subscribe(bool take, struct backend_error *e)
{
	int r;

	if (cupti_graph_init() < 0 || cupti_name_init() < 0)
		return fail(e, -ENOMEM, "no memory for the tables of the CUPTI backend");
	r = cupti.api.subscribe(&cupti.subscriber, cupti_on_callback, NULL);
	/* torch.profiler never unsubscribes. */
	if (r == CUPTI_OTHER_SUBSCRIBER && take && cupti.api.finalize != NULL &&
		cupti.version >= FINALIZE_VERSION && cupti.api.finalize() == CUPTI_OK)
		r = cupti.api.subscribe(&cupti.subscriber, cupti_on_callback, NULL);
	if (r != CUPTI_OK)
		return cupti_error(e, r, "cuptiSubscribe");
	atomic_fetch_add_explicit(&cupti.epoch, 1, memory_order_relaxed);
	cupti_walk_reset();
	be.stalled = be.told_failure = false;
	be.residual = true;
	return 0;
}

static void kinds_off(size_t n)
{
	while (n-- > 0)
		(void)cupti.api.activity_disable(kinds[n]);
}

/* Those of `which` go on, or off. */
static void switched_set(uint32_t which, bool on)
{
	size_t i;

	for (i = 0; i < sizeof(switched) / sizeof(switched[0]); i++)
		if ((which & switched[i].want) != 0)
			(void)(on ? cupti.api.activity_enable : cupti.api.activity_disable)(
				switched[i].kind);
}

static int kinds_on(struct backend_error *e)
{
	size_t i;
	int r;

	set_attribute(ATTR_ZEROED_OUT, 1);
	set_attribute(ATTR_PER_THREAD, 1);
	if (cupti.api.thread_id_type != NULL)
		(void)cupti.api.thread_id_type(THREAD_ID_SYSTEM);
	r = cupti.api.register_buffers(cupti_on_request, cupti_on_complete);
	if (r != CUPTI_OK)
		return cupti_error(e, r, "cuptiActivityRegisterCallbacks");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		r = cupti.api.activity_enable(kinds[i]);
		if (r != CUPTI_OK) {
			kinds_off(i);
			return cupti_error(e, r, "cuptiActivityEnable");
		}
	}
	switched_set(be.want, true);
	return 0;
}

/* Buffers that CUPTI has completed go into the ring. */
static uint64_t drain(void)
{
	size_t dropped = 0;
	uint64_t n;

	cupti_devices_ask();
	cupti_pool_grow();
	n = cupti_pool_drain(cupti_walk);

	if (cupti.api.dropped_records(NULL, 0, &dropped) == CUPTI_OK && dropped > 0)
		agent_count(&agent_counts()->gpu_dropped, dropped);
	return n;
}

static uint64_t cupti_pending(void)
{
	uint64_t launched = agent_launched(), gone = cupti_delivered() + be.drift;

	return launched > gone ? launched - gone : 0;
}

static uint32_t cupti_epoch(void)
{
	return (uint16_t)atomic_load_explicit(&cupti.epoch, memory_order_relaxed);
}

static uint64_t flush_all(bool force)
{
	uint64_t before = agent_launched(), done, n;

	if (cupti_is_odd(ODD_DUMP))
		cupti_dump_flush(force, true);
	if (force)
		cupti_pool_forcing(true);
	(void)cupti.api.flush_all(force ? 1 : 0);
	if (force)
		cupti_pool_forcing(false);
	n = drain();
	if (cupti_is_odd(ODD_DUMP)) {
		cupti_dump_flush(force, false);
		cupti_dump_sync();
	}
	/* A forced flush has given all there was: what is still missing of the launches made before
	 * it (a copy of 0 bytes makes no record) will never come. */
	done = cupti_delivered() + be.drift;
	if (force && before > done)
		be.drift += before - done;
	return n;
}

static void tell_failure(void)
{
	const int32_t code = atomic_load_explicit(&cupti.failed, memory_order_relaxed);
	struct backend_status s;

	if (code == 0 || be.told_failure)
		return;
	be.told_failure = true;
	describe(&s);
	s.gpu.state = GPU_FAILED;
	s.gpu.code = code;
	snprintf(s.gpu.words, sizeof(s.gpu.words), "%s",
		"CUPTI had a fatal error and left the process; scopes go on. "
		"Restart the job for GPU data");
	agent_report(&s, cupti_epoch());
}

static uint64_t cupti_flush(bool force)
{
	uint64_t n;

	if (be.forked)
		return 0;
	tell_failure();
	if (level() == LEVEL_NONE)
		return 0;
	if (level() == LEVEL_ARMED) {
		cupti_graph_reap(true);
		return 0;
	}
	n = flush_all(force);
	agent_given_tell();
	if (n > 0 && !force)
		be.stalled = false;
	/* Half of the buffers are out, no more can be made and nothing comes back: once per stall.
	 */
	if (n == 0 && !force && !be.stalled && cupti_pool_pressed()) {
		be.stalled = true;
		n = flush_all(true);
	}
	cupti_graph_reap(cupti_pending() == 0);
	return n;
}

static int go_on(struct backend_error *e)
{
	if (cupti_pool_init() < 0)
		return fail(e, -ENOMEM, "no memory for CUPTI's activity buffers");
	return kinds_on(e);
}

static void go_off(void)
{
	kinds_off(sizeof(kinds) / sizeof(kinds[0]));
	switched_set(be.want, false);
	(void)flush_all(true);
	cupti_pool_idle();
}

static void unsubscribe(void)
{
	if (cupti.subscriber != NULL)
		(void)cupti.api.unsubscribe(cupti.subscriber);
	cupti.subscriber = NULL;
}

static void go_none(void)
{
	unsubscribe();
	be.graphs |= cupti_graph_nodes() > 0;
	cupti_graph_clear(); /* their ends would go unseen */
}

/* On to armed: launches are told no more, graphs are. */
static int go_armed(struct backend_error *e)
{
	go_off();
	unsubscribe();
	return subscribe(false, e);
}

static int cupti_start(bool armed, bool take, struct backend_error *e)
{
	const enum cupti_level to = armed ? LEVEL_ARMED : LEVEL_ON;
	enum cupti_level from;
	int r;

	memset(e, 0, sizeof(*e));
	if (be.forked)
		return fail(e, -ECHILD, "a forked child has no CUPTI");
	if (atomic_load_explicit(&cupti.failed, memory_order_relaxed) != 0)
		return fail(e, -EIO, "CUPTI had a fatal error in this process; restart the job");
	r = cupti_load(e);
	if (r < 0)
		return r;
	from = level();
	if (from == to)
		return 0;
	if (from == LEVEL_NONE) {
		cupti_dump_init();
		r = subscribe(take, e);
		if (r < 0)
			return r;
	}
	r = to == LEVEL_ON ? go_on(e) : 0;
	if (r < 0 && from == LEVEL_NONE)
		go_none();
	if (r < 0)
		return r;
	if (cupti_is_odd(ODD_DUMP))
		cupti_dump_level(to);
	/* The level first: a callback that comes at once is of the new level. */
	atomic_store_explicit(&cupti.level, (uint32_t)to, memory_order_relaxed);
	r = from == LEVEL_ON ? go_armed(e) : 0;
	if (r < 0) {
		atomic_store_explicit(&cupti.level, LEVEL_NONE, memory_order_relaxed);
		go_none();
		return r;
	}
	cupti_enable(from, to);
	return 0;
}

/* Off is a flag: a callback is never switched off alone (cupti_callback.c). */
static void cupti_switches(uint32_t want)
{
	const uint32_t more = want & ~be.want, less = be.want & ~want;

	if (be.forked)
		return;
	be.want = want;
	cupti_set_odd(ODD_QUEUE, (want & WANT_QUEUE) != 0);
	cupti_set_odd(ODD_API, (want & WANT_API) != 0);
	atomic_store_explicit(&cupti.waits, (want & WANT_SYNC) != 0, memory_order_relaxed);
	atomic_store_explicit(&cupti.allocs, (want & WANT_ALLOC) != 0, memory_order_relaxed);
	if (level() != LEVEL_ON)
		return;
	switched_set(more, true);
	switched_set(less, false);
	if ((more & (WANT_SYNC | WANT_ALLOC | WANT_API)) != 0)
		cupti_call_enable();
}

static bool take_out(void)
{
	if (cupti.api.finalize == NULL || cupti.version < FINALIZE_VERSION || be.graphs ||
		cupti_graph_nodes() > 0)
		return false;
	if (!cupti_finalize_in_call(FINALIZE_WAIT_MS))
		return false;
	cupti.subscriber = NULL;
	cupti_graph_clear();
	be.residual = false;
	return true;
}

static int cupti_stop(bool give_back, bool *ret_residual)
{
	const enum cupti_level from = level();

	if (from != LEVEL_NONE && !be.forked) {
		/* The level first: launches are told no more when the kinds go off. */
		atomic_store_explicit(&cupti.level, LEVEL_NONE, memory_order_relaxed);
		if (from == LEVEL_ON)
			go_off();
		if (cupti_is_odd(ODD_DUMP)) {
			cupti_dump_level(LEVEL_NONE);
			cupti_dump_sync();
		}
		if (!give_back || !take_out())
			go_none();
	}
	*ret_residual = be.residual && !be.forked;
	return 0;
}

/* Whoever pauses on a thread that launches cannot wait for a launch of its own: it has let go, and
 * this comes after, on our thread. */
static bool cupti_give_back(void)
{
	struct backend_error e;

	if (be.forked || level() != LEVEL_NONE || subscribe(false, &e) < 0)
		return false;
	if (take_out())
		return true;
	go_none();
	return false;
}

/* What may hang in CUPTI runs on a thread of its own, which is left behind when it does. */
static struct {
	sem_t done;
	_Atomic bool forced;
} last;

static void *last_flush(void *arg)
{
	(void)arg;
	(void)cupti.api.flush_all(1);
	sem_post(&last.done);
	return NULL;
}

static bool last_thread(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	bool ok;

	if (pthread_attr_init(&attr) != 0)
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ok = pthread_create(&thread, &attr, last_flush, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return ok;
}

static bool cupti_exit(uint32_t timeout_ms)
{
	struct timespec until;
	int r = -1;

	if (level() != LEVEL_ON || be.forked)
		return false;
	atomic_store_explicit(
		&cupti.level, LEVEL_NONE, memory_order_relaxed); /* callbacks fall silent */
	if (sem_init(&last.done, 0, 0) != 0)
		return false;
	if (cupti_is_odd(ODD_DUMP))
		cupti_dump_flush(true, true);
	cupti_pool_forcing(true);
	if (last_thread() && clock_gettime(CLOCK_REALTIME, &until) == 0) {
		until.tv_sec += timeout_ms / 1000;
		until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		do
			r = sem_timedwait(&last.done, &until);
		while (r != 0 && errno == EINTR);
	}
	(void)cupti_pool_drain(cupti_walk);
	if (cupti_is_odd(ODD_DUMP)) {
		cupti_dump_flush(true, false);
		cupti_dump_level(LEVEL_NONE);
		cupti_dump_sync();
	}
	return r == 0;
}

static void cupti_forked(void)
{
	be.forked = true; /* CUPTI in a forked child hangs: nothing of it is called again */
	cupti_set_odd(ODD_DUMP, false);
	atomic_store_explicit(&cupti.level, LEVEL_NONE, memory_order_relaxed);
}

/* The thread's context is the stream's: who names a stream has it at hand. */
static bool cupti_object(enum gpu_object what, void *handle, uint32_t *ret_ordinal, uint64_t *ret)
{
	void *context = NULL;
	int device = -1, r = -1;
	uint32_t id = 0;

	if (level() == LEVEL_NONE || be.forked || cupti.cuda.context_device == NULL ||
		cupti.cuda.context_device(&device) != CUDA_OK || device < 0)
		return false;
	if (cupti.cuda.context != NULL)
		(void)cupti.cuda.context(&context);
	if (what == GPU_OBJECT_STREAM && cupti_stream_id(context, handle, false, &id))
		r = CUPTI_OK;
	if (what == GPU_OBJECT_CONTEXT && cupti.api.context_id != NULL)
		r = cupti.api.context_id(handle, &id);
	if (what == GPU_OBJECT_EVENT && handle != NULL)
		r = CUPTI_OK;
	*ret_ordinal = (uint32_t)device;
	*ret = what == GPU_OBJECT_STREAM    ? id
	       : what == GPU_OBJECT_CONTEXT ? GPU_CONTEXT(id)
					    : GPU_EVENT((uintptr_t)handle);
	return r == CUPTI_OK;
}

const struct backend backend_cupti = {
	.term = &backend_terms[BACKEND_cupti],
	.probe = cupti_probe,
	.start = cupti_start,
	.switches = cupti_switches,
	.flush = cupti_flush,
	.drain = drain,
	.waits = cupti_pool_grow,
	.pending = cupti_pending,
	.launched = agent_launched,
	.epoch = cupti_epoch,
	.stop = cupti_stop,
	.give_back = cupti_give_back,
	.exit = cupti_exit,
	.forked = cupti_forked,
	.object = cupti_object,
};
