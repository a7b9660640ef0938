/* SPDX-License-Identifier: MIT. offered.c: rings that were offered and are no process yet. */
#include "offered.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adopt.h"
#include "conn.h"
#include "host_clock.h"
#include "kept.h"
#include "rings.h"
#include "turn.h"
#include "wants.h"

#define LIVED_NS  1000000000u
#define FOREBEARS 16u

void offered_wait(struct ring *r, const struct ring_origin *o, uint32_t want)
{
	r->offered_ns = mono_ns();
	r->offered_want = want;
	r->came_flags = o->flags;
	memcpy(r->came_token, o->token, 16);
	(void)snprintf(r->came_version, sizeof(r->came_version), "%s", o->version);
}

static int adopt_one(struct ring *r)
{
	const struct ring_origin o = {r->came_token, r->came_flags, r->came_version};
	int x = r->adopted ? 0 : ring_adopt(r, &o);

	if (x < 0 || r->offered_ns == 0)
		return x;
	r->offered_ns = 0;
	kept_offer(r);
	if (r->conn != NULL && r->conn->state_known)
		(void)ring_put_state(r, &r->conn->state);
	ring_want(r);
	return 0;
}

/* A child is in its parent's session: so whoever forked it comes first. */
int offered_adopt(struct ring *r)
{
	struct ring *line[FOREBEARS];
	uint32_t n = 0;
	struct ring *at;

	for (at = r; at != NULL && !at->adopted && at->uid == r->uid && n < FOREBEARS;
		at = ring_find(r->all, at->reader.h.parent))
		line[n++] = at;
	while (n > 1)
		(void)adopt_one(line[--n]);
	return adopt_one(r);
}

int offered_look(struct ring *r)
{
	if (r->adopted)
		return 0;
	r->looked_ns = mono_ns();
	if (!ring_is_used(r) && r->looked_ns - r->offered_ns < LIVED_NS)
		return -EAGAIN;
	return offered_adopt(r);
}

bool offered_drop(struct ring *r)
{
	if (r->adopted || ring_is_used(r))
		return false;
	ring_files_remove(r);
	r->state = RING_ENDED;
	ring_drop(r);
	return true;
}

bool offered_is_past(const struct ring *r, uint64_t ns)
{
	return r->adopted || r->state == RING_ENDED || r->looked_ns > ns;
}
