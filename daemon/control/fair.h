/* SPDX-License-Identifier: MIT. fair.h: whose request is next: users in turn, and of each user the
 * clients in turn, so that 250 clients of one user weigh as much as one of another. Pure. */
#ifndef PROTOND_CONTROL_FAIR_H
#define PROTOND_CONTROL_FAIR_H

#include <stdbool.h>
#include <stdint.h>

struct fair_user;

/* Embedded in a client. */
struct fair_place {
	struct fair_user *user;
	struct fair_place *next; /* while it waits */
	bool waits;
};
struct fair {
	struct fair_user *first; /* whose turn it is; whoever had one goes to the end */
};

int fair_join(struct fair *f, struct fair_place *p, uint32_t uid); /* -ENOMEM */
void fair_leave(struct fair *f, struct fair_place *p);             /* it may be waiting */
uint32_t fair_count(const struct fair *f, uint32_t uid);           /* how many have joined */
void fair_wait(struct fair_place *p);                              /* said twice is said once */
struct fair_place *fair_next(struct fair *f); /* waits no more; NULL: nobody did */

#endif
