/* SPDX-License-Identifier: MIT. breakdown.h: what the GPUs of a session did in a window of its timeline, in
 * steps, or while a scope was open. */
#ifndef PROTOND_VIEWER_BREAKDOWN_H
#define PROTOND_VIEWER_BREAKDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "part_terms.h"
#include "profile.h"

struct sqlite3;
struct export_left;

#define BREAKDOWN_SPANS_MAX (1u << 20) /* times a scope was open, of a process */

struct breakdown_row {     /* a GPU of a process */
	int64_t pid, rank; /* rank -1: none */
	uint32_t gpu;      /* ordinal */
	uint8_t uuid[16];
	uint32_t times;     /* steps or scopes that were found */
	uint64_t window_ns; /* how long the session was active in it: the sum of its parts */
	uint64_t part_ns[PART_MAX];
	bool shared; /* another process of the session worked on it: then its parts are not told */
};

struct breakdown {
	/* What is asked for: [from_ns, to_ns) since the timeline's zero (to_ns 0: all of it), or the phase that is
	 * selected; in it, where they are given, these steps, or a scope by the end of its path, names between
	 * "/". */
	const char *scope;
	uint32_t first_step, last_step;
	uint64_t from_ns, to_ns;
	bool by_phase;
	/* The answer: breakdown_fini() */
	struct breakdown_row *row;
	uint32_t n, cap;
	uint32_t times, most_steps; /* of all processes; the most steps that one has */
};

/* arg: a struct breakdown; as export_timeline_fn. -ENOENT: there is no such step or scope, or nothing of the
 * session lies in the window. -E2BIG: BREAKDOWN_SPANS_MAX. */
int breakdown_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
void breakdown_fini(struct breakdown *b);

#endif
