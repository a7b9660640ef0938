/* SPDX-License-Identifier: MIT. warm_up.h: what the host did in the first, slow steps (step_pace.h), in which libraries load and caches
 * fill once, and in those that did not end, taken out of the sums by which a loop is judged. */
#ifndef PROTOND_VIEWER_WARM_UP_H
#define PROTOND_VIEWER_WARM_UP_H

#include "facts.h"

/* Of a whole session whose steps f->step are: its nodes' sums of the host become those of the other steps, and as much more as if
 * the first ones were like them, without what steps have that did not end. Without such steps, or where they are too long to be
 * read, it stays as it is. -ENOMEM, -EBADMSG. */
int warm_up_leave_out(struct facts *f, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct err *e);
/* By how much sums of the other steps are too small. */
double warm_up_factor(const struct steps *s);

#endif
