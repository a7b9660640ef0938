/* SPDX-License-Identifier: MIT. cupti_callback.c: what CUPTI calls on the application's threads.
 *
 * A launch: at the call's ENTER one LAUNCH record goes into the thread's lane; EXIT only looks at
 * one thread-local word. A call on a stream that is being captured launches nothing, it makes a
 * graph node, and no activity record will ever answer it. Nothing tells the two apart at ENTER, so
 * while any capture is open in the process the LAUNCH waits until EXIT and is left out when
 * NODE_CREATED came meanwhile. Without an open capture (the usual state) nothing of this is paid.
 *
 *   inside: NO      not in a call that launches
 *           PUT     in one; LAUNCH was written at ENTER
 *           WAITING in one; LAUNCH is written at EXIT, unless the call made a node
 *   OF_KERNEL: WAITING, in one that launches a kernel and nothing else
 *   REFUSED: a signal handler's call, which came while we were inside, or a copy of nothing; what
 *            it interrupted stays
 *
 * A copy or memset of nothing makes no activity record either. It is seen by its parameters and
 * left out.
 *
 * A capture that began before we subscribed is unseen; the first node made inside a PUT call shows
 * it, and that one launch stays without a record, which is counted out of `pending`.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "cupti_call.h"
#include "cupti_callback.h"
#include "cupti_dump.h"
#include "cupti_graph.h"
#include "cupti_name.h"

enum api_flag { API_LAUNCH = 0x10, API_BEGIN = 0x20, API_END = 0x40 };
enum inside {
	INSIDE_NO = 0,
	INSIDE_PUT = 1,
	INSIDE_WAITING = 2,
	MADE_NODE = 4,
	REFUSED = 8,
	OF_KERNEL = 16
};
/* While CUPTI is to be taken out `call` is: which attempt it is, this thread's driver calls since
 * it began, and whether a runtime call is open. */
enum leaving { IN_RUNTIME = 0x10, DRIVER_CALL = 0x100, ATTEMPT = 0x10000, UNSEEN_CALLS = 8 };

/* clang-format off */
static const uint8_t api[CBID_MAX] = {
#define X(name, cbid, flags) [cbid] = API_LAUNCH | (flags),
	LAUNCH_CBIDS(X)
#undef X
#define X(name, cbid) [cbid] = API_LAUNCH | LAUNCH_COPY,
	COPY_CBIDS(X)
#undef X
#define X(name, cbid) [cbid] = API_LAUNCH | LAUNCH_COPY | LAUNCH_GRAPH,
	BATCH_CBIDS(X)
#undef X
#define X(name, cbid) [cbid] = API_LAUNCH | LAUNCH_SET,
	SET_CBIDS(X)
#undef X
#define X(name, cbid, begin) [cbid] = (begin) ? API_BEGIN : API_END,
	CAPTURE_CBIDS(X)
#undef X
};
static const bool linear[CBID_MAX] = {
#define X(name, cbid) [cbid] = true,
	LINEAR_COPY_CBIDS(X)
	LINEAR_SET_CBIDS(X)
#undef X
};
/* clang-format on */

/* What the thread's current call is: enum inside, and MADE_NODE. */
static _Thread_local __attribute__((tls_model("initial-exec"))) uint32_t call;

enum finalize { FINALIZE_NO = 0, FINALIZE_WANTED = 1, FINALIZE_RUNS = 2, FINALIZE_DONE = 3 };
static _Atomic uint16_t attempt; /* goes up with each */

/* False: refused, and counted as such. */
__attribute__((cold, noinline)) static bool look_for(const char *symbol, uint32_t *ret_name)
{
	int saved;

	if (!agent_enter(&saved))
		return false;
	*ret_name = cupti_symbol(symbol);
	agent_leave(saved);
	return true;
}

/* Whether it is a copy or memset of nothing, which no record will answer. */
static bool is_of_nothing(uint32_t cbid, const struct cupti_callback *d)
{
	size_t count = 1;

	if (linear[cbid] && d->params != NULL) /* it is NULL where a dump is played */
		memcpy(&count, (const char *)d->params + LINEAR_COUNT, sizeof(count));
	return count == 0;
}

/* A copy whose call is to be timed: LAUNCH comes at EXIT, as if a capture were open. */
static bool is_timed(uint32_t cbid)
{
	return (api[cbid] & LAUNCH_COPY) != 0 &&
	       atomic_load_explicit(&cupti.waits, memory_order_relaxed);
}

