/* SPDX-License-Identifier: MIT. store_ask.c: questions to the database: sessions, and jobs that
 * have ended. */
#include "store_ask.h"

#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "schema.h"
#include "session_terms.h"

#define BUSY_MS 2000

/* clang-format off */
#define COLUMNS "SELECT id, uuid, name, uid, created_ns, state, source, launches, matched, active_ns," \
                " (SELECT count(*) FROM member m WHERE m.session = s.id), " SCHEMA_SESSION_COMMAND "," \
                " finalized_ns, tags, note, " SCHEMA_SESSION_EMPTY " FROM session s "
#define BY_CLASS " ORDER BY " SCHEMA_SESSION_CLASS ", id DESC LIMIT ?5"
/* By enum store_which: ?1 id, ?2 name, ?3 prefix, ?4 uid, ?5 limit; each uses what it needs. */
static const char *const sessions_sql[] = {
        [STORE_BY_ID]   = COLUMNS "WHERE id = ?1",
        [STORE_BY_TEXT] = COLUMNS "WHERE name = ?2 OR (?3 <> '' AND substr(lower(hex(uuid)), 1, length(?3)) = ?3)"
                                  " ORDER BY id DESC LIMIT ?5",
        [STORE_LAST]    = COLUMNS "WHERE uid = ?4" BY_CLASS,
        [STORE_AUTO]    = COLUMNS "WHERE uid = ?4 AND source = 'auto'" BY_CLASS,
        [STORE_TAG]     = COLUMNS "WHERE uid = ?4 AND " SCHEMA_SESSION_HAS_TAG("?2") BY_CLASS,
        [STORE_JOB]     = COLUMNS "WHERE (?4 < 0 OR uid = ?4) AND " SCHEMA_SESSION_HAS_PID("?1") BY_CLASS,
        [STORE_ALL]     = COLUMNS "WHERE ?4 < 0 OR uid = ?4 ORDER BY id DESC LIMIT ?5",
};
static const char ring_ended_sql[] = "SELECT 1 FROM process WHERE ring = ?1 AND ended_ns IS NOT NULL";
static const char id_sql[] = "SELECT id, name FROM session WHERE uuid = ?1";
static const char ended_sql[] =
        "SELECT DISTINCT p.id, p.pid, p.rank, p.command, p.end_reason, p.ring, n.text, x.id, x.name"
        " FROM process p LEFT JOIN note n ON n.process = p.id"
        " LEFT JOIN session x ON x.id = (SELECT s.id FROM member m JOIN session s ON s.id = m.session"
        " WHERE m.process = p.id ORDER BY m.session = ?1 DESC, " SCHEMA_SESSION_CLASS ", s.id DESC LIMIT 1)"
        " WHERE p.ended_ns IS NOT NULL AND (?2 < 0 OR p.uid = ?2)"
        " AND (?1 = 0 OR p.id IN (SELECT process FROM member WHERE session = ?1))"
        " AND (?3 = 0 OR p.pid = ?3) ORDER BY p.id DESC, n.ns LIMIT ?4";
/* clang-format on */

static int ask_failed(sqlite3 *db, struct err *e)
{
	return err_set(e, -EIO, "the database did not answer: %s", sqlite3_errmsg(db));
}

static const char *text_of(sqlite3_stmt *st, int column)
{
	return (const char *)sqlite3_column_text(st, column);
}

/* A row whose uuid is none is left out. */
static int session_row(sqlite3_stmt *st, stored_session_fn *fn, void *arg)
{
	struct stored_session s = {.id = sqlite3_column_int64(st, 0),
		.uid = (uint32_t)sqlite3_column_int64(st, 3),
		.created_ns = sqlite3_column_int64(st, 4),
		.state = (uint8_t)term_number(&term_session_states, text_of(st, 5), 0),
		.source = term_number(&term_session_sources, text_of(st, 6), 0),
		.launches = (uint64_t)sqlite3_column_int64(st, 7),
		.matched = (uint64_t)sqlite3_column_int64(st, 8),
		.active_ns = (uint64_t)sqlite3_column_int64(st, 9),
		.n_processes = (uint32_t)sqlite3_column_int64(st, 10)};

	if (sqlite3_column_bytes(st, 1) != 16)
		return 0;
	memcpy(s.uuid, sqlite3_column_blob(st, 1), 16);
	s.name = text_of(st, 2);
	s.command = text_of(st, 11);
	s.finalized_ns = sqlite3_column_int64(st, 12);
	s.tags = text_of(st, 13);
	s.note = text_of(st, 14);
	s.empty = sqlite3_column_int(st, 15) != 0;
	return fn(arg, &s);
}

