/* SPDX-License-Identifier: MIT. store_leave.c: what leaves the database, in pieces: rows of sessions
 * that were forgotten, and the pages that they freed. Worker thread. */
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "store_int.h"
#include "store_wal.h"

/* --- small questions --- */

int store_exec_id(sqlite3 *db, const char *sql, int64_t id, struct err *e)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, id);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	(void)sqlite3_finalize(q);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : store_fail(db, rc, e);
}

int store_int(sqlite3 *db, const char *sql, int64_t p1, int64_t p2, int64_t *ret, struct err *e)
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

/* --- a piece --- */

static int transact(struct store_db *d, step_fn *step, void *arg, bool one, struct err *e)
{
	const uint64_t until = store_now_ns() + PIECE_NS;
	uint32_t rows = 0;
	int more = 0, r = store_exec(d->db, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	do
		more = step(d, arg, &rows, e);
	while (more == PIECE_MORE && !one && rows < PIECE_ROWS && store_now_ns() < until);
	r = more < 0 ? more : store_exec(d->db, "COMMIT", e);
	if (r < 0 && sqlite3_get_autocommit(d->db) == 0)
		(void)store_exec(d->db, "ROLLBACK", NULL);
	return r < 0 ? r : more;
}

static void back(struct store_db *d, const struct leave *was, void *saved, const void *copy,
	size_t saved_bytes)
{
	d->leave = *was;
	if (saved_bytes > 0)
		memcpy(saved, copy, saved_bytes);
}

/* A step that fails takes those before it along, so it is tried by itself. On a full disk the WAL
 * cannot grow; once what it has is in the database, it begins anew in the room that it has. */
int store_piece(struct store_db *d, step_fn *step, void *arg, void *saved, size_t saved_bytes,
	struct err *e)
{
	const struct leave was = d->leave;
	uint8_t copy[64];
	int r;

	MUST(saved_bytes <= sizeof(copy));
	if (saved_bytes > 0)
		memcpy(copy, saved, saved_bytes);
	r = transact(d, step, arg, false, e);
	if (r < 0) {
		if (r == -ENOSPC)
			(void)(d->wal != NULL ? store_wal_now(d->wal)
					      : sqlite3_wal_checkpoint_v2(d->db, NULL,
							SQLITE_CHECKPOINT_PASSIVE, NULL, NULL));
		back(d, &was, saved, copy, saved_bytes);
		r = transact(d, step, arg, true, e);
	}
	if (r < 0)
		back(d, &was, saved, copy, saved_bytes);
	if (d->leave.forget_nodes) {
		store_forget_nodes(d);
		d->leave.forget_nodes = false;
	}
	return r;
}

/* --- sessions --- */

int store_forget_session(sqlite3 *db, int64_t id, struct err *e)
{
	static const char *const sql[] = {
#define X(text) text,
		STORE_FORGET_SESSION(X)
#undef X
	};
	size_t i;
	int r;

	for (i = 0; i < sizeof(sql) / sizeof(*sql); i++) {
		r = store_exec_id(db, sql[i], id, e);
		if (r < 0)
			return r;
		if (i == 0 && sqlite3_changes(db) == 0)
			return err_set(e, -ENOENT, "no session %lld", (long long)id);
	}
	return 0;
}

static const struct {
	const char *sql;
	int64_t at_once;
} drops[] = {
#define X(table, row, n)                                                          \
	{"DELETE FROM " #table " WHERE (" row ") IN (SELECT " row " FROM " #table \
	 " WHERE session=?1 "                                                     \
	 "LIMIT ?2)",                                                             \
		(n)},
	STORE_DROP_SESSION(X)
#undef X
};
#define DROPS (sizeof(drops) / sizeof(*drops))

static int drop_some(struct store_db *d, uint32_t *rows, struct err *e)
{
	struct leave *l = &d->leave;
	sqlite3_stmt *q = NULL;
	int n, rc = sqlite3_prepare_v2(d->db, drops[l->table].sql, -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 1, l->session);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(q, 2, drops[l->table].at_once);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	(void)sqlite3_finalize(q);
	if (rc != SQLITE_DONE)
		return store_fail(d->db, rc, e);
	n = sqlite3_changes(d->db);
	*rows += (uint32_t)n;
	l->table += n < drops[l->table].at_once;
	return 1;
}

static int next_session(struct store_db *d, struct err *e)
{
	const int r = store_int(d->db, STORE_NEXT_DROP, 0, 0, &d->leave.session, e);

	d->leave.table = 0;
	d->leave.due = r == 0;
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

int store_empty_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	struct leave *l = &d->leave;
	int r;

	(void)arg;
	if (l->session == 0)
		return l->due ? next_session(d, e) : 0;
	if (l->table < DROPS)
		return drop_some(d, rows, e);
	r = store_exec_id(d->db, STORE_DROP_IS_OVER, l->session, e);
	if (r < 0)
		return r;
	++*rows;
	l->session = 0;
	l->unswept++;
	d->sweep.late = d->sweep.phase != 0;
	return 1;
}

int store_empty_piece(struct store_db *d, struct err *e)
{
	if (d->leave.session == 0 && !d->leave.due)
		return 0;
	return store_piece(d, store_empty_step, NULL, NULL, 0, e);
}

static int delete_once(sqlite3 *db, int64_t id, struct err *e)
{
	int r = store_exec(db, "BEGIN IMMEDIATE", e);

	if (r < 0)
		return r;
	r = store_forget_session(db, id, e);
	if (r == 0)
		r = store_exec(db, "SELECT protond_leave()", e); /* the worker looks */
	if (r == 0)
		r = store_exec(db, "COMMIT", e);
	if (r < 0 && sqlite3_get_autocommit(db) == 0)
		(void)store_exec(db, "ROLLBACK", NULL);
	return r;
}

int store_delete_session(sqlite3 *db, int64_t id, struct err *e)
{
	int r = delete_once(db, id, e);

	if (r == -ENOSPC && sqlite3_wal_checkpoint_v2(
				    db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK)
		r = delete_once(db, id, e);
	return r;
}

/* --- pages --- */

#define VACUUM_SQL   "PRAGMA incremental_vacuum(32)"
#define VACUUM_PAGES 32u
#define FREE_MANY    4096 /* SQLite looks for each page in the whole list of free ones */

static int free_pages(struct store_db *d, int64_t *ret, struct err *e)
{
	return store_int(d->db, "PRAGMA freelist_count", 0, 0, ret, e);
}

static int give_back_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	int64_t n = 0;
	int r = free_pages(d, &n, e);

	(void)arg;
	if (r < 0 || n == 0)
		return r;
	*rows += VACUUM_PAGES;
	r = store_exec(d->db, VACUUM_SQL, e);
	return r < 0 ? r : n > (int64_t)VACUUM_PAGES;
}

int store_give_back_piece(struct store_db *d, struct err *e)
{
	int r;

	if (!d->leave.give_back)
		return 0;
	r = store_piece(d, give_back_step, NULL, NULL, 0, e);
	if (r == 0) {
		d->leave.give_back = false;
		d->leave.to_file = true;
	}
	return r;
}

/* The file is cut when the last of these is in it: nobody may commit again for hours, so it is asked for. */
int store_to_file_piece(struct store_db *d)
{
	if (d->leave.to_file && d->wal != NULL && !store_wal_is_in(d->wal))
		return PIECE_WAITS;
	d->leave.to_file = false;
	return PIECE_OVER;
}

bool store_has_many_free(struct store_db *d)
{
	int64_t n = 0;

	return d->leave.give_back && free_pages(d, &n, NULL) == 0 && n > FREE_MANY;
}

int store_give_back_many(struct store_db *d, struct err *e)
{
	const int r = store_piece(d, give_back_step, NULL, NULL, 0, e);

	return r < 0 ? r : PIECE_MORE;
}

/* --- by itself --- */

int store_leave_piece(struct store_db *d, struct err *e)
{
	int r;

	if (store_has_many_free(d))
		return store_give_back_many(d, e);
	r = store_empty_piece(d, e);
	if (r == 0)
		r = store_size_piece(d, e);
	if (r == 0 && store_sweep_is_due(d))
		r = store_sweep_piece(d, e);
	if (r == 0)
		r = store_retain_piece(d, e);
	if (r == 0)
		r = store_give_back_piece(d, e);
	if (r == 0)
		r = store_to_file_piece(d);
	if (r == 0)
		r = store_summary_piece(d, e);
	return r;
}

void store_leave_open(struct store_db *d)
{
	int64_t any;

	d->leave.due = store_int(d->db, STORE_NEXT_DROP, 0, 0, &any, NULL) == 0;
	d->leave.sweep = store_meta_int(d, "sweep", &any) == 0;
	d->leave.give_back = d->leave.sweep;
	d->leave.unsized = d->leave.bares = d->leave.look = true;
}
