/* SPDX-License-Identifier: MIT. drain_ahead.h: a GPU's finished work, ahead of its window. For
 * drain.c. Loop thread. */
#ifndef PROTOND_DAEMON_DRAIN_AHEAD_H
#define PROTOND_DAEMON_DRAIN_AHEAD_H

#include <stdint.h>

struct ring;

/* Whatever of it stands in the GPU's lane by now, up to some entries. 0, or as drain_ring(). */
int ahead_take(struct ring *r, uint64_t deadline_ns, uint32_t *ret_bytes);

#endif
