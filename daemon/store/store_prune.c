/* SPDX-License-Identifier: MIT. store_prune.c: what leaves the database: sessions deleted, sessions
 * that are too old or too much, and the rows that nobody refers to any more. Worker thread. */
#include <sqlite3.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "store_int.h"

static int exec_id(sqlite3 *db, const char *sql, int64_t id, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, id);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : store_fail(db, rc, e);
}

/* --- one session --- */

int store_drop_session(sqlite3 *db, int64_t id, struct err *e)
{
	static const char *const sql[] = {
#define X(text) text,
		STORE_DROP_SESSION(X)
#undef X
	};
	size_t i;
	int r;

	for (i = 0; i < sizeof(sql) / sizeof(*sql); i++) {
		r = exec_id(db, sql[i], id, e);
		if (r < 0)
			return r;
	}
	/* The last statement was the session's own row. */
	return sqlite3_changes(db) > 0 ? 0 : err_set(e, -ENOENT, "no session %lld", (long long)id);
}

/* --- the sweep --- */

/* One bit per node id: somebody refers to it, or to a node below it. */
struct used {
	uint64_t *bits;
	uint64_t n; /* ids below it are covered */
};

static bool used_get(const struct used *u, int64_t id)
{
	const uint64_t i = (uint64_t)id;

	return i >= u->n || (u->bits[i / 64] >> (i % 64) & 1) != 0;
}

static void used_set(struct used *u, int64_t id)
{
	const uint64_t i = (uint64_t)id;

	if (i < u->n)
		u->bits[i / 64] |= 1ull << (i % 64);
}

/* SQL: protond_used(node.id). */
static void sql_used(sqlite3_context *c, int n, sqlite3_value **v)
{
	(void)n;
	sqlite3_result_int(c, used_get(sqlite3_user_data(c), sqlite3_value_int64(v[0])));
}

static int used_new(sqlite3 *db, struct used *u, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT coalesce(max(id),0)+1 FROM node", -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		u->n = (uint64_t)sqlite3_column_int64(q, 0);
	(void)sqlite3_finalize(q);
	if (rc != SQLITE_ROW)
		return store_fail(db, rc, e);
	u->bits = calloc((size_t)(u->n / 64 + 1), sizeof(*u->bits));
	return u->bits != NULL ? 0 : err_set(e, -ENOMEM, "out of memory while sweeping the store");
}

static int used_mark(sqlite3 *db, struct used *u, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db,
		"SELECT node FROM cell UNION ALL SELECT node FROM metric "
		"UNION ALL SELECT node FROM config",
		-1, &q, NULL);

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(q);
		if (rc == SQLITE_ROW)
			used_set(u, sqlite3_column_int64(q, 0));
	}
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : store_fail(db, rc, e);
}

/* Parents of used nodes. A parent is nearly always older than its child, so one pass from the
 * youngest does; *ret_again: there was one that was not. */
static int used_climb(sqlite3 *db, struct used *u, bool *ret_again, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int64_t id, parent;
	int rc =
		sqlite3_prepare_v2(db, "SELECT id,parent FROM node ORDER BY id DESC", -1, &q, NULL);

	*ret_again = false;
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(q);
		if (rc != SQLITE_ROW)
			break;
		id = sqlite3_column_int64(q, 0);
		parent = sqlite3_column_int64(q, 1);
		if (parent == 0 || !used_get(u, id) || used_get(u, parent))
			continue;
		used_set(u, parent);
		*ret_again = *ret_again || parent > id;
	}
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE ? 0 : store_fail(db, rc, e);
}

static int sweep_nodes(sqlite3 *db, struct used *u, struct err *e)
{
	bool again = true;
	int rc, r = used_new(db, u, e);

	if (r == 0)
		r = used_mark(db, u, e);
	while (r == 0 && again)
		r = used_climb(db, u, &again, e);
	if (r < 0)
		return r;
	rc = sqlite3_create_function(
		db, "protond_used", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, u, sql_used, NULL, NULL);
	if (rc != SQLITE_OK)
		return store_fail(db, rc, e);
	r = store_exec(
		db, "DELETE FROM node WHERE NOT protond_used(id);SELECT protond_forget_nodes()", e);
	(void)sqlite3_create_function(
		db, "protond_used", 1, SQLITE_UTF8, NULL, NULL, NULL, NULL); /* u goes away */
	return r;
}

