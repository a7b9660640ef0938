/* SPDX-License-Identifier: MIT. multiply.c: a portable session many times over, one copy behind the
 * other on its timeline, for benchmarks of what reads large sessions. What comes out is called
 * source=replay, and lasts as long as its copies. A replay's GPU work, which ran when it was recorded, is moved behind its launches.
 * Chunks get summaries, as a daemon would give them; `plain`: none, as in an old database.
 *
 * multiply FROM.protond TO.protond TIMES [plain] */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hist.h"
#include "summariser.h"
#include "trace.h"

#define GAP_NS 1000000u

static void die(const char *what, const char *why)
{
	fprintf(stderr, "multiply: %s: %s\n", what, why);
	exit(1);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
	return st;
}

static void run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sql, sqlite3_errmsg(db));
}

/* One chunk, later by so many ns, its operations by `work` ns more; ticks of the ring's clock a ns. */
static void put_chunk(
	struct trace_pack *k, const struct trace_chunk *c, uint64_t ns, uint64_t work, double ticks)
{
	const uint64_t clock = (uint64_t)((double)ns * ticks);
	bool good = true;
	uint32_t i;

	trace_pack_clear(k);
	for (i = 0; i < c->n[TRACE_N_NODES]; i++)
		good &= trace_pack_node(k, c->node[i]);
	for (i = 0; i < c->n[TRACE_N_THREADS]; i++)
		good &= trace_pack_thread(k, &c->thread[i]);
	for (i = 0; i < c->n[TRACE_N_STREAMS]; i++)
		good &= trace_pack_stream(k, &c->stream[i]);
	for (i = 0; i < c->n[TRACE_N_CONFIGS]; i++)
		good &= trace_pack_config(k, &c->config[i]);
	for (i = 0; i < c->n[TRACE_N_TEXTS]; i++)
		good &= trace_pack_text(k, c->text[i], (uint32_t)strlen(c->text[i]));
	for (i = 0; i < c->n[TRACE_N_SCOPES]; i++) {
		c->scope[i].begin += clock;
		c->scope[i].end += clock;
		good &= trace_pack_scope(k, &c->scope[i]);
	}
	for (i = 0; i < c->n[TRACE_N_OPS]; i++) {
		c->op[i].launched += clock;
		c->op[i].start += ns + work;
		c->op[i].end += ns + work;
		good &= trace_pack_op(k, &c->op[i]);
	}
	for (i = 0; i < c->n[TRACE_N_METRICS]; i++) {
		c->metric[i].clock += clock;
		good &= trace_pack_metric(k, &c->metric[i]);
	}
	if (!good)
		die("a chunk", "out of memory");
}

struct span {
	uint64_t low, high;
};

static void widen(struct span *s, uint64_t at)
{
	s->low = at < s->low ? at : s->low;
	s->high = at > s->high ? at : s->high;
}

/* How long the process's timeline is, in ns. */
static uint64_t span_of(sqlite3 *db, int64_t process, double ticks)
{
	sqlite3_stmt *st =
		prepare(db, "SELECT bytes FROM trace WHERE process=? AND bytes NOT NULL");
	struct span ring = {UINT64_MAX, 0}, wall = {UINT64_MAX, 0};
	uint64_t a, b;

	sqlite3_bind_int64(st, 1, process);
	while (sqlite3_step(st) == SQLITE_ROW) {
		struct trace_chunk c;
		struct err e;

		if (trace_chunk_read(sqlite3_column_blob(st, 0),
			    (size_t)sqlite3_column_bytes(st, 0), &c, &e) < 0)
			die("a chunk", e.text);
		for (uint32_t i = 0; i < c.n[TRACE_N_SCOPES]; i++) {
			widen(&ring, c.scope[i].begin);
			widen(&ring, c.scope[i].end);
		}
		for (uint32_t i = 0; i < c.n[TRACE_N_OPS]; i++) {
			widen(&wall, c.op[i].start);
			widen(&wall, c.op[i].end);
		}
		trace_chunk_fini(&c);
	}
	sqlite3_finalize(st);
	a = ring.high > ring.low ? (uint64_t)((double)(ring.high - ring.low) / ticks) : 0;
	b = wall.high > wall.low ? wall.high - wall.low : 0;
	return (a > b ? a : b) + GAP_NS;
}

/* How far behind an operation's launch must be moved, at most: CLOCK_REALTIME of the launch less its
 * start. 0: it ran after it was launched, as it should be. */
