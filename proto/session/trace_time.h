/* SPDX-License-Identifier: MIT. trace_time.h: the time of a session's timeline: nanoseconds since its zero,
 * from each process's ring clock and from CLOCK_REALTIME, which a GPU's library gives. */
#ifndef PROTOND_SESSION_TRACE_TIME_H
#define PROTOND_SESSION_TRACE_TIME_H

#include "clockmap.h"
#include "profile_rows.h"

struct trace_time {               /* zero-initialise, then load */
	int64_t base_ns;          /* of the ring's time: times are differences to it */
	int64_t ahead_ns;         /* CLOCK_REALTIME - CLOCK_MONOTONIC, at the zero */
	struct anchors tsc, mono; /* of the session's time, by the clock they were read beside */
	const struct anchors *wall;
	int64_t *ahead; /* likewise at each of wall's anchors */
};

struct trace_process { /* not to be copied: clock points into it */
	int64_t id, pid, rank;
	bool ranked;
	const char *command; /* in the profile of the load */
	double ticks;        /* of the ring's clock in a nanosecond */
	struct clockmap clock;
	struct anchors own;
	struct anchor own_anchor[2];
};

/* -ENODATA: the session has no timeline (words). */
int trace_time_load(struct trace_time *t, struct load *l);
void trace_time_fini(struct trace_time *t);
int trace_process_load(
	struct trace_process *p, const struct trace_time *t, struct load *l, int64_t process);

/* Since the zero, and not before it. */
uint64_t trace_time_ring(const struct trace_time *t, struct trace_process *p, uint64_t clock);
uint64_t trace_time_real(const struct trace_time *t, uint64_t real_ns);

#endif
