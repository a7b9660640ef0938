/* SPDX-License-Identifier: MIT. events.h: the events of a process in memory, in order of time, for analyses that must look back and
 * forth. */
#ifndef PROTOND_VIEWER_EVENTS_H
#define PROTOND_VIEWER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "spans.h"
#include "timeline.h"

#define EVENTS_MAX (4u << 20) /* of a process, of each kind */

struct event_scope {
	uint64_t begin_ns, end_ns;
	uint32_t tid, node; /* node: of the timeline's names */
	uint8_t flags;      /* TRACE_… */
	struct trace_call call;
};

struct event_op {
	uint64_t start_ns, end_ns, launch_ns, bytes;
	uint32_t node, tid, device, context, stream, correlation; /* device: ordinal */
	uint8_t class;
	bool launched; /* launch_ns and tid are known */
};

struct events {
	struct timeline *w;        /* the process at hand */
	const struct known *known; /* w's names */
	struct spans spans;        /* settled */
	struct event_scope *scope;
	struct event_op *op;
	uint32_t n_scopes, cap_scopes, n_ops, cap_ops;
};

/* 0, or -errno with words in w->l.e. */
typedef int events_fn(void *arg, const struct events *e);
/* Hands on each process that s selects, with the events that touch s' window. -E2BIG: EVENTS_MAX. Errors of the timeline. */
int events_read(events_fn *fn, void *arg, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct export_left *ret_left, struct err *e);

#endif
