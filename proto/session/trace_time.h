/* SPDX-License-Identifier: MIT. trace_time.h: the time of a session's timeline: nanoseconds since its zero,
 * from each process's ring clock and from CLOCK_REALTIME, which a GPU's library gives. */
#ifndef PROTOND_SESSION_TRACE_TIME_H
#define PROTOND_SESSION_TRACE_TIME_H

#include "clockmap.h"
#include "profile_rows.h"

/* clang-format off */
#define TRACE_TIME_AROUND "60000000000"
/* The session and its oldest process: a clock that is set back makes either the earlier one. */
#define TRACE_TIME_BOTH                                                                             \
	"session s, (SELECT min(created_realtime_ns) created_realtime_ns, min(created_monotonic_ns)" \
	" created_monotonic_ns FROM process WHERE id IN (SELECT process FROM member WHERE session=?1)) p WHERE s.id=?1"
/* By how much in all it was set meanwhile, as notes say. */
#define TRACE_TIME_STEPS                                                                            \
	"(SELECT coalesce(CAST(1e6*sum(abs(CAST(substr(text,18) AS REAL))) AS INTEGER),0) FROM note" \
	" WHERE session=?1 AND text GLOB 'clock stepped by *')"
/* FROM and WHERE: the anchors of session ?1. Of another boot of the same minute the monotonic clock is another one. */
#define TRACE_TIME_ANCHORS                                                                          \
	"FROM anchor WHERE realtime_ns BETWEEN (SELECT min(s.created_ns,coalesce(p.created_realtime_ns,s.created_ns))-" \
	TRACE_TIME_AROUND "-" TRACE_TIME_STEPS " FROM " TRACE_TIME_BOTH ") AND (SELECT"             \
	" coalesce(max(s.finalized_ns,coalesce(p.created_realtime_ns,0))+" TRACE_TIME_AROUND "+"    \
	TRACE_TIME_STEPS ",9223372036854775807) FROM " TRACE_TIME_BOTH ")"                          \
	" AND monotonic_ns BETWEEN (SELECT coalesce(p.created_monotonic_ns,0)-" TRACE_TIME_AROUND   \
	" FROM " TRACE_TIME_BOTH ") AND (SELECT CASE WHEN count(*)=count(end_ns) THEN"              \
	" coalesce(max(end_ns)+" TRACE_TIME_AROUND ",9223372036854775807) ELSE 9223372036854775807 END" \
	" FROM active WHERE session=?1)"
/* clang-format on */

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
