/* SPDX-License-Identifier: MIT. view_zoom.c: a timeline asked by window: on random sessions of several
 * processes, with and without stored summaries, every answer is what the events say; and bad
 * questions, damaged summaries and a session that goes on. */
#include "zoom_made.h"
#include <unistd.h>

#define CHECK(is, ...) ck_assert_msg(is, __VA_ARGS__)
#include "export_help.h"
#include "portable.h"
#include "schema.h"
#include "sql_tables.h"
#include "streams.h"
#include "summary.h"
#include "zoom_check.h"

START_TEST(answers)
{
	sqlite3 *db;

	seed = 1 + (uint64_t)_i * 7907;
	db = any_session(_i < 2 ? 20000 : 500 + below(6000), _i % 2 == 0);
	zoom_check(db, 7, 25);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

/* What its scopes' own work takes of a stream: each instance is one slice, from its first operation
 * to its last, wherever chunks end. */
START_TEST(projected)
{
	static const uint32_t full[] = {TRACE_EVENTS_MAX, 1, 2, 7};
	struct made m = {.db = help_db(":memory:"), .process = 1, .full = full[_i]};
	struct zoom_tile t;
	const struct zoom_lane *lane;
	struct zoom *w;
	struct err e;
	uint32_t i, n, found = 0, want;
	char sql[128];

	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_session(m.db, 7, "steps", "run", "on");
	help_exec(m.db, "INSERT INTO member VALUES(7,1)");
	for (i = 1; i <= 3; i++) { /* step, forward, kernel */
		(void)snprintf(sql, sizeof(sql),
			"INSERT INTO node VALUES(%u,x'%02x%028x01',%u,%u,'%s')", i, i, 0u, i - 1,
			i == 3 ? (uint32_t)NODE_KERNEL : (uint32_t)NODE_SCOPE,
			i == 1   ? "step"
			: i == 2 ? "forward"
				 : "kernel");
		help_exec(m.db, sql);
	}
	chunk_begin(&m);
	for (i = 0; i < 10; i++) { /* back to back, the work long after its launch */
		const uint64_t at = 1000 + i * 1000, work = 50000 + i * 1000;

		for (n = 0; n < 3; n++) {
			ck_assert(trace_pack_op(
				&m.k, &(struct trace_op){.launched = at + 100 + n,
					      .start = work + n * 300,
					      .end = work + n * 300 + 200,
					      .thread = n == 1, /* one follows the main thread */
					      .node = 3,
					      .class = CLASS_COMPUTE,
					      .config = TRACE_NONE}));
			after(&m);
		}
		ck_assert(trace_pack_scope(
			&m.k, &(struct trace_scope){.begin = at + 50, .end = at + 500, .node = 2}));
		after(&m);
		ck_assert(trace_pack_scope(
			&m.k, &(struct trace_scope){.begin = at, .end = at + 1000, .node = 1}));
		after(&m);
	}
	chunk_end(&m);
	trace_pack_fini(&m.k);
	ck_assert_int_eq(zoom_open(m.db, 7, NULL, &w, &e), 0);
	lane = zoom_lanes(w, &n);
	ck_assert_int_eq(
		zoom_slices(w, &(struct zoom_ask){.t0 = 0, .t1 = 100000, .px = 10000}, &t, &e), 0);
	for (i = 0; i < t.n; i++) {
		if (lane[t.slice[i].lane].kind != ZOOM_PROJECTED)
			continue;
		want = found % 10;
		ck_assert_str_eq(zoom_name(w, t.slice[i].name), found < 10 ? "step" : "forward");
		ck_assert_uint_eq(t.slice[i].depth, found / 10);
		ck_assert_uint_eq(t.slice[i].start_ns, 50000 + want * 1000);
		ck_assert_uint_eq(t.slice[i].end_ns, 50000 + want * 1000 + 800);
		ck_assert_uint_eq(lane[lane[t.slice[i].lane].parent].kind, ZOOM_STREAM);
		found++;
	}
	ck_assert_uint_eq(found, 20);
	zoom_tile_fini(&t);
	zoom_free(w);
	ck_assert_int_eq(sqlite3_close(m.db), SQLITE_OK);
}
END_TEST

static bool file_has(export_timeline_fn *write, sqlite3 *db, const char *words)
{
	struct export_left left;
	const bool has = help_file_has(write, db, &left, words);

	ck_assert_uint_eq(left.summed, 1000007);
	ck_assert_uint_eq(left.gone, 0);
	return has;
}

/* A lane is called what the program called its GPU and its stream. */
START_TEST(named_by_the_program)
{
	static const struct {
		export_timeline_fn *write;
		const char *words;
	} files[] = {{chrome_trace_write, "\"stream 7: copies\""},
		{chrome_trace_write, "left (H200)"}, {kineto_write, "\"stream 7: copies\""},
		{pftrace_write, "stream 7: copies (pid 100)"}};
	static const struct profile_select all;
	struct made m = {.db = help_db(":memory:"), .process = 1, .full = UINT32_MAX};
	struct streams s = {0};
	const struct zoom_lane *lane;
	struct export_left left;
	struct zoom *w;
	struct err e = {0};
	uint32_t n, i, found = 0;
	char *bytes;
	size_t size;
	FILE *f;

	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_session(m.db, 7, "named", "run", "on");
	help_exec(m.db,
		"INSERT INTO member VALUES(7,1);"
		"INSERT INTO device VALUES(1,0,x'11111111111111111111111111111111',3,'CUDA',"
		"'H200','',90,132,1,1,1,1,'left','7 copies'||char(10))");
	put_nodes(m.db, m.parent, m.depth);
	chunk_begin(&m);
	ck_assert(trace_pack_op(&m.k, &(struct trace_op){.launched = 1000,
					      .start = 2000,
					      .end = 3000,
					      .node = 1,
					      .config = TRACE_NONE,
					      .class = CLASS_COMPUTE}));
	chunk_end(&m);
	trace_pack_fini(&m.k);
	ck_assert_int_eq(streams_read(&s, m.db, 7, &all, &left, &e), 0);
	ck_assert_uint_eq(s.n, 2); /* all of the GPU, and its stream */
	ck_assert_str_eq(s.row[0].name, "");
	ck_assert_str_eq(s.row[1].name, "copies");
	streams_fini(&s);
	ck_assert_int_eq(zoom_open(m.db, 7, NULL, &w, &e), 0);
	lane = zoom_lanes(w, &n);
	for (i = 0; i < n; i++)
		found += strcmp(lane[i].name, "GPU 3 left stream 7: copies") == 0 ? 1u : 0u;
	ck_assert_uint_eq(found, 1);
	zoom_free(w);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		f = open_memstream(&bytes, &size);
		ck_assert_int_eq(files[i].write(m.db, 7, NULL, f, &left, &e), 0);
		ck_assert_int_eq(fclose(f), 0);
		ck_assert_msg(memmem(bytes, size, files[i].words, strlen(files[i].words)) != NULL,
			"%u: %s", i, files[i].words);
		free(bytes);
	}
	ck_assert_int_eq(sqlite3_close(m.db), SQLITE_OK);
}
END_TEST

