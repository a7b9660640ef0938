/* SPDX-License-Identifier: MIT. sums.h: events of a thread whose lane is full. scope.c and event.c
 * include it. */
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

#endif
