/* SPDX-License-Identifier: MIT. store_prune.c: which sessions leave: those that somebody wants to go,
 * and those that are too much. The rows go as store_leave.c has it. Worker thread. */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "schema.h"
#include "store_int.h"
#include "store_wal.h"

#define HOUR_NS   3600000000000
#define DAY_NS    (24 * HOUR_NS)
#define MS_NS     1000000u
#define CHOSEN_NS 500000000u
#define WAL_NS    5000000000u /* for the file to be cut, of a prune that is not in slices */

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
	int r = store_int(db, get_seen, 0, 0, &seen, e);

	if (r == 0)
		r = store_int(db, get_since, 0, 0, &since, e);
	if (r == -ENOENT || (r == 0 && (real_ns < seen - HOUR_NS || real_ns > seen + 7 * DAY_NS))) {
		since = real_ns;
		r = store_exec_id(db, set_since, since, e);
	}
	if (r == 0)
		r = store_exec_id(db, set_seen, real_ns, e);
	*ret = r == 0 && real_ns - since >= DAY_NS;
	return r;
}

static int live_bytes(sqlite3 *db, uint64_t *ret, struct err *e)
{
	int64_t pages = 0, free_pages = 0, page = 0;
	int r = store_int(db, "PRAGMA page_count", 0, 0, &pages, e);

	if (r == 0)
		r = store_int(db, "PRAGMA freelist_count", 0, 0, &free_pages, e);
	if (r == 0)
		r = store_int(db, "PRAGMA page_size", 0, 0, &page, e);
	*ret = (uint64_t)(pages - free_pages) * (uint64_t)page;
	return r;
}

/* A sweep reads every cell: one for each sixteenth of the sessions that are left, so that no more
 * than that goes in vain. */
bool store_sweep_is_due(struct store_db *d)
{
	int64_t left = 0;

	if (d->sweep.phase != 0 || d->leave.sweep)
		return true;
	return d->leave.unswept > 0 &&
	       store_int(d->db, "SELECT count(*) FROM session WHERE " SQL_ENDED, 0, 0, &left,
		       NULL) == 0 &&
	       d->leave.unswept > left / 16;
}

/* --- a prune --- */

enum { BY_AGE, BY_SIZE, SWEEP, GIVE_BACK, TO_FILE };

/* ?1 behind this id, ?2 uid or -1, ?3 ended before, ?4 not before, ?5 the newest that stay */
static const char victim_sql[] =
	"SELECT id,name,coalesce(stored_bytes,0) FROM session s WHERE id>?1 AND " SQL_ENDED " "
	"AND (?2<0 OR uid=?2) AND finalized_ns<?3 AND finalized_ns>=?4 AND (?5=0 OR (SELECT t.id "
	"FROM session t WHERE t.id>s.id AND t.uid=s.uid AND t." SQL_ENDED " ORDER BY t.id "
	"LIMIT 1 OFFSET ?5-1) IS NOT NULL) ORDER BY id LIMIT 1";

/* The next one; it becomes p->first[] where there is room. -ENOENT: there is none. */
static int next_victim(sqlite3 *db, struct store_prune *p, struct err *e)
{
	const bool by_age = p->went.phase == BY_AGE;
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, victim_sql, -1, &q, NULL);

	(void)sqlite3_bind_int64(q, 1, p->went.at);
	(void)sqlite3_bind_int64(q, 2, p->uid);
	(void)sqlite3_bind_int64(q, 3, by_age ? p->before_ns : INT64_MAX);
	(void)sqlite3_bind_int64(q, 4, by_age ? INT64_MIN : p->before_ns);
	(void)sqlite3_bind_int64(q, 5, p->keep);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW) {
		p->went.at = sqlite3_column_int64(q, 0);
		if (p->went.n < PRUNED_NAMED) {
			p->first[p->went.n].id = p->went.at;
			(void)snprintf(p->first[p->went.n].name, sizeof(p->first[0].name), "%s",
				(const char *)sqlite3_column_text(q, 1));
		}
		p->went.n++;
		p->went.bytes += (uint64_t)sqlite3_column_int64(q, 2);
	}
	(void)sqlite3_finalize(q);
	if (rc == SQLITE_ROW)
		return 0;
	return rc == SQLITE_DONE ? -ENOENT : store_fail(db, rc, e);
}

/* What must be brought below max_bytes: all of the file, or one user's sessions. */
static int size_now(sqlite3 *db, const struct store_prune *p, uint64_t *ret, struct err *e)
{
	int64_t n = 0;
	int r;

	if (p->uid < 0)
		return live_bytes(db, ret, e);
	r = store_int(db, "SELECT coalesce(sum(stored_bytes),0) FROM session WHERE uid=?1", p->uid,
		0, &n, e);
	*ret = (uint64_t)n;
	return r;
}

