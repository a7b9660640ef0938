/* SPDX-License-Identifier: MIT. finalize.h: sessions that are finalizing, until their launches are
 * settled or the deadline is over. For the loop; verbs call daemon_finalize(). Loop thread. */
#ifndef PROTOND_DAEMON_FINALIZE_H
#define PROTOND_DAEMON_FINALIZE_H

#include "daemon.h"

struct protond;

#define SETTLE_MS 5000u /* a finalize waits so long for launches in flight */

struct finalizer {
	struct finalizer *next;
	uint8_t session[16];
	uint64_t not_before_ns, deadline_ns;
	uint64_t asked_ns; /* what its jobs published before is to be in the fold */
	bool say;          /* own_sessions.c: FINALIZE was not said yet */
	asked_fn *done;    /* may be NULL */
	void *arg;
};

int finalize_add(struct protond *p, const struct finalizer *f); /* a copy; -ENOMEM */
/* Of a session that is finalizing: FINALIZED when settled, or at the deadline. */
void finalize_soon(struct protond *p, const uint8_t session[16], uint64_t deadline_ns,
	asked_fn *done, void *arg);
bool finalize_is_waiting(const struct protond *p, const uint8_t session[16]);
/* Ends those that are settled or overdue, as many as a tick's time is for. gone: the ring of a dead
 * process, all of which is in the fold, or NULL. False: there may be more. */
bool finalize_check(struct protond *p, const uint8_t *gone);

#endif
