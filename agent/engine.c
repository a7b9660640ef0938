/* SPDX-License-Identifier: MIT. engine.c: the engine's table: what libprotond calls, and in which
 * order things come to be.
 *
 * open() makes the ring, the tables, the lanes and the agent's thread, once per process. want()
 * says what is recorded. In a forked child the page of agent_hot is zero: nothing is recorded, and
 * the child's own open() starts over with a ring of its own.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent.h"
#include "capture.h"
#include "clock.h"
#include "counters.h"
#include "event.h"
#include "gpu.h"
#include "intern.h"
#include "lane.h"
#include "proxy.h"
#include "registry.h"
#include "ring_file.h"
#include "sampler.h"
#include "scope.h"
#include "worker.h"

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "0.1.0"
#endif
#define EXPORT __attribute__((visibility("default")))

/* A child forked by a signal handler returns into the call that it interrupted, with the parent's
 * ring under it. */
static void in_child(void)
{
	memset(&agent_page, 0, sizeof(agent_page));
	agent_on_backend = false;
	agent_self = NULL;
	counters_forked();
	ring_forget();
}

/* The kernel wipes the page at fork(), where it can, and fork()'s own hook does the rest; a raw
 * clone() is not covered by that. */
static int forget_on_fork(void)
{
	static bool hooked;
	int r = 0;

	(void)madvise(&agent_page, sizeof(agent_page), MADV_WIPEONFORK);
	if (!hooked)
		r = -pthread_atfork(NULL, NULL, in_child);
	hooked = r == 0;
	return r;
}

/* Everything that was the parent's: its ring must not be touched, its threads are not here. */
static void forget_parent(void)
{
	const struct protond_host *host = core.host;
	const struct backend *b = core.backend;

	if (core.header == NULL)
		return;
	ring_descend();
	if (b != NULL && b->forked != NULL)
		b->forked();
	ring_forget();
	/* The descriptor is the parent's ring: but the number may be the application's own by now.
	 */
	if (ring_back(0, 0) != -EBADF)
		close(core.fd);
	agent_on_backend = false;
	agent_self = NULL;
	memset(&core, 0, sizeof(core));
	event_forked();
	sampler_forked();
	counters_forked();
	core.fd = -1;
	core.host = host;
	core.backend = b;
}

static int make(const struct engine_open *o, char *text)
{
	int r;

	generation_set(0); /* before tsc: a forked child's threads may be in agent_launch() */
	agent_clock_open();
	HOT->inherit_copy = o->inherit_copy != 0;
	r = ring_make(o, text);
	if (r < 0)
		return r;
	r = table_init();
	if (r == 0)
		r = lane_init();
	if (r < 0) {
		snprintf(text, 256,
			"no memory for the ring's tables (is the tmpfs full, or ulimit -v low?)");
		return r;
	}
	/* release: all of the header and the first entries; pairs with the daemon's acquire of
	 * magic */
	atomic_store_explicit(
		(_Atomic uint64_t *)&core.header->magic, RING_MAGIC, memory_order_release);
	ring_name();
	return 0;
}

static int start(char *text)
{
	int r;

	generation_set(0);
	HOT->opened = 1;
	proxy_forget();
	r = worker_start();
	if (r < 0) {
		HOT->opened = 0;
		snprintf(text, 256, "cannot start the agent's thread: %s", strerror(-r));
	}
	return r;
}

static int engine_open(const struct protond_host *host, const struct engine_open *o, char *text)
{
	int r;

	text[0] = '\0';
	if (host == NULL || host->abi != ENGINE_ABI || host->bytes < HOST_BYTES_LEAST) {
		snprintf(text, 256, "libprotond and libprotond-agent are of different versions");
		return -EPROTO;
	}
	if (HOT->opened != 0) {
		snprintf(text, 256, "another libprotond in this process has the agent");
		return -EALREADY;
	}
	forget_parent();
	core.host = host;
	core.wakes = HOST_HAS(host, wake);
	r = forget_on_fork();
	if (r == 0)
		r = make(o, text);
	if (r == 0)
		r = start(text);
	if (r < 0) {
		lane_fini();
		ring_unmake();
	}
	return r;
}

static int engine_ring_fd(uint8_t ret_uuid[16], uint32_t *ret_named)
{
	if (HOT->opened == 0)
		return -ENOTCONN;
	if (ring_back(0, RING_PAGE) == -EBADF && !ring_reopen())
		return -EBADF;
	memcpy(ret_uuid, core.uuid, 16);
	*ret_named = core.named;
	return core.fd;
}

/* A recording begins anew when there was none and when scopes begin to be timed: scopes that are
 * open then count as entered before it. */
