/* SPDX-License-Identifier: MIT. view_scan.c: the pages of a database have the rows that SQLite says. */
#include "view_help.h"

#include <unistd.h>

#include "pick.h"
#include "profile_scan.h"
#include "text.h"

#define WANT(column) (1ull << (column))
static const struct scan_columns cells = {TABLE_cell,
					 ~WANT(CELL_count) & ((WANT(CELL_buckets) << 1) - 1)},
				 metrics = {TABLE_metric, WANT(METRIC_node) | WANT(METRIC_name) |
								  WANT(METRIC_value) |
								  WANT(METRIC_kind)},
				 nodes = {TABLE_node,
					 WANT(NODE_id) | WANT(NODE_parent) | WANT(NODE_name)};

struct rows {
	struct text text;
	uint64_t want;
};

static int take_row(void *arg, const struct field *v)
{
	struct rows *r = arg;
	uint32_t k;

	for (k = 0; r->want >> k != 0; k++) {
		if ((r->want >> k & 1) == 0)
			continue;
		text_fmt(&r->text, "%d ", (int)v[k].type);
		if (v[k].type == FIELD_I64 || v[k].type == FIELD_F64)
			text_fmt(&r->text, "%llx,", (unsigned long long)v[k].i);
		else if (v[k].type != FIELD_NULL)
			text_add(&r->text, (const char *)v[k].p, v[k].n);
	}
	text_char(&r->text, '\n');
	return 0;
}

/* Whether SQLite's machine was asked: its aggregate is there. */
static bool by_sqlite(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	const int r = sqlite3_prepare_v2(db, "SELECT take(1)", -1, &st, NULL);

	(void)sqlite3_finalize(st);
	return r == SQLITE_OK;
}

static int scan(sqlite3 *db, bool pages, struct rows *ret)
{
	static const struct {
		const struct scan_columns *of;
		enum scan_where where;
		int64_t low, high;
	} scans[] = {{&cells, SCAN_SESSION, 2, 0}, {&cells, SCAN_SESSION, 9, 0},
		{&cells, SCAN_PROCESS, 2, 2}, {&cells, SCAN_PROCESS, 3, 1},
		{&metrics, SCAN_SESSION, 1, 0}, {&metrics, SCAN_PROCESS, 1, 3},
		{&nodes, SCAN_ID, INT64_MIN, INT64_MAX}, {&nodes, SCAN_ID, 77, 1234},
		{&nodes, SCAN_ID, 5000, 6000}};
	struct err e = {0};
	struct load l = {.db = db, .e = &e};
	struct scan *s = NULL;
	uint32_t i;
	int r;

	help_exec(db, "BEGIN");
	r = scan_open(&l, pages, &s);
	for (i = 0; r == 0 && i < sizeof(scans) / sizeof(*scans); i++) {
		ret->want = scans[i].of->want;
		r = scan_rows(
			s, scans[i].of, scans[i].where, scans[i].low, scans[i].high, take_row, ret);
	}
	ck_assert(r < 0 || by_sqlite(db) != pages);
	scan_close(s);
	help_exec(db, "COMMIT");
	return r;
}

static void check_same(const char *path)
{
	struct rows a = {.want = 0}, b = {.want = 0};
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	help_exec(db, "SELECT count(*) FROM node"); /* it has a WAL open, where there is one */
	ck_assert_int_eq(scan(db, true, &a), 0);
	ck_assert_int_eq(scan(db, false, &b), 0);
	ck_assert_uint_gt(a.text.n, 100000);
	ck_assert_uint_eq(a.text.n, b.text.n);
	ck_assert_int_eq(memcmp(a.text.s, b.text.s, a.text.n), 0);
	text_fini(&a.text);
	text_fini(&b.text);
	(void)sqlite3_close(db);
}