/* What no session refers to any more: ended processes and what hangs on them, nodes, old anchors.
 * It reads every cell once, so it runs once for many deletes; a mark in meta, set with the first of
 * them, is there until then. A node goes with its last row though the job may come back to it: the
 * fold describes a node with each row that is new. */
int store_sweep(sqlite3 *db, struct err *e)
{
	struct used u = {0};
	int r = store_exec(db, STORE_SWEEP, e);

	if (r == 0)
		r = sweep_nodes(db, &u, e);
	free(u.bits);
	if (r == 0)
		r = store_exec(db, "DELETE FROM meta WHERE key='sweep'", e);
	return r;
}

/* --- the contract --- */

typedef int step_fn(sqlite3 *db, int64_t id, struct err *e);

static int drop_and_sweep(sqlite3 *db, int64_t id, struct err *e)
{
	const int r = store_drop_session(db, id, e);

	return r < 0 ? r : store_sweep(db, e);
}

static int sweep(sqlite3 *db, int64_t id, struct err *e)
{
	(void)id;
	return store_sweep(db, e);
}

static int vacuum(sqlite3 *db, int64_t pages, struct err *e)
{
	char sql[64];

	(void)snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%lld)", (long long)pages);
	return store_exec(db, sql, e);
}

static int transact_once(sqlite3 *db, step_fn *step, int64_t id, struct err *e)
{
	int r = store_exec(db, "BEGIN IMMEDIATE", e);

	if (r == 0)
		r = step(db, id, e);
	if (r == 0)
		r = store_exec(db, "COMMIT", e);
	if (r < 0 && sqlite3_get_autocommit(db) == 0)
		(void)store_exec(db, "ROLLBACK", NULL);
	return r;
}

/* On a full disk the WAL cannot grow; once what it has is in the database, it begins anew in the
 * room that it has. */
static int transact(sqlite3 *db, step_fn *step, int64_t id, struct err *e)
{
	int r = transact_once(db, step, id, e);

	if (r == -ENOSPC && sqlite3_wal_checkpoint_v2(
				    db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK)
		r = transact_once(db, step, id, e);
	return r;
}

/* The first column of the first row; -ENOENT: there is none. */
static int first_int(
	sqlite3 *db, const char *sql, int64_t p1, int64_t p2, int64_t *ret, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);

	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(q) > 0)
		rc = sqlite3_bind_int64(q, 1, p1);
	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(q) > 1)
		rc = sqlite3_bind_int64(q, 2, p2);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(q, 0);
	(void)sqlite3_finalize(q);
	if (rc == SQLITE_ROW)
		return 0;
	return rc == SQLITE_DONE ? -ENOENT : store_fail(db, rc, e);
}

#define VACUUM_PAGES 250

/* Freed pages go back to the file system, a few a transaction: of one for all of them the WAL would
 * take up as much as is moved, where there may be no more room. */
