/* SPDX-License-Identifier: MIT. core.c: where the engine's state lies. */
#include "core.h"

#include "agent.h"

struct core core = {.fd = -1};
union agent_page agent_page __attribute__((aligned(RING_PAGE)));
__thread bool agent_on_backend __attribute__((tls_model("initial-exec")));
__thread struct pd_thread *agent_self __attribute__((tls_model("initial-exec")));

struct ring_counts *agent_counts(void)
{
	return core.counts;
}
