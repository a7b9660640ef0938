/* SPDX-License-Identifier: MIT. capture.h: numbers that a program gives while it captures a CUDA
 * graph. event.c and engine.c include it; a backend has agent_capture_...() and agent_given_...(). */
#ifndef PROTOND_AGENT_CAPTURE_H
#define PROTOND_AGENT_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

struct rec_metric;

/* [any], with the guard. True: the thread captures a graph, and the number is each run's of that;
 * it is not to be recorded now. read: r->value is which number of the device's to read. */
bool capture_metric(const struct pd_thread *t, const struct rec_metric *r, bool read);
/* [any] Whether the thread captures a graph. */
bool capture_open(const struct pd_thread *t);
/* The ring into which a device's kernels write numbers, bytes long: made at the first call, there for
 * good. NULL: no memory, or no such device. */
void *capture_ring(uint32_t device, uint64_t *ret_bytes);

#endif
