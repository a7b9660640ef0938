/* SPDX-License-Identifier: MIT. store_leave.c: what leaves the store: deleted and pruned sessions
 * with the rows that nobody else needs, and portable files. */
#include "store_help.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "schema.h"

struct query {
	const char *sql;
	int64_t result;
};

static int query_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct query *q = arg;
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, q->sql, -1, &st, NULL) != SQLITE_OK ||
		sqlite3_step(st) != SQLITE_ROW) {
		(void)sqlite3_finalize(st);
		return err_set(e, -EIO, "%s", sqlite3_errmsg(db));
	}
	q->result = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return 0;
}

static int64_t query(struct store *s, const char *sql)
{
	struct query q = {.sql = sql};
	struct told t = test_call(s, query_work, &q);

	ck_assert_msg(t.r == 0, "%s", t.err.text);
	return q.result;
}

static int delete_work(struct sqlite3 *db, void *arg, struct err *e)
{
	return store_delete_session(db, *(int64_t *)arg, e);
}

/* What leaves by itself is gone. */
static void settle(struct store *s)
{
	do
		(void)query(s, "SELECT 1");
	while (store_is_leaving(s));
	(void)query(s, "SELECT 1");
}

static struct told delete_session(struct store *s, int64_t id)
{
	const struct told t = test_call(s, delete_work, &id);

	settle(s);
	return t;
}

static struct told prune_wait(struct store *s, struct store_prune *p)
{
	struct told t = {0};
	uint32_t i;

	store_prune(s, p, test_told, &t);
	while (t.calls == 0)
		(void)uv_run(&test_loop, UV_RUN_ONCE);
	for (i = 0; i < p->went.n && i < PRUNED_NAMED; i++)
		ck_assert(p->first[i].id > 0 && p->first[i].name[0] != '\0');
	return t;
}

static uint32_t prune(struct store *s, int64_t before, uint64_t max)
{
	struct store_prune p = {
		.uid = -1, .before_ns = before, .max_bytes = max, .went = {.n = 77}};
	const struct told t = prune_wait(s, &p);

	ck_assert_msg(t.r == 0, "%s", t.err.text);
	ck_assert(!p.more);
	return p.went.n;
}

/* Sessions 1 (nodes 1..19), 2 (nodes 5..14), both finalized, 3 (nodes 1..4) alive. Every table has
 * rows. */
static void three(struct batch *b)
{
	int64_t id;

	test_whole(b, 1, 4, 1, 20);
	test_whole(b, 2, 4, 5, 15);
	test_whole(b, 3, 1, 1, 5);
	for (id = 1; id <= 3; id++) {
		struct row_metric *m = batch_metric(b);
		struct row_config *c = batch_config(b);
		struct row_device *d = batch_device(b);

		m->session = m->process = c->session = c->process = d->process = id;
		test_hash(m->node, 1 + (uint32_t)id);
		test_hash(c->node, 5);
		m->name = "flops8";
		*batch_active(b) = (struct row_active){id, 1, 2};
		*batch_segment(b) = (struct row_segment){id, 0, 1, 2};
		*batch_busy(b) = (struct row_busy){
			.session = id, .process = id, .busy_ns = 1, .first_ns = 1, .last_ns = 2};
		*batch_trace(b) = (struct row_trace){
			.session = id, .process = id, .events = 1, .n = 1, .bytes = calloc(1, 1)};
		*batch_loss(b) = (struct row_loss){id, id, LOST_BAD, 1};
		*batch_loss(b) = (struct row_loss){0, id, LOST_NO_LANE, 1};
		*batch_note(b) = (struct row_note){id, id, 1, 1, "note"};
		*batch_lane(b) = (struct row_lane){id, 0, 8};
	}
	b->journal = 1;
}

