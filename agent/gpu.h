/* SPDX-License-Identifier: MIT. gpu.h: GPU states, wanted and had. engine.c includes it. */
#ifndef PROTOND_AGENT_GPU_H
#define PROTOND_AGENT_GPU_H

#include <stdint.h>

/* Both inside worker_in(). */
void gpu_want(uint32_t want); /* enum ring_want */
void gpu_give_back(void);

#endif
