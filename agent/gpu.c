/* SPDX-License-Identifier: MIT. gpu.c: the state of the GPU backend: none, armed, on.
 *
 *            want ARMED                want GPU
 *   NONE ---------------> ARMED <----------------> ON
 *     ^                     |                      |
 *     +---------------------+----------------------+      no want; PAUSE also gives back what the
 *                                                         vendor's library costs
 *
 * A start that fails: FAILED, with words, until something else is wanted. A backend that knows no
 * graphs has nothing to be armed for.
 */
#include "gpu.h"

#include <stdio.h>

#include "agent.h"
#include "core.h"
#include "registry.h"
#include "worker.h"

static void tell(enum gpu_state s, const struct backend_error *e)
{
	const struct backend *b = core.backend;
	struct backend_status st = {0};
	struct backend_error ignored;

	atomic_store_explicit(&core.gpu, s, memory_order_relaxed);
	if (b != NULL && s != GPU_NONE)
		(void)b->probe(&st, &ignored);
	if (b != NULL)
		st.gpu.vendor = b->term->vendor;
	st.gpu.state = (uint16_t)s;
	st.gpu.code = e->code;
	snprintf(st.gpu.words, sizeof(st.gpu.words), "%s", e->text);
	agent_report(&st, b != NULL && b->epoch != NULL ? b->epoch() : core.epoch);
}

static void start(bool armed)
{
	struct backend_error e = {0};
	const enum gpu_state was = atomic_load_explicit(&core.gpu, memory_order_relaxed);
	int r;

	if (core.backend == NULL) {
		e = (struct backend_error){-ENOSYS, "this build has no GPU backend"};
		tell(GPU_FAILED, &e);
		return;
	}
	r = core.backend->start(armed, core.gpu_take, &e);
	if (r < 0) {
		if (e.code == 0)
			e.code = r;
		tell(GPU_FAILED, &e);
		return;
	}
	core.gpu_take = false;
	if (was != GPU_ARMED && was != GPU_ON)
		core.epoch++;
	tell(armed ? GPU_ARMED : GPU_ON, &e);
}

static void stop(bool finalize)
{
	struct backend_error e = {0};
	const enum gpu_state was = atomic_load_explicit(&core.gpu, memory_order_relaxed);
	bool residual = false;

	if (core.backend != NULL && was != GPU_NONE) {
		if (was == GPU_ON)
			worker_delivered(false);
		(void)core.backend->stop(finalize, &residual);
	}
	if (was != GPU_NONE)
		tell(residual ? GPU_RESIDUAL : GPU_NONE, &e);
}

/* A build without a backend says so when it fails to start one. */
static bool can_arm(void)
{
	return core.backend == NULL || (core.backend->term->caps & CAP_GRAPH) != 0;
}

void gpu_want(uint32_t want)
{
	enum gpu_state to = GPU_NONE;

	if (core.backend == NULL)
		core.backend = registry_gpu();
	if ((want & WANT_GPU_PAUSE) != 0)
		to = GPU_ASIDE; /* stands for "none, and give the cost back" */
	else if ((want & WANT_GPU) != 0)
		to = GPU_ON;
	else if ((want & WANT_GPU_ARMED) != 0 && can_arm())
		to = GPU_ARMED;
	if (core.backend != NULL && core.backend->switches != NULL)
		core.backend->switches(to == GPU_ON ? want & WANT_SWITCHES : 0);
	if (core.gpu_wanted == (uint32_t)to)
		return;
	core.gpu_wanted = to;
	core.gpu_take = core.gpu_take && to != GPU_NONE;
	if (to == GPU_ON || to == GPU_ARMED)
		start(to == GPU_ARMED);
	else
		stop(to == GPU_ASIDE && !core.gpu_aside);
	core.gpu_aside = false;
}

void gpu_give_back(void)
{
	struct backend_error e = {0};

	if (core.gpu_wanted != GPU_ASIDE ||
		atomic_load_explicit(&core.gpu, memory_order_relaxed) != GPU_RESIDUAL)
		return;
	if (core.backend->give_back != NULL && core.backend->give_back())
		tell(GPU_NONE, &e);
}
