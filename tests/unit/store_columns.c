/* SPDX-License-Identifier: MIT. store_columns.c: databases whose columns are not those of this
 * version: older ones get what they lack, newer ones keep what is unknown, and who only reads
 * writes nothing. */
#include "store_help.h"

#include <errno.h>

#include <sqlite3.h>

#include "schema.h"
#include "text.h"

/* The tables of version 2 as it was released. A column that is added to a list reaches such a
 * database by itself: this text stays as it is. */
static const char *const released[] = {
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;",
	"CREATE TABLE process(id INTEGER PRIMARY KEY, ring BLOB NOT NULL UNIQUE, host TEXT NOT "
	"NULL, "
	"boot_id BLOB NOT NULL, pid INTEGER NOT NULL, pid_start INTEGER NOT NULL, "
	"ns_pid INTEGER NOT NULL, uid INTEGER NOT NULL, parent BLOB, token BLOB, "
	"command TEXT NOT NULL, exe TEXT NOT NULL, cwd TEXT NOT NULL, job_id TEXT, rank INTEGER, "
	"local_rank INTEGER, world_size INTEGER, started_ns INTEGER NOT NULL, ended_ns INTEGER, "
	"end_reason TEXT, source TEXT NOT NULL, version TEXT NOT NULL, gpu_state INTEGER NOT NULL, "
	"gpu_code INTEGER NOT NULL, gpu_text TEXT NOT NULL, cupti_version INTEGER NOT NULL, "
	"driver_version INTEGER NOT NULL, cupti_path TEXT NOT NULL, agent_ns INTEGER NOT NULL, "
	"flags INTEGER NOT NULL, clock INTEGER NOT NULL, tsc_khz INTEGER NOT NULL, "
	"n_lanes INTEGER NOT NULL, lane_bytes INTEGER NOT NULL, created_clock INTEGER NOT NULL, "
	"created_monotonic_ns INTEGER NOT NULL, created_realtime_ns INTEGER NOT NULL, "
	"counters BLOB NOT NULL) STRICT;",
	"CREATE TABLE session(id INTEGER PRIMARY KEY, uuid BLOB NOT NULL UNIQUE, name TEXT NOT "
	"NULL, "
	"uid INTEGER NOT NULL, source TEXT NOT NULL, backend TEXT NOT NULL, mode TEXT NOT NULL, "
	"hook TEXT NOT NULL, data TEXT NOT NULL, context TEXT NOT NULL, cpu TEXT NOT NULL, "
	"state TEXT NOT NULL, match TEXT NOT NULL, token BLOB, owner BLOB, job_number INTEGER, "
	"pid INTEGER NOT NULL, command TEXT NOT NULL, gpu TEXT NOT NULL, "
	"created_ns INTEGER NOT NULL, finalized_ns INTEGER, active_ns INTEGER NOT NULL, "
	"launches INTEGER NOT NULL, matched INTEGER NOT NULL, daemon_ns INTEGER NOT NULL) STRICT;",
	"CREATE TABLE member(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"PRIMARY KEY(session, process)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE active(session INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER, "
	"PRIMARY KEY(session, begin_ns)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE segment(session INTEGER NOT NULL, segment INTEGER NOT NULL, "
	"begin_ns INTEGER NOT NULL, end_ns INTEGER, PRIMARY KEY(session, segment)) "
	"STRICT, WITHOUT ROWID;",
	"CREATE TABLE node(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, parent INTEGER NOT "
	"NULL, "
	"kind INTEGER NOT NULL, name TEXT NOT NULL) STRICT;",
	"CREATE TABLE cell(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"segment INTEGER NOT NULL, node INTEGER NOT NULL, device INTEGER NOT NULL, "
	"class INTEGER NOT NULL, count INTEGER NOT NULL, sum_ns INTEGER NOT NULL, "
	"min_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL, bytes INTEGER NOT NULL, "
	"untimed INTEGER NOT NULL, open INTEGER NOT NULL, hist BLOB, "
	"PRIMARY KEY(session, process, segment, node, device, class)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE metric(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"segment INTEGER NOT NULL, node INTEGER NOT NULL, name TEXT NOT NULL, "
	"kind INTEGER NOT NULL, value ANY NOT NULL, count INTEGER NOT NULL, "
	"PRIMARY KEY(session, process, segment, node, name)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE config(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"node INTEGER NOT NULL, config INTEGER NOT NULL, grid_x INTEGER, grid_y INTEGER, "
	"grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, registers INTEGER, "
	"static_shared INTEGER, dynamic_shared INTEGER, count INTEGER NOT NULL, "
	"PRIMARY KEY(session, process, node, config)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE device(process INTEGER NOT NULL, device INTEGER NOT NULL, uuid BLOB NOT "
	"NULL, "
	"ordinal INTEGER NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, pci TEXT NOT NULL, "
	"arch INTEGER NOT NULL, num_sms INTEGER NOT NULL, clock_khz INTEGER NOT NULL, "
	"memory_clock_khz INTEGER NOT NULL, bus_width INTEGER NOT NULL, "
	"memory_bytes INTEGER NOT NULL, PRIMARY KEY(process, device)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE busy(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"device INTEGER NOT NULL, busy_ns INTEGER NOT NULL, first_ns INTEGER NOT NULL, "
	"last_ns INTEGER NOT NULL, PRIMARY KEY(session, process, device)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE loss(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"cause INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(session, process, cause)) "
	"STRICT, WITHOUT ROWID;",
	"CREATE TABLE note(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"number INTEGER NOT NULL, ns INTEGER NOT NULL, text TEXT NOT NULL, "
	"PRIMARY KEY(session, process, number)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE lane(process INTEGER NOT NULL, lane INTEGER NOT NULL, head INTEGER NOT NULL, "
	"PRIMARY KEY(process, lane)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE pending(process INTEGER PRIMARY KEY, launches BLOB NOT NULL) STRICT;",
	"CREATE TABLE anchor(ring_clock INTEGER NOT NULL, clock INTEGER NOT NULL, "
	"monotonic_ns INTEGER NOT NULL, realtime_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL, "
	"PRIMARY KEY(ring_clock, clock)) STRICT, WITHOUT ROWID;",
	"CREATE TABLE trace(session INTEGER NOT NULL, process INTEGER NOT NULL, "
	"number INTEGER NOT NULL, first INTEGER NOT NULL, events INTEGER NOT NULL, "
	"end_ns INTEGER NOT NULL, bytes BLOB, PRIMARY KEY(session, process, number)) STRICT;"};