static uint64_t work_late(sqlite3 *db, int64_t process, double ticks)
{
	sqlite3_stmt *st =
		prepare(db, "SELECT bytes, created_clock, created_realtime_ns FROM trace t"
			    " JOIN process p ON p.id=t.process WHERE process=?"
			    " AND bytes NOT NULL");
	int64_t late = 0, at;

	sqlite3_bind_int64(st, 1, process);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const uint64_t zero = (uint64_t)sqlite3_column_int64(st, 1);
		struct trace_chunk c;
		struct err e;

		if (trace_chunk_read(sqlite3_column_blob(st, 0),
			    (size_t)sqlite3_column_bytes(st, 0), &c, &e) < 0)
			die("a chunk", e.text);
		for (uint32_t i = 0; i < c.n[TRACE_N_OPS]; i++) {
			if ((c.op[i].flags & TRACE_UNLAUNCHED) != 0)
				continue;
			at = sqlite3_column_int64(st, 2) +
			     (int64_t)((double)(int64_t)(c.op[i].launched - zero) / ticks);
			at -= (int64_t)c.op[i].start;
			late = at > late ? at : late;
		}
		trace_chunk_fini(&c);
	}
	sqlite3_finalize(st);
	return (uint64_t)late;
}

/* span: from one copy to the next, the same in all processes. */
static void multiply_process(
	sqlite3 *db, int64_t process, uint64_t times, uint64_t span, double ticks, bool plain)
{
	const uint64_t late = work_late(db, process, ticks);
	struct summariser summariser = {.db = NULL};
	uint32_t n_summary;
	void *summary;
	sqlite3_stmt *from =
		prepare(db, "SELECT session, number, first, events, end_ns, bytes,"
			    " (SELECT count(*) FROM trace WHERE process=?1),"
			    " (SELECT sum(events) FROM trace WHERE process=?1)"
			    " FROM trace WHERE process=?1 AND bytes NOT NULL ORDER BY number");
	sqlite3_stmt *to = prepare(db, "INSERT INTO copy VALUES(?,?,?,?,?,?,?,?)");
	struct trace_pack k = {0};

	sqlite3_bind_int64(from, 1, process);
	while (sqlite3_step(from) == SQLITE_ROW)
		for (uint64_t i = 0; i < times; i++) {
			struct trace_chunk c;
			struct err e;
			uint32_t n;
			void *bytes;

			if (trace_chunk_read(sqlite3_column_blob(from, 5),
				    (size_t)sqlite3_column_bytes(from, 5), &c, &e) < 0)
				die("a chunk", e.text);
			put_chunk(&k, &c, i * span, late, ticks);
			trace_chunk_fini(&c);
			if (trace_pack_seal(&k, &bytes, &n) < 0)
				die("a chunk", "out of memory");
			sqlite3_bind_int64(to, 1, sqlite3_column_int64(from, 0));
			sqlite3_bind_int64(to, 2, process);
			sqlite3_bind_int64(to, 3,
				sqlite3_column_int64(from, 1) +
					(int64_t)i * sqlite3_column_int64(from, 6));
			sqlite3_bind_int64(to, 4,
				sqlite3_column_int64(from, 2) +
					(int64_t)i * sqlite3_column_int64(from, 7));
			sqlite3_bind_int64(to, 5, sqlite3_column_int64(from, 3));
			sqlite3_bind_int64(
				to, 6, sqlite3_column_int64(from, 4) + (int64_t)(i * span));
			summary = plain ? NULL
					: summariser_make(
						  &summariser, db, process, bytes, n, &n_summary);
			sqlite3_bind_blob(to, 7, bytes, (int)n, free);
			if (summary != NULL)
				sqlite3_bind_blob(to, 8, summary, (int)n_summary, free);
			else
				sqlite3_bind_null(to, 8);
			if (sqlite3_step(to) != SQLITE_DONE)
				die("trace", sqlite3_errmsg(db));
			sqlite3_reset(to);
		}
	trace_pack_fini(&k);
	summariser_fini(&summariser);
	sqlite3_finalize(from);
	sqlite3_finalize(to);
}

/* times(buckets, N) in SQL */
static void times_buckets(sqlite3_context *context, int n, sqlite3_value **v)
{
	const uint64_t times = (uint64_t)sqlite3_value_int64(v[1]);
	static uint8_t bytes[HIST_PACKED_MAX(HIST_BUCKETS)];
	static struct hist_counts h;
	size_t packed;

	(void)n;
	if (!hist_unpack(sqlite3_value_blob(v[0]), (size_t)sqlite3_value_bytes(v[0]), &h)) {
		sqlite3_result_value(context, v[0]);
		return;
	}
	for (uint32_t i = h.first; i < h.first + h.n; i++)
		h.count[i] *= times;
	packed = hist_pack(&h, bytes);
	sqlite3_result_blob(context, bytes, (int)packed, SQLITE_TRANSIENT);
}