static void give_back(sqlite3 *db)
{
	int64_t n = 0;

	if (first_int(db, "PRAGMA freelist_count", 0, 0, &n, NULL) < 0)
		return;
	while (n > 0 && transact(db, vacuum, VACUUM_PAGES, NULL) == 0)
		n -= VACUUM_PAGES;
	/* The file is cut when the last of these is in it. */
	(void)sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

int store_delete_session(sqlite3 *db, int64_t id, struct err *e)
{
	const int r = transact(db, drop_and_sweep, id, e);

	if (r == 0)
		give_back(db);
	return r;
}

static int live_bytes(sqlite3 *db, uint64_t *ret, struct err *e)
{
	int64_t pages = 0, free_pages = 0, page = 0;
	int r = first_int(db, "PRAGMA page_count", 0, 0, &pages, e);

	if (r == 0)
		r = first_int(db, "PRAGMA freelist_count", 0, 0, &free_pages, e);
	if (r == 0)
		r = first_int(db, "PRAGMA page_size", 0, 0, &page, e);
	*ret = (uint64_t)(pages - free_pages) * (uint64_t)page;
	return r;
}

/* It becomes ret->first[ret->n], where there is room. */
static void name_victim(sqlite3 *db, int64_t id, struct store_pruned *ret)
{
	sqlite3_stmt *q = NULL;

	if (ret->n >= PRUNED_NAMED)
		return;
	ret->first[ret->n].id = id;
	ret->first[ret->n].name[0] = '\0';
	if (sqlite3_prepare_v2(db, "SELECT name FROM session WHERE id=?1", -1, &q, NULL) ==
			SQLITE_OK &&
		sqlite3_bind_int64(q, 1, id) == SQLITE_OK && sqlite3_step(q) == SQLITE_ROW)
		(void)snprintf(ret->first[ret->n].name, sizeof(ret->first[0].name), "%s",
			(const char *)sqlite3_column_text(q, 0));
	(void)sqlite3_finalize(q);
}

#define HOUR_NS 3600000000000
#define DAY_NS  (24 * HOUR_NS)

/* A clock that was set back, or is more than a week ahead of the last look, may be wrong: it is
 * believed when it has gone on so for a day. */
int store_clock_lasts(sqlite3 *db, int64_t real_ns, bool *ret, struct err *e)
{
	static const char get_seen[] = "SELECT value FROM meta WHERE key='clock_seen'",
			  get_since[] = "SELECT value FROM meta WHERE key='clock_since'",
			  set_seen[] =
				  "INSERT OR REPLACE INTO meta(key,value) VALUES('clock_seen',?1)",
			  set_since[] =
				  "INSERT OR REPLACE INTO meta(key,value) VALUES('clock_since',?1)";
	int64_t seen = 0, since = 0;
	int r = first_int(db, get_seen, 0, 0, &seen, e);

	if (r == 0)
		r = first_int(db, get_since, 0, 0, &since, e);
	if (r == -ENOENT || (r == 0 && (real_ns < seen - HOUR_NS || real_ns > seen + 7 * DAY_NS))) {
		since = real_ns;
		r = exec_id(db, set_since, since, e);
	}
	if (r == 0)
		r = exec_id(db, set_seen, real_ns, e);
	*ret = r == 0 && real_ns - since >= DAY_NS;
	return r;
}

/* A transaction each, so that a long prune keeps what it did. */
static int drop(sqlite3 *db, int64_t id, struct store_pruned *ret, struct err *e)
{
	int r;

	name_victim(db, id, ret);
	r = transact(db, store_drop_session, id, e);
	if (r == 0)
		ret->n++;
	return r;
}

static int prune_old(
	sqlite3 *db, int64_t before_realtime_ns, struct store_pruned *ret, struct err *e)
{
	static const char next[] = "SELECT id FROM session WHERE id>?1 AND state='finalized' "
				   "AND finalized_ns<?2 ORDER BY id LIMIT 1";
	int64_t id = 0;
	int r = 0;

	while (r == 0) {
		r = first_int(db, next, id, before_realtime_ns, &id, e);
		if (r == 0)
			r = drop(db, id, ret, e);
	}
	if (r == -ENOENT)
		r = ret->n > 0 ? transact(db, sweep, 0, e) : 0;
	return r;
}

/* What a session alone referred to goes with the sweep, which reads every cell: one for each
 * sixteenth of the sessions that are left, so no more than that go in vain. */
static int prune_large(sqlite3 *db, uint64_t max_bytes, struct store_pruned *ret, struct err *e)
{
	int64_t id = 0, left = 0, unswept = 0;
	uint64_t bytes = 0;
	int r = first_int(
		db, "SELECT count(*) FROM session WHERE state='finalized'", 0, 0, &left, e);

	while (r == 0 && (r = live_bytes(db, &bytes, e)) == 0 && bytes > max_bytes && left > 0) {
		r = first_int(db,
			"SELECT id FROM session WHERE id>?1 AND state='finalized' ORDER BY id "
			"LIMIT 1",
			id, 0, &id, e);
		if (r == 0)
			r = drop(db, id, ret, e);
		left--;
		if (r == 0 && ++unswept > left / 16) {
			unswept = 0;
			r = transact(db, sweep, 0, e);
		}
	}
	return r == 0 && unswept > 0 ? transact(db, sweep, 0, e) : r;
}

int store_prune(sqlite3 *db, int64_t before_realtime_ns, uint64_t max_bytes,
	struct store_pruned *ret, struct err *e)
{
	int r = 0;

	ret->n = 0;
	if (before_realtime_ns != 0)
		r = prune_old(db, before_realtime_ns, ret, e);
	if (r == 0 && max_bytes != 0)
		r = prune_large(db, max_bytes, ret, e);
	if (r == 0 && ret->n > 0)
		give_back(db);
	return r;
}
