/* SPDX-License-Identifier: MIT. apply.c: what verbs and finalizers ask of the loop: an entry of
 * theirs, and that jobs do what it says. */
#include "entry.h"

#include "loop.h"
#include "settle.h"
#include "wants.h"

int daemon_apply(struct daemon *d, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes)
{
	struct protond *p = protond_of(d);
	int r = entry_put(p, type, ring, payload, bytes);

	if (r < 0)
		return r;
	p->saw_session = true;
	if (!protond_flush(p) && !p->adrift)
		return -ENOSPC;
	wants_tell(p);
	return 0;
}

void daemon_settle(struct daemon *d, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg)
{
	struct protond *p = protond_of(d);

	(void)protond_flush(p);
	wants_tell(p);
	settle_wait(p, who, timeout_ms, done, arg);
}
