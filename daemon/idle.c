/* SPDX-License-Identifier: MIT. idle.c: a private daemon ends when it has had no job and no client
 * for a while, and is not for jobs to come.
 */
#include "idle.h"

#include <poll.h>

#include "attached.h"
#include "commit.h"
#include "conn.h"
#include "control.h"
#include "fold.h"
#include "loop.h"

#define SECOND_NS 1000000000ull

static void awaits_look(void *arg, const struct fold_session *s)
{
	*(bool *)arg =
		*(bool *)arg || (s->source == SOURCE_CONTROL &&
					(s->match == MATCH_USER || s->match == MATCH_COMMAND) &&
					s->state == SESSION_IS_ACTIVE);
}

/* A session that is for jobs to come. */
static bool awaits_jobs(const struct protond *p)
{
	bool found = false;

	fold_each_session(p->d.fold, awaits_look, &found);
	return found;
}

/* Whoever slept (SIGSTOP, a paused machine) wakes to its timers first. */
static bool somebody_knocks(const struct daemon *d)
{
	struct pollfd p[] = {{.fd = d->intake->fd, .events = POLLIN},
		{.fd = control_fd(d->control), .events = POLLIN}};

	return poll(p, 2, 0) > 0;
}

bool idle_is_over(struct protond *p, uint64_t now_ns)
{
	const uint64_t s = p->d.idle_exit_s;
	/* A ring that has ended is there until the store has it, which commit_waits() answers for. */
	const bool busy = rings_work(&p->rings) || p->d.intake->n_conns != 0 ||
			  control_clients(p->d.control) != 0 || p->finalizers != NULL ||
			  commit_waits(p) || awaits_jobs(p) || somebody_knocks(&p->d);

	if (busy || s == 0)
		p->idle_since_ns = 0;
	else if (p->idle_since_ns == 0)
		p->idle_since_ns = now_ns;
	return p->idle_since_ns != 0 && now_ns - p->idle_since_ns >= s * SECOND_NS;
}
