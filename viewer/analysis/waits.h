/* SPDX-License-Identifier: MIT. waits.h: calls that wait for the GPU, by where they are made, and the
 * time behind each in which the GPU had nothing to do: its bubble. A wait without one is harmless. */
#ifndef PROTOND_VIEWER_WAITS_H
#define PROTOND_VIEWER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;
struct export_left;
struct steps;

#define WAITS_MAX 1048576u /* calls, and operations, of a process; later ones are counted only */

/* From the end of a call to the next work on the GPU: what a loop in Python needs to launch it. What takes longer
 * is something else that the host does. */
#define WAIT_RELAUNCH_NS 50000u

struct wait_site {
	uint32_t parent; /* place, PROFILE_NONE: at the top */
	const char *name;
	uint64_t calls, blocked_ns; /* of calls on it */
	uint64_t bubble_ns; /* no operation of its process ran, from when the GPU ran dry in or
				       behind the call to the next operation or the next such call */
	/* Of a call's bubble, and of all time up to the next such call without an operation, no more than the
	 * call took, and as long as the next launch may take: what is its doing, and the most it gives back. */
	uint64_t sure_ns, gain_ns;
};

struct waits {
	struct wait_site *site; /* by place in a tree of names; those between have no calls */
	uint32_t n;
	uint64_t left_out;
	struct profile *texts;
};

/* Of a session in an open store; as export_timeline_fn, but calls that begin in what s asks for (spans.h). steps: of the same; those of its
 * warm-up do not count, and the others as much more (warm_up.h). NULL: all count. -ENODATA: it kept no timeline. -E2BIG. */
int waits_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	const struct steps *steps, struct export_left *ret_left, struct waits **ret, struct err *e);
void waits_free(struct waits *w); /* NULL is fine */

#endif