#define ALL_OF_1                                                                                   \
	"SELECT (SELECT count(*) FROM session WHERE id=1)+"                                        \
	"(SELECT count(*) FROM cell WHERE session=1)+(SELECT count(*) FROM metric WHERE "          \
	"session=1)"                                                                               \
	"+(SELECT count(*) FROM trace WHERE session=1)"                                            \
	"+(SELECT count(*) FROM config WHERE session=1)+(SELECT count(*) FROM busy WHERE "         \
	"session=1)"                                                                               \
	"+(SELECT count(*) FROM loss WHERE session=1 OR process=1)"                                \
	"+(SELECT count(*) FROM note WHERE session=1)+(SELECT count(*) FROM active WHERE "         \
	"session=1)"                                                                               \
	"+(SELECT count(*) FROM segment WHERE session=1)"                                          \
	"+(SELECT count(*) FROM member WHERE session=1)+(SELECT count(*) FROM process WHERE id=1)" \
	"+(SELECT count(*) FROM device WHERE process=1)+(SELECT count(*) FROM lane WHERE "         \
	"process=1)"

#define DANGLING                                                                      \
	"SELECT (SELECT count(*) FROM cell WHERE node NOT IN (SELECT id FROM node))+" \
	"(SELECT count(*) FROM metric WHERE node NOT IN (SELECT id FROM node))+"      \
	"(SELECT count(*) FROM node WHERE parent<>0 AND parent NOT IN (SELECT id FROM node))"

START_TEST(delete_one)
{
	struct store *s = test_open();
	struct batch b = {0}, got;
	struct told t;

	three(&b);
	test_store(s, &b);
	ck_assert_int_gt(query(s, ALL_OF_1), 20);
	t = delete_session(s, 4711);
	ck_assert_int_eq(t.r, -ENOENT);
	ck_assert_ptr_nonnull(strstr(t.err.text, "4711"));
	ck_assert_int_eq(delete_session(s, 1).r, 0);
	ck_assert_int_eq(query(s, ALL_OF_1), 0);
	ck_assert_int_eq(query(s, DANGLING), 0);
	ck_assert_int_eq(delete_session(s, 1).r, -ENOENT);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM cell"), 10 + 4);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node"), 15); /* 0..14 */
	test_node(&b, 0, UINT32_MAX); /* one that has gone comes back, as the fold describes it */
	test_node(&b, 16, 0);
	(void)test_cell(&b, 3, 16);
	test_store(s, &b);
	ck_assert_int_eq(query(s, DANGLING), 0);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node WHERE name='(unknown)'"), 0);
	ck_assert_int_eq(delete_session(s, 2).r, 0);
	store_close(s);

	s = test_open(); /* 0, 1..5 and 16 stay */
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node"), 7);
	ck_assert_int_eq(query(s, DANGLING), 0);
	got = test_load(s);
	ck_assert_uint_eq(got.session.n, 1);
	ck_assert_uint_eq(got.cell.n, 5);
	ck_assert_uint_eq(got.node.n, 7);
	batch_free(&got);
	store_close(s);
}
END_TEST

/* The fold says which sessions are to go, in the batch that says the rest. */
START_TEST(deleted_in_batch)
{
	struct store *s = test_open();
	struct batch b = {0};

	three(&b);
	test_store(s, &b);
	b.n_deleted = 2;
	b.deleted = calloc(2, sizeof(*b.deleted));
	b.deleted[0] = 4711; /* made and deleted between two transactions */
	b.deleted[1] = 1;
	(void)test_cell(&b, 2, 7);
	b.journal = 2;
	test_store(s, &b);
	settle(s);
	ck_assert_int_eq(query(s, ALL_OF_1), 0);
	ck_assert_int_eq(query(s, DANGLING), 0);
	ck_assert_int_eq(query(s, "SELECT value FROM meta WHERE key='journal'"), 2);
	store_close(s);
}
END_TEST

START_TEST(prune_by_age)
{
	struct store *s = test_open();
	struct batch b = {0};

	three(&b);
	test_store(s, &b);
	ck_assert_uint_eq(prune(s, 0, 0), 0);
	ck_assert_uint_eq(prune(s, 1700000001000000500, 0), 0); /* 1 ended exactly then */
	ck_assert_uint_eq(prune(s, 1700000001000000501, 0), 1);
	ck_assert_int_eq(query(s, ALL_OF_1), 0);
	ck_assert_uint_eq(prune(s, INT64_MAX, 0), 1); /* the one that is alive stays */
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session"), 1);
	store_close(s);
}
END_TEST

