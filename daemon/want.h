/* SPDX-License-Identifier: MIT. want.h: what is wanted of a job, by the sessions that are there and
 * the configuration: enum ring_want bits. For the loop. Looks, and tells nobody: wants.h does. Loop
 * thread. */
#ifndef PROTOND_DAEMON_WANT_H
#define PROTOND_DAEMON_WANT_H

#include <stdint.h>

struct conn;
struct ring;

/* Of a job that has no ring yet. */
uint32_t want_of_conn(const struct conn *c);
uint32_t want_of_ring(const struct ring *r);

#endif
