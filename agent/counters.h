/* SPDX-License-Identifier: MIT. counters.h: what the CPU counts in each scope, while WANT_COUNTERS. engine.c and scope.c
 * include it. */
#ifndef PROTOND_AGENT_COUNTERS_H
#define PROTOND_AGENT_COUNTERS_H

#include <stdbool.h>

struct lane;
struct pd_thread;

/* With worker_in(): threads count from their next scope on, or stop. */
void counters_want(bool on);
/* [any] With the guard held, before t's next scope is entered: t->depth are open. */
void counters_enter(const struct pd_thread *t, struct lane *l);
/* [any] Likewise, before the innermost one, whose path is there, is left. */
void counters_exit(const struct pd_thread *t, struct lane *l);
void counters_end(struct lane *l); /* [any] its owner ends */
void counters_forked(void);        /* in the child: they count the parent's threads */

#endif
