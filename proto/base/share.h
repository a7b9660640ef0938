/* SPDX-License-Identifier: MIT. share.h: what one user may have of what all users share. The one
 * home of the rule: a share, a quarter of all unless set otherwise; and an eighth of all is kept
 * for users who have less than a sixteenth. */
#ifndef PROTOND_BASE_SHARE_H
#define PROTOND_BASE_SHARE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct share {
	uint64_t all, user; /* user >= all: there is one user, and nothing is kept back */
};

static inline struct share share_of(uint64_t all, bool one_user)
{
	const uint64_t quarter = all / 4 > 0 ? all / 4 : 1;

	return (struct share){all, one_user ? all : quarter};
}

/* May a user who has `own` of the `used` have `more`? 0; -ENOSPC: little is left, and he has some. */
static inline int share_left(const struct share *s, uint64_t used, uint64_t own, uint64_t more)
{
	const uint64_t kept = s->user < s->all ? s->all / 8 : 0;

	if (used + more > s->all)
		return -ENOSPC;
	return used + more > s->all - kept && own + more > s->all / 16 ? -ENOSPC : 0;
}

/* Likewise; -EDQUOT: he has his share. */
static inline int share_room(const struct share *s, uint64_t used, uint64_t own, uint64_t more)
{
	if (s->user < s->all && own + more > s->user)
		return -EDQUOT;
	return share_left(s, used, own, more);
}

#endif