/* What `call` is now. */
__attribute__((cold, noinline)) static uint32_t put_ended(uint32_t flags, uint32_t name,
	uint32_t cbid, const struct cupti_callback *d, uint64_t clock)
{
	const struct rec_launch r = {.clock = clock,
		.correlation = d->correlation,
		.name = name,
		.epoch = (uint16_t)atomic_load_explicit(&cupti.epoch, memory_order_relaxed),
		.api = (uint16_t)cbid};

	return agent_launch_ended(flags, &r) ? INSIDE_PUT : call | REFUSED;
}

/* What `call` is now. REFUSED: nothing was written, and EXIT has nothing to do. */
__attribute__((always_inline)) static inline uint32_t put_launch(
	uint32_t cbid, const struct cupti_callback *d, uint64_t clock)
{
	uint32_t flags = api[cbid] & (LAUNCH_GRAPH | LAUNCH_COPY | LAUNCH_SET);
	uint32_t name = NAME_NONE;

	if (flags != 0) {
		if (is_of_nothing(cbid, d))
			return call | REFUSED;
		if (clock == 0 && is_timed(cbid)) {
			*d->correlation_data = agent_clock();
			return INSIDE_WAITING;
		}
		if (clock != 0 && is_timed(cbid))
			flags |= cupti_copy_took(cbid, clock, &name);
	} else if (d->symbol != NULL) {
		name = cupti_symbol_known(d->symbol);
		if (name == NAME_NONE && !look_for(d->symbol, &name))
			return call | REFUSED;
	}
	if (clock != 0 && cupti_is_odd(ODD_QUEUE))
		return put_ended(flags, name, cbid, d, clock);
	return agent_launch(flags, d->correlation, name,
		       (uint16_t)atomic_load_explicit(&cupti.epoch, memory_order_relaxed),
		       (uint16_t)cbid, clock)
		       ? INSIDE_PUT
		       : call | REFUSED;
}

static void launch_wait(uint32_t cbid, const struct cupti_callback *d)
{
	call = INSIDE_WAITING | (api[cbid] == API_LAUNCH ? OF_KERNEL : 0);
	*d->correlation_data = agent_clock();
}

__attribute__((hot, noinline)) static void launch_enter(
	uint32_t cbid, const struct cupti_callback *d)
{
	if (atomic_load_explicit(&cupti.captures, memory_order_relaxed) > 0) {
		launch_wait(cbid, d);
		return;
	}
	call = put_launch(cbid, d, 0);
}

static int32_t returned(const struct cupti_callback *d)
{
	int32_t r = CUDA_OK;

	if (d->ret_value != NULL)
		memcpy(&r, d->ret_value, sizeof(r));
	return r;
}

static void launch_exit(uint32_t cbid, const struct cupti_callback *d)
{
	const uint32_t was = call;
	const bool launches = (was & MADE_NODE) == 0 && returned(d) == CUDA_OK;
	int32_t none = 0;

	if ((was & REFUSED) != 0) {
		call = was & ~(uint32_t)REFUSED;
		return;
	}
	call = INSIDE_NO;
	if ((was & INSIDE_WAITING) != 0 && launches)
		(void)put_launch(cbid, d, *d->correlation_data);
	if ((was & INSIDE_PUT) == 0 || launches)
		return;
	/* Nothing was launched: it failed, or it was captured and we had not seen the capture
	 * begin. */
	agent_launch_failed();
	if ((was & MADE_NODE) != 0)
		(void)atomic_compare_exchange_strong_explicit(
			&cupti.captures, &none, 1, memory_order_relaxed, memory_order_relaxed);
}

static void capture_exit(uint32_t cbid, const struct cupti_callback *d)
{
	int32_t r = returned(d), n = atomic_load_explicit(&cupti.captures, memory_order_relaxed);
	int saved;

	if ((api[cbid] & API_BEGIN) != 0) {
		if (r == CUDA_OK)
			atomic_fetch_add_explicit(&cupti.captures, 1, memory_order_relaxed);
		if (r == CUDA_OK && agent_enter(&saved)) {
			agent_capture_began();
			agent_leave(saved);
		}
		return;
	}
	if (r == CUDA_INVALID_VALUE || r == CUDA_INVALID_HANDLE || r == CUDA_ILLEGAL_STATE ||
		r == CUDA_CAPTURE_UNMATCHED || r == CUDA_CAPTURE_WRONG_THREAD)
		return; /* nothing ended; any other error ends a capture that was invalid */
	while (n > 0 && !atomic_compare_exchange_weak_explicit(&cupti.captures, &n, n - 1,
				memory_order_relaxed, memory_order_relaxed))
		;
	if (agent_enter(&saved)) {
		cupti_node_give(agent_capture_ended(n <= 1));
		agent_leave(saved);
	}
}

