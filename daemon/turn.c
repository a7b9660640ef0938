/* SPDX-License-Identifier: MIT. turn.c: when the next tick is. */
#include "turn.h"

#include "container_of.h"
#include "host_clock.h"
#include "log.h"

static void tick_on_timer(uv_timer_t *h)
{
	struct turn *t = container_of(h, struct turn, tick);

	if (!t->stopping)
		t->on_tick(t);
}

static void tick_on_idle(uv_idle_t *h)
{
	struct turn *t = container_of(h, struct turn, again);

	(void)uv_idle_stop(h);
	tick_on_timer(&t->tick);
}

int turn_init(struct turn *t, uv_loop_t *loop)
{
	int r = uv_timer_init(loop, &t->tick);

	t->ok = true;
	return r == 0 ? uv_idle_init(loop, &t->again) : r;
}

/* At once is the next turn of the loop: sockets and the store have theirs in between. A timer of 0
 * ms that is set in a timer's callback has none with libuv 1.44: it runs again before anything
 * else. */
void turn_in(struct turn *t, uint64_t ms)
{
	if (ms == 0) {
		(void)uv_timer_stop(&t->tick);
		(void)uv_idle_start(&t->again, tick_on_idle);
		return;
	}
	(void)uv_idle_stop(&t->again);
	uv_update_time(t->tick.loop);
	(void)uv_timer_start(&t->tick, tick_on_timer, ms, 0);
}

void turn_hurry(struct turn *t)
{
	if (t->stopping)
		return;
	t->quiet_since_ns = mono_ns();
	turn_in(t, 0);
}

void turn_soon(struct turn *t)
{
	if (!t->stopping)
		turn_in(t, 0);
}

void turn_trim(struct turn *t)
{
	t->trim_due = true;
	turn_soon(t);
}

void turn_fatal(struct turn *t, const char *why)
{
	log_line(LOG_ERR, "fatal",
		"reason=%s next=\"the journal has everything; the next start goes on\"", why);
	t->ok = false;
	t->stopping = true;
	uv_stop(t->tick.loop);
}
