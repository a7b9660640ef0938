/* SPDX-License-Identifier: MIT. view_project.c: scopes projected onto streams, by the window of a timeline and
 * by the file for HTA: one rule, so that they are the same. */
#include "quick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#define CHECK(is, ...) ck_assert_msg(is, __VA_ARGS__)
#include "draw.h"
#include "view_help.h"
#include "zoom_check.h"

#define THREADS 3u

struct made {
	sqlite3 *db;
	struct trace_pack k;
	uint32_t number, full;
	uint64_t first;
};

static void chunk_begin(struct made *m)
{
	uint8_t hash[16] = {[15] = 1};
	uint32_t i;

	trace_pack_clear(&m->k);
	for (i = 0; i < 11; i++) {
		hash[0] = (uint8_t)i;
		ck_assert(trace_pack_node(&m->k, hash));
	}
	for (i = 0; i < THREADS; i++)
		ck_assert(trace_pack_thread(&m->k, &(struct trace_thread){100 + i, TRACE_NONE}));
	for (i = 0; i < 2; i++)
		ck_assert(trace_pack_stream(&m->k, &(struct trace_stream){0, 1, 7 + i}));
}

static void chunk_end(struct made *m)
{
	const uint32_t events = trace_pack_events(&m->k);
	sqlite3_stmt *st;
	void *bytes;
	uint32_t n;

	ck_assert_int_eq(trace_pack_seal(&m->k, &bytes, &n), 0);
	ck_assert_int_eq(
		sqlite3_prepare_v2(m->db,
			"INSERT INTO trace(session,process,number,first,events,end_ns,bytes)"
			" VALUES(7,1,?,?,?,0,?)",
			-1, &st, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(st, 1, m->number++);
	(void)sqlite3_bind_int64(st, 2, (int64_t)m->first);
	(void)sqlite3_bind_int64(st, 3, events);
	(void)sqlite3_bind_blob(st, 4, bytes, (int)n, SQLITE_TRANSIENT);
	ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
	(void)sqlite3_finalize(st);
	free(bytes);
	m->first += events;
	chunk_begin(m);
}

static void after(struct made *m)
{
	if (trace_pack_events(&m->k) >= m->full)
		chunk_end(m);
}

/* step > forward > layer > kernel; forward > <captured_at> > cap > two > kernel. */
enum {
	R_STEP = 1,
	R_FORWARD,
	R_LAYER,
	R_KERNEL,
	R_CAPTURED,
	R_CAP,
	R_IN_A,
	R_GRAPH_A,
	R_IN_B,
	R_GRAPH_B
};

static void rule_nodes(sqlite3 *db)
{
	static const struct {
		uint32_t parent, kind;
		const char *name;
	} v[] = {{0, NODE_SCOPE, "step"}, {R_STEP, NODE_SCOPE, "forward"},
		{R_FORWARD, NODE_SCOPE, "layer"}, {R_LAYER, NODE_KERNEL, "kernel"},
		{R_FORWARD, NODE_CAPTURED, "<captured_at>"}, {R_CAPTURED, NODE_SCOPE, "cap"},
		{R_CAP, NODE_SCOPE, "in_a"}, {R_IN_A, NODE_KERNEL, "graphed"},
		{R_CAP, NODE_SCOPE, "in_b"}, {R_IN_B, NODE_KERNEL, "graphed"}};
	char sql[160];
	uint32_t i;

	for (i = 1; i <= sizeof(v) / sizeof(v[0]); i++) {
		(void)snprintf(sql, sizeof(sql),
			"INSERT INTO node VALUES(%u,x'%02x%028x01',%u,%u,'%s')", i, i, 0u,
			v[i - 1].parent, v[i - 1].kind, v[i - 1].name);
		help_exec(db, sql);
	}
}

static void rule_op(struct made *m, uint32_t thread, uint32_t node, uint64_t at, uint64_t *gpu)
{
	const uint32_t stream = thread == 2; /* that of its own; the others share one */
	const uint64_t start = *gpu > at ? *gpu : at + below(70);

	ck_assert(trace_pack_op(&m->k, &(struct trace_op){.launched = at,
					       .start = start,
					       .end = start + 1 + below(90),
					       .thread = thread,
					       .node = node,
					       .stream = stream,
					       .class = CLASS_COMPUTE,
					       .config = TRACE_NONE,
					       .flags = node >= R_GRAPH_A ? TRACE_GRAPH : 0}));
	*gpu = start + 91 + below(30);
	after(m);
}

static void rule_scope(struct made *m, uint32_t thread, uint32_t node, uint64_t begin, uint64_t end)
{
	ck_assert(trace_pack_scope(&m->k,
		&(struct trace_scope){.begin = begin, .end = end, .thread = thread, .node = node}));
	after(m);
}

/* Steps back to back on one thread: its own work, a graph's launch or two, and that of a thread which
 * follows the main one. Returns when they are over. */
static void rule_steps(struct made *m, uint32_t thread, uint32_t n, uint64_t *gpu)
{
	uint64_t at = 1000, step, forward, layer;
	uint32_t k, i;

	for (; n > 0; n--) {
		step = at;
		forward = at += below(3) * 10;
		for (k = below(4); k > 0; k--) {
			layer = at += below(2) * 50;
			for (i = below(3); i > 0; i--)
				rule_op(m, thread, R_KERNEL, at += below(100), gpu);
			if (thread == 0 && below(2) == 0)
				rule_op(m, 1, R_KERNEL, at += below(100), gpu);
			rule_scope(m, thread, R_LAYER, layer, at += below(60));
		}
		for (k = below(3); k > 0; k--) { /* one launch, all at one moment */
			at += 1 + below(50);
			for (i = 1 + below(4); i > 0; i--)
				rule_op(m, thread, i > 2 ? R_GRAPH_A : R_GRAPH_B, at, gpu);
		}
		rule_scope(m, thread, R_FORWARD, forward, at += 1 + below(60));
		rule_scope(m, thread, R_STEP, step, at += below(2) * 30);
	}
}

struct cast_row {
	char name[16];
	uint64_t start, end, stream;
};

static int cast_order(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct cast_row));
}