/* Whether this is the end of a call that is not inside of another. CUPTI keeps account of the calls
 * that a thread is in; one whose end it does not see stays open for ever, and all later calls of
 * that thread carry its correlation id (13.0: torch.profiler stops at an assertion). A runtime call
 * is never inside. A driver call is not when its thread has no runtime call open; one that was open
 * before we could see it has ended after a few driver calls. */
static bool outermost_ends(uint32_t domain, uint32_t site)
{
	const uint32_t now =
		(uint32_t)atomic_load_explicit(&attempt, memory_order_relaxed) * ATTEMPT;

	if ((call & ~(ATTEMPT - 1u)) != now)
		call = now;
	if (domain == DOMAIN_RUNTIME && site == SITE_ENTER)
		call |= IN_RUNTIME;
	if (site == SITE_ENTER)
		return false;
	if (domain == DOMAIN_RUNTIME)
		return true;
	if ((call & (ATTEMPT - 1u)) < UNSEEN_CALLS * DRIVER_CALL)
		call += DRIVER_CALL;
	return (call & IN_RUNTIME) == 0 && (call & (ATTEMPT - 1u)) >= UNSEEN_CALLS * DRIVER_CALL;
}

/* Where CUPTI may be taken out of the process. */
static void finalize_here(void)
{
	uint32_t want = FINALIZE_WANTED;

	if (!atomic_compare_exchange_strong_explicit(&cupti.finalizing, &want, FINALIZE_RUNS,
		    memory_order_acq_rel, memory_order_relaxed))
		return;
	(void)cupti.api.unsubscribe(cupti.subscriber);
	(void)cupti.api.finalize();
	/* Release: pairs with the acquire in cupti_finalize_in_call(). */
	atomic_store_explicit(&cupti.finalizing, FINALIZE_DONE, memory_order_release);
}

static void on_driver(uint32_t cbid, const struct cupti_callback *d)
{
	uint8_t flags = cbid < CBID_MAX ? api[cbid] : 0;

	if (atomic_load_explicit(&cupti.level, memory_order_relaxed) != LEVEL_ON)
		flags &= (uint8_t)~API_LAUNCH;
	if ((flags & API_LAUNCH) != 0 && d->site == SITE_ENTER && cupti_is_odd(ODD_QUEUE))
		launch_wait(cbid, d);
	else if ((flags & API_LAUNCH) != 0 && d->site == SITE_ENTER)
		launch_enter(cbid, d);
	else if ((flags & API_LAUNCH) != 0)
		launch_exit(cbid, d);
	else if ((flags & (API_BEGIN | API_END)) != 0 && d->site == SITE_EXIT)
		capture_exit(cbid, d);
	else if (!cupti_is_odd(ODD_API))
		cupti_call(DOMAIN_DRIVER, cbid, d);
}

static void graph_ids(uint32_t cbid, const struct cupti_graph *g, struct cupti_dump_ids *ids)
{
	if (cbid == RES_NODE_CREATED || cbid == RES_NODE_CLONED ||
		cbid == RES_NODE_DESTROY_STARTING)
		(void)cupti.api.graph_node_id(g->node, &ids->node);
	if (cbid == RES_NODE_CLONED)
		(void)cupti.api.graph_node_id(g->original_node, &ids->original);
	if (cbid == RES_NODE_CREATED || cbid == RES_NODE_CLONED ||
		cbid == RES_GRAPH_DESTROY_STARTING)
		(void)cupti.api.graph_id(g->graph, &ids->graph);
	if ((cbid == RES_EXEC_DESTROY_STARTING || cbid == RES_EXEC_CREATED) &&
		cupti.api.graph_exec_id != NULL)
		(void)cupti.api.graph_exec_id(g->exec, &ids->exec);
}