#define LIVE                                                       \
	"SELECT (p.page_count-f.freelist_count)*s.page_size FROM " \
	"pragma_page_count p,pragma_freelist_count f,pragma_page_size s"

START_TEST(prune_by_size)
{
	struct store *s = test_open();
	struct batch b = {0};
	int64_t id, before, after;
	uint32_t n;

	for (id = 1; id <= 20; id++) {
		test_whole(&b, id, id == 1 ? 1 : 4, 1, 2000);
		test_store(s, &b);
	}
	before = query(s, LIVE);
	n = prune(s, 0, (uint64_t)before / 2);
	after = query(s, LIVE);
	ck_assert_int_le(after, before / 2);
	ck_assert_int_gt(after, before / 4); /* not more than needed */
	ck_assert_uint_ge(n, 9);
	ck_assert_uint_le(n, 13); /* the nodes that all share stay */
	ck_assert_int_eq(query(s, "SELECT min(id) FROM session WHERE state='finalized'"), n + 2);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE id=1"), 1);
	ck_assert_int_eq(query(s, "SELECT freelist_count FROM pragma_freelist_count"), 0);
	ck_assert_uint_eq(prune(s, 0, 1), 19 - n); /* what lives stays, whatever the size */
	store_close(s);
}
END_TEST

/* What a session alone refers to counts as its own: nodes that no other has, its processes. */
START_TEST(prune_by_size_of_nodes)
{
	struct store *s = test_open();
	struct batch b = {0};
	int64_t before;
	uint32_t id, n;

	for (id = 1; id <= 64; id++) {
		test_whole(&b, id, 4, id * 1000, id * 1000 + 500);
		test_store(s, &b);
	}
	before = query(s, LIVE);
	n = prune(s, 0, (uint64_t)before / 2);
	ck_assert_int_le(query(s, LIVE), before / 2);
	ck_assert_uint_ge(n, 30);
	ck_assert_uint_le(n, 44); /* an index of hashes frees few whole pages */
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node"), 1 + (64 - n) * 500);
	ck_assert_int_eq(query(s, DANGLING), 0);
	store_close(s);
}
END_TEST

/* Whose they are. */
static void of_user(struct batch *b, uint32_t uid, uint64_t bytes)
{
	b->session.row[b->session.n - 1].uid = uid;
	b->session.row[b->session.n - 1].stored_bytes = bytes;
}

/* In slices: what is chosen is seen no more at once, and each slice is asked for again. */
START_TEST(prune_in_slices)
{
	struct store *s = test_open();
	struct batch b = {0};
	uint32_t n = 0, slices = 0;
	int64_t id;
	bool more = true;

	for (id = 1; id <= 20; id++) {
		test_whole(&b, id, 4, 1, 4000);
		test_store(s, &b);
	}
	while (more) {
		struct store_prune p = {.uid = -1, .before_ns = INT64_MAX, .slice_ms = 1};

		ck_assert_int_eq(prune_wait(s, &p).r, 0);
		if (slices++ == 0)
			ck_assert_int_eq(query(s, "SELECT count(*) FROM session"), 20 - p.went.n);
		n += p.went.n;
		more = p.more;
	}
	ck_assert_uint_eq(n, 20);
	ck_assert_uint_gt(slices, 3);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM cell"), 0);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node"), 0);
	ck_assert_int_eq(
		query(s, "SELECT count(*) FROM meta WHERE key>='drop' AND key<'drop!'"), 0);
	store_close(s);
}
END_TEST

