/* SPDX-License-Identifier: MIT. view_zoom_seams.c: rows of GPU work over the seams of chunks: none lies
 * over another, an event has one row whatever is asked, and what could stay in the first row does; and the next of
 * a name is each of them once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "draw.h"
#include "quick.h"
#include "summariser.h"
#include "trace.h"
#include "view_help.h"
#include "zoom.h"

#define OPS 6000u

struct op {
	uint64_t start, end;
	uint32_t row;
};

static sqlite3 *new_session(void)
{
	sqlite3 *db = help_db(":memory:");

	help_process(db, 1, 100, "0", "NULL", 2, "");
	help_session(db, 7, "seams", "run", "on");
	help_exec(db, "INSERT INTO member VALUES(7,1);"
		      "INSERT INTO node VALUES(1,x'01000000000000000000000000000001',0,0,'k')");
	return db;
}

static void begin(struct trace_pack *k)
{
	trace_pack_clear(k);
	ck_assert(trace_pack_node(k, (const uint8_t[16]){1, [15] = 1}));
	ck_assert(trace_pack_thread(k, &(struct trace_thread){100, TRACE_NONE}));
	ck_assert(trace_pack_stream(k, &(struct trace_stream){0, 1, 7}));
}

static void store(struct trace_pack *k, sqlite3 *db, struct summariser *s, uint32_t number)
{
	sqlite3_stmt *st;
	uint32_t n, n_summary;
	void *bytes, *summary;

	ck_assert_int_eq(trace_pack_seal(k, &bytes, &n), 0);
	summary = summariser_make(s, db, 1, bytes, n, &n_summary);
	ck_assert_int_eq(sqlite3_prepare_v2(db,
				 "INSERT INTO trace(session,process,number,first,events,end_ns,"
				 "bytes,summary) VALUES(7,1,?,0,?,0,?,?)",
				 -1, &st, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(st, 1, number);
	(void)sqlite3_bind_int64(st, 2, trace_pack_events(k));
	(void)sqlite3_bind_blob(st, 3, bytes, (int)n, SQLITE_TRANSIENT);
	if (summary != NULL)
		(void)sqlite3_bind_blob(st, 4, summary, (int)n_summary, SQLITE_TRANSIENT);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
	free(summary);
	free(bytes);
	begin(k);
}

/* A busy stream: one in ten begins before the one before it is over, and one in a thousand is there for long; now
 * and then a record comes late. */
static void make_ops(struct op *v)
{
	uint64_t at = 1000000;
	uint32_t i, other;

	for (i = 0; i < OPS; i++) {
		v[i].start = at - (below(10) == 0 ? 30 : 0);
		v[i].end = v[i].start + 40 + below(60) + (below(1000) == 0 ? 3000 : 0);
		at = v[i].end > v[i].start + 1000 ? v[i].start + 100 : v[i].end + below(20);
	}
	for (i = 0; i + 5 < OPS; i += 1 + below(100)) {
		const struct op late = v[i];

		other = i + 1 + below(4);
		v[i] = v[other];
		v[other] = late;
	}
}

static void check_rows(struct zoom *w, struct op *v)
{
	uint32_t i, k, rows, first = 0, n;
	struct zoom_event d;
	struct err e;

	rows = zoom_lanes(w, &n)[n - 1].rows;
	for (i = 0; i < OPS; i++) {
		ck_assert_int_eq(zoom_event(w, i + 1, &d, &e), 0);
		ck_assert_uint_lt(d.depth, rows);
		v[i].row = d.depth;
		v[i].start = d.start_ns;
		v[i].end = d.end_ns;
		first += d.depth == 0;
	}
	for (i = 0; i < OPS; i++)
		for (k = 0; k < i; k++)
			ck_assert_msg(v[i].row != v[k].row || v[i].end <= v[k].start ||
					      v[k].end <= v[i].start,
				"%u and %u lie over each other in row %u", i, k, v[i].row);
	ck_assert_uint_le(rows, 8);
	ck_assert_uint_ge(first, OPS * 8 / 10);
}

START_TEST(seams)
{
	static const uint32_t full[] = {3, 40, 1500, 2500};
	static struct op v[OPS];
	struct summariser s = {0};
	struct trace_pack k = {0};
	sqlite3 *db = new_session();
	struct zoom_tile t;
	struct zoom *w;
	struct err e;
	uint32_t i, j, number = 0;

	seed = 1 + (uint64_t)_i * 7919;
	make_ops(v);
	begin(&k);
	for (i = 0; i < OPS; i++) {
		ck_assert(trace_pack_op(&k, &(struct trace_op){.start = v[i].start,
						    .end = v[i].end,
						    .launched = 1,
						    .class = CLASS_COMPUTE,
						    .config = TRACE_NONE}));
		if (trace_pack_events(&k) == full[_i % 4])
			store(&k, db, &s, number++);
	}
	store(&k, db, &s, number);
	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
	check_rows(w, v);
	for (i = 0; i < 200; i++) {
		const uint64_t at = v[below(OPS)].start;

		ck_assert_int_eq(zoom_slices(w,
					 &(struct zoom_ask){.t0 = at,
						 .t1 = at + (10ull << below(16)) + 1,
						 .px = 1 + below(3000)},
					 &t, &e),
			0);
		for (j = 0; j < t.n; j++)
			if (t.slice[j].event != 0)
				ck_assert_uint_eq(t.slice[j].depth, v[t.slice[j].event - 1].row);
		zoom_tile_fini(&t);
	}
	zoom_free(w);
	trace_pack_fini(&k);
	summariser_fini(&s);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

/* From event to event of a name, forth and back: each once, also of those that begin together. */
START_TEST(each_once)
{
	struct summariser s = {0};
	struct trace_pack k = {0};
	sqlite3 *db = new_session();
	struct zoom_find f = {.part = "k", .whole = true};
	struct zoom_slice at;
	struct zoom *w;
	struct err e;
	uint32_t i, seen = 0;

	begin(&k);
	for (i = 0; i < 60; i++) {
		ck_assert(trace_pack_op(&k, &(struct trace_op){.start = 1000 * (1 + i / 4),
						    .end = 1000 * (1 + i / 4) + 10,
						    .launched = 1,
						    .class = CLASS_COMPUTE,
						    .config = TRACE_NONE}));
		if (i % 7 == 6)
			store(&k, db, &s, i / 7);
	}
	store(&k, db, &s, 60 / 7);
	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
	for (f.back = false; zoom_find(w, &f, &at, &e) == 0; seen++) {
		ck_assert_uint_eq(at.event, seen + 1);
		f.from_ns = at.start_ns;
		f.event = at.event;
	}
	ck_assert_uint_eq(seen, 60);
	for (f.back = true; zoom_find(w, &f, &at, &e) == 0; seen--) {
		ck_assert_uint_eq(at.event, seen - 1);
		f.from_ns = at.start_ns;
		f.event = at.event;
	}
	ck_assert_uint_eq(seen, 1);
	f.part = "K";
	ck_assert_int_eq(zoom_find(w, &f, &at, &e), -ENOENT);
	zoom_free(w);
	trace_pack_fini(&k);
	summariser_fini(&s);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("zoom_seams");
	TCase *tc = tcase_create("seams");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, seams, 0, all_rounds() ? 8 : 4);
	tcase_add_test(tc, each_once);
	suite_add_tcase(s, tc);
	return s;
}
