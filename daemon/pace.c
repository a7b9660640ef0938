/* SPDX-License-Identifier: MIT. pace.c: how soon the rings are looked at again.
 *
 * Each millisecond while events flow, then more and more seldom. Four times a second when no job is
 * asked to record, or after seconds without events, if all jobs can wake us: one that starts a
 * session, or comes to the end of a quarter of its lane, sees in the control file that we nap, and
 * says PING (agent/lane.c: lane_wake()).
 */
#include "pace.h"

#include <stdatomic.h>

#include "host_clock.h"
#include "loop.h"
#include "ring_ctl.h"

#define BUSY_MS    1u   /* while events flow */
#define IDLE_MS    10u  /* while jobs record, and nothing comes */
#define QUIET_MS   20u  /* and nothing came for seconds: a first burst still fits a lane */
#define NAP_MS     250u /* all jobs wake us */
#define PARKED_MS  100u /* no job is asked to record, and not all wake us */
#define STUCK_MS   100u
#define FLOWING_NS 50000000u
#define QUIET_NS   5000000000ull

static bool is_recording(const struct protond *p)
{
	const struct ring *r;

	for (r = p->rings.first; r != NULL; r = r->next) {
		if (ring_is_recording(r))
			return true;
	}
	return false;
}

static bool is_flow(struct protond *p, uint64_t moved, uint64_t now)
{
	const uint64_t ms = (now - p->turn.ticked_ns) / 1000000;

	p->turn.ticked_ns = now;
	return moved >= FLOW_BYTES && (ms <= QUIET_MS || moved / ms >= FLOW_BYTES / QUIET_MS);
}

static bool may_nap(const struct protond *p)
{
	const struct ring *r;

	if (p->finalizers != NULL || p->drained != NULL)
		return false;
	for (r = p->rings.first; r != NULL; r = r->next) {
		if (r->state != RING_ENDED &&
			(r->state != RING_LIVE || !ring_wakes(r) || r->summing))
			return false;
	}
	return true;
}

/* Another one than any that a job was told, also by a daemon before this one. */
static uint32_t next_nap(struct protond *p)
{
	uint32_t ret = (uint32_t)(mono_ns() / 1000000) | 1;

	if (ret == p->turn.last_nap)
		ret += 2;
	p->turn.last_nap = ret;
	return ret;
}

/* Nothing comes. What came before a job could see that we nap is in the tick behind this one. */
static uint64_t quiet_ms(struct protond *p, uint64_t else_ms)
{
	bool told = false;
	struct ring *r;

	if (!may_nap(p)) {
		p->turn.nap = 0;
		return else_ms;
	}
	if (p->turn.nap == 0)
		p->turn.nap = next_nap(p);
	for (r = p->rings.first; r != NULL; r = r->next) {
		if (r->state != RING_LIVE || r->nap == p->turn.nap)
			continue;
		if (!ring_nap(r, p->turn.nap))
			return else_ms;
		told = true;
	}
	/* Pairs with the one in lane_wake(): a job that did not see it, we see at work. */
	atomic_thread_fence(memory_order_seq_cst);
	return told ? QUIET_MS : NAP_MS;
}

uint64_t pace_ms(struct protond *p, uint64_t moved, bool works, bool more)
{
	const uint64_t now = mono_ns();
	const bool flows = is_flow(p, moved, now);

	if (flows || works) {
		p->turn.quiet_since_ns = now;
		p->turn.nap = 0;
	}
	if (p->rings.n == 0 && p->finalizers == NULL && p->drained == NULL &&
		!p->entries.saw_session)
		return PACE_PARKED;
	if (p->entries.stuck)
		return STUCK_MS;
	if (more)
		return p->drain.behind ? BUSY_MS : 0;
	if (now - p->turn.quiet_since_ns < FLOWING_NS)
		return BUSY_MS;
	if (!is_recording(p) && p->finalizers == NULL)
		return quiet_ms(p, PARKED_MS);
	return now - p->turn.quiet_since_ns < QUIET_NS ? IDLE_MS : quiet_ms(p, QUIET_MS);
}