/* Who reads keeps the file as long as it was; it is cut when he ends, though nobody stores again. */
START_TEST(the_file_is_cut_after_a_reader)
{
	struct store *s = test_open();
	struct store_prune p = {.uid = -1, .before_ns = INT64_MAX, .slice_ms = 1};
	struct batch b = {0};
	struct stat before, st;
	sqlite3 *reader = NULL;
	int64_t id;

	for (id = 1; id <= 20; id++) {
		test_whole(&b, id, 4, 1, 4000);
		test_store(s, &b);
	}
	ck_assert_int_eq(query(s, "PRAGMA wal_checkpoint(TRUNCATE)"), 0);
	ck_assert_int_eq(sqlite3_open(test_db, &reader), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM cell", NULL, NULL, NULL),
		SQLITE_OK);
	do {
		p = (struct store_prune){.uid = -1, .before_ns = INT64_MAX, .slice_ms = 1};
		ck_assert_int_eq(prune_wait(s, &p).r, 0);
	} while (p.more);
	ck_assert_int_eq(stat(test_db, &before), 0);
	ck_assert_int_eq(sqlite3_close(reader), SQLITE_OK);
	settle(s);
	ck_assert_int_eq(stat(test_db, &st), 0);
	ck_assert_int_lt(st.st_size, before.st_size / 4);
	store_close(s);
}
END_TEST

/* A prune ends when it ends; whoever stores or asks meanwhile does not wait for that. */
START_TEST(others_are_served_meanwhile)
{
	struct store *s = test_open();
	struct store_prune p = {.uid = -1, .before_ns = INT64_MAX};
	struct told t = {0};
	struct batch b = {0};
	int64_t id;
	int served = 0;

	for (id = 1; id <= 30; id++) {
		test_whole(&b, id, 4, 1, 4000);
		test_store(s, &b);
	}
	store_prune(s, &p, test_told, &t);
	for (id = 31; t.calls == 0; id++) {
		test_whole(&b, id, 1, 1, 50); /* also what the prune takes away */
		test_store(s, &b);
		ck_assert_int_eq(query(s, DANGLING), 0);
		served += t.calls == 0;
	}
	ck_assert_int_eq(t.r, 0);
	ck_assert_uint_eq(p.went.n, 30);
	ck_assert_int_gt(served, 5);
	settle(s);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM cell WHERE session<=30"), 0);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM cell"), (id - 31) * 49);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node"), 50);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM node WHERE name='(unknown)'"), 0);
	ck_assert_int_eq(query(s, DANGLING), 0);
	store_close(s);
}
END_TEST

/* A daemon that ends in the midst of it goes on at its next start. */
START_TEST(a_prune_goes_on_after_the_end)
{
	struct store *s = test_open();
	struct store_prune p = {.uid = -1, .before_ns = INT64_MAX};
	struct told t = {0};
	struct batch b = {0};
	int64_t id;

	for (id = 1; id <= 20; id++) {
		test_whole(&b, id, 4, 1, 4000);
		test_store(s, &b);
	}
	store_prune(s, &p, test_told, &t);
	(void)query(s, "SELECT 1");
	store_close(s);
	ck_assert_int_eq(t.calls, 1);
	ck_assert_int_eq(t.r, -ECANCELED);

	s = test_open();
	ck_assert_int_lt(query(s, "SELECT count(*) FROM session"), 20);
	settle(s);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM cell WHERE session NOT IN (SELECT id FROM "
				  "session)"),
		0);
	ck_assert_int_eq(
		query(s, "SELECT count(*) FROM meta WHERE key LIKE 'drop%' OR key='sweep'"), 0);
	ck_assert_int_eq(query(s, DANGLING), 0);
	store_close(s);
}
END_TEST

