/* SPDX-License-Identifier: MIT. drain_sums.h: the sums of a ring, into journal and fold. For drain.c.
 * Loop thread. */
#ifndef PROTOND_DAEMON_DRAIN_SUMS_H
#define PROTOND_DAEMON_DRAIN_SUMS_H

#include <stdbool.h>
#include <stdint.h>

struct ring;

#define SUMS_NS 50000000u /* between two times, unless somebody waits */

/* At a window's first look: which are open, and whether the window is to take them. */
bool sums_look(struct ring *r);
/* Those of one lane. 0, or as drain_ring(); -EBADMSG: it breaks the laws. */
int sums_take(struct ring *r, uint32_t lane, uint32_t *ret_bytes);
void sums_end(struct ring *r); /* at the window's end */

#endif
