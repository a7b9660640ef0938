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

struct breakdown_row {     /* a GPU of a process */
	int64_t pid, rank; /* rank -1: none */
	uint32_t gpu;      /* ordinal */
	uint8_t uuid[16];
	uint32_t times;     /* steps or scopes that were found */
	uint64_t window_ns; /* how long the session was active in it: the sum of its parts */
	uint64_t part_ns[PART_MAX];
	bool shared; /* another process of the session worked on it: then its parts are not told */
};

struct breakdown { /* breakdown_fini() */
	struct breakdown_row *row;
	uint32_t n, cap;
};

/* arg: a struct breakdown, zero-initialised; as export_timeline_fn, of the times that s names (spans.h). -ENOENT: there
 * is no such step or scope, or nothing of the session lies there. -E2BIG: too many of them. */
int breakdown_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);
void breakdown_fini(struct breakdown *b);

#endif
