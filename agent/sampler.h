/* SPDX-License-Identifier: MIT. sampler.h: samples of what threads are in. engine.c and worker.c include it. */
#ifndef PROTOND_AGENT_SAMPLER_H
#define PROTOND_AGENT_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

/* With worker_in(): looks at all threads from now on, or no more. */
void sampler_want(bool on);
/* In the exit handler: what was seen so far goes into the ring, in at most timeout_ms. */
void sampler_exit(uint32_t timeout_ms);
void sampler_forked(void); /* in the child: there is no such thread here */
bool sampler_runs(void);   /* there is such a thread, or just was */
uint64_t sampler_ns(void); /* CPU time that it took */

#endif
