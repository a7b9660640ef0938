/* SPDX-License-Identifier: MIT. fair.h: whose request is next: users in turn, and of each user the
 * clients in turn, so that 250 clients of one user weigh as much as one of another. Pure. */
#ifndef PROTOND_CONTROL_FAIR_H
#define PROTOND_CONTROL_FAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "share.h"

struct fair_user;

/* Embedded in a client. */
struct fair_place {
	struct fair_user *user;
	struct fair_place *next; /* while it waits */
	bool waits;
};
struct fair {
	struct fair_user *first; /* whose turn it is; whoever had one goes to the end */
	uint32_t begun;          /* requests, and not ended */
	struct share share;      /* of them */
};

int fair_join(struct fair *f, struct fair_place *p, uint32_t uid); /* -ENOMEM */
void fair_leave(struct fair_place *p);                             /* it may be waiting */
uint32_t fair_count(const struct fair *f, uint32_t uid);           /* how many have joined */
void fair_wait(struct fair_place *p);                              /* said twice is said once */
/* Of a user who may begin one more; waits no more. NULL: nobody does. */
struct fair_place *fair_next(struct fair *f);
/* A request is begun, and ended, which may be after its client has left. Returns where the user
 * stands; NULL: that is gone. */
struct fair_user *fair_begin(struct fair_place *p);
struct fair *fair_end(struct fair_user *u);
void fair_fini(struct fair *f); /* all have left; what was begun may end later */

#endif