START_TEST(prune_of_one_user_and_the_newest)
{
	struct store *s = test_open();
	struct store_prune p = {.uid = 7, .before_ns = INT64_MAX, .keep = 2, .dry = true};
	struct batch b = {0};
	int64_t id;

	for (id = 1; id <= 10; id++) {
		test_whole(&b, id, 4, 1, 20);
		of_user(&b, id % 2 == 0 ? 7 : 8, 1000);
	}
	test_store(s, &b);
	ck_assert_int_eq(prune_wait(s, &p).r, 0);
	ck_assert_uint_eq(p.went.n, 3);
	ck_assert_uint_eq(p.went.bytes, 3000);
	ck_assert_int_eq(p.first[0].id, 2);
	ck_assert_int_eq(p.first[2].id, 6);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session"), 10);
	p.dry = false;
	ck_assert_int_eq(prune_wait(s, &p).r, 0);
	ck_assert_uint_eq(p.went.n, 3);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=7"), 2);
	ck_assert_int_eq(query(s, "SELECT min(id) FROM session WHERE uid=7"), 8);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=8"), 5);
	p = (struct store_prune){.uid = 8, .max_bytes = 2500}; /* of his sessions */
	ck_assert_int_eq(prune_wait(s, &p).r, 0);
	ck_assert_uint_eq(p.went.n, 3);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=8"), 2);
	p = (struct store_prune){.uid = -1, .before_ns = INT64_MAX, .keep = 1};
	ck_assert_int_eq(prune_wait(s, &p).r, 0);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session"), 2); /* of each user the newest */
	ck_assert_int_eq(query(s, "SELECT min(id) FROM session"), 9);
	store_close(s);
}
END_TEST

/* Whoever is over his share loses his own oldest, in the transaction's wake. */
START_TEST(a_share_for_each)
{
	struct store *s = test_open();
	const struct store_limits one = {.bytes_per_uid = 10000};
	struct batch b = {0};
	int64_t id;

	store_limit(s, &one);
	test_whole(&b, 1, 4, 1, 20);
	of_user(&b, 8, 9000);
	for (id = 2; id <= 11; id++) {
		test_whole(&b, id, 4, 1, 20);
		of_user(&b, 7, 1000);
	}
	test_store(s, &b);
	settle(s);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session"), 11); /* none is over it */
	test_whole(&b, 12, 4, 1, 20);
	of_user(&b, 7, 1500);
	test_store(s, &b);
	settle(s);
	ck_assert_int_eq(query(s, "SELECT min(id) FROM session WHERE uid=7"), 4);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=8"), 1);
	test_whole(&b, 13, 1, 1, 20); /* what lives counts, and stays */
	of_user(&b, 8, 90000);
	test_store(s, &b);
	settle(s);
	ck_assert_int_eq(query(s, "SELECT id FROM session WHERE uid=8"), 13);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=7"), 9);
	store_close(s);
}
END_TEST

/* Of all: who has most loses, and a neighbour who has little does not, even where the former has
 * nothing that could go. */
START_TEST(a_limit_for_all)
{
	struct store *s = test_open();
	struct store_limits all = {.bytes = 1};
	struct batch b = {0};
	int64_t id, before;

	test_whole(&b, 1, 4, 1, 20);
	of_user(&b, 8, 3000);
	for (id = 2; id <= 21; id++) {
		test_whole(&b, id, 4, 1, 2000);
		of_user(&b, 7, 250000);
		test_store(s, &b);
	}
	before = query(s, LIVE);
	all.bytes = (uint64_t)before / 2;
	store_limit(s, &all);
	settle(s);
	ck_assert_int_le(query(s, LIVE), before / 2);
	ck_assert_int_gt(query(s, LIVE), before / 4);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=8"), 1);
	test_whole(&b, 22, 1, 1, 20);
	of_user(&b, 7, 1u << 30);
	test_store(s, &b);
	all.bytes = 65536;
	store_limit(s, &all);
	settle(s);
	ck_assert_int_eq(query(s, "SELECT id FROM session WHERE uid=7"), 22);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE uid=8"), 1);
	store_close(s);
}
END_TEST

/* Of an older protond's sessions the size is found out. */
START_TEST(sizes_that_are_not_known)
{
	struct store *s = test_open();
	struct batch b = {0};

	test_whole(&b, 1, 4, 1, 2000);
	of_user(&b, 7, 0);
	test_whole(&b, 2, 1, 1, 2000);
	of_user(&b, 8, 0);
	test_store(s, &b);
	store_close(s);
	s = test_open();
	settle(s);
	ck_assert_int_gt(query(s, "SELECT stored_bytes FROM session WHERE id=1"), 150000);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM session WHERE stored_bytes IS NULL"), 1);
	store_close(s);
}
END_TEST