#define N_RELEASED (sizeof(released) / sizeof(released[0]))

static sqlite3 *db_open(int flags)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(test_db, &db, flags, NULL), SQLITE_OK);
	return db;
}

static void db_exec(sqlite3 *db, const char *sql)
{
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
		sqlite3_errmsg(db));
}

static void raw(const char *sql)
{
	sqlite3 *db = db_open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);

	db_exec(db, sql);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *q;
	int64_t n;

	ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s: %s", sql,
		sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
	n = sqlite3_column_int64(q, 0);
	(void)sqlite3_finalize(q);
	return n;
}

static int64_t raw_number(const char *sql)
{
	sqlite3 *db = db_open(SQLITE_OPEN_READONLY);
	const int64_t n = number(db, sql);

	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return n;
}

static void one_of_all(struct batch *b)
{
	struct row_config *c;

	test_whole(b, 1, 1, 1, 4);
	(void)snprintf(b->process.row[0].job_id, sizeof(b->process.row[0].job_id), "4711");
	c = batch_config(b);
	c->session = c->process = c->grid_x = 1;
	test_hash(c->node, 1);
	b->journal = 9;
}

/* Of version 2 and of version 1, which had no timelines. */
START_TEST(released_schema)
{
	struct store *s;
	struct batch b = {0}, got;
	bool lacks;
	sqlite3 *db;
	size_t i;

	for (i = 0; i < N_RELEASED - (_i == 1); i++)
		raw(released[i]);
	raw("INSERT INTO meta VALUES('store_uuid', x'000102030405060708090a0b0c0d0e0f');"
	    "PRAGMA application_id=1347571540");
	raw(_i == 1 ? "PRAGMA user_version=1" : "PRAGMA user_version=2");
	s = test_open();
	one_of_all(&b);
	test_store(s, &b);
	got = test_load(s);
	ck_assert_uint_eq(got.cell.n, 3);
	batch_free(&got);
	store_close(s);
	db = db_open(SQLITE_OPEN_READONLY);
	ck_assert_int_eq(schema_mend(db, true, &lacks), SQLITE_OK);
	ck_assert(!lacks);
	ck_assert_int_eq(number(db, "PRAGMA user_version"), 2);
	(void)sqlite3_close(db);
}
END_TEST

/* A fresh database has what was released, in the same order; columns added since are behind. */
START_TEST(fresh_schema)
{
	char *text, *to;
	const char *from;
	struct text t = {0};
	size_t n, i;

	schema_text(&t, SCHEMA_VERSION);
	ck_assert_int_eq(text_take(&t, &text, &n), 0);
	for (i = 0, from = text; i < N_RELEASED; i++, from = to + 1) {
		to = strchr(from, ';');
		ck_assert_ptr_nonnull(to);
		for (n = 0; released[i][n] == from[n] && from[n] != ';'; n++)
			;
		/* up to the key, or to where the columns end */
		ck_assert_msg(from[n] == ';' || strncmp(released[i] + n, ") STRICT", 8) == 0 ||
				      strncmp(released[i] + n, "PRIMARY KEY(", 12) == 0,
			"not as released: %s", released[i]);
	}
	free(text);
}
END_TEST

