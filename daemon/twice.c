/* SPDX-License-Identifier: MIT. twice.c: rings that ended once.
 *
 * A process's row is found by its ring's uuid. The fold knows those that ended lately, the store
 * all; but the store is asked between transactions, and no job waits so long for its ring. So the
 * ring is taken, and let go when the answer comes. The store refuses a second row of a uuid anyway.
 */
#include "twice.h"

#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "daemon.h"
#include "rings.h"
#include "store.h"
#include "store_ask.h"

#define ASKED_MAX 256u /* in one question; the rest a second later */

struct twice {
	struct rings *all;
	uint32_t n;
	struct {
		uint8_t ring[16];
		bool ended;
	} of[ASKED_MAX];
};

static int twice_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct twice *t = arg;
	uint32_t i;
	int r = 0;

	for (i = 0; i < t->n && r == 0; i++)
		r = store_ask_ring_ended(db, t->of[i].ring, &t->of[i].ended, e);
	return r;
}

static void refuse(struct ring *r)
{
	struct err e = {0};

	(void)err_set(&e, -ESTALE, "this ring was closed; make a new one");
	r->unreadable = true;
	r->all->d->bad_rings++;
	if (r->conn != NULL)
		conn_refuse(r->conn, &e);
	ring_died(r);
}

static void twice_done(void *arg, int r, const struct err *e)
{
	struct twice *t = arg;
	struct ring *ring;
	uint32_t i;

	(void)e;
	for (i = 0; i < t->n; i++) {
		ring = ring_find(t->all, t->of[i].ring);
		if (ring == NULL || ring->state != RING_LIVE)
			continue;
		ring->asked_twice = r == 0;
		if (r == 0 && t->of[i].ended)
			refuse(ring);
	}
	free(t);
}

void rings_ask_twice(struct rings *all)
{
	struct twice *t = NULL;
	struct ring *r;

	if (all->d->private)
		return;
	for (r = all->first; r != NULL; r = r->next) {
		if (!r->is_new || r->asked_twice || r->state != RING_LIVE)
			continue;
		if (t == NULL && (t = calloc(1, sizeof(*t))) == NULL)
			return;
		r->asked_twice = true; /* unless it fails */
		memcpy(t->of[t->n++].ring, r->uuid, 16);
		if (t->n == ASKED_MAX)
			break;
	}
	if (t == NULL)
		return;
	t->all = all;
	store_call(all->d->store, twice_work, t, twice_done);
}
