/* SPDX-License-Identifier: MIT. leave.c: the last drain of a dead process, and its END. */
#include "leave.h"

#include "daemon.h"
#include "drain.h"
#include "entry.h"
#include "exited.h"
#include "fold.h"
#include "host_clock.h"
#include "intake.h"
#include "journal.h"
#include "log.h"
#include "loop.h"
#include "must.h"
#include "offered.h"
#include "own_sessions.h"
#include "rings.h"

/* So long a dead process may take to be reaped: its status is read then. */
#define EXIT_NS 100000000u
/* And so long children that it waited for may stay unheard, where too many knock. */
#define CHILDREN_NS 1000000000u

/* Without that word: a process that left by its exit handler gave its main thread's lane back. One
 * that did not and was inside a scope was killed (or called _exit there: the same to us). */
static bool left_by_exit(const struct ring *r)
{
	bool main_exited = false, open = false;
	struct j_now now;
	uint32_t i;

	for (i = 0; i < r->reader.n_seen; i++) {
		const struct reader_lane *l = &r->reader.lane[i];

		if (l->state == LANE_EXITED && l->tid == r->ns_pid)
			main_exited = true;
		if (l->state == LANE_LIVE && reader_now(&r->reader, i, &now, 1) > 0)
			open = true;
	}
	return main_exited || !open;
}

/* -EAGAIN: the kernel will say in a moment. */
static int how_it_ended(const struct ring *r, struct j_end *ret)
{
	int x;

	*ret = (struct j_end){.status = -1, .reason = END_EXEC};
	if (r->execed)
		return 0;
	x = process_status(r->pidfd, r->pid, r->pid_start, &ret->status);
	if (x == -EAGAIN && mono_ns() - r->gone_ns < EXIT_NS)
		return x;
	if (x == 0)
		ret->reason = (ret->status & 0x7f) == 0 ? END_EXITED : END_KILLED;
	else if (r->reader.lane == NULL || r->unreadable)
		ret->reason = END_LOST;
	else
		ret->reason = left_by_exit(r) ? END_EXITED : END_KILLED;
	return 0;
}

/* All that the dead process left, a tick's worth at a time. -EAGAIN: there was something, so look
 * again. */
static int drain_rest(struct ring *r)
{
	bool more = false;
	int64_t n;
	uint32_t i;

	/* As often as a lane that breaks the laws has tries. */
	for (i = 0; i < READER_BAD_TICKS && !r->unreadable; i++) {
		n = drain_ring(r, &more);
		if (n == -ENOSPC || n == -ENOMEM)
			return (int)n;
		if (n > 0 || (n == 0 && more))
			return -EAGAIN;
		if (n < 0)
			r->unreadable = true;
	}
	if (!r->unreadable && drain_tables(r, &more, mono_ns() + r->all->drain->ns) == 0 && more)
		return -EAGAIN;
	return 0;
}

/* Called in each tick until END is in the journal; nothing is given up before. */
void ring_leave(struct protond *p, struct ring *r)
{
	const uint64_t deadline = mono_ns() + r->all->drain->ns,
		       skipped = r->all->d->skipped_entries;
	struct fold_process did = {0};
	struct j_end end;

	MUST(r->magic == RING_IS_ALIVE && r->state == RING_GONE);
	if (!r->adopted && (offered_drop(r) || offered_adopt(r) < 0))
		return;
	if (r->reader.lane != NULL && drain_rest(r) < 0)
		return;
	while (fold_has_many(r->all->d->fold, r->uuid)) {
		if (entry_put(r->all->entries, J_LEAVE, r->uuid, "", 0) < 0 ||
			mono_ns() >= deadline)
			return;
		if (r->all->d->skipped_entries != skipped)
			break; /* left out (poison.h), as each further one would be: END has all */
	}
	if (how_it_ended(r, &end) < 0)
		return;
	/* Its children are in its sessions, and these may end with it. */
	if (!intake_is_clear(p->d.intake, r->gone_ns) && mono_ns() - r->gone_ns < CHILDREN_NS)
		return;
	/* Once: its sessions may take some ticks to end. */
	if (!r->noted && r->reader.lane != NULL && !r->unreadable &&
		(drain_now_block(r) == -ENOSPC || drain_counts(r) == -ENOSPC))
		return;
	r->noted = true;
	if (!sessions_owner_gone(p, r->uuid))
		return;
	if (entry_put(r->all->entries, J_END, r->uuid, &end, sizeof(end)) < 0)
		return;
	(void)fold_get_process(r->all->d->fold, r->uuid, &did);
	log_line(did.drops > 0 ? LOG_WARN : LOG_INFO, "job_ended",
		"process=%lld pid=%u uid=%u reason=%u status=%d events=%llu dropped=%llu",
		(long long)did.id, r->pid, r->uid, end.reason, end.status,
		(unsigned long long)did.events, (unsigned long long)did.drops);
	r->state = RING_ENDED;
	r->end_position = 0; /* known after the flush */
	r->all->entries->saw_session = true;
}
