/* SPDX-License-Identifier: MIT. worker.h: the agent's own thread, and the lock of what it works on.
 * engine.c and gpu.c include it. */
#ifndef PROTOND_AGENT_WORKER_H
#define PROTOND_AGENT_WORKER_H

#include <stdbool.h>
#include <stdint.h>

int worker_start(void);
int worker_flush(uint32_t timeout_ms);
void worker_exit(void);
bool worker_in(uint32_t timeout_ms); /* takes backend_lock, and with it the agent's lane */
void worker_out(void);
void worker_clock(void);           /* inside: a CLOCK record */
void worker_delivered(bool force); /* inside: flush, and DELIVERED */

#endif