/* A row each, in the order of their thread. */
static void bursts_of_sql(sqlite3 *db)
{
	static const struct profile_select all;
	struct export_left left = {0};
	sqlite3_stmt *st;
	sqlite3 *to;
	struct err e;

	ck_assert_int_eq(sqlite3_open(":memory:", &to), SQLITE_OK);
	ck_assert_int_eq(sql_tables_make(to, &e), 0);
	ck_assert_int_eq(sql_tables_timeline(to, db, 7, &all, &left, &e), 0);
	ck_assert_int_eq(sqlite3_prepare_v2(to,
				 "SELECT count(*), sum(events), min(end_ns - begin_ns), "
				 "max(end_ns - begin_ns), max(tid) FROM bursts",
				 -1, &st, NULL),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
	ck_assert_int_eq(sqlite3_column_int64(st, 0), 2);
	ck_assert_int_eq(sqlite3_column_int64(st, 1), 1000007);
	ck_assert_int_eq(sqlite3_column_int64(st, 2), 1000);
	ck_assert_int_eq(sqlite3_column_int64(st, 3), 1500);
	ck_assert_int_eq(sqlite3_column_int64(st, 4), 101);
	(void)sqlite3_finalize(st);
	ck_assert_int_eq(sqlite3_close(to), SQLITE_OK);
}

/* Of two chunks, of which the second has nothing else; the sum of the first went on. */
START_TEST(summed)
{
	struct made m = {.db = help_db(":memory:"), .process = 1, .full = UINT32_MAX};
	const struct zoom_lane *lane;
	struct zoom_state state;
	struct zoom_tile t;
	struct zoom *w;
	struct err e;
	uint64_t t0, t1;
	uint32_t n;

	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_session(m.db, 7, "burst", "run", "on");
	help_exec(m.db, "INSERT INTO member VALUES(7,1)");
	put_nodes(m.db, m.parent, m.depth);
	chunk_begin(&m);
	ck_assert(trace_pack_scope(
		&m.k, &(struct trace_scope){.begin = 1000, .end = 1400, .thread = 1, .node = 1}));
	ck_assert(trace_pack_burst(&m.k, &(struct trace_burst){1500, 2500, 7, 1, 0}));
	chunk_end(&m);
	ck_assert(trace_pack_burst(&m.k, &(struct trace_burst){1800, 4000, 1000000, 1, 0}));
	chunk_end(&m);
	trace_pack_fini(&m.k);
	ck_assert_int_eq(zoom_open(m.db, 7, NULL, &w, &e), 0);
	zoom_state(w, &state);
	ck_assert(state.events == 1 && state.gone == 0 && state.summed == 1000007);
	zoom_range(w, &t0, &t1);
	ck_assert(t0 == 1000 && t1 == 4000);
	lane = zoom_lanes(w, &n);
	ck_assert_uint_eq(n, 6); /* three threads, two streams; bursts stand behind their thread */
	ck_assert_str_eq(lane[2].name, "summed of worker");
	ck_assert(lane[2].kind == ZOOM_SUMMED && lane[2].parent == 1 && lane[2].events == 1000007);
	ck_assert_int_eq(
		zoom_slices(w, &(struct zoom_ask){.t0 = t0, .t1 = t1, .px = 300}, &t, &e), 0);
	ck_assert_uint_eq(t.n, 3);
	ck_assert(t.slice[1].lane == 2 && t.slice[1].start_ns == 1500 &&
		  t.slice[1].end_ns == 2500 && t.slice[1].count == 7 &&
		  t.slice[1].name == ZOOM_NONE && t.slice[1].event == 0);
	ck_assert(t.slice[2].start_ns == 2500 && t.slice[2].end_ns == 4000 &&
		  t.slice[2].count == 1000000);
	zoom_tile_fini(&t);
	zoom_free(w);
	ck_assert(file_has(chrome_trace_write, m.db,
		"\"7 events summed\",\"pid\":100,\"tid\":64000101,"
		"\"ts\":1.500,\"dur\":1.000,"));
	ck_assert(file_has(chrome_trace_write, m.db, "\"ts\":2.500,\"dur\":1.500,"));
	ck_assert(file_has(chrome_trace_write, m.db, "{\"name\":\"101, summed\"}"));
	ck_assert(file_has(chrome_trace_write, m.db, ",\"eventsSummed\":1000007}"));
	ck_assert(file_has(pftrace_write, m.db, "7 events summed"));
	ck_assert(file_has(pftrace_write, m.db, "1000000 events summed"));
	ck_assert(file_has(kineto_write, m.db, ",\"eventsSummed\":1000007}"));
	bursts_of_sql(m.db);
	ck_assert_int_eq(sqlite3_close(m.db), SQLITE_OK);
}
END_TEST

static void put_task(struct made *m, uint64_t begin, uint64_t end)
{
	ck_assert(trace_pack_scope(&m->k,
		&(struct trace_scope){
			.begin = begin, .end = end, .thread = 1, .node = 1, .flags = TRACE_SPAN}));
}

/* Tasks that go on over the end of a chunk: none lies over another, and an event is where its slice is. */
START_TEST(tasks)
{
	static const uint64_t begin[] = {1000, 2000, 2500, 5000}, row[] = {0, 2, 1, 0};
	struct made m = {.db = help_db(":memory:"), .process = 1, .full = UINT32_MAX};
	struct zoom_event d;
	struct zoom_tile t;
	struct zoom *w;
	struct err e;
	uint32_t i, k;

	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_session(m.db, 7, "tasks", "run", "on");
	help_exec(m.db, "INSERT INTO member VALUES(7,1)");
	put_nodes(m.db, m.parent, m.depth);
	chunk_begin(&m);
	put_task(&m, 1000, 3000);
	chunk_end(&m);
	put_task(&m, 2500, 2600);
	put_task(&m, 2000, 4000);
	chunk_end(&m);
	put_task(&m, 5000, 6000);
	for (i = 0; i < (_i == 0 ? 0 : 2000u); i++) /* so many that it has a summary */
		put_task(&m, 7000 + 10 * i, 7008 + 10 * i);
	chunk_end(&m);
	trace_pack_fini(&m.k);
	ck_assert_int_eq(zoom_open(m.db, 7, NULL, &w, &e), 0);
	ck_assert_int_eq(
		zoom_slices(w, &(struct zoom_ask){.t0 = 0, .t1 = 6500, .px = 6500}, &t, &e), 0);
	ck_assert_uint_eq(t.n, 4);
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 3 && t.slice[k].start_ns != begin[i]; k++)
			;
		ck_assert_uint_eq(t.slice[k].start_ns, begin[i]);
		ck_assert_uint_eq(t.slice[k].depth, row[i]);
		ck_assert_int_eq(zoom_event(w, t.slice[k].event, &d, &e), 0);
		ck_assert_uint_eq(d.depth, row[i]);
	}
	zoom_tile_fini(&t);
	zoom_free(w);
	zoom_check(m.db, 7, 10);
	ck_assert_int_eq(sqlite3_close(m.db), SQLITE_OK);
}
END_TEST