static uint32_t casts_of_file(sqlite3 *db, struct cast_row *v, uint32_t most)
{
	struct cast_seen *seen = calloc(most, sizeof(*seen));
	struct err e = {0};
	char *bytes;
	size_t n_bytes, i;
	uint32_t n = 0, k;
	FILE *f = open_memstream(&bytes, &n_bytes);
	json_t *j, *x;

	ck_assert_ptr_nonnull(seen);
	ck_assert_int_eq(kineto_write(db, 7, NULL, f, NULL, &e), 0);
	(void)fclose(f);
	j = json_loadb(bytes, n_bytes, 0, NULL);
	ck_assert_int_eq(json_integer_value(json_object_get(j, "projectionsLeftOut")), 0);
	json_array_foreach(json_object_get(j, "traceEvents"), i, x)
	{
		const char *cat = json_string_value(json_object_get(x, "cat"));

		if (cat != NULL && strcmp(cat, "gpu_user_annotation") == 0) {
			k = n;
			see_cast(x, seen, &n, most);
			ck_assert_uint_eq(n, k + 1); /* of one lane, and with a number */
		}
	}
	for (k = 0; k < n; k++) {
		v[k] = (struct cast_row){
			.start = seen[k].start, .end = seen[k].end, .stream = seen[k].stream};
		(void)snprintf(v[k].name, sizeof(v[k].name), "%s",
			strncmp(seen[k].name, "ProfilerStep#", 13) == 0 ? "step" : seen[k].name);
	}
	json_decref(j);
	free(bytes);
	free(seen);
	return n;
}

/* No pixel is wider than a nanosecond. */
static uint32_t casts_of_window(sqlite3 *db, struct cast_row *v, uint32_t most)
{
	struct zoom_tile t;
	struct zoom *w;
	struct err e;
	uint64_t t0, t1;
	uint32_t i, n_lanes, n = 0;
	const struct zoom_lane *lane;

	ck_assert_int_eq(zoom_open(db, 7, NULL, &w, &e), 0);
	zoom_range(w, &t0, &t1);
	lane = zoom_lanes(w, &n_lanes);
	ck_assert_int_eq(
		zoom_slices(
			w, &(struct zoom_ask){.t0 = t0, .t1 = t1 + 1, .px = ZOOM_PX_MAX}, &t, &e),
		0);
	ck_assert(!t.coarse && t.merge_ns <= 1);
	for (i = 0; i < t.n; i++) {
		if (lane[t.slice[i].lane].kind != ZOOM_PROJECTED)
			continue;
		ck_assert_uint_lt(n, most);
		v[n] = (struct cast_row){.start = t.slice[i].start_ns,
			.end = t.slice[i].end_ns,
			.stream = lane[t.slice[i].lane].number};
		(void)snprintf(v[n].name, sizeof(v[n].name), "%s", zoom_name(w, t.slice[i].name));
		n++;
	}
	zoom_tile_fini(&t);
	zoom_free(w);
	return n;
}

/* The page's window and the file for HTA have the same scopes on the same streams, to the nanosecond. */
START_TEST(one_rule)
{
	enum { MOST = 1000 };
	static const uint32_t full[] = {TRACE_EVENTS_MAX, 1, 5};
	struct made m = {.db = help_db(":memory:"), .full = full[_i % 3]};
	struct cast_row *file = calloc(MOST, sizeof(*file)),
			*window = calloc(MOST, sizeof(*window));
	uint64_t gpu[2] = {2000, 2000};
	uint32_t n, i, launches = 0, n_steps = 0;

	ck_assert(file != NULL && window != NULL);
	seed = 77 + (uint64_t)_i * 104729;
	help_process(m.db, 1, 100, "0", "NULL", 2, "");
	help_session(m.db, 7, "rule", "run", "on");
	help_exec(m.db, "INSERT INTO member VALUES(7,1)");
	rule_nodes(m.db);
	chunk_begin(&m);
	rule_steps(&m, 0, _i == 0 ? 8 : 1 + below(8), &gpu[0]);
	rule_steps(&m, 2, below(3), &gpu[1]);
	chunk_end(&m);
	trace_pack_fini(&m.k);
	n = casts_of_file(m.db, file, MOST);
	ck_assert_uint_eq(n, casts_of_window(m.db, window, MOST));
	qsort(file, n, sizeof(*file), cast_order);
	qsort(window, n, sizeof(*window), cast_order);
	for (i = 0; i < n; i++) {
		ck_assert_str_eq(file[i].name, window[i].name);
		ck_assert_uint_eq(file[i].stream, window[i].stream);
		ck_assert_uint_eq(file[i].start, window[i].start);
		ck_assert_uint_eq(file[i].end, window[i].end);
		launches += strcmp(file[i].name, "cap") == 0;
		n_steps += strcmp(file[i].name, "step") == 0;
	}
	ck_assert(n_steps > 0 || n == 0);
	ck_assert(_i != 0 || (launches > 1 && n_steps > 1)); /* the test has what it is for */
	free(file);
	free(window);
	zoom_check(m.db, 7, 4);
	ck_assert_int_eq(sqlite3_close(m.db), SQLITE_OK);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("project");
	TCase *tc = tcase_create("project");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, one_rule, 0, 12);
	suite_add_tcase(s, tc);
	return s;
}
