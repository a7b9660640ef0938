/* SPDX-License-Identifier: MIT. settle.c: waiting until jobs do what was last wanted of them, so
 * that whoever started a session may rely on it from the answer on.
 *
 * Each WANT and CTL is followed by a PING; a job handles messages in order, so that its PONG says
 * that what came before holds. A job that is stopped, or too old to answer, costs the wait its
 * timeout.
 */
#include "settle.h"

#include <stdlib.h>

#include "conn.h"
#include "container_of.h"
#include "want.h"

struct settler {
	struct settler *next;
	struct settlers *all;
	uv_timer_t timer;
	uint32_t uid, pid;
	asked_fn *done;
	void *arg;
};

static bool concerns(const struct settler *s, const struct conn *c)
{
	return c->attached && !c->closing && (s->uid == 0 || c->uid == s->uid) &&
	       (s->pid == 0 || c->pid == s->pid);
}

static bool is_settled(const struct settler *s)
{
	const struct intake *in = s->all->d->intake;
	const struct conn *c;

	for (c = in != NULL ? in->conns : NULL; c != NULL; c = c->next) {
		if (concerns(s, c) &&
			(c->pings != c->pongs || (c->ring == NULL && want_of_conn(c) != 0)))
			return false;
	}
	return true;
}

static void on_closed(uv_handle_t *h)
{
	free(container_of((uv_timer_t *)h, struct settler, timer));
}

/* Off the list already: what it tells may wait for jobs in turn, or end all that wait. */
static void tell(struct settler *s, int r)
{
	struct err e = {0};

	if (r < 0)
		(void)err_set(&e, r, "not every job has answered yet");
	s->done(s->arg, r, &e);
	uv_close((uv_handle_t *)&s->timer, on_closed);
}

static void on_timeout(uv_timer_t *t)
{
	struct settler *s = container_of(t, struct settler, timer);
	struct settler **at = &s->all->first;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	tell(s, -ETIMEDOUT);
}

void settle_check(struct settlers *all)
{
	struct settler **at = &all->first, *settled = NULL, *s;

	while ((s = *at) != NULL) {
		if (!is_settled(s)) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		s->next = settled;
		settled = s;
	}
	while ((s = settled) != NULL) {
		settled = s->next;
		tell(s, 0);
	}
}

void settle_end(struct settlers *all)
{
	struct settler *s;

	while ((s = all->first) != NULL) {
		all->first = s->next;
		tell(s, -ECANCELED);
	}
}

void settle_wait(struct settlers *all, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg)
{
	struct settler *s = calloc(1, sizeof(*s));
	struct err e;

	if (s == NULL || uv_timer_init(&all->d->loop, &s->timer) < 0) {
		free(s);
		(void)err_set(&e, -ENOMEM, "no memory to wait for jobs");
		done(arg, -ENOMEM, &e);
		return;
	}
	*s = (struct settler){.next = all->first,
		.all = all,
		.timer = s->timer,
		.uid = who->uid,
		.pid = who->pid,
		.done = done,
		.arg = arg};
	all->first = s;
	(void)uv_timer_start(&s->timer, on_timeout, timeout_ms, 0);
	settle_check(all);
}