/* Numbers of each width, texts and BLOBs that reach onto pages of their own, of leaves and of the pages above them. */
#define COUNT(n) "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < " #n ") "
#define ROWS                                                                                      \
	"PRAGMA synchronous = OFF; BEGIN;" COUNT(                                                 \
		2000) "INSERT INTO node SELECT i, randomblob(16), i / 4, 1 + i % 5,"              \
		      " substr(hex(zeroblob(300)), 1, iif(i % 97 = 0, 600, i % 40)) || i FROM "   \
		      "c;" COUNT(300) "INSERT INTO cell SELECT s.i, p.i, 0, c.i, -1, 0, (1 << "   \
				      "c.i % 63) - 1, -(1 << c.i % 63), c.i, 0, 0,"               \
				      " 0, c.i % 2, iif(c.i % 3, NULL, zeroblob(c.i % 200)),"     \
				      " iif(c.i % 5, NULL, randomblob(iif(c.i % 11, c.i % 200, "  \
				      "20 * c.i)))"                                               \
				      " FROM c s, c p, c WHERE s.i < 4 AND p.i < 4;" COUNT(       \
					      200) "INSERT INTO metric SELECT s.i, p.i, 0, c.i, " \
						   "'m' || c.i % 7, c.i % 3, CASE c.i % 5"        \
						   " WHEN 0 THEN 'nan' WHEN 1 THEN x'' WHEN 2 "   \
						   "THEN 0.5 * c.i WHEN 3 THEN c.i"               \
						   " ELSE hex(zeroblob(c.i)) END, 1 FROM c s, c " \
						   "p, c WHERE s.i < 4 AND p.i < 4;"              \
						   "COMMIT;"

static sqlite3 *make(const char *path, const char *pragmas)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	help_exec(db, pragmas);
	help_exec(db, "PRAGMA user_version = 1"); /* it is begun so */
	(void)sqlite3_close(db);
	db = help_db(path);
	help_exec(db, ROWS);
	return db;
}

static void leave(sqlite3 *db, const char *path)
{
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	(void)unlink(path);
}

