/* SPDX-License-Identifier: MIT. batch.h: rows on their way from the fold to whoever keeps them, and
 * from the store back into a fold: upserts of whole rows (absolute values, so that a row written
 * twice is the same row). Nodes are named by hash.
 *
 * One thread fills a batch. batch_share() makes it read-only; from then on any thread may read it,
 * and the last owner frees it. Adding to a shared batch, or freeing it, is a broken promise (MUST).
 */
#ifndef PROTOND_SESSION_BATCH_H
#define PROTOND_SESSION_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "tables.h"

struct arena;
struct hist_counts;

struct batch { /* zero-initialised: empty */
#define X(t, key, options)           \
	struct {                     \
		struct row_##t *row; \
		uint32_t n, cap;     \
	} t;
	TABLES(X)
#undef X
	int64_t next_process, next_session; /* counters of ids */
	uint64_t journal;                   /* position up to which the rows hold everything */
	int64_t *deleted;                   /* session ids to remove */
	uint32_t n_deleted;
	uint8_t *buckets; /* of cells, packed */
	uint32_t n_buckets, cap_buckets;
	struct arena **held; /* where names and texts live; the first may be its own */
	uint32_t n_held, cap_held;
	bool shared; /* by batch_share() */
};

uint64_t batch_bytes(const struct batch *b); /* that it owns, but for names and texts */
bool batch_is_upkeep(
	const struct batch *b);   /* processes, and what a restart goes on from; no session */
void batch_free(struct batch *b); /* frees what it owns, not b itself; zeroed b is fine */
/* The durations of a cell of b, packed. False: no memory. */
bool batch_hist(struct batch *b, struct row_cell *c, const struct hist_counts *h);
void batch_durations(const struct batch *b, const struct row_cell *c, struct hist_counts *ret);
/* The arena lives as long as the batch. False: no memory. */
bool batch_hold(struct batch *b, struct arena *a);
/* A copy that lives as long as the batch; NULL: no memory. Not in one batch with batch_hold(). */
const char *batch_text(struct batch *b, const char *s);
/* Adds a zeroed row and returns it; NULL: out of memory. batch_cell(b) and so on. */
#define X(t, key, options) struct row_##t *batch_##t(struct batch *b);
TABLES(X)
#undef X

/* Takes the contents of *take, which is empty afterwards; the caller is the first owner. NULL: no
 * memory, and *take stands. */
const struct batch *batch_share(struct batch *take);
const struct batch *batch_ref(const struct batch *shared); /* one more owner */
void batch_unref(const struct batch *shared);              /* one less; NULL is fine */

#endif
