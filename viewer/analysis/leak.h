/* SPDX-License-Identifier: MIT. leak.h: whether memory that the driver gives grows with every step, and which scope
 * allocated most of what stays. */
#ifndef PROTOND_VIEWER_LEAK_H
#define PROTOND_VIEWER_LEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "growth.h"
#include "profile.h"

struct sqlite3;

struct leak {
	bool stored;     /* it was recorded which memory the driver gave */
	bool known;      /* and with steps enough */
	struct growth g; /* of the device or kind of memory of the process where it grows most */
	uint32_t process, steps;
	uint32_t node; /* of the profile; PROFILE_NONE: not known */
	double share;  /* of what stays of later steps: so much was allocated there */
};

/* Of a session in an open store, of which p is the tree. -EBADMSG, -ENOMEM. */
int leak_read(struct sqlite3 *db, int64_t session, const char *process, const struct profile *p,
	struct leak *ret, struct err *e);

#endif
