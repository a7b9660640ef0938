/* SPDX-License-Identifier: MIT. placing.h: how what is staged becomes a session: place.c finds where
 * each event stands, session.c writes the session's rows. For these two. */
#ifndef PROTOND_IMPORT_PLACING_H
#define PROTOND_IMPORT_PLACING_H

#include "busy.h"
#include "stage.h"

struct place_gpu { /* a device as a process sees it */
	uint32_t process;
	struct busy *busy; /* of place_busy_time() */
};

/* In the order of times, of which some may lie before 0. */
static inline uint64_t place_busy_time(int64_t ns)
{
	return (uint64_t)ns ^ (1ull << 63);
}

struct place {
	struct stage *s;
	int64_t low, high; /* of all times */
	struct place_gpu *gpu;
	uint32_t n_gpus, cap_gpus;
};

/* What place.c leaves: scratch.scope(process, thread, begin, end, node, flags, stream, class,
 * correlation, event), the last four of calls, and scratch.work(process, device, context, stream,
 * start, end, class, node, correlation, flags, bytes, config, thread, launched): NULL: not launched;
 * all are places in the stage's arrays. */
int session_write(struct place *p, const struct import_options *o);
/* memory.c: of scratch.memory(process, at, node, args), who held what torch's allocator gave. */
int memory_write(struct place *p, int64_t shift);
int timeline_write_chunks(struct place *p, int64_t shift); /* shift: to CLOCK_REALTIME */

#endif
