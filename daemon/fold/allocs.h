/* SPDX-License-Identifier: MIT. allocs.h: memory that the driver gave a process, within a session: which scope holds
 * how much now, and held at the peak. Of a part with the switch alloc.
 *
 * What a MEMORY record says happened at a time; records come buffer by buffer, so that they wait until all of
 * before has been delivered, and count in order of time. Whose they are is what the CALL of their correlation id says. */
#ifndef PROTOND_ALLOCS_H
#define PROTOND_ALLOCS_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

struct allocs;
struct batch;
struct holders;
struct part;

/* What they refer to is checked; ns: CLOCK_MONOTONIC. */
void allocs_call(struct part *part, const struct rec_call *r, uint64_t end_ns);
void allocs_event(struct part *part, const struct rec_memory *r, uint64_t ns);
/* What happened before that counts; UINT64_MAX: all. */
void allocs_settle(struct part *part, uint64_t before_ns);
bool allocs_wait(const struct part *part); /* something does */

void allocs_restore(struct part *part, const void *bytes, uint32_t n);
bool allocs_are_dirty(const struct part *part);
bool allocs_put(const struct part *part, struct batch *b); /* false: no memory */
void allocs_clean(struct part *part);
void allocs_free(struct part *part);
const struct holders *allocs_held(const struct part *part); /* NULL: there was nothing */

#endif