static void on_graph(uint32_t cbid, const struct cupti_graph *g)
{
	struct cupti_dump_ids ids = {0};
	bool kernel;

	if (g == NULL)
		return;
	graph_ids(cbid, g, &ids);
	if (cupti_is_odd(ODD_DUMP))
		cupti_dump_callback(DOMAIN_RESOURCE, cbid, NULL, &ids);
	if (cbid == RES_NODE_CREATED) {
		call |= (call & (INSIDE_PUT | INSIDE_WAITING)) != 0 ? MADE_NODE : 0;
		kernel = (call & OF_KERNEL) !=
			 0; /* not by node_type, of which nothing is known to hold */
		cupti_node_created(ids.node, ids.graph, agent_where_captured(), kernel,
			kernel ? agent_capture_given() : 0);
	} else if (cbid == RES_NODE_CLONED) {
		cupti_node_cloned(ids.node, ids.original, ids.graph);
	} else if (cbid == RES_NODE_DESTROY_STARTING) {
		cupti_node_gone(ids.node);
	} else if (cbid == RES_GRAPH_DESTROY_STARTING && ids.graph != 0) {
		cupti_graph_gone(ids.graph);
	} else if (cbid == RES_EXEC_DESTROY_STARTING && ids.exec != 0) {
		cupti_graph_gone(ids.exec);
	}
}

static void on_resource(uint32_t cbid, const struct cupti_resource *r)
{
	if (cbid == RES_MODULE_UNLOAD_STARTING) {
		if (cupti_is_odd(ODD_DUMP))
			cupti_dump_callback(DOMAIN_RESOURCE, cbid, NULL, NULL);
		/* Release: pairs with the acquire in value_of() of cupti_name.c. */
		atomic_fetch_add_explicit(&cupti.module, 1, memory_order_release);
		return;
	}
	if (cbid ==
		RES_CONTEXT_CREATED) { /* also lets CUPTI prepare its buffers with the context */
		agent_ring();          /* cupti_devices_ask(), while the driver still answers */
		return;
	}
	on_graph(cbid, r->descriptor);
}

static void on_state(uint32_t cbid, const struct cupti_state *s)
{
	int32_t none = 0, code = s != NULL && s->result != 0 ? s->result : CUPTI_UNKNOWN;

	if (cbid != STATE_FATAL_ERROR)
		return;
	/* CUPTI takes itself out: nothing may be called any more. flush() tells the daemon. */
	(void)atomic_compare_exchange_strong_explicit(
		&cupti.failed, &none, code, memory_order_relaxed, memory_order_relaxed);
	atomic_store_explicit(&cupti.level, LEVEL_NONE, memory_order_relaxed);
}

static void on_call(uint32_t domain, uint32_t cbid, const struct cupti_callback *d)
{
	struct cupti_dump_ids ids = {0};
	int saved;

	if (cupti_is_odd(ODD_DUMP) && agent_enter(&saved)) {
		cupti_dump_callback(
			domain, cbid, d, cupti_call_params(domain, cbid, d, &ids) ? &ids : NULL);
		agent_leave(saved);
	}
	if (domain == DOMAIN_RUNTIME || cupti_is_odd(ODD_API))
		cupti_call(domain, cbid, d);
	if (domain == DOMAIN_DRIVER)
		on_driver(cbid, d);
}

__attribute__((cold, noinline)) static void on_other(
	uint32_t domain, uint32_t cbid, const void *data)
{
	int saved;

	if (data == NULL)
		return;
	if (atomic_load_explicit(&cupti.finalizing, memory_order_relaxed) == FINALIZE_WANTED &&
		(domain == DOMAIN_DRIVER || domain == DOMAIN_RUNTIME)) {
		if (outermost_ends(domain, ((const struct cupti_callback *)data)->site))
			finalize_here();
		return;
	}
	if (atomic_load_explicit(&cupti.level, memory_order_relaxed) == LEVEL_NONE)
		return;
	if (domain == DOMAIN_DRIVER || domain == DOMAIN_RUNTIME) {
		on_call(domain, cbid, data);
	} else if (agent_enter(&saved)) {
		if (domain == DOMAIN_RESOURCE)
			on_resource(cbid, data);
		else if (domain == DOMAIN_STATE)
			on_state(cbid, data);
		agent_leave(saved);
	}
}

/* Launches are recorded, and that is all; or all but that is in `odd`. */
static inline bool usual(uint8_t odd)
{
	return atomic_load_explicit(&cupti.level, memory_order_relaxed) == LEVEL_ON &&
	       atomic_load_explicit(&cupti.finalizing, memory_order_relaxed) == FINALIZE_NO &&
	       atomic_load_explicit(&cupti.odd, memory_order_relaxed) == odd;
}

/* A call while every one is recorded. */
__attribute__((hot, noinline)) static void on_usual_call(
	uint32_t domain, uint32_t cbid, const struct cupti_callback *d)
{
	const uint8_t flags = domain == DOMAIN_DRIVER ? api[cbid] : 0;

	if ((flags & (API_BEGIN | API_END)) != 0 || !cupti_call_usual(domain, cbid, d))
		on_other(domain, cbid, d);
	else if (flags != 0 && d->site == SITE_ENTER)
		launch_enter(cbid, d);
	else if (flags != 0 && call == INSIDE_PUT && returned(d) == CUDA_OK)
		call = INSIDE_NO;
	else if (flags != 0)
		launch_exit(cbid, d);
}

