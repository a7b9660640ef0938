/* SPDX-License-Identifier: MIT. discard.h: sessions that are wanted no more: one, or the old ones. */
#ifndef PROTOND_QUERY_DISCARD_H
#define PROTOND_QUERY_DISCARD_H

#include "ask.h"
#include "change.h"
#include "find.h"
#include "store.h"

/* -EBUSY: it has not been finalized, and `force` is not said. */
void query_delete(
	struct daemon *d, const struct session_ref *s, bool force, ready_fn *done, void *arg);

/* Of one's own sessions, unless all users' are said. 0: not by that. */
struct prune_wish {
	uint64_t older_than_s, max_bytes;
	uint32_t keep; /* the newest so many of each user stay; with nothing else: all others go */
	bool all_users, dry;
	uint32_t slice_ms; /* answers by then and says whether there is more; 0: at the end */
};
typedef void pruned_fn(void *arg, const struct refusal *no, const struct store_prune *gone);
/* -EPERM for all users' by whoever is not privileged. */
int query_may_prune(const struct asker *a, const struct prune_wish *w, struct refusal *no);
/* query_may_prune() was asked. */
void query_prune(struct daemon *d, const struct asker *a, const struct prune_wish *w,
	pruned_fn *done, void *arg);

#endif
