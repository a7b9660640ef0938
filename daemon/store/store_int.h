/* SPDX-License-Identifier: MIT. store_int.h: what the files of the store share; nobody else
 * includes it. */
#ifndef PROTOND_STORE_INT_H
#define PROTOND_STORE_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "store.h"
#include "store_sql.h"

enum sql {
#define X(name, text) SQL_##name,
	STORE_SQL(X)
#undef X
		SQL_MAX
};

/* Index of a column in a SELECT; its parameter in the INSERT is one more. */
enum process_column {
#define X(c) P_##c,
	PROCESS_COLUMNS(X)
#undef X
		P_id
};
enum session_column {
#define X(c) S_##c,
	SESSION_COLUMNS(X)
#undef X
		S_id
};

/* Node hash → row id. Bounded: emptied when it is full. */
struct node_slot {
	uint8_t hash[16];
	int64_t id; /* 0: free */
};
struct node_cache {
	struct node_slot *slot;
	uint32_t cap, n; /* cap: power of two */
};

/* What the worker thread works with. */
struct store_db {
	sqlite3 *db;
	sqlite3_stmt *q[SQL_MAX];
	struct node_cache cache;
	struct batch *loading;       /* what the rows that are read go into */
	const struct batch *storing; /* where the rows that are written come from */
	uint32_t *order;             /* of this batch's cells, by key; NULL: as they come */
	uint32_t refused;            /* rows that no retry could store, in this batch */
	struct err refused_err;
	uint32_t anchors_left; /* to store until they are thinned */
	char *path;
	int lock_fd; /* flock()ed; -1: none */
};

/* store_db.c: opening, migrating, the words for failures */
int store_db_open(const char *path, struct store_db *ret, struct err *e);
void store_db_close(struct store_db *d); /* checkpoints; half-opened is fine */
int store_errno(sqlite3 *db, int rc);
int store_fail(sqlite3 *db, int rc, struct err *e); /* words and -errno of a failed call */
int store_exec(sqlite3 *db, const char *sql, struct err *e);
int store_meta_int(struct store_db *d, const char *key, int64_t *ret); /* -ENOENT */

/* store_rows.c: one batch, one transaction */
int store_rows_put(struct store_db *d, const struct batch *b, struct err *e);
void store_forget_nodes(struct store_db *d); /* the cache: some may be gone */

/* store_load.c */
int store_rows_load(struct store_db *d, struct batch *ret, struct err *e);

/* store_prune.c: without the sweep of what nobody refers to any more. -ENOENT. */
int store_drop_session(sqlite3 *db, int64_t id, struct err *e);
int store_sweep(sqlite3 *db, struct err *e);

#endif