#define WITHOUT                                   \
	"ALTER TABLE process DROP COLUMN job_id;" \
	"ALTER TABLE cell DROP COLUMN hist;"      \
	"ALTER TABLE cell DROP COLUMN buckets;"   \
	"ALTER TABLE config DROP COLUMN grid_x;"  \
	"ALTER TABLE session ADD COLUMN later INTEGER NOT NULL DEFAULT 7"

/* It lacks columns of three tables and has one that nobody knows. */
START_TEST(mended)
{
	struct store *s = test_open();
	struct batch b = {0}, got;

	one_of_all(&b);
	test_store(s, &b);
	store_close(s);
	raw(WITHOUT);
	s = test_open();
	got = test_load(s);
	ck_assert_uint_eq(got.process.n + got.session.n + got.cell.n + got.config.n, 6);
	ck_assert_str_eq(got.process.row[0].job_id, "");
	ck_assert_uint_eq(got.cell.row[0].buckets_n, 0);
	ck_assert_uint_eq(got.cell.row[0].sum_ns, 100);
	ck_assert_uint_eq(got.config.row[0].grid_x, 0);
	ck_assert_uint_eq(got.journal, 9);
	batch_free(&got);
	one_of_all(&b);
	test_store(s, &b);
	got = test_load(s);
	ck_assert_str_eq(got.process.row[0].job_id, "4711");
	ck_assert_uint_eq(got.cell.row[0].buckets_n, 2);
	ck_assert_uint_eq(got.config.row[0].grid_x, 1);
	batch_free(&got);
	store_close(s);
	ck_assert_int_eq(raw_number("SELECT later FROM session"), 7);
	ck_assert_int_eq(raw_number("SELECT integrity_check='ok' FROM pragma_integrity_check"), 1);
}
END_TEST

/* Of a database as it was released: read into the new buckets, and stored anew when it changes. A
 * daemon that knows no other column than hist leaves nothing stale behind. */
START_TEST(histograms_of_before)
{
	struct hist_counts h;
	struct store *s;
	struct batch b = {0}, got;
	size_t i;

	for (i = 0; i < N_RELEASED; i++)
		raw(released[i]);
	raw("INSERT INTO meta VALUES('store_uuid', x'000102030405060708090a0b0c0d0e0f');"
	    "PRAGMA application_id=1347571540; PRAGMA user_version=2");
	s = test_open();
	one_of_all(&b);
	test_store(s, &b);
	store_close(s);
	raw("ALTER TABLE cell DROP COLUMN buckets; UPDATE cell SET count=3, max_ns=200, "
	    "hist=x'000000000000000000000000010000000000000002000000'");
	s = test_open();
	got = test_load(s);
	batch_durations(&got, &got.cell.row[0], &h);
	ck_assert(h.coarse);
	ck_assert_uint_eq(h.count[hist_bucket(109)], 1); /* of 96 to 127 ns; and of 192 to */
	ck_assert_uint_eq(h.count[hist_bucket(200)], 2); /* 255, but 200 is the longest */
	batch_free(&got);
	one_of_all(&b);
	test_store(s, &b);
	got = test_load(s);
	batch_durations(&got, &got.cell.row[0], &h);
	ck_assert(!h.coarse && h.n == 1 && h.first == hist_bucket(100));
	batch_free(&got);
	store_close(s);
	ck_assert_int_eq(raw_number("SELECT count(hist) FROM cell"), 0);
	raw("INSERT OR REPLACE INTO cell(session,process,segment,node,device,class,count,sum_ns,"
	    "min_ns,max_ns,bytes,untimed,open,hist) SELECT session,process,segment,node,device,"
	    "class,count,sum_ns,min_ns,max_ns,bytes,untimed,open,NULL FROM cell");
	ck_assert_int_eq(raw_number("SELECT count(buckets) FROM cell"), 0);
}
END_TEST

static int portable_work(struct sqlite3 *db, void *arg, struct err *e)
{
	unsigned char *image = NULL;
	int64_t bytes;
	const int r = store_portable(db, 1, true, &image, &bytes, e);
	FILE *f = r == 0 ? fopen(arg, "w") : NULL;

	if (f != NULL && (fwrite(image, 1, (size_t)bytes, f) != (size_t)bytes || fclose(f) != 0))
		return err_set(e, -EIO, "not written");
	sqlite3_free(image);
	return r;
}

/* Of a database that was mended, columns stand in another order, and what nobody knows stays here.
 */
