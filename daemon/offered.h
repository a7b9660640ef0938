/* SPDX-License-Identifier: MIT. offered.h: rings that were offered and are no process yet. For the
 * loop. Loop thread.
 *
 * Every program that has the library offers a ring, and most that live for milliseconds record
 * nothing. So a ring becomes a process, with a row and a session, once it is used, once it has lived
 * for a second, or once somebody asks for that very job.
 */
#ifndef PROTOND_DAEMON_OFFERED_H
#define PROTOND_DAEMON_OFFERED_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct ring;
struct ring_origin;

void offered_wait(struct ring *r, const struct ring_origin *o, uint32_t want);
/* 0: it is a process, now or since long; -EAGAIN: not yet; or -errno of adopting. */
int offered_look(struct ring *r);
int offered_adopt(struct ring *r); /* at once */
/* Its job is dead. True: nothing was in it, and it is gone with its files. */
bool offered_drop(struct ring *r);
bool offered_is_past(const struct ring *r, uint64_t ns); /* looked at since then */

#endif
