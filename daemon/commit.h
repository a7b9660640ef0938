/* SPDX-License-Identifier: MIT. commit.h: from the fold into the store. For the loop; anybody in
 * the daemon may call daemon_commit(). */
#ifndef PROTOND_DAEMON_COMMIT_H
#define PROTOND_DAEMON_COMMIT_H

#include <stdbool.h>

struct protond;

#define FRESH_MAX (1u << 20) /* bytes of new rows that are collected at once */

void commit_periodic(struct protond *p);
bool commit_is_due(const struct protond *p);
bool commit_next(struct protond *p); /* begins the one that is due; false: none is */
void commit_end(struct protond *p);  /* before the store closes: who waits is told */
void commit_if_large(struct protond *p);

#endif
