/* SPDX-License-Identifier: MIT. blocks.h: torch's caching allocator, block by block, within a session. Of a part with
 * the switch alloc.
 *
 * A thread allocates and another one frees, each in its own lane, so that events wait until those of all lanes from before
 * are here, and count in order of time. What the device has reserved and the like each event says itself. */
#ifndef PROTOND_BLOCKS_H
#define PROTOND_BLOCKS_H

#include <stdint.h>

#include "record.h"

struct part;

/* What it refers to is checked; ns: CLOCK_MONOTONIC. */
void blocks_event(struct part *part, const struct rec_block *r, uint64_t ns);
/* Lanes are being read at ns. */
void blocks_reach(struct part *part, uint64_t ns);
void blocks_settle(
	struct part *part, uint64_t before_ns); /* all from before count; UINT64_MAX: all */

#endif
