/* SPDX-License-Identifier: MIT. commit.h: from the fold into the store. For the loop; anybody in
 * the daemon may call daemon_commit(). Loop thread. */
#ifndef PROTOND_DAEMON_COMMIT_H
#define PROTOND_DAEMON_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

struct protond;

struct asked;

struct commits {
	uint32_t running;    /* submitted, not done */
	bool failed;         /* the last one */
	bool lacks;          /* the store has not yet all that is of sessions */
	bool closed;         /* the store takes nothing more */
	struct asked *asked; /* who waits for the next one */
	uint64_t last_ns;
	uint64_t cost_ns;    /* as last appended */
	uint64_t pruned_ns;  /* retain.h */
	uint64_t flight[64]; /* journal positions, one per flight_s / 64 */
	uint32_t flight_at;
	uint64_t flight_ns;
};

#define FRESH_MAX (1u << 20) /* bytes of new rows that are collected at once */

void commit_periodic(struct protond *p);
bool commit_is_due(const struct protond *p);
bool commit_next(struct protond *p); /* begins the one that is due; false: none is */
void commit_end(struct protond *p);  /* before the store closes: who waits is told */
void commit_if_large(struct protond *p);
/* The store has work that it may do, or lacks more than upkeep. */
bool commit_waits(const struct protond *p);

#endif
