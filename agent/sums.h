/* SPDX-License-Identifier: MIT. sums.h: events of a thread whose lane is full. scope.c, event.c and
 * launch.c include it. */
#ifndef PROTOND_AGENT_SUMS_H
#define PROTOND_AGENT_SUMS_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct rec_metric;
struct rec_scope;

/* [any] With the guard, where the owner's next record is not known to have room in l. False: it is
 * to be a record. r: whole but for its lap. */
bool sums_scope(struct lane *l, const struct rec_scope *r);
bool sums_metric(struct lane *l, const struct rec_metric *r);
/* Likewise a call, as a scope whose path is PATH_KIND_CALL: what has no room does not go to (other). */
bool sums_call(struct lane *l, const struct rec_scope *r);

#endif