/* Launches here, all else and all that is out of the ordinary in on_other(): see agent_launch(). */
__attribute__((hot)) void cupti_on_callback(
	void *user, uint32_t domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback *d = data;

	(void)user;
	if (domain == DOMAIN_DRIVER && cbid < CBID_MAX && d != NULL && usual(0) &&
		(api[cbid] & API_LAUNCH) != 0) {
		if (d->site == SITE_ENTER) {
			launch_enter(cbid, d);
			return;
		}
		if (call == INSIDE_PUT && returned(d) == CUDA_OK) {
			call = INSIDE_NO;
			return;
		}
	} else if ((domain == DOMAIN_DRIVER || domain == DOMAIN_RUNTIME) && cbid < CBID_MAX &&
		   d != NULL && usual(ODD_API)) {
		on_usual_call(domain, cbid, d);
		return;
	}
	on_other(domain, cbid, data);
}

static void set_driver(uint8_t which)
{
	uint32_t cbid;

	for (cbid = 0; cbid < CBID_MAX; cbid++)
		if ((api[cbid] & which) != 0) /* refused: this library is older than the call */
			(void)cupti.api.enable_callback(1, cupti.subscriber, DOMAIN_DRIVER, cbid);
}

static void set_resource(void)
{
	static const uint8_t wanted[] = {RES_CONTEXT_CREATED, RES_MODULE_UNLOAD_STARTING,
		RES_GRAPH_DESTROY_STARTING, RES_NODE_CREATED, RES_NODE_DESTROY_STARTING,
		RES_EXEC_CREATED, RES_EXEC_DESTROY_STARTING, RES_NODE_CLONED};
	const bool graphs = cupti.api.graph_node_id != NULL && cupti.api.graph_id != NULL;
	size_t i;

	for (i = 0; i < sizeof(wanted); i++)
		if (graphs || wanted[i] <= RES_MODULE_UNLOAD_STARTING)
			(void)cupti.api.enable_callback(
				1, cupti.subscriber, DOMAIN_RESOURCE, wanted[i]);
	(void)cupti.api.enable_callback(1, cupti.subscriber, DOMAIN_STATE, STATE_FATAL_ERROR);
}

/* Callbacks go on one by one and off with the subscriber only: one that is switched off while a
 * thread is inside of its call leaves that call open for ever (13.0), and all later calls of the
 * thread carry its correlation id: ours match no kernel, torch.profiler stops at an assertion. */
void cupti_enable(enum cupti_level from, enum cupti_level to)
{
	if (from == LEVEL_NONE)
		atomic_store_explicit(&cupti.captures, 0, memory_order_relaxed);
	if (from != LEVEL_ARMED) {
		set_resource();
		set_driver(API_BEGIN | API_END);
	}
	if (to == LEVEL_ON) {
		set_driver(API_LAUNCH);
		cupti_call_enable();
	}
}

/* Waits until finalizing is DONE, at most timeout_ms. */
static bool finalize_wait(uint32_t timeout_ms)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	uint32_t i;

	for (i = 0; i < timeout_ms; i++) {
		/* Acquire: pairs with the release in finalize_here(). */
		if (atomic_load_explicit(&cupti.finalizing, memory_order_acquire) == FINALIZE_DONE)
			return true;
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
	}
	return false;
}

bool cupti_finalize_in_call(uint32_t timeout_ms)
{
	uint32_t want = FINALIZE_WANTED;
	bool done;

	atomic_fetch_add_explicit(&attempt, 1, memory_order_relaxed);
	atomic_store_explicit(&cupti.finalizing, FINALIZE_WANTED, memory_order_release);
	set_driver(API_LAUNCH);
	(void)cupti.api.enable_domain(1, cupti.subscriber, DOMAIN_RUNTIME);
	done = finalize_wait(timeout_ms);
	if (!done && !atomic_compare_exchange_strong_explicit(&cupti.finalizing, &want, FINALIZE_NO,
			     memory_order_acq_rel, memory_order_relaxed))
		done = finalize_wait(10000); /* one is in it just now */
	atomic_store_explicit(&cupti.finalizing, FINALIZE_NO, memory_order_relaxed);
	return done;
}
