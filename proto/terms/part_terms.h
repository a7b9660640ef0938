/* SPDX-License-Identifier: MIT. part_terms.h: what the time of a GPU is made of. Anybody may include it.
 *
 * Each moment of a session's active time belongs to one part, so their sum is that time. What runs together counts once:
 * a kernel hides collectives and copies beside it, a collective hides copies. A moment at which nothing runs is named after
 * the work that ends it.
 */
#ifndef PROTOND_TERMS_PART_TERMS_H
#define PROTOND_TERMS_PART_TERMS_H

#include <stdint.h>

#include "gpu_terms.h"

/* clang-format off */
/* column: of `busy` in a database, and the key in --json. */
#define GPU_PARTS(X) /* name  column  head  words */ \
        GPU_PARTS_STORED(X) \
        X(HOST,    idle_host_ns,    "host",       "idle: nothing was launched")
/* HOST is the rest. */
#define GPU_PARTS_STORED(X) \
        X(COMPUTE, compute_ns,      "compute",    "kernels that compute") \
        X(COMM,    comm_ns,         "comm alone", "collectives with no such kernel beside them") \
        X(COPY,    copy_ns,         "copy alone", "copies and memsets with no kernel beside them") \
        X(LAUNCH,  idle_launch_ns,  "launching",  "idle: the next work was launched, not begun") \
        X(GAP,     idle_gap_ns,     "gaps",       "idle for under 5 us: the next was queued") \
        X(QUEUED,  idle_queued_ns,  "queued",     "idle for 5 us or more: the next was queued") \
        X(UNKNOWN, idle_unknown_ns, "unknown",    "idle: the next work's launch was not seen")
/* clang-format on */

enum gpu_part {
#define X(name, ...) PART_##name,
	GPU_PARTS(X)
#undef X
		PART_MAX,
	PART_IDLE = PART_LAUNCH, /* from here on nothing runs */
};

/* An idle moment that ends with work which was launched before it began is a gap between two kernels
 * if it is shorter than this, and a wait for something else if not. Back to back kernels of one
 * stream lie 1 to 2 us apart. */
#define PART_GAP_NS 5000u

static inline enum gpu_part part_of_class(uint8_t class)
{
	if (!gpu_class_is_kernel(class))
		return PART_COPY;
	return class == CLASS_COMM ? PART_COMM : PART_COMPUTE;
}

#endif
