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
	int r = entry_put(&p->entries, type, ring, payload, bytes);

	if (r < 0)
		return r;
	p->entries.saw_session = true;
	if (!entry_flush(&p->entries) && !p->entries.adrift)
		return -ENOSPC;
	wants_tell(p->d.intake);
	return 0;
}

void daemon_settle(struct daemon *d, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg)
{
	struct protond *p = protond_of(d);

	(void)entry_flush(&p->entries);
	wants_tell(p->d.intake);
	settle_wait(&p->settlers, who, timeout_ms, done, arg);
}
