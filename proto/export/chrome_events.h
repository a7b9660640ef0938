/* SPDX-License-Identifier: MIT. chrome_events.h: Chrome's trace events as text: what chrome_trace and
 * kineto share. A form's own state begins with struct chrome. */
#ifndef PROTOND_EXPORT_CHROME_EVENTS_H
#define PROTOND_EXPORT_CHROME_EVENTS_H

#include "timeline.h"

#define CHROME_LANE_TID 1000000u /* of a stream's or a thread's second lane and on */
#define CHROME_NO_PID   (-1)
#define CHROME_SUMMED   LANES_MAX        /* a thread's lane of bursts */
#define CHROME_SYNCS    (LANES_MAX + 1u) /* a thread's lane of calls that wait */

struct chrome {
	struct text *t; /* where to */
	bool any;       /* event or device so far */
	uint64_t flows;
};

void chrome_number(struct text *t, uint64_t v);
void chrome_micros(struct text *t, uint64_t ns); /* with three decimals: exact */
void chrome_comma(struct chrome *c);
/* {"ph":P,"cat":C,"name":N,"pid":,"tid":,"ts": */
void chrome_event(struct chrome *c, const char *ph, const char *cat, const char *name, int64_t pid,
	uint64_t tid, uint64_t ns);
/* words, or NULL and a number */
void chrome_metadata(struct chrome *c, const char *what, int64_t pid, uint64_t tid, const char *key,
	const char *words, uint64_t index);
/* Each end of an arrow; both have the number in c->flows. */
void chrome_arrow_from(struct chrome *c, const char *cat, const char *name, int64_t pid,
	uint64_t tid, uint64_t ns);
void chrome_arrow_to(struct chrome *c, const char *cat, const char *name, int64_t pid, uint64_t tid,
	uint64_t ns);
/* An element of deviceProperties. */
void chrome_device_properties(struct chrome *c, const struct timeline_device *d);

void chrome_held(struct text *t, const struct held *h);
/* "name":value, of the n that a scope took; what was set more than once: a list, in that order. */
void chrome_taken(const struct timeline *w, struct text *t, uint32_t n);

static inline uint64_t chrome_lane_tid(uint32_t tid, uint32_t lane)
{
	return (uint64_t)CHROME_LANE_TID * lane + tid;
}

/* ,"color":"#rrggbb", where the program gave the node's name one; into open args. */
void chrome_color(struct text *t, const struct known *k);
/* ,"KEY":"NAME", where the program gave the object of a GPU a name; into open args. False: it did not. */
bool chrome_object(struct text *t, const char *key, const char *streams, uint64_t object);
/* What is known of a call beside its time: ,"correlation":… and so on; into open args. */
void chrome_call(struct text *t, const struct trace_call *c);

#endif
