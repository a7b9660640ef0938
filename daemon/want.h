/* SPDX-License-Identifier: MIT. want.h: what is wanted of a job, by the sessions that are there and
 * the configuration: enum ring_want bits. For the loop. Looks, and tells nobody: wants.h does. Loop
 * thread. */
#ifndef PROTOND_DAEMON_WANT_H
#define PROTOND_DAEMON_WANT_H

#include <stdbool.h>
#include <stdint.h>

struct conn;
struct daemon;
struct daemon_config;
struct rv_welcome;
struct ring;

/* Of a job that has no ring yet. */
uint32_t want_of_conn(const struct conn *c);
/* A session waits for that very job: as it has its number, or has had none yet. */
bool want_is_awaited(const struct conn *c);
/* Of one of which nothing is known: the GPU's part left out. */
uint32_t want_of_any(const struct daemon *d);
void want_ring_sizes(const struct daemon_config *config, struct rv_welcome *ret);
uint32_t want_of_ring(const struct ring *r);

#endif