static bool is_by_size(const struct store_prune *p)
{
	return p->went.phase == BY_SIZE && p->max_bytes != 0;
}

#define CHOOSE_ON 2 /* ends the piece */
/* 1: this one; 0: none any more; CHOOSE_ON: all that are too old were. */
static int choose(struct store_db *d, struct store_prune *p, struct err *e)
{
	uint64_t size = 0;
	int r;

	if (p->went.phase == BY_AGE) {
		r = p->before_ns != 0 ? next_victim(d->db, p, e) : -ENOENT;
		if (r != -ENOENT)
			return r < 0 ? r : 1;
		p->went.phase = BY_SIZE;
		p->went.at = 0;
		if (!p->dry)
			return CHOOSE_ON;
	}
	if (p->max_bytes == 0)
		return 0;
	r = size_now(d->db, p, &size, e);
	if (r < 0 || size <= p->max_bytes + (p->dry ? p->went.bytes : 0))
		return r;
	r = next_victim(d->db, p, e);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* By age all are chosen first; by size the rows of one go before it is known whether another must. */
static int prune_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	const uint32_t before = *rows;
	struct store_prune *p = arg;
	int r = 0;

	if (p->went.phase != BY_AGE)
		r = store_empty_step(d, NULL, rows, e);
	p->went.rows += *rows - before;
	if (r != 0 || (is_by_size(p) && store_sweep_is_due(d)))
		return r;
	r = choose(d, p, e);
	if (r <= 0 || r == CHOOSE_ON)
		return r;
	r = store_forget_session(d->db, p->went.at, e);
	*rows += 4;
	d->leave.due = d->leave.give_back = true;
	return r < 0 ? r : 1;
}

static int dry_run(struct store_db *d, struct store_prune *p, struct err *e)
{
	int r;

	do
		r = choose(d, p, e);
	while (r > 0);
	return r;
}

/* What the choice added to the file is in it before the rows go: on a full disk the WAL takes what
 * room there is. */
static bool waits_for_file(struct store_db *d, struct store_prune *p)
{
	if (d->wal == NULL || p->went.phase == BY_AGE || p->went.n == 0)
		return false;
	if (p->chosen_ns == 0)
		p->chosen_ns = store_now_ns();
	return store_now_ns() - p->chosen_ns < CHOSEN_NS && !store_wal_is_in(d->wal);
}

static int prune_phase(struct store_db *d, struct store_prune *p, struct err *e)
{
	int r;

	switch (p->went.phase) {
	case BY_AGE:
	case BY_SIZE:
		if (waits_for_file(d, p))
			return PIECE_WAITS;
		if (store_has_many_free(d))
			return store_give_back_many(d, e);
		r = store_piece(d, prune_step, p, &p->went, sizeof(p->went), e);
		return r == CHOOSE_ON ? PIECE_MORE : r;
	case SWEEP:
		return store_sweep_is_due(d) || d->leave.unswept > 0 ? store_sweep_piece(d, e) : 0;
	case GIVE_BACK:
		return store_give_back_piece(d, e);
	case TO_FILE:
	default:
		return store_to_file_piece(d);
	}
}

bool store_prune_is_over(struct store_prune *p)
{
	if (p->until_ns == 0 || store_now_ns() < p->until_ns)
		return false;
	p->more = p->went.phase < TO_FILE;
	return true;
}

int store_prune_piece(struct store_db *d, struct store_prune *p, struct err *e)
{
	int r;

	if (p->dry)
		return dry_run(d, p, e);
	if (p->until_ns == 0 && p->slice_ms != 0)
		p->until_ns = store_now_ns() + p->slice_ms * (uint64_t)MS_NS;
	if (is_by_size(p) && d->leave.session == 0 && !d->leave.due && store_sweep_is_due(d)) {
		r = store_sweep_piece(d, e);
		r = r < 0 ? r : PIECE_MORE;
	} else {
		r = prune_phase(d, p, e);
		if (r == 0 && is_by_size(p) && store_sweep_is_due(d)) {
			r = PIECE_MORE; /* it may make the room, and goes first */
		} else if (r == 0 && p->went.phase < TO_FILE) {
			p->went.phase = p->went.phase < SWEEP ? SWEEP : p->went.phase + 1;
			if (p->went.phase == TO_FILE && p->until_ns == 0)
				p->until_ns = store_now_ns() + WAL_NS;
			r = PIECE_MORE;
		}
	}
	return r > 0 && store_prune_is_over(p) ? PIECE_OVER : r;
}

/* --- the limits --- */

/* ?1: the users that have more than this lose their oldest, who has most the first. */
#define RETAIN_SQL                                                                             \
	"SELECT v.id FROM session v JOIN (SELECT uid,sum(coalesce(stored_bytes,0)) AS b FROM " \
	"session GROUP BY uid) u ON u.uid=v.uid WHERE u.b>?1 AND v." SQL_ENDED " ORDER BY "    \
	"u.b DESC,v.id LIMIT 1"