START_TEST(pages_say_the_same)
{
	static const char *const sizes[] = {"PRAGMA page_size = 512",
		"PRAGMA page_size = 4096; PRAGMA auto_vacuum = 1", "PRAGMA page_size = 65536"};
	char path[64];
	sqlite3 *db, *reader;
	uint32_t i;

	help_temporary(path);
	db = make(path, sizes[_i]);
	check_same(path);
	help_exec(db, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
	help_exec(db, "UPDATE cell SET sum_ns = sum_ns + 1");
	check_same(path); /* in the WAL alone */
	for (i = 1; i < 8; i++)
		help_exec(db,
			"UPDATE cell SET bytes = bytes + 1; UPDATE node SET kind = 3 WHERE id % 2");
	check_same(path); /* of small pages so many that its index has several parts */
	ck_assert_int_eq(sqlite3_open(path, &reader), SQLITE_OK);
	help_exec(reader, "BEGIN; SELECT count(*) FROM cell");
	help_exec(db, "UPDATE metric SET kind = 1; UPDATE node SET name = name || 'x'");
	help_exec(db, "PRAGMA wal_checkpoint"); /* as far as the reader lets it */
	check_same(path);
	help_exec(reader, "COMMIT; PRAGMA wal_checkpoint");
	check_same(path); /* all of it is in the file */
	help_exec(db,
		"UPDATE cell SET sum_ns = sum_ns + 1 WHERE session = 2"); /* the WAL begins anew */
	check_same(path);
	(void)sqlite3_close(reader);
	leave(db, path);
}
END_TEST

/* Once, before a statement of the reader begins to read. */
static int write_meanwhile(
	void *arg, int what, const char *a, const char *b, const char *c, const char *d)
{
	sqlite3 **writer = arg;

	(void)what, (void)a, (void)b, (void)c, (void)d;
	if (*writer != NULL)
		help_exec(*writer, "UPDATE node SET kind = 2 WHERE id = 7");
	*writer = NULL;
	return SQLITE_OK;
}

START_TEST(only_a_transaction_that_nobody_wrote_into)
{
	sqlite3 *db, *reader, *writer;
	struct btree *b = NULL;
	char path[64];

	help_temporary(path);
	db = writer = make(path, "PRAGMA journal_mode = WAL");
	ck_assert_int_eq(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(btree_of(reader, &b), -EAGAIN); /* it has begun none */
	help_exec(reader, "BEGIN; SELECT count(*) FROM node");
	ck_assert_int_eq(btree_of(reader, &b), -EAGAIN);
	help_exec(reader, "COMMIT; BEGIN");
	(void)sqlite3_set_authorizer(reader, write_meanwhile, &writer);
	ck_assert_int_eq(btree_of(reader, &b), -EAGAIN);
	ck_assert_ptr_null(writer);
	(void)sqlite3_set_authorizer(reader, NULL, NULL);
	help_exec(reader, "COMMIT; BEGIN");
	ck_assert_int_eq(btree_of(reader, &b), 0);
	btree_close(b);
	(void)sqlite3_close(reader);
	leave(db, path);
}
END_TEST

START_TEST(without_a_file_too)
{
	unsigned char *image;
	sqlite3_int64 bytes;
	struct rows a = {.want = 0}, b = {.want = 0};
	struct err e;
	sqlite3 *db = make(":memory:", ""), *copy;

	ck_assert_int_eq(scan(db, false, &a), 0);
	image = sqlite3_serialize(db, "main", &bytes, 0);
	ck_assert_int_eq(pick_open_image((const char *)image, (size_t)bytes, &copy, &e), 0);
	ck_assert_int_eq(scan(copy, true, &b), 0);
	ck_assert_uint_eq(a.text.n, b.text.n);
	ck_assert_int_eq(memcmp(a.text.s, b.text.s, a.text.n), 0);
	text_fini(&a.text);
	text_fini(&b.text);
	sqlite3_free(image);
	(void)sqlite3_close(copy);
	(void)sqlite3_close(db);
}
END_TEST

/* What cannot be read is not left out: SQLite says what it is. */
/* In the middle: of session 2. */
#define LEAF "FROM dbstat WHERE name = 'cell' AND pagetype = 'leaf'"
static long page_of_cells(sqlite3 *db)
{
	sqlite3_stmt *st;
	long page;

	ck_assert_int_eq(sqlite3_prepare_v2(db,
				 "SELECT pageno " LEAF
				 " ORDER BY path LIMIT 1 OFFSET (SELECT count(*) / 2 " LEAF ")",
				 -1, &st, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
	page = (long)sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return page;
}

START_TEST(damage_is_said)
{
	struct profile *p = NULL;
	struct rows a = {.want = 0};
	unsigned char noise[512];
	struct err e = {0};
	char path[64];
	sqlite3 *db;
	FILE *f;

	help_temporary(path);
	db = make(path, "PRAGMA page_size = 512");
	help_session(db, 2, "broken", "run", "on");
	memset(noise, 0xa5, sizeof(noise));
	f = fopen(path, "r+");
	ck_assert(f != NULL && fseek(f, 512 * (page_of_cells(db) - 1), SEEK_SET) == 0);
	ck_assert_uint_eq(fwrite(noise, 1, sizeof(noise), f), sizeof(noise));
	(void)fclose(f);
	(void)sqlite3_close(db); /* with what it has read */
	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(scan(db, true, &a), -EAGAIN);
	ck_assert_int_eq(profile_load(db, 2, NULL, &p, &e), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(e.text, "malformed"));
	text_fini(&a.text);
	leave(db, path);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_scan");
	TCase *c = tcase_create("all");

	tcase_add_loop_test(c, pages_say_the_same, 0, 3);
	tcase_add_test(c, only_a_transaction_that_nobody_wrote_into);
	tcase_add_test(c, without_a_file_too);
	tcase_add_test(c, damage_is_said);
	suite_add_tcase(s, c);
	return s;
}