START_TEST(portable)
{
	struct store *s = test_open();
	struct batch b = {0};
	char path[120];

	one_of_all(&b);
	test_store(s, &b);
	store_close(s);
	raw(WITHOUT);
	s = test_open();
	one_of_all(&b);
	test_store(s, &b);
	(void)snprintf(path, sizeof(path), "%s/one.protond", test_dir);
	ck_assert_int_eq(test_call(s, portable_work, path).r, 0);
	store_close(s);
	memcpy(test_db, path, sizeof(test_db));
	ck_assert_int_eq(raw_number("SELECT count(*) FROM pragma_table_info('session')"),
		schema_tables[TABLE_session].n_columns);
	ck_assert_int_eq(raw_number("SELECT job_id FROM process"), 4711);
	ck_assert_int_eq(raw_number("SELECT max_ns FROM cell"), 100);
	ck_assert_int_eq(raw_number("SELECT hist IS NULL AND length(buckets)>0 FROM cell"), 1);
	ck_assert_int_eq(raw_number("SELECT count(*) FROM meta WHERE key='store_uuid'"), 1);
}
END_TEST

/* What must be there and is not: refused in words, and left alone. */
START_TEST(cannot_be_mended)
{
	struct store *s = test_open();
	struct batch b = {0};
	struct err e = {0};

	one_of_all(&b);
	test_store(s, &b);
	store_close(s);
	raw("ALTER TABLE session DROP COLUMN daemon_ns; ALTER TABLE cell DROP COLUMN hist;"
	    "ALTER TABLE cell DROP COLUMN buckets");
	s = NULL;
	ck_assert_int_lt(store_open(test_db, &test_loop, &s, &e), 0);
	ck_assert_ptr_nonnull(strstr(e.text, test_db));
	ck_assert_ptr_null(s);
	ck_assert_int_eq(raw_number("SELECT count(*) FROM pragma_table_info('cell')"), 13);
}
END_TEST

/* As a list has it whose last two columns came later. */
static const struct schema_column later[] = {{"id", "I64", "INTEGER PRIMARY KEY"},
	{"name", "TEXT", "TEXT NOT NULL"}, {"daemon_ns", "U64", "INTEGER NOT NULL DEFAULT 5"},
	{"more", "U64", "INTEGER"}};
static const struct schema_table later_session = {"session", "", "STRICT", later, 4};

START_TEST(defaults)
{
	const int64_t all = schema_tables[TABLE_session].n_columns;
	struct store *s = test_open();
	struct batch b = {0};
	bool lacks = false;
	sqlite3 *db;

	one_of_all(&b);
	test_store(s, &b);
	store_close(s);
	raw("ALTER TABLE session DROP COLUMN daemon_ns");
	db = db_open(SQLITE_OPEN_READONLY); /* a reader; `name` is read through the same view */
	ck_assert_int_eq(schema_shade_table(db, &later_session), SQLITE_OK);
	ck_assert_int_eq(number(db, "SELECT daemon_ns FROM session WHERE id=1"), 5);
	ck_assert_int_eq(number(db, "SELECT s.more IS NULL FROM session s"), 1);
	ck_assert_int_eq(number(db, "SELECT name='session 1' AND launches=0 FROM session"), 1);
	(void)sqlite3_close(db);
	ck_assert_int_eq(raw_number("SELECT count(*) FROM pragma_table_info('session')"), all - 1);

	db = db_open(SQLITE_OPEN_READWRITE);
	ck_assert_int_eq(schema_mend_table(db, &later_session, true, &lacks), SQLITE_OK);
	ck_assert(lacks);
	ck_assert_int_eq(number(db, "SELECT count(*) FROM pragma_table_info('session')"), all - 1);
	ck_assert_int_eq(schema_mend_table(db, &later_session, false, &lacks), SQLITE_OK);
	ck_assert_int_eq(number(db, "SELECT daemon_ns FROM session WHERE id=1"), 5);
	ck_assert_int_eq(number(db, "SELECT count(*) FROM pragma_table_info('session')"), all + 1);
	(void)sqlite3_close(db);
	test_whole(&b, 2, 1, 1, 3); /* this version, which does not know `more` */
	s = test_open();
	test_store(s, &b);
	store_close(s);
	ck_assert_int_eq(raw_number("SELECT count(*) FROM session WHERE more IS NULL"), 2);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("store_columns");
	TCase *c = tcase_create("columns");

	tcase_add_checked_fixture(c, test_setup, test_teardown);
	tcase_add_loop_test(c, released_schema, 0, 2);
	tcase_add_test(c, fresh_schema);
	tcase_add_test(c, mended);
	tcase_add_test(c, histograms_of_before);
	tcase_add_test(c, portable);
	tcase_add_test(c, cannot_be_mended);
	tcase_add_test(c, defaults);
	suite_add_tcase(s, c);
	return s;
}