/* More numbers than are kept: from afar nothing is lost but when each of them was told, and what is
 * near is read again. */
START_TEST(many_numbers)
{
	struct made m = {.db = help_db(":memory:"), .process = 1, .full = TRACE_EVENTS_MAX};
	const uint32_t all = 600000;
	struct zoom_counts is;
	struct zoom *w;
	struct err e;
	uint32_t i, told = 0;

	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_session(m.db, 7, "numbers", "run", "on");
	help_exec(m.db, "INSERT INTO member VALUES(7,1)");
	chunk_begin(&m);
	ck_assert(trace_pack_scope(
		&m.k, &(struct trace_scope){.begin = 1, .end = 1000ull * all, .node = 1}));
	for (i = 0; i < all; i++) {
		ck_assert(trace_pack_metric(&m.k, &(struct trace_metric){.clock = 1000ull * i,
							  .bits = i,
							  .node = 1,
							  .name = 1,
							  .type = VALUE_U64}));
		after(&m);
	}
	chunk_end(&m);
	trace_pack_fini(&m.k);
	ck_assert_int_eq(zoom_open(m.db, 7, NULL, &w, &e), 0);
	ck_assert_int_eq(
		zoom_count(w, &(struct zoom_ask){.t1 = 1000ull * all, .px = 100}, &is, &e), 0);
	ck_assert_uint_eq(is.n, 100);
	ck_assert(!is.coarse);
	for (i = 0; i < is.n; i++) {
		told += is.v[i].all.count;
		ck_assert(is.v[i].all.max == is.v[i].all.last);
		ck_assert(i == 0 || is.v[i].all.min == is.v[i - 1].all.max + 1);
	}
	ck_assert_uint_eq(told, all);
	zoom_counts_fini(&is);
	ck_assert_int_eq(
		zoom_count(w, &(struct zoom_ask){.t0 = 300000000, .t1 = 300010000, .px = 1000}, &is,
			&e),
		0);
	ck_assert_uint_eq(is.n, 10);
	ck_assert(!is.coarse);
	for (i = 0; i < is.n; i++)
		ck_assert(is.v[i].px == 100 * i && is.v[i].all.last == 300000 + i);
	zoom_counts_fini(&is);
	ck_assert_int_eq(
		zoom_count(w, &(struct zoom_ask){.t1 = 1000ull * all, .px = ZOOM_PX_MAX}, &is, &e),
		0);
	ck_assert_uint_le(is.n, ZOOM_COUNTS_MAX);
	ck_assert(is.coarse);
	zoom_counts_fini(&is);
	zoom_free(w);
	ck_assert_int_eq(sqlite3_close(m.db), SQLITE_OK);
}
END_TEST

