/* SPDX-License-Identifier: MIT. turn.c: when the next tick is. */
#include "turn.h"

#include <unistd.h>

#include "host_clock.h"
#include "log.h"
#include "loop.h"

static void tick_on_timer(uv_timer_t *t)
{
	struct protond *p = t->data;

	if (!p->stopping)
		p->on_tick(p);
}

static void tick_on_idle(uv_idle_t *i)
{
	struct protond *p = i->data;

	(void)uv_idle_stop(i);
	tick_on_timer(&p->tick);
}

/* At once is the next turn of the loop: sockets and the store have theirs in between. A timer of 0
 * ms that is set in a timer's callback has none with libuv 1.44: it runs again before anything
 * else. */
void turn_in(struct protond *p, uint64_t ms)
{
	if (ms == 0) {
		(void)uv_timer_stop(&p->tick);
		(void)uv_idle_start(&p->again, tick_on_idle);
		return;
	}
	(void)uv_idle_stop(&p->again);
	uv_update_time(&p->d.loop);
	(void)uv_timer_start(&p->tick, tick_on_timer, ms, 0);
}

void protond_hurry(struct protond *p)
{
	if (p->stopping)
		return;
	p->quiet_since_ns = mono_ns();
	turn_in(p, 0);
}

void protond_turn(struct protond *p)
{
	if (!p->stopping)
		turn_in(p, 0);
}

void protond_trim(struct protond *p)
{
	p->trim_due = true;
	protond_turn(p);
}

void protond_fatal(struct protond *p, const char *why)
{
	log_line(LOG_ERR, "fatal",
		"reason=%s next=\"the journal has everything; the next start goes on\"", why);
	p->ok = false;
	p->stopping = true;
	uv_stop(&p->d.loop);
}
