/* SPDX-License-Identifier: MIT. wants.c: telling jobs what is wanted of them. */
#include "wants.h"

#include "conn.h"
#include "daemon.h"
#include "fold.h"
#include "ring_ctl.h"
#include "rings.h"
#include "thrift.h"
#include "want.h"

void ring_want(struct ring *r)
{
	uint32_t want, sums = 0;

	if (r->state != RING_LIVE || !r->adopted)
		return;
	want = want_of_ring(r);
	if (r->all->thrift->over && (want & WANT_SCOPES) != 0 &&
		!fold_has_timeline(r->all->d->fold, r->uuid))
		sums = WANT_SUMS;
	(void)ring_say_want(r, want | sums); /* else again at the next look */
	if (r->conn != NULL)
		conn_want(r->conn, want);
}

void wants_tell(const struct intake *in)
{
	struct ring *r;
	struct conn *c;

	if (in == NULL)
		return;
	for (r = in->rings->first; r != NULL; r = r->next)
		ring_want(r);
	for (c = in->conns; c != NULL; c = c->next) {
		if (c->attached && (c->ring == NULL || !c->ring->adopted))
			conn_want(c, want_of_conn(c));
	}
}
