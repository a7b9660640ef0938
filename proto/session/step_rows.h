/* SPDX-License-Identifier: MIT. step_rows.h: the stored steps of a session, point by point. */
#ifndef PROTOND_SESSION_STEP_ROWS_H
#define PROTOND_SESSION_STEP_ROWS_H

#include "step_row.h"

struct sqlite3;

struct step_seen {
	int64_t process, pid, rank; /* process: its number in the store; rank -1: none */
	const struct step_names *names;
	const struct step_point *point;
};

/* fn for each, process by process and in order; its error ends it. process: a rank, or "pid:N"; NULL: all. A
 * database of before has none. -EBADMSG with words: damaged. */
typedef int step_fn(void *arg, const struct step_seen *s);
int step_each(struct sqlite3 *db, int64_t session, const char *process, step_fn *fn, void *arg,
	struct err *e);

#endif