/* A summary of another chunk, or none: the chunk itself is believed. */
START_TEST(damaged)
{
	sqlite3 *db;

	seed = 99 + (uint64_t)_i;
	db = any_session(5000, true);
	help_exec(db, _i == 0   ? "UPDATE trace SET summary=x'5054533100'"
		      : _i == 1 ? "UPDATE trace SET summary=substr(summary,1,length(summary)-3)"
				: "UPDATE trace SET summary=zeroblob(100)");
	zoom_check(db, 7, 10);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

static void ask_all(struct zoom *w)
{
	struct zoom_arrows arrows;
	struct zoom_sums sums;
	struct zoom_event event;
	struct zoom_slice slice;
	struct zoom_state state;
	struct zoom_tile t;
	struct err e;
	uint64_t t0, t1;
	uint32_t i;

	zoom_range(w, &t0, &t1);
	zoom_state(w, &state);
	for (i = 0; i < 60; i++) {
		const struct zoom_ask a = {.t0 = t0, .t1 = t0 + ((t1 - t0) >> i) + 1, .px = 1000};

		if (zoom_slices(w, &a, &t, &e) == 0)
			zoom_tile_fini(&t);
		if (zoom_arrows(w, &a, &arrows, &e) == 0)
			zoom_arrows_fini(&arrows);
		(void)zoom_event(w, 1 + below((uint32_t)state.events), &event, &e);
	}
	if (zoom_sums(w, &(struct zoom_ask){.t1 = UINT64_MAX, .px = 1}, &sums, &e) == 0)
		zoom_sums_fini(&sums);
	(void)zoom_find(w, &(struct zoom_find){.part = "scope"}, &slice, &e);
}

/* A good summary, but of another chunk, or of one thread alone: answers are wrong then, and no more. */
START_TEST(another)
{
	struct trace_track track = {.kind = TRACK_THREAD};
	struct trace_item item = {.end = 1ull << 40,
		.busy = 5,
		.count = 2,
		.event = TRACE_NONE,
		.thread = TRACE_NONE};
	struct summary none = {.track = &track,
		.calls = true,
		.n_tracks = 1,
		.n_levels = 1,
		.ns = 4,
		.ticks = 4,
		.level = {{&item, 1}}};
	char sql[256], hex[128] = "";
	struct zoom *w;
	struct err e;
	sqlite3 *db;
	uint32_t i, n;
	void *bytes;

	seed = 31 + (uint64_t)_i;
	ck_assert_int_eq(summary_seal(&none, &bytes, &n), 0);
	ck_assert_uint_lt(n, sizeof(hex) / 2);
	for (i = 0; i < n; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", ((uint8_t *)bytes)[i]);
	free(bytes);
	db = any_session(_i == 2 ? 3000 : 40000, true);
	(void)snprintf(sql, sizeof(sql),
		"UPDATE trace SET summary=x'%s' WHERE number %% 2 = 0 OR %d", hex, _i == 2);
	if (_i == 0)
		(void)snprintf(sql, sizeof(sql),
			"UPDATE trace SET summary=(SELECT summary FROM trace t WHERE"
			" t.process<>trace.process AND summary IS NOT NULL LIMIT 1)");
	help_exec(db, sql);
	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
	ask_all(w);
	zoom_free(w);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

/* For how many chunks a reader makes them. */
static uint32_t summarised(sqlite3 *db, int64_t session)
{
	struct zoom_state state;
	struct zoom *w;
	struct err e;

	ck_assert_int_eq(zoom_open(db, session, NULL, &w, &e), 0);
	zoom_state(w, &state);
	zoom_free(w);
	return state.summarised;
}

/* Chunks whose summary would take more than a tenth of them. */
static uint32_t unworthy(sqlite3 *db)
{
	static const char sql[] = "SELECT sum(length(summary)=0), count(summary) FROM trace";
	sqlite3_stmt *st;
	uint32_t n, all;

	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
	n = (uint32_t)sqlite3_column_int(st, 0);
	all = (uint32_t)sqlite3_column_int(st, 1);
	(void)sqlite3_finalize(st);
	ck_assert_uint_gt(all, n);
	return n;
}

/* A database from before summaries, as a reader has it; and what such a program sees of a new one:
 * a column that it does not ask for. */
START_TEST(old)
{
	char dir[] = "/tmp/view_zoom.XXXXXX", path[64], sql[96];
	struct summariser summariser = {.db = NULL};
	int64_t at = 0;
	bool lacks;
	sqlite3 *db, *file;
	struct err e;
	int rc;

	seed = 5;
	db = any_session(8000, true);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/db", dir);
	(void)snprintf(sql, sizeof(sql), "VACUUM INTO '%s'", path);
	help_exec(db, sql);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_open(path, &file), SQLITE_OK);
	help_exec(file, "ALTER TABLE trace DROP COLUMN summary");
	ck_assert_int_eq(sqlite3_close(file), SQLITE_OK);
	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	ck_assert_int_eq(schema_shade(db), SQLITE_OK);
	zoom_check(db, 7, 10);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_eq(schema_mend(db, false, &lacks), SQLITE_OK);
	ck_assert(lacks);
	ck_assert_uint_gt(summarised(db, 7), 0);
	help_exec(db, "INSERT INTO cell(session,process,segment,node,device,class,count,sum_ns,"
		      "min_ns,max_ns,bytes,untimed,open) SELECT 7,1,0,id,0,0,1,1,1,1,0,0,0 "
		      "FROM node"); /* a copy has the nodes that its tree has */
	ck_assert_int_eq(sqlite3_open(":memory:", &file), SQLITE_OK);
	ck_assert_int_eq(portable_fill(db, 7, true, file, &e), SQLITE_OK);
	ck_assert_uint_eq(summarised(file, 7), unworthy(file)); /* a copy has them */
	zoom_check(file, 7, 5);
	ck_assert_int_eq(sqlite3_close(file), SQLITE_OK);
	do
		rc = summariser_next(&summariser, db, &at);
	while (rc == SQLITE_ROW);
	ck_assert_int_eq(rc, SQLITE_DONE);
	at = 0; /* not again */
	ck_assert_int_eq(summariser_next(&summariser, db, &at), SQLITE_DONE);
	summariser_fini(&summariser);
	ck_assert_uint_eq(summarised(db, 7), unworthy(db));
	zoom_check(db, 7, 10);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	(void)unlink(path);
	(void)rmdir(dir);
}
END_TEST

START_TEST(refused)
{
	static const struct zoom_ask asks[] = {{.t0 = 5, .t1 = 5, .px = 100},
		{.t0 = 6, .t1 = 5, .px = 1}, {.t1 = 5, .px = 0}, {.t1 = 5, .px = ZOOM_PX_MAX + 1}};
	const uint32_t none = 12345;
	struct zoom_tile t;
	struct zoom_event d;
	struct zoom *w;
	struct err e;
	sqlite3 *db;
	bool changed;
	uint32_t i;

	seed = 4711;
	db = any_session(40000, true); /* several chunks of each process */
	ck_assert_int_eq(zoom_open(db, 8, NULL, &w, &e), -ENOENT);
	ck_assert_int_eq(zoom_open(db, 7, "5", &w, &e), -ENOENT);
	ck_assert_int_eq(zoom_open(db, 7, "1", &w, &e), 0);
	for (i = 0; i < sizeof(asks) / sizeof(*asks); i++)
		ck_assert_int_eq(zoom_slices(w, &asks[i], &t, &e), -EINVAL);
	ck_assert_int_eq(
		zoom_slices(w,
			&(struct zoom_ask){.t1 = 1 << 30, .px = 9, .lane = &none, .n_lanes = 1}, &t,
			&e),
		0);
	ck_assert_uint_eq(t.n, 0);
	zoom_tile_fini(&t);
	ck_assert_int_eq(zoom_event(w, 0, &d, &e), -ENOENT);
	ck_assert_int_eq(zoom_event(w, UINT32_MAX, &d, &e), -ENOENT);
	ck_assert_int_eq(zoom_refresh(&w, &changed, &e), 0);
	ck_assert(!changed);
	help_exec(db, "UPDATE trace SET bytes=NULL, summary=NULL WHERE number=0");
	ck_assert_int_eq(zoom_event(w, 1, &d, &e), -ESTALE); /* it was not read before */
	help_exec(db, "DELETE FROM trace WHERE number=0");
	ck_assert_int_eq(zoom_refresh(&w, &changed, &e), 0);
	ck_assert(changed);
	zoom_free(w);
	help_exec(db, "DELETE FROM trace");
	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), -ENODATA);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("zoom");
	TCase *tc = tcase_create("zoom");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, answers, 0, all_rounds() ? 12 : 2);
	tcase_add_loop_test(tc, projected, 0, 4);
	tcase_add_test(tc, summed);
	tcase_add_test(tc, named_by_the_program);
	tcase_add_loop_test(tc, tasks, 0, 2);
	tcase_add_test(tc, many_numbers);
	tcase_add_loop_test(tc, damaged, 0, 3);
	tcase_add_loop_test(tc, another, 0, 3);
	tcase_add_test(tc, old);
	tcase_add_test(tc, refused);
	suite_add_tcase(s, tc);
	return s;
}
