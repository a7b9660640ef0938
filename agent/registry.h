/* SPDX-License-Identifier: MIT. registry.h: the backends of this build. The engine's files include
 * it. */
#ifndef PROTOND_AGENT_REGISTRY_H
#define PROTOND_AGENT_REGISTRY_H

#include "agent.h"

/* The backend to record the GPU with: of several, the first whose library and driver are usable,
 * else the first, whose words say what is missing. NULL: there is none. */
const struct backend *registry_gpu(void);
/* The one whose ranges come by NVTX's door or its like; NULL: there is none. */
const struct backend *registry_marker(void);

#endif
