/* SPDX-License-Identifier: MIT. entry.h: entries on their way into journal and fold. For the loop.
 *
 * An entry is staged, applied to the fold, and written with all others of its tick by one flush;
 * only then are jobs told that they have the room back, and clients answered.
 */
#ifndef PROTOND_DAEMON_ENTRY_H
#define PROTOND_DAEMON_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

struct protond;

/* begin gives space for `bytes` of payload; end takes as many as were used, and applies it. While
 * p->replayed is set the journal is left out. -ENOSPC, -EMSGSIZE, -ENOMEM. */
int entry_begin(
	struct protond *p, uint16_t type, const uint8_t ring[16], uint32_t bytes, void **ret);
int entry_end(struct protond *p, uint32_t bytes);
int entry_put(struct protond *p, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes);
/* Writes what is staged; then heads may be told. False: not now (said once). */
bool protond_flush(struct protond *p);
void protond_unstage(struct protond *p); /* what is staged is stored: as if it were written */
void protond_anchor(struct protond *p, uint64_t at_most_every_ns);

#endif
