/* SPDX-License-Identifier: MIT. report.c: what is said of the GPU: a GPU record in the agent's
 * lane, and the same to libprotond, which tells the daemon. */
#include <string.h>

#include "agent.h"
#include "core.h"

/* A libprotond of 0.1 takes it in pieces. */
static void tell_host(const struct gpu_report *g)
{
	const struct protond_host *h = core.host;

	if (HOST_HAS(h, gpu_report) && h->gpu_report != NULL)
		h->gpu_report(g);
	else if (h->gpu_state != NULL)
		h->gpu_state(g->state, g->code, g->library_version, g->driver_version, g->path,
			g->words);
}

void agent_report(const struct backend_status *s, uint32_t epoch)
{
	const struct gpu_report *g = &s->gpu;
	const size_t n = strnlen(g->words, sizeof(g->words));
	const struct rec_gpu r = {.hdr = REC_HDR(sizeof(r), REC_GPU, 0, g->state,
					  n != 0 ? agent_name(g->words, n) : NAME_NONE),
		.clock = agent_clock(),
		.code = g->code,
		.version = g->library_version,
		.epoch = epoch,
		.replay = s->replay};

	(void)agent_put_wait(&r, sizeof(r));
	tell_host(g);
}
