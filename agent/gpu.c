/* SPDX-License-Identifier: MIT. gpu.c: the state of the GPU backend: none, armed, on; and what is
 * said of it.
 *
 *            want ARMED                want GPU
 *   NONE ---------------> ARMED <----------------> ON      a start that fails: FAILED, with words,
 *     ^                     |                      |       until something else is wanted
 *     +---------------------+----------------------+       no want; PAUSE also gives CUPTI's cost
 * back
 */
#include "core.h"

#include <string.h>

extern const struct backend backend_cupti __attribute__((weak));

static void tell(enum gpu_state s, const struct backend_error *e)
{
	struct backend_status st = {0};
	struct rec_gpu r = {.clock = agent_clock(), .code = e->code};
	struct backend_error ignored;

	atomic_store_explicit(&core.gpu, s, memory_order_relaxed);
	if (core.backend != NULL && s != GPU_NONE)
		(void)core.backend->probe(&st, &ignored);
	r.version = st.cupti_version;
	r.replay = st.replay;
	r.epoch = core.backend != NULL && core.backend->epoch != NULL ? core.backend->epoch()
								      : core.epoch;
	r.hdr = REC_HDR(sizeof(r), REC_GPU, 0, s,
		e->text[0] != '\0' ? agent_name(e->text, strlen(e->text)) : NAME_NONE);
	(void)agent_put_wait(&r, sizeof(r));
	if (core.host->gpu_state != NULL)
		core.host->gpu_state(
			s, e->code, st.cupti_version, st.driver_version, st.cupti_path, e->text);
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

void gpu_want(uint32_t want)
{
	enum gpu_state to = GPU_NONE;

	if (core.backend == NULL && &backend_cupti != NULL)
		core.backend = &backend_cupti;
	if ((want & WANT_GPU_PAUSE) != 0)
		to = GPU_ASIDE; /* stands for "none, and give the cost back" */
	else if ((want & WANT_GPU) != 0)
		to = GPU_ON;
	else if ((want & WANT_GPU_ARMED) != 0)
		to = GPU_ARMED;
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
