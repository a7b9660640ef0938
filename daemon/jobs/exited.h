/* SPDX-License-Identifier: MIT. exited.h: which process a number means, and how it ended, as /proc
 * and its pidfd tell it. For daemon/. No state; any thread. */
#ifndef PROTOND_JOBS_EXITED_H
#define PROTOND_JOBS_EXITED_H

#include <stdint.h>

/* /proc/PID/stat, field 22; 0: no such process. */
uint64_t process_start(uint32_t pid);
/* The kernel's word on how a dead process ended, as wait() gives it. pidfd: -1 none. -EAGAIN:
 * perhaps later; -ENOTTY: never. */
int process_status(int pidfd, uint32_t pid, uint64_t start, int *ret);

#endif