static void record_want(uint32_t want)
{
	const uint32_t old = atomic_load_explicit(&HOT->want, memory_order_relaxed);
	const bool counted = (want & WANT_COUNTERS) != 0;
	const bool timed = (want & WANT_SCOPES) != 0 && ((want & WANT_CPU_TIME) != 0 || counted);
	const enum scope_clock clock = HOT->tsc != 0 ? CPU_TSC : CPU_MONOTONIC,
			       on = counted ? CPU_COUNTED : clock, cpu = timed ? on : CPU_OFF;
	const bool as_before = (HOT->cpu != CPU_OFF) == timed;

	atomic_store_explicit(&HOT->want, want, memory_order_relaxed);
	if ((want & AGENT_WANT_RECORD) == 0) {
		generation_set(0);
		atomic_store_explicit(&HOT->cpu, CPU_OFF, memory_order_relaxed);
		return;
	}
	if (HOT->generation != 0 && as_before && (old & AGENT_WANT_RECORD) != 0) {
		atomic_store_explicit(&HOT->cpu, cpu, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&HOT->began, agent_clock(), memory_order_relaxed);
	atomic_store_explicit(&HOT->cpu, cpu, memory_order_relaxed);
	atomic_store_explicit(&HOT->main_path, scope_main_snapshot(), memory_order_relaxed);
	core.generation++;
	lane_retry();
	generation_set(core.generation);
	worker_clock();
	proxy_look();
}

static int engine_want(uint32_t want)
{
	const bool less = (want & AGENT_WANT_RECORD) == 0;

	if (HOT->opened == 0)
		return -ENOTCONN;
	if (core.ending_ns != 0 || !worker_in(UINT32_MAX))
		return -ESHUTDOWN;
	if (less)
		gpu_want(want); /* what still arrives belongs to the recording that ends */
	if ((want & WANT_COUNTERS) != 0)
		counters_want(true);
	record_want(want);
	if ((want & WANT_COUNTERS) == 0)
		counters_want(false);
	if (!less)
		gpu_want(want);
	sampler_want((want & WANT_CPU_SAMPLES) != 0);
	worker_out();
	agent_ring();
	return 0;
}

static void engine_child_lost(int32_t n)
{
	if (HOT->opened == 0)
		forget_parent();
	ring_child_lost(n);
}

static void engine_gpu_hint(uint32_t hints)
{
	core.gpu_take |= (hints & GPU_HINT_TAKE) != 0;
	core.gpu_aside = (hints & GPU_HINT_ASIDE) != 0;
}

static void engine_gpu_give_back(void)
{
	if (HOT->opened == 0 || core.ending_ns != 0 || !worker_in(UINT32_MAX))
		return;
	gpu_give_back();
	worker_out();
}

static uint32_t engine_nvtx(void *get_export_table)
{
	const struct backend *b = registry_marker();

	return b != NULL && core.host != NULL ? b->attach(core.host, get_export_table) : 0;
}

static uint32_t engine_nvtx_extension(void *module)
{
	const struct backend *b = registry_marker();

	return b != NULL && core.host != NULL ? b->extend(module) : 0;
}

static void engine_host(const struct protond_host *host)
{
	if (core.host == NULL && host != NULL && host->abi == ENGINE_ABI &&
		host->bytes >= HOST_BYTES_LEAST)
		core.host = host;
}

static int engine_flush(uint32_t timeout_ms)
{
	return HOT->opened != 0 ? worker_flush(timeout_ms) : 0;
}

static void engine_markers(uint32_t on)
{
	atomic_store_explicit(&core.markers_off, on == 0, memory_order_relaxed);
}

static uint32_t engine_capturing(const struct pd_thread *t)
{
	return HOT->opened != 0 && capture_open(t);
}

static uint32_t engine_captured(struct pd_thread *t, uint32_t name, uint32_t type, uint64_t which)
{
	return event_captured(t, name, type, which);
}

static void engine_unkept(void)
{
	if (HOT->opened != 0 && HOT->generation != 0 && HOT->cpu != CPU_OFF)
		agent_count(&core.counts->drop_no_lane, 1);
}

static uint32_t engine_threads(void)
{
	return HOT->opened != 0 ? 1 + sampler_runs() : 0;
}

EXPORT const struct protond_engine *protond_engine_v1(void);

EXPORT const struct protond_engine *protond_engine_v1(void)
{
	static const struct protond_engine engine = {
		.abi = ENGINE_ABI,
		.bytes = sizeof(engine),
		.version = PROTOND_BUILD_VERSION,
		.open = engine_open,
		.ring_fd = engine_ring_fd,
		.control = ring_control,
		.want = engine_want,
		.exit = worker_exit,
		.thread_exit = scope_thread_exit,
		.scope_enter = scope_enter,
		.scope_exit = scope_exit,
		.scope_unwind = scope_unwind,
		.state_changed = scope_state_changed,
		.context_changed = scope_context_changed,
		.metric = agent_metric,
		.session = event_session,
		.flush = engine_flush,
		.nvtx = engine_nvtx,
		.host = engine_host,
		.clock = agent_clock,
		.span = agent_span,
		.gpu_hint = engine_gpu_hint,
		.gpu_give_back = engine_gpu_give_back,
		.child_lost = engine_child_lost,
		.capturing = engine_capturing,
		.captured = engine_captured,
		.captured_ring = capture_ring,
		.markers = engine_markers,
		.nvtx_extension = engine_nvtx_extension,
		.block = event_block,
		.unkept = engine_unkept,
		.threads = engine_threads,
	};

	return &engine;
}
