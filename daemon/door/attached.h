/* SPDX-License-Identifier: MIT. attached.h: the jobs that are attached: what daemon/query asks of
 * them, and of the rings that they gave. Loop thread. */
#ifndef PROTOND_DOOR_ATTACHED_H
#define PROTOND_DOOR_ATTACHED_H

#include <stdbool.h>
#include <stdint.h>

struct intake;

uint32_t attached_jobs(const struct intake *i); /* attached or with a ring not yet ended */
bool attached_lives(
	const struct intake *i, const uint8_t ring[16]); /* its process was not seen to be dead */
/* Jobs attached that have no ring yet (nothing was wanted of them) are visible here only. */
typedef void attached_fn(void *arg, uint32_t pid, uint32_t uid, const uint8_t ring[16],
	const char *info, uint32_t info_bytes, uint32_t gpu_state, const char *gpu_text);
void attached_each(const struct intake *i, attached_fn *fn, void *arg);
/* pause: WANT_GPU_PAUSE for the job (pid 0: all jobs of uid; UINT32_MAX uid: any). Returns how
 * many. */
uint32_t attached_pause(struct intake *i, uint32_t pid, uint32_t uid, bool pause);

#endif