/* Anchors older than all there is go, but for the last thousand. */
START_TEST(old_anchors)
{
	struct store *s = test_open();
	struct batch b = {0}, got;
	uint64_t i;

	three(&b);
	for (i = 1; i <= 3000; i++) /* two boots: the clock starts again */
		*batch_anchor(&b) = (struct row_anchor){1, i <= 1500 ? 1000000 + i : i, i, i, 1};
	test_store(s, &b);
	got = test_load(s);
	ck_assert_uint_eq(got.anchor.n, 1000);
	ck_assert_uint_eq(got.anchor.row[0].realtime_ns, 2001);
	ck_assert_uint_eq(got.anchor.row[999].realtime_ns, 3000);
	batch_free(&got);
	ck_assert_int_eq(delete_session(s, 1).r, 0);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM anchor"), 1000);
	store_close(s);
}
END_TEST

START_TEST(anchors_have_a_ceiling)
{
	struct store *s = test_open();
	struct batch b = {0};
	uint64_t i;

	three(&b);
	for (i = 1; i <= 70000; i++)
		*batch_anchor(&b) = (struct row_anchor){1, i, i, i, 1};
	test_store(s, &b);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM anchor"), 70000 - 16384);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM anchor WHERE clock<=32768"), 16384);
	ck_assert_int_eq(query(s, "SELECT min(clock) FROM anchor"), 1);
	for (i = 70001; i <= 74096; i++) /* below the ceiling all stay */
		*batch_anchor(&b) = (struct row_anchor){1, i, i, i, 1};
	test_store(s, &b);
	ck_assert_int_eq(query(s, "SELECT count(*) FROM anchor"), 74096 - 16384);
	store_close(s);
}
END_TEST

struct portable {
	bool timeline;
	int64_t id, bytes;
	unsigned char *image;
};

static int portable_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct portable *p = arg;

	return store_portable(db, p->id, p->timeline, &p->image, &p->bytes, e);
}

static int64_t query_db(sqlite3 *db, const char *sql)
{
	struct query q = {.sql = sql};
	struct err e = {0};

	ck_assert_msg(query_work(db, &q, &e) == 0, "%s", e.text);
	return q.result;
}

START_TEST(portable)
{
	struct store *s = test_open();
	struct batch b = {0};
	struct portable p = {.id = 2, .timeline = _i != 0};
	struct told t;
	char path[120];
	sqlite3 *db;
	FILE *f;

	three(&b);
	memset(b.process.row[1].token, 5, 16);
	test_store(s, &b);
	p.id = 99;
	t = test_call(s, portable_work, &p);
	ck_assert_int_eq(t.r, -ENOENT);
	ck_assert_ptr_null(p.image);
	p.id = 2;
	t = test_call(s, portable_work, &p);
	ck_assert_msg(t.r == 0, "%s", t.err.text);
	(void)snprintf(path, sizeof(path), "%s/two.protond", test_dir);
	f = fopen(path, "w");
	ck_assert_uint_eq(fwrite(p.image, 1, (size_t)p.bytes, f), (size_t)p.bytes);
	(void)fclose(f);
	sqlite3_free(p.image);
	store_close(s);

	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(
		query_db(db, "SELECT integrity_check='ok' FROM pragma_integrity_check"), 1);
	ck_assert_int_eq(query_db(db, "PRAGMA user_version"), SCHEMA_VERSION);
	ck_assert_int_eq(query_db(db, "PRAGMA application_id"), SCHEMA_APPLICATION_ID);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM session WHERE id=2"), 1);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM session"), 1);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM process"), 1);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM process WHERE token IS NOT NULL"), 0);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM cell"), 10);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM node"), 12); /* 0, 3 by metric, 5..14 */
	ck_assert_int_eq(query_db(db, DANGLING), 0);
	ck_assert_int_eq(
		query_db(db, "SELECT sum(n) FROM (SELECT count(*) n FROM metric UNION ALL "
			     "SELECT count(*) FROM config UNION ALL SELECT count(*) FROM busy "
			     "UNION ALL SELECT count(*) FROM note UNION ALL "
			     "SELECT count(*) FROM device)"),
		5);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM trace"), _i);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM loss"), 2);
	ck_assert_int_eq(query_db(db, "SELECT count(*) FROM meta WHERE key='store_uuid'"), 1);
	(void)sqlite3_close(db);
}
END_TEST

