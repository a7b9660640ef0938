/* SPDX-License-Identifier: MIT. round.c: whose ring is drained next. */
#include "round.h"

#include <stdlib.h>

#include "table.h"

#define BUSY 16u /* whoever had less than that part of a tick leaves his to the others */

/* NULL: no memory; he has no limits then. */
static struct round_user *user_of(struct round *o, uint32_t uid)
{
	uint32_t i;

	if (o->last < o->n && o->user[o->last].uid == uid)
		return &o->user[o->last];
	for (i = 0; i < o->n && o->user[i].uid != uid; i++)
		;
	if (i == o->n) {
		if (!ROOM_FOR(o->user, o->cap, o->n))
			return NULL;
		o->user[o->n++] = (struct round_user){.uid = uid};
	}
	o->last = i;
	return &o->user[i];
}

void round_begin(struct round *o, uint64_t tick_ns)
{
	uint32_t i, busy = 0;

	for (i = 0; i < o->n; i++) {
		busy += o->user[i].spent_ns >= tick_ns / BUSY;
		o->user[i].spent_ns = 0;
		o->user[i].seen = o->user[i].left = false;
	}
	o->part_ns = tick_ns / (busy > 0 ? busy : 1);
}

bool round_may(struct round *o, uint32_t uid, uint64_t taken_ns)
{
	struct round_user *u = user_of(o, uid);

	if (u == NULL)
		return true;
	u->seen = true;
	if (taken_ns > u->began_ns)
		return false;
	u->left |= u->spent_ns >= o->part_ns;
	return u->spent_ns < o->part_ns;
}

void round_took(struct round *o, uint32_t uid, uint64_t ns)
{
	struct round_user *u = user_of(o, uid);

	if (u != NULL)
		u->spent_ns += ns;
}

bool round_end(struct round *o, uint64_t now_ns)
{
	uint32_t i, n = 0;
	bool left = false;

	for (i = 0; i < o->n; i++) {
		struct round_user *u = &o->user[i];

		left |= u->left;
		if (!u->left)
			u->began_ns = now_ns;
		if (u->seen)
			o->user[n++] = *u;
	}
	o->n = n;
	return left;
}

void round_fini(struct round *o)
{
	free(o->user);
	*o = (struct round){0};
}
