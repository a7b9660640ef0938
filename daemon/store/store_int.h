/* SPDX-License-Identifier: MIT. store_int.h: what the files of the store share; nobody else
 * includes it. */
#ifndef PROTOND_STORE_INT_H
#define PROTOND_STORE_INT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <time.h>

#include <sqlite3.h>

#include "batch.h"
#include "err.h"
#include "must.h"
#include "store.h"
#include "store_sql.h"
#include "store_sweep.h"
#include "summariser.h"

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

/* What leaves, in pieces: store_leave.c. */
struct leave {
	int64_t session;   /* whose rows go, its own is gone; 0: none is known */
	uint32_t table;    /* of those, where it is */
	uint32_t unswept;  /* sessions whose rows are gone, since the last sweep began */
	bool due;          /* there may be such a session */
	bool sweep;        /* the next sweep does not wait for more of them */
	bool give_back;    /* freed pages go back to the file system */
	bool to_file;      /* they did in the WAL; a checkpoint cuts the file */
	bool forget_nodes; /* some are gone: the cache must not name them */
	bool unsized;      /* there may be sessions whose size is not known: of an older protond */
	int64_t bare;      /* chunks up to this rowid have summaries, if there are any to be had */
	bool bares;        /* there may be others: of an older protond */
	bool look;         /* something was stored: is it too much? */
	bool retains;      /* it was; room is made */
	bool retained;     /* sessions have left for it */
};

/* What the worker thread works with. */
#define STORE_DB_MAGIC 0x53444221u
struct store_db {
	uint32_t magic;
	pthread_t owner; /* the opener, then the worker: who may use it */
	sqlite3 *db;
	sqlite3_stmt *q[SQL_MAX], *put[TABLE_MAX], *load[TABLE_MAX];
	struct node_cache cache;
	struct summariser summariser;
	bool has_unknown; /* a node has a place and no description, since this was opened */
	uint32_t *order;  /* of this batch's cells, by key; NULL: as they come */
	uint32_t refused; /* rows that no retry could store, in this batch */
	struct err refused_err;
	uint32_t anchors_left; /* to store until they are thinned */
	struct leave leave;
	struct sweep sweep;
	struct store_limits limits;
	struct store_wal *wal; /* NULL: no thread for it, SQLite does it within a commit */
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

/* For how long a piece may last; CLOCK_MONOTONIC. */
static inline uint64_t store_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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
bool store_node_is_known(struct store_db *d, const uint8_t hash[16]); /* without asking */
int store_node_learn(struct store_db *d, const uint8_t hash[16]);
void store_forget_nodes(struct store_db *d); /* the cache: some may be gone */

/* store_rows.c: one batch, one transaction */
int store_rows_put(struct store_db *d, const struct batch *b, struct err *e);

/* store_load.c */
int store_rows_load(struct store_db *d, struct batch *ret, struct err *e);

/* store_leave.c. A session leaves in two steps. Its row goes, and meta says `drop ID` (of 20 digits): that is one
 * small transaction, and nobody sees it any more. Its other rows go in pieces, at leisure; a daemon
 * that ends meanwhile goes on with it at its next start. -ENOENT. */
int store_forget_session(sqlite3 *db, int64_t id, struct err *e);

/* A piece is a transaction of steps, until so many rows are deleted, or so much time has gone. */
#define PIECE_ROWS 2048u
#define PIECE_NS   8000000u
enum { PIECE_OVER, PIECE_MORE, PIECE_WAITS }; /* PIECE_WAITS: for a checkpoint */
/* PIECE_MORE: it may go on; PIECE_OVER: nothing is left to do; -errno. *rows: what it deleted, added. `saved` is put
 * back as it was when the transaction fails. */
typedef int step_fn(struct store_db *d, void *arg, uint32_t *rows, struct err *e);
int store_piece(struct store_db *d, step_fn *step, void *arg, void *saved, size_t saved_bytes,
	struct err *e);

/* PIECE_MORE, PIECE_OVER: nothing leaves now, -errno. */
int store_empty_piece(struct store_db *d, struct err *e); /* rows of sessions that were forgotten */
int store_empty_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e);
int store_give_back_piece(struct store_db *d, struct err *e);
int store_to_file_piece(struct store_db *d);  /* or PIECE_WAITS */
bool store_has_many_free(struct store_db *d); /* and they are to go back */
int store_give_back_many(struct store_db *d, struct err *e);
int store_leave_piece(struct store_db *d, struct err *e); /* all of it, by itself */
void store_leave_open(struct store_db *d);                /* what the last one left to do */

/* store_prune.c: a piece of a prune: as above, or PIECE_WAITS */
int store_prune_piece(struct store_db *d, struct store_prune *p, struct err *e);
bool store_prune_is_over(struct store_prune *p); /* its time is */
/* A piece of keeping to the limits. */
int store_retain_piece(struct store_db *d, struct err *e);
int store_summary_piece(struct store_db *d, struct err *e);
int store_size_piece(struct store_db *d, struct err *e);
bool store_sweep_is_due(struct store_db *d);

/* The first column of the first row; -ENOENT: there is none. */
int store_int(sqlite3 *db, const char *sql, int64_t p1, int64_t p2, int64_t *ret, struct err *e);
int store_exec_id(sqlite3 *db, const char *sql, int64_t id, struct err *e);

#endif