/* Calls see what was submitted before them and end in order, without waiting in between. */
START_TEST(order)
{
	struct store *s = test_open();
	static struct query q[50];
	static struct call c[50];
	struct batch b = {0};
	int i;

	for (i = 0; i < 50; i++) {
		test_whole(&b, i + 1, 1, 1, 20);
		store_submit(s, &b, NULL, NULL);
		q[i] = (struct query){.sql = "SELECT count(*) FROM session"};
		c[i] = (struct call){.work = query_work, .arg = &q[i]};
		store_call(s, test_call_work, &c[i], test_call_done);
	}
	(void)uv_run(&test_loop, UV_RUN_DEFAULT); /* ends by itself when all is told */
	ck_assert_uint_eq(store_queued(s), 0);
	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(c[i].told.calls, 1);
		ck_assert_int_eq(c[i].told.r, 0);
		ck_assert_int_eq(q[i].result, i + 1);
	}
	store_close(s);
}
END_TEST

/* Closing waits for what was submitted, and tells it. */
START_TEST(close_waits)
{
	struct store *s = test_open();
	struct told t[20] = {0};
	struct batch b = {0}, got;
	int i;

	for (i = 0; i < 20; i++) {
		test_whole(&b, i + 1, 1, 1, 200);
		store_submit(s, &b, test_told, &t[i]);
	}
	store_close(s);
	store_close(NULL);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(t[i].calls, 1);
		ck_assert_int_eq(t[i].r, 0);
	}
	(void)uv_run(&test_loop, UV_RUN_DEFAULT);
	s = test_open();
	got = test_load(s);
	ck_assert_uint_eq(got.session.n, 20);
	batch_free(&got);
	store_close(s);
}
END_TEST

struct chain {
	struct store *s;
	struct told first, second;
};

static int no_work(struct sqlite3 *db, void *arg, struct err *e)
{
	(void)db;
	(void)arg;
	(void)e;
	return 0;
}

static void chain_second(void *arg, int r, const struct err *e)
{
	test_told(&((struct chain *)arg)->second, r, e);
}

static void chain_first(void *arg, int r, const struct err *e)
{
	struct chain *c = arg;

	test_told(&c->first, r, e);
	store_call(c->s, no_work, c, chain_second);
}

/* What a done() asks for while the store closes is told that it ends. */
START_TEST(close_tells_what_comes_late)
{
	struct chain c = {.s = test_open()};

	store_call(c.s, no_work, &c, chain_first);
	store_close(c.s);
	ck_assert_int_eq(c.first.calls, 1);
	ck_assert_int_eq(c.first.r, 0);
	ck_assert_int_eq(c.second.calls, 1);
	ck_assert_int_eq(c.second.r, -ECANCELED);
}
END_TEST

/* Its answer is long: longer than what is told in one turn of the loop. */
static void long_answer(void *arg, int r, const struct err *e)
{
	const uint64_t until = uv_hrtime() + 2000000;

	test_told(arg, r, e);
	while (uv_hrtime() < until)
		;
}

static int nothing_work(struct sqlite3 *db, void *arg, struct err *e)
{
	(void)db;
	(void)arg;
	(void)e;
	return 0;
}

START_TEST(a_turn_tells_one_that_is_long)
{
	struct store *s = test_open();
	struct told t = {0};
	int i, before;

	for (i = 0; i < 5; i++)
		store_call(s, nothing_work, &t, long_answer);
	(void)query(s, "SELECT 1"); /* behind them: all were worked on, and told */
	ck_assert_int_eq(t.calls, 5);
	for (i = 0; i < 5; i++)
		store_call(s, nothing_work, &t, long_answer);
	while (t.calls < 10) {
		before = t.calls;
		(void)uv_run(&test_loop, UV_RUN_ONCE);
		ck_assert_int_le(t.calls, before + 1);
	}
	for (i = 0; i < 5; i++)
		store_call(s, nothing_work, &t, long_answer);
	store_close(s); /* tells the rest at once */
	ck_assert_int_eq(t.calls, 15);
}
END_TEST

