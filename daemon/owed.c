/* SPDX-License-Identifier: MIT. owed.c: what each user has in the journal that the store does not
 * have yet. */
#include "owed.h"

#include <stdlib.h>

#include "table.h"

struct owed_user {
	uint32_t uid;
	uint64_t put, stored;
	uint64_t at[OWED_MARKS]; /* put, when that mark was set */
};

void owed_fini(struct owed *o)
{
	free(o->user);
	*o = (struct owed){.share = o->share};
}

static struct owed_user *find(const struct owed *o, uint32_t uid)
{
	uint32_t i;

	for (i = 0; i < o->n; i++)
		if (o->user[i].uid == uid)
			return &o->user[i];
	return NULL;
}

void owed_put(struct owed *o, uint32_t uid, uint64_t bytes)
{
	struct owed_user *u = find(o, uid);

	if (u == NULL && bytes > 0 && ROOM_FOR(o->user, o->cap, o->n)) {
		u = &o->user[o->n++];
		*u = (struct owed_user){.uid = uid};
	}
	if (u == NULL)
		return;
	u->put += bytes;
	o->put += bytes;
}

bool owed_is_over(const struct owed *o, uint32_t uid)
{
	const struct owed_user *u = find(o, uid);

	return u != NULL && o->share.user < o->share.all &&
	       share_room(&o->share, o->put - o->stored, u->put - u->stored, 1) != 0;
}

bool owed_is_large(const struct owed *o)
{
	uint32_t i;

	for (i = 0; i < o->n; i++)
		if (o->user[i].put - o->user[i].stored > o->share.user / 2)
			return true;
	return false;
}

uint64_t owed_mark(struct owed *o)
{
	uint32_t i;

	o->marks++;
	for (i = 0; i < o->n; i++)
		o->user[i].at[o->marks % OWED_MARKS] = o->user[i].put;
	return o->marks;
}

/* A user who came after the mark has zeroes there. Transactions are stored in their order. */
void owed_stored(struct owed *o, uint64_t mark)
{
	uint32_t i, n = 0;

	for (i = 0; i < o->n; i++) {
		struct owed_user *u = &o->user[i];
		const uint64_t at = u->at[mark % OWED_MARKS];

		if (at > u->stored) {
			o->stored += at - u->stored;
			u->stored = at;
		}
		if (u->stored != u->put)
			o->user[n++] = *u;
	}
	o->n = n;
}
