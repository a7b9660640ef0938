/* SPDX-License-Identifier: MIT. rows.h: a row into a statement and out of one, made from the
 * columns in tables.h. No thread of its own, no state. */
#ifndef PROTOND_SESSION_ROWS_H
#define PROTOND_SESSION_ROWS_H

#include <stdint.h>

#include "batch.h"

struct sqlite3_stmt;

/* What a row refers to and does not hold. */
struct row_io {
	const struct batch *from; /* put: where histograms are */
	struct batch *into;       /* get: where histograms, names and texts go */
	void *nodes;              /* the argument of these two: */
	int (*node_id)(void *nodes, const uint8_t hash[16], int64_t *ret_id); /* put: SQLITE_… */
	void (*node_hash)(void *nodes, int64_t id, uint8_t ret[16]); /* get; zeroes: none such */
	int64_t id, above; /* of a node: get: its number and its parent's; put: its parent's */
	int r;             /* of the last row: SQLITE_… of a put, 0 or -ENOMEM of a get */
};

/* Binds all columns in the order of the list, from ?1 on, and returns x->r. What is bound is the
 * row's and x's own: both stay until the statement has run. */
#define X(t, key, options) \
	int row_put_##t(struct row_io *x, struct sqlite3_stmt *q, const struct row_##t *r);
TABLES(X)
#undef X

/* Reads all columns in the order of the list, from column 0 on, into a zeroed row; returns x->r.
 * What is too long or of another type becomes what fits. */
#define X(t, key, options) \
	int row_get_##t(struct row_io *x, struct sqlite3_stmt *q, struct row_##t *r);
TABLES(X)
#undef X

#endif