static void update(sqlite3 *db, const char *sql, uint64_t times, uint64_t more)
{
	sqlite3_stmt *st = prepare(db, sql);

	sqlite3_bind_int64(st, 1, (int64_t)times);
	if (sqlite3_bind_parameter_count(st) > 1)
		sqlite3_bind_int64(st, 2, (int64_t)more);
	if (sqlite3_step(st) != SQLITE_DONE)
		die(sql, sqlite3_errmsg(db));
	sqlite3_finalize(st);
}

/* The session lasts ?2 ns longer, and has ?1 times as much in it. */
static void multiply_session(sqlite3 *db, uint64_t times, uint64_t more)
{
	static const char *const all[] = {"UPDATE cell SET count=count*?1, sum_ns=sum_ns*?1,"
					  " bytes=bytes*?1, untimed=untimed*?1,"
					  " buckets=times(buckets,?1)",
		"UPDATE config SET count=count*?1", "UPDATE metric SET count=count*?1",
		"UPDATE busy SET busy_ns=busy_ns*?1, last_ns=last_ns+?2",
		"UPDATE process SET ended_ns=ended_ns+?2 WHERE ?1",
		"UPDATE active SET end_ns=end_ns+?2 WHERE ?1"
		" AND begin_ns=(SELECT max(begin_ns) FROM active)",
		"UPDATE segment SET end_ns=end_ns+?2 WHERE ?1"
		" AND segment=(SELECT max(segment) FROM segment)",
		"UPDATE session SET launches=launches*?1, matched=matched*?1, source='replay',"
		" active_ns=active_ns+?2, finalized_ns=finalized_ns+?2"};

	if (sqlite3_create_function(db, "times", 2, SQLITE_UTF8, NULL, times_buckets, NULL, NULL) !=
		SQLITE_OK)
		die("times()", sqlite3_errmsg(db));
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		update(db, all[i], times, more);
}

static void copy_file(const char *from, const char *to)
{
	sqlite3 *a, *b;
	sqlite3_backup *backup;

	if (sqlite3_open_v2(from, &a, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
		die(from, sqlite3_errmsg(a));
	if (sqlite3_open(to, &b) != SQLITE_OK)
		die(to, sqlite3_errmsg(b));
	backup = sqlite3_backup_init(b, "main", a, "main");
	if (backup == NULL || sqlite3_backup_step(backup, -1) != SQLITE_DONE)
		die(to, sqlite3_errmsg(b));
	sqlite3_backup_finish(backup);
	sqlite3_close(a);
	sqlite3_close(b);
}

int main(int argc, char **argv)
{
	const uint64_t times = argc >= 4 ? strtoull(argv[3], NULL, 10) : 0;
	const bool plain = argc == 5 && strcmp(argv[4], "plain") == 0;
	uint64_t span = 0, one;
	sqlite3_stmt *st;
	sqlite3 *db;

	if (times == 0 || argc > 4 + plain) {
		fputs("usage: multiply FROM.protond TO.protond TIMES [plain]\n", stderr);
		return 2;
	}
	copy_file(argv[1], argv[2]);
	if (sqlite3_open(argv[2], &db) != SQLITE_OK)
		die(argv[2], sqlite3_errmsg(db));
	run(db, "PRAGMA journal_mode=OFF;PRAGMA synchronous=OFF;BEGIN;"
		"CREATE TEMP TABLE copy AS SELECT session,process,number,first,events,end_ns,bytes,"
		"summary FROM trace LIMIT 0");
	st = prepare(db, "SELECT id, coalesce((SELECT (max(a.clock)-min(a.clock))*1.0"
			 "/(max(monotonic_ns)-min(monotonic_ns)) FROM anchor a"
			 " WHERE a.ring_clock=1 AND p.clock=1), 1) FROM process p");
	while (sqlite3_step(st) == SQLITE_ROW) {
		one = span_of(db, sqlite3_column_int64(st, 0), sqlite3_column_double(st, 1));
		span = one > span ? one : span;
	}
	sqlite3_reset(st);
	while (sqlite3_step(st) == SQLITE_ROW)
		multiply_process(db, sqlite3_column_int64(st, 0), times, span,
			sqlite3_column_double(st, 1), plain);
	sqlite3_finalize(st);
	run(db, "DELETE FROM trace;"
		"INSERT INTO trace(session,process,number,first,events,end_ns,bytes,summary)"
		" SELECT * FROM copy ORDER BY session,process,number");
	multiply_session(db, times, (times - 1) * span);
	run(db, "COMMIT");
	sqlite3_close(db);
	return 0;
}