/* A question binds what it has; SQLITE_RANGE for the others is no fault. */
static void sessions_bind(sqlite3_stmt *st, const struct store_wish *w)
{
	sqlite3_bind_int64(st, 1, w->id);
	sqlite3_bind_text(st, 2, w->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 3, w->prefix, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 4, w->uid);
	sqlite3_bind_int64(st, 5, STORE_ASK_ROWS);
}

int store_ask_sessions(struct sqlite3 *db, const struct store_wish *w, stored_session_fn *fn,
	void *arg, struct err *e)
{
	sqlite3_stmt *st;
	int r = 0, step = SQLITE_ROW;

	if (sqlite3_prepare_v2(db, sessions_sql[w->which], -1, &st, NULL) != SQLITE_OK)
		return ask_failed(db, e);
	sessions_bind(st, w);
	while (r == 0 && (step = sqlite3_step(st)) == SQLITE_ROW)
		r = session_row(st, fn, arg);
	sqlite3_finalize(st);
	if (r < 0)
		return err_set(e, r, "out of memory");
	return step == SQLITE_DONE ? 0 : ask_failed(db, e);
}

int store_ask_id(struct sqlite3 *db, const uint8_t uuid[16], int64_t *ret_id, char ret_name[128],
	struct err *e)
{
	sqlite3_stmt *st = NULL;
	const char *name;
	int r = -ENOENT;

	if (sqlite3_prepare_v2(db, id_sql, -1, &st, NULL) != SQLITE_OK)
		return ask_failed(db, e);
	if (sqlite3_bind_blob(st, 1, uuid, 16, SQLITE_STATIC) == SQLITE_OK &&
		sqlite3_step(st) == SQLITE_ROW) {
		*ret_id = sqlite3_column_int64(st, 0);
		name = text_of(st, 1);
		snprintf(ret_name, 128, "%s", name != NULL ? name : "");
		r = 0;
	}
	sqlite3_finalize(st);
	return r < 0 ? err_set(e, r, "the session is not in the database") : 0;
}

static int ended_row(sqlite3_stmt *st, ended_row_fn *fn, void *arg)
{
	const struct ended_row r = {.process = sqlite3_column_int64(st, 0),
		.pid = sqlite3_column_int64(st, 1),
		.rank = sqlite3_column_type(st, 2) == SQLITE_NULL ? -1
								  : sqlite3_column_int64(st, 2),
		.command = text_of(st, 3),
		.end = text_of(st, 4),
		.ring = sqlite3_column_blob(st, 5),
		.ring_bytes = (uint32_t)sqlite3_column_bytes(st, 5),
		.note = text_of(st, 6),
		.session = sqlite3_column_int64(st, 7),
		.session_name = text_of(st, 8)};

	return fn(arg, &r);
}

int store_ask_ring_ended(sqlite3 *db, const uint8_t ring[16], bool *ret_ended, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int x = sqlite3_prepare_v2(db, ring_ended_sql, -1, &st, NULL);

	if (x == SQLITE_OK) {
		(void)sqlite3_bind_blob(st, 1, ring, 16, SQLITE_STATIC);
		x = sqlite3_step(st);
		*ret_ended = x == SQLITE_ROW;
	}
	(void)sqlite3_finalize(st);
	return x == SQLITE_ROW || x == SQLITE_DONE ? 0 : ask_failed(db, e);
}

int store_ask_ended(
	struct sqlite3 *db, const struct ended_wish *w, ended_row_fn *fn, void *arg, struct err *e)
{
	sqlite3_stmt *st;
	int r = 0, step = SQLITE_DONE;

	if (sqlite3_prepare_v2(db, ended_sql, -1, &st, NULL) != SQLITE_OK)
		return ask_failed(db, e);
	sqlite3_bind_int64(st, 1, w->session);
	sqlite3_bind_int64(st, 2, w->uid);
	sqlite3_bind_int64(st, 3, w->pid);
	sqlite3_bind_int64(st, 4, STORE_ASK_ROWS);
	while (r == 0 && (step = sqlite3_step(st)) == SQLITE_ROW)
		r = ended_row(st, fn, arg);
	sqlite3_finalize(st);
	if (r < 0)
		return err_set(e, r, "out of memory");
	return step == SQLITE_DONE || step == SQLITE_ROW ? 0 : ask_failed(db, e);
}

void store_image_free(unsigned char *image)
{
	sqlite3_free(image);
}

int store_ask_open(const char *path, struct sqlite3 **ret, struct err *e)
{
	if (sqlite3_open_v2(path, ret, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK)
		return err_set(e, -EIO, "the database cannot be read: %s", sqlite3_errmsg(*ret));
	sqlite3_busy_timeout(*ret, BUSY_MS);
	return 0;
}

void store_ask_close(struct sqlite3 *db)
{
	sqlite3_close(db);
}