/* Once one is passed, some room is made: not a session with each transaction. */
static uint64_t low_water(const struct store_db *d, uint64_t limit)
{
	return d->leave.retains ? limit - limit / 32 : limit;
}

/* Who is above a sixteenth of all, or, of many users, above half of an even share: others do not
 * pay for what he has. */
static int over_in_all(struct store_db *d, int64_t *ret_id, struct err *e)
{
	const uint64_t most = d->limits.bytes;
	uint64_t live = 0, fair;
	int64_t users = 0;
	int r = live_bytes(d->db, &live, e);

	if (r < 0 || live <= low_water(d, most))
		return r < 0 ? r : -ENOENT;
	r = store_int(d->db, "SELECT count(DISTINCT uid) FROM session", 0, 0, &users, e);
	if (r < 0)
		return r;
	fair = users <= 1 ? 0 : users <= 8 ? most / 16 : most / 2 / (uint64_t)users;
	return store_int(d->db, RETAIN_SQL, users <= 1 ? -1 : (int64_t)fair, 0, ret_id, e);
}

static int over_of_one(struct store_db *d, int64_t *ret_id, struct err *e)
{
	const uint64_t most = d->limits.bytes_per_uid;

	return store_int(d->db, RETAIN_SQL, (int64_t)low_water(d, most), 0, ret_id, e);
}

static int retain_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	int64_t id = 0;
	int r = store_empty_step(d, NULL, rows, e);

	(void)arg;
	if (r != 0)
		return r;
	if (store_sweep_is_due(d))
		return 0;
	r = d->limits.bytes_per_uid != 0 ? over_of_one(d, &id, e) : -ENOENT;
	if (r == -ENOENT && d->limits.bytes != 0)
		r = over_in_all(d, &id, e);
	d->leave.retains = r == 0;
	if (r == -ENOENT)
		d->leave.look = false;
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = store_forget_session(d->db, id, e);
	*rows += 4;
	d->leave.due = true;
	d->leave.retained = true;
	return r < 0 ? r : 1;
}

/* Free pages are used again; more than a sixteenth of the limit goes back to the file system. */
static void retain_free(struct store_db *d)
{
	int64_t pages = 0;

	if (d->limits.bytes != 0 &&
		store_int(d->db, "PRAGMA freelist_count", 0, 0, &pages, NULL) == 0 &&
		(uint64_t)pages * 4096 > d->limits.bytes / 16)
		d->leave.give_back = true;
}

int store_retain_piece(struct store_db *d, struct err *e)
{
	int r;

	if (!d->leave.look || (d->limits.bytes == 0 && d->limits.bytes_per_uid == 0))
		return 0;
	r = store_piece(d, retain_step, NULL, NULL, 0, e);
	if (r == 0 && d->leave.look)
		return PIECE_MORE; /* after a sweep, which may make the room */
	if (r == 0 && d->leave.retained)
		retain_free(d);
	d->leave.retained = d->leave.retained && r != 0;
	return r;
}

/* --- sizes that are not known --- */

#define NUMBER SCHEMA_NUMBER
/* As the fold counts them (session_weigh()). */
static const char size_sql[] =
	"UPDATE session SET stored_bytes=" NUMBER(BYTES_OF_SESSION) "+" NUMBER(
		BYTES_OF_CELL) "*(SELECT count(*) FROM cell WHERE "
			       "session=?1)+" NUMBER(BYTES_OF_METRIC) "*(SELECT "
								      "count(*) "
								      "FROM "
								      "metric "
								      "WHERE "
								      "session=?1)+"
								      "(SELECT "
								      "coalesce("
								      "sum(length("
								      "bytes)),0) "
								      "FROM trace "
								      "WHERE "
								      "session=?1) "
								      "WHERE id=?1";

static int size_step(struct store_db *d, void *arg, uint32_t *rows, struct err *e)
{
	int64_t id = 0;
	int r = store_int(d->db,
		"SELECT id FROM session WHERE stored_bytes IS NULL AND " SQL_ENDED " LIMIT 1", 0, 0,
		&id, e);

	(void)arg;
	*rows += 64;
	if (r == 0)
		r = store_exec_id(d->db, size_sql, id, e);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

/* Of a database of one user's nobody asks for them. */
int store_size_piece(struct store_db *d, struct err *e)
{
	int64_t users = 0;
	int r;

	if (!d->leave.unsized)
		return 0;
	r = store_int(d->db, "SELECT count(DISTINCT uid) FROM session", 0, 0, &users, e);
	if (r == 0 && users > 1)
		r = store_piece(d, size_step, NULL, NULL, 0, e);
	d->leave.unsized = r != 0;
	return r;
}