/* A worker that waits until it is let go, as for a slow disk. */
struct gate {
	uv_sem_t let_go, entered;
};

static int gate_work(struct sqlite3 *db, void *arg, struct err *e)
{
	struct gate *g = arg;

	(void)db;
	(void)e;
	uv_sem_post(&g->entered);
	uv_sem_wait(&g->let_go);
	return 0;
}

/* _i: of which kind. It has what was told to be stored. */
START_TEST(a_question_waits_for_no_transaction)
{
	struct store *s = test_open();
	struct gate g;
	struct query q = {.sql = "SELECT count(*) FROM session"},
		     bad = {.sql = "DELETE FROM session"};
	struct call c = {.work = query_work, .arg = &q}, w = {.work = query_work, .arg = &bad},
		    held = {.work = gate_work, .arg = &g};
	struct batch b = {0};

	ck_assert_int_eq(uv_sem_init(&g.let_go, 0), 0);
	ck_assert_int_eq(uv_sem_init(&g.entered, 0), 0);
	test_whole(&b, 1, 1, 1, 20);
	test_store(s, &b);
	store_call(s, test_call_work, &held, test_call_done);
	uv_sem_wait(&g.entered);
	test_whole(&b, 2, 1, 1, 20);
	store_submit(s, &b, NULL, NULL);
	store_ask(s, (enum store_reader_kind)_i, test_call_work, &w, test_call_done);
	store_ask(s, (enum store_reader_kind)_i, test_call_work, &c, test_call_done);
	while (c.told.calls == 0)
		(void)uv_run(&test_loop, UV_RUN_ONCE);
	ck_assert_int_eq(held.told.calls, 0);
	ck_assert_int_eq(w.told.calls, 1);
	ck_assert_int_lt(w.told.r, 0); /* it only reads */
	ck_assert_int_eq(c.told.r, 0);
	ck_assert_int_eq(q.result, 1);
	uv_sem_post(&g.let_go);
	c.told = (struct told){0};
	store_ask(s, (enum store_reader_kind)_i, test_call_work, &c, test_call_done);
	store_close(s);
	ck_assert_int_eq(c.told.calls, 1);
	ck_assert_int_eq(c.told.r, 0);
	uv_sem_destroy(&g.let_go);
	uv_sem_destroy(&g.entered);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("store_leave");
	TCase *c = tcase_create("leave");

	tcase_add_checked_fixture(c, test_setup, test_teardown);
	tcase_set_timeout(c, 30);
	tcase_add_test(c, delete_one);
	tcase_add_test(c, deleted_in_batch);
	tcase_add_test(c, prune_by_age);
	tcase_add_test(c, prune_by_size);
	tcase_add_test(c, prune_by_size_of_nodes);
	tcase_add_test(c, prune_in_slices);
	tcase_add_test(c, the_file_is_cut_after_a_reader);
	tcase_add_test(c, others_are_served_meanwhile);
	tcase_add_test(c, a_prune_goes_on_after_the_end);
	tcase_add_test(c, prune_of_one_user_and_the_newest);
	tcase_add_test(c, a_share_for_each);
	tcase_add_test(c, a_limit_for_all);
	tcase_add_test(c, sizes_that_are_not_known);
	tcase_add_test(c, old_anchors);
	tcase_add_test(c, anchors_have_a_ceiling);
	tcase_add_loop_test(c, portable, 0, 2);
	tcase_add_test(c, order);
	tcase_add_test(c, close_waits);
	tcase_add_test(c, close_tells_what_comes_late);
	tcase_add_test(c, a_turn_tells_one_that_is_long);
	tcase_add_loop_test(c, a_question_waits_for_no_transaction, 0, STORE_READERS);
	suite_add_tcase(s, c);
	return s;
}
