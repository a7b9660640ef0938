/* SPDX-License-Identifier: MIT. store_int.h: what the files of the store share; nobody else
 * includes it. */
#ifndef PROTOND_STORE_INT_H
#define PROTOND_STORE_INT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#include "batch.h"
#include "err.h"
#include "must.h"
#include "store.h"
#include "store_sql.h"

enum sql {
#define X(name, text) SQL_##name,
	STORE_SQL(X)
#undef X
		SQL_MAX
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
#define STORE_DB_MAGIC 0x53444221u
struct store_db {
	uint32_t magic;
	pthread_t owner; /* the opener, then the worker: who may use it */
	sqlite3 *db;
	sqlite3_stmt *q[SQL_MAX], *put[TABLE_MAX], *load[TABLE_MAX];
	struct node_cache cache;
	bool has_unknown; /* a node has a place and no description, since this was opened */
	uint32_t *order;  /* of this batch's cells, by key; NULL: as they come */
	uint32_t refused; /* rows that no retry could store, in this batch */
	struct err refused_err;
	uint32_t anchors_left; /* to store until they are thinned */
	char *path;
	int lock_fd; /* flock()ed; -1: none */
};

/* store_db.c: opening, mending, the words for failures */
int store_db_open(const char *path, struct store_db *ret, struct err *e);
void store_db_close(struct store_db *d); /* checkpoints; half-opened is fine */
int store_errno(sqlite3 *db, int rc);
int store_fail(sqlite3 *db, int rc, struct err *e); /* words and -errno of a failed call */
int store_exec(sqlite3 *db, const char *sql, struct err *e);
int store_meta_int(struct store_db *d, const char *key, int64_t *ret); /* -ENOENT */

struct text;
int store_prepare_text(sqlite3 *db, struct text *take, sqlite3_stmt **ret); /* SQLITE_… */
int store_prepare(struct store_db *d); /* all that it can; SQLITE_… of the first that it cannot */

static inline struct store_db *store_db_from(void *p)
{
	struct store_db *d = p;

	MUST(d != NULL && d->magic == STORE_DB_MAGIC);
	MUST(pthread_equal(d->owner, pthread_self()));
	return d;
}

static inline int store_run(sqlite3_stmt *q)
{
	const int rc = sqlite3_step(q);

	(void)sqlite3_reset(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* A row is left out; the first one's reason is told. */
static inline void store_refuse(struct store_db *d, const char *what, const char *why)
{
	if (d->refused++ == 0)
		(void)err_set(&d->refused_err, -EBADMSG, "%s: %s", what, why);
}

/* store_nodes.c. A node that nobody described gets a place, so that its counts are kept; the
 * description may still come. SQLITE_…. */
int store_node_id(void *db, const uint8_t hash[16], int64_t *ret_id);
bool store_node_is_known(const struct store_db *d, const uint8_t hash[16]); /* without asking */
int store_node_learn(struct store_db *d, const uint8_t hash[16]);
void store_forget_nodes(struct store_db *d); /* the cache: some may be gone */

/* store_rows.c: one batch, one transaction */
int store_rows_put(struct store_db *d, const struct batch *b, struct err *e);

/* store_load.c */
int store_rows_load(struct store_db *d, struct batch *ret, struct err *e);

/* store_prune.c: without the sweep of what nobody refers to any more. -ENOENT. */
int store_drop_session(sqlite3 *db, int64_t id, struct err *e);
int store_sweep(sqlite3 *db, struct err *e);

#endif
