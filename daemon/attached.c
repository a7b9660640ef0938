/* SPDX-License-Identifier: MIT. attached.c: what is asked of the jobs that are attached. */
#include "attached.h"

#include "conn.h"
#include "rings.h"
#include "wants.h"

uint32_t attached_jobs(const struct intake *in)
{
	const struct ring *r;
	const struct conn *c;
	uint32_t n = 0;

	for (c = in->conns; c != NULL; c = c->next)
		n += c->attached && c->ring == NULL;
	for (r = in->rings->first; r != NULL; r = r->next)
		n += r->state != RING_ENDED;
	return n;
}

bool attached_lives(const struct intake *in, const uint8_t ring[16])
{
	const struct ring *r = ring_find(in->rings, ring);

	return r != NULL && (r->state == RING_LIVE || r->state == RING_WAITING);
}

void attached_each(const struct intake *in, attached_fn *fn, void *arg)
{
	const struct conn *c;

	for (c = in->conns; c != NULL; c = c->next) {
		if (c->attached && (c->ring == NULL || !c->ring->adopted))
			fn(arg, c->pid, c->uid, NULL, c->info, c->info_bytes, c->state.gpu.state,
				c->state.gpu.words);
	}
}

uint32_t attached_pause(struct intake *in, uint32_t pid, uint32_t uid, bool pause)
{
	struct ring *r;
	uint32_t n = 0;

	for (r = in->rings->first; r != NULL; r = r->next) {
		if (r->state != RING_LIVE || (pid != 0 && r->pid != pid) ||
			(uid != UINT32_MAX && r->uid != uid))
			continue;
		r->paused = pause;
		ring_want(r);
		n++;
	}
	return n;
}
