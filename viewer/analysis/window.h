/* SPDX-License-Identifier: MIT. window.h: a session's tree with what a part of its timeline has in place of all of it: a window, a
 * phase, steps, or while a scope was open. */
#ifndef PROTOND_VIEWER_WINDOW_H
#define PROTOND_VIEWER_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;
struct export_left;

#define WINDOW_EVENTS_MAX (4u << 20) /* of a process, of those that lie near the window */

struct window {
	struct profile *
		p; /* of the same session, whole; its values, devices and durations become the part's */
	/* The answer: from the first to the last of it, since the timeline's zero; and that zero, CLOCK_REALTIME. */
	uint64_t from_ns, to_ns;
	int64_t base_ns;
	bool host_only; /* asked: without what GPUs did */
};

/* arg: a struct window; as export_timeline_fn, of the times that s names (spans.h). What reaches out of them counts with
 * what lies in them, and once; flops and bytes that a scope was told, with as much of them as lies in them of its time. Other
 * metrics that the job told, and launch configurations that are in none of them, are gone; so are histograms. -ENOENT, -E2BIG. */
int window_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e);

#endif
