/* SPDX-License-Identifier: MIT. discard.h: sessions that are wanted no more: one, or the old ones
 * of all users. */
#ifndef PROTOND_QUERY_DISCARD_H
#define PROTOND_QUERY_DISCARD_H

#include "ask.h"
#include "change.h"
#include "find.h"
#include "store.h"

/* -EBUSY: it has not been finalized, and `force` is not said. */
void query_delete(
	struct daemon *d, const struct session_ref *s, bool force, ready_fn *done, void *arg);

struct prune_wish {
	uint64_t older_than_s, max_bytes; /* 0: not by that */
};
typedef void pruned_fn(void *arg, const struct refusal *no, const struct store_pruned *gone);
/* -EPERM for whoever is not privileged. */
int query_may_prune(const struct asker *a, struct refusal *no);
/* query_may_prune() was asked. */
void query_prune(struct daemon *d, const struct asker *a, const struct prune_wish *w,
	pruned_fn *done, void *arg);

#endif
