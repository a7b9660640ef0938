/* SPDX-License-Identifier: MIT. view_top.c: what `top` makes of two answers of the daemon: changes,
 * rows, the tree; and of an answer that lies. */
#include "quick.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "top_memory.h"
#include "top_rows.h"

#define CELLS_MAX 8

struct given {
	const char *path;
	uint32_t parts[4]; /* 0 ends */
	uint8_t class;
	uint64_t count, sum_ns, took_ns; /* took_ns: each of count */
};

static void put_cell(struct wire_buf *b, const struct given *g)
{
	uint8_t packed[HIST_PACKED_MAX(HIST_BUCKETS)];
	static struct hist_counts h;
	const uint32_t at = hist_bucket(g->took_ns);
	uint32_t i;

	wire_map(b);
	wire_kv_str(b, "path", g->path);
	wire_kv_u64(b, "class", g->class);
	wire_kv_u64(b, "count", g->count);
	wire_kv_u64(b, "sum_ns", g->sum_ns);
	wire_str(b, "parts");
	wire_array(b);
	for (i = 0; i < 4 && g->parts[i] != 0; i++)
		wire_u64(b, g->parts[i]);
	wire_close(b);
	if (g->took_ns != 0) {
		h.n = 0;
		hist_reach(&h, at, at + 1);
		h.count[at] = g->count;
		wire_kv_bin(b, "hist", packed, hist_pack(&h, packed));
	}
	wire_close(b);
}

static void put_held(struct wire_buf *b, uint64_t pid, int64_t device, const char *kind,
	uint64_t now, uint64_t peak)
{
	wire_map(b);
	wire_kv_u64(b, "pid", pid);
	wire_kv_i64(b, "device", device);
	wire_kv_str(b, "kind", kind);
	wire_kv_u64(b, "now", now);
	wire_kv_u64(b, "peak", peak);
	wire_close(b);
}

static void put_told(struct wire_buf *b, const char *name, double sum)
{
	wire_map(b);
	wire_kv_u64(b, "pid", 5);
	wire_kv_str(b, "name", name);
	wire_kv_f64(b, "sum", sum);
	wire_close(b);
}

/* An answer at `now_ns`, with one job and one device. */
static struct look look_at(uint64_t now_ns, const struct given *g, uint64_t busy_ns)
{
	struct wire_buf b;
	struct wire_msg m;
	struct look l;
	struct err e;

	wire_buf_init(&b, 1 << 16);
	wire_request(&b, 1, "top");
	wire_map(&b);
	wire_kv_i64(&b, "id", 7);
	wire_kv_str(&b, "session", "train");
	wire_kv_u64(&b, "now_ns", now_ns);
	wire_kv_u64(&b, "duration_ns", now_ns);
	wire_str(&b, "jobs");
	wire_array(&b);
	wire_map(&b);
	wire_kv_u64(&b, "pid", 5);
	wire_kv_u64(&b, "drops", 3);
	wire_kv_u64(&b, "resident", 3ull << 30);
	wire_close(&b);
	wire_map(&b);
	wire_kv_u64(&b, "pid", 6);
	wire_kv_u64(&b, "drops", 100);
	wire_kv_bool(&b, "member", false);
	wire_close(&b);
	wire_close(&b);
	wire_str(&b, "devices");
	wire_array(&b);
	wire_map(&b);
	wire_kv_bin(&b, "uuid", "0123456789abcdef", 16);
	wire_kv_u64(&b, "busy_ns", busy_ns);
	wire_kv_u64(&b, "compute_ns", busy_ns);
	wire_kv_u64(&b, "idle_launch_ns", busy_ns / 5);
	wire_str(&b, "reading");
	wire_map(&b);
	wire_kv_f64(&b, "power", 412.4);
	wire_kv_f64(&b, "memory_used", 1 << 30);
	wire_kv_f64(&b, "temperature", (double)NAN); /* of who lies */
	wire_close(&b);
	wire_close(&b);
	wire_close(&b);
	wire_str(&b, "memory");
	wire_array(&b);
	put_held(&b, 5, 1, "torch_allocated", 1ull << 30, 2ull << 30);
	put_held(&b, 6, 1, "torch_reserved", 3ull << 30, 9ull << 30);
	put_held(&b, 6, 0, "device", 5ull << 20, 6ull << 20);
	put_held(&b, 6, -1, "pinned", 7, 7);
	put_held(&b, 6, 0, "device", UINT64_MAX, UINT64_MAX); /* of who lies */
	wire_close(&b);
	wire_str(&b, "told");
	wire_array(&b);
	put_told(&b, "tokens (inc)", 100.0 * (double)now_ns / 1e9);
	put_told(&b, "tokens", 100.0 * (double)now_ns / 1e9); /* of another job */
	put_told(&b, "loss", 4);
	put_told(&b, "samples", (double)NAN); /* of who lies */
	wire_close(&b);
	wire_str(&b, "cells");
	wire_array(&b);
	for (; g->path != NULL; g++)
		put_cell(&b, g);
	ck_assert_int_eq(wire_frame_end(&b), 0);
	ck_assert_int_eq(wire_parse(b.bytes + WIRE_HEADER, b.n - WIRE_HEADER, &m, &e), 0);
	ck_assert_int_eq(look_take(m.params, &l), 0);
	wire_msg_free(&m);
	wire_buf_free(&b);
	return l;
}

/* "name=gpu/cpu/calls " of each row, its depth as blanks in front. */
static const char *shown(
	const struct look *before, const struct look *now, const struct top_view *v)
{
	static char text[1024];
	struct top_rows rows;
	size_t at = 0;
	uint32_t i;

	*text = '\0';
	ck_assert_int_eq(top_rows_new(before, now, v, &rows), 0);
	for (i = 0; i < rows.n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%*s%.*s=%.0f/%.0f/%lu%s",
			(int)rows.row[i].depth, "", (int)rows.row[i].name_bytes, rows.row[i].name,
			rows.row[i].gpu_ns, rows.row[i].cpu_ns, rows.row[i].calls,
			rows.row[i].has_children ? rows.row[i].is_open ? "- " : "+ " : " ");
	top_rows_free(&rows);
	return text;
}

static const struct given first[] = {{"step", {4}, CLASS_CPU, 10, 1000, 100},
	{"step/a/b", {4, 3}, CLASS_CPU, 10, 400, 40},
	{"step/k", {4, 1}, CLASS_COMPUTE, 10, 600, 60}, {"gone", {4}, CLASS_CPU, 5, 50, 10},
	{NULL, {0}, 0, 0, 0, 0}};
static const struct given second[] = {{"step", {4}, CLASS_CPU, 30, 7000, 300},
	{"step/a/b", {4, 3}, CLASS_CPU, 10, 400, 40},
	{"step/k", {4, 1}, CLASS_COMPUTE, 20, 1600, 60}, {"gone", {4}, CLASS_CPU, 5, 50, 10},
	{"new", {3}, CLASS_CPU, 1, 9, 9}, {NULL, {0}, 0, 0, 0, 0}};

static bool say(void *arg, const char *word)
{
	char *text = arg;

	strcat(strcat(text, word), ";");
	return strcmp(word, "412 W") != 0;
}

START_TEST(what_gpus_do_in_words)
{
	struct look before = look_at(1000000000, first, 100000000),
		    now = look_at(3000000000, second, 1100000000);
	double part[PART_MAX];
	char text[256] = "";

	look_gpu_words(NULL, &before, say, text);
	ck_assert_str_eq(text, "compute 10.0%;launching 2.0%;host 88.0%;412 W;");
	ck_assert(look_parts(&before, &now, part));
	ck_assert_double_eq_tol(part[PART_COMPUTE], 0.5, 1e-9);
	ck_assert_double_eq_tol(part[PART_LAUNCH], 0.1, 1e-9);
	ck_assert_double_eq_tol(part[PART_HOST], 0.4, 1e-9);
	now.device[0].reading[DEVICE_power] = (double)NAN;
	now.device[0].has_parts = false; /* several jobs share it */
	ck_assert(!look_parts(&before, &now, part));
	*text = '\0';
	look_gpu_words(&before, &now, say, text);
	ck_assert_str_eq(text, "1.0 GiB;");
	look_free(&before);
	look_free(&now);
}
END_TEST

START_TEST(memory_in_words)
{
	struct look now = look_at(3000000000, second, 0), none = {.n = 0};
	char text[256] = "";

	look_memory_words(&now, say, text);
	ck_assert_str_eq(text, "memory: resident 3.0 GiB;cuda:1 allocated 1.0 GiB of 3.0 GiB "
			       "reserved, peak 2.0 GiB;"
			       "cuda:0 allocated 16777216.0 TiB, peak 16777216.0 TiB;");
	*text = '\0';
	look_memory_words(&none, say, text);
	ck_assert_str_eq(text, "");
	look_free(&now);
}
END_TEST

START_TEST(a_list_of_what_changed)
{
	struct look before = look_at(1000000000, first, 100000000),
		    now = look_at(3000000000, second, 1100000000);
	struct top_view v = {.sort = TOP_BY_GPU};
	uint64_t steps;

	ck_assert_str_eq(shown(NULL, &before, &v),
		"step/k=600/0/10 step=0/1000/10 step/a/b=0/400/10 gone=0/50/5 ");
	ck_assert_str_eq(shown(&before, &now, &v), "step/k=1000/0/10 step=0/6000/20 new=0/9/1 ");
	v.sort = TOP_BY_CPU;
	ck_assert_str_eq(shown(&before, &now, &v), "step=0/6000/20 new=0/9/1 step/k=1000/0/10 ");
	v.sort = TOP_BY_CALLS;
	ck_assert_str_eq(shown(&before, &now, &v), "step=0/6000/20 step/k=1000/0/10 new=0/9/1 ");
	v.sort = TOP_BY_NAME;
	ck_assert_str_eq(shown(&before, &now, &v), "new=0/9/1 step=0/6000/20 step/k=1000/0/10 ");
	snprintf(v.filter, sizeof(v.filter), "P/K");
	ck_assert_str_eq(shown(&before, &now, &v), "step/k=1000/0/10 ");
	ck_assert_uint_eq(now.n_jobs, 1);
	ck_assert_uint_eq(now.drops, 3);
	ck_assert(look_steps(&before, &now, &steps));
	ck_assert_uint_eq(steps, 20);
	ck_assert_double_eq_tol(look_busy(&before, &now, 0), 0.5, 1e-9);
	ck_assert_double_eq_tol(look_rate(&before, &now, RATE_TOKENS), 200, 1e-9);
	ck_assert_double_eq_tol(look_rate(NULL, &now, RATE_TOKENS), 200, 1e-9);
	ck_assert(isnan(look_rate(&now, &before, RATE_TOKENS))); /* the daemon began anew */
	ck_assert(isnan(look_rate(&before, &now, RATE_SAMPLES)));
	look_free(&before);
	look_free(&now);
}
END_TEST

START_TEST(quantiles_of_what_changed)
{
	struct look before = look_at(1, first, 0), now = look_at(2, second, 0);
	struct top_view v = {.sort = TOP_BY_CPU};
	struct top_rows rows;

	ck_assert_int_eq(top_rows_new(&before, &now, &v, &rows), 0);
	ck_assert_str_eq(rows.row[0].name, "step"); /* 30 of 300 ns, and 10 of 100 were not there */
	ck_assert(isnan(rows.row[0].p50_ns));
	ck_assert_double_eq_tol(rows.row[2].p99_ns, 60, 2);
	top_rows_free(&rows);
	ck_assert_int_eq(top_rows_new(NULL, &now, &v, &rows), 0);
	ck_assert_double_eq_tol(rows.row[0].p99_ns, 300, 9);
	top_rows_free(&rows);
	look_free(&before);
	look_free(&now);
}
END_TEST

/* What was before is of a job that has ended. */
START_TEST(a_sum_that_fell)
{
	struct look before = look_at(1, second, 0), now = look_at(2, first, 0);
	struct top_view v = {.sort = TOP_BY_CPU};
	struct top_rows rows;

	ck_assert_int_eq(top_rows_new(&before, &now, &v, &rows), 0);
	ck_assert_uint_eq(rows.row[0].calls, 10);
	ck_assert_double_eq_tol(rows.row[0].p99_ns, 100, 3);
	top_rows_free(&rows);
	look_free(&before);
	look_free(&now);
}
END_TEST

START_TEST(a_tree_that_opens_and_closes)
{
	struct look now = look_at(1000000000, first, 0);
	struct top_view v = {.sort = TOP_BY_CPU, .tree = true};
	struct top_rows rows;
	uint64_t step;

	ck_assert_str_eq(
		shown(NULL, &now, &v), "step=600/1000/10-  a/b=0/400/10  k=600/0/10 gone=0/50/5 ");
	ck_assert_int_eq(top_rows_new(NULL, &now, &v, &rows), 0);
	step = rows.row[0].key;
	top_rows_free(&rows);
	ck_assert(top_toggle(&v, step));
	ck_assert_str_eq(shown(NULL, &now, &v), "step=600/1000/10+ gone=0/50/5 ");
	ck_assert(top_toggle(&v, step));
	snprintf(v.filter, sizeof(v.filter), "a/B");
	ck_assert_str_eq(shown(NULL, &now, &v), "step=600/1000/10-  a/b=0/400/10 ");
	while (top_toggle(&v, step++))
		ck_assert_uint_le(v.n_toggled, TOP_TOGGLED);
	ck_assert_uint_eq(v.n_toggled, TOP_TOGGLED);
	free(v.toggled);
	look_free(&now);
}
END_TEST

/* Lengths that are not the path's: it is one name. */
static const struct given lies[] = {{"a/b", {1}, 0, 1, 1, 0}, {"a/b", {1, 2}, 0, 1, 1, 0},
	{"a/b", {3, 1}, 0, 1, 1, 0}, {"a/b", {2, 1}, 0, 1, 1, 0},
	{"a/b", {UINT32_MAX, 1}, 0, 1, 1, 0}, {"a/b", {0}, 0, 1, 1, 0}, {"", {1}, 0, 1, 1, 0}};

START_TEST(lengths_that_lie)
{
	const struct given one[] = {lies[_i], {NULL, {0}, 0, 0, 0, 0}};
	struct look now = look_at(1, one, 0);
	struct top_view v = {.tree = true};
	char want[64];

	ck_assert_uint_eq(now.cell[0].n_parts, 0);
	snprintf(want, sizeof(want), "%s=0/1/1 ", lies[_i].path);
	ck_assert_str_eq(shown(NULL, &now, &v), want);
	look_free(&now);
}
END_TEST

START_TEST(an_answer_of_nothing)
{
	const msgpack_object nothing = {.type = MSGPACK_OBJECT_NIL};
	struct top_view v = {.tree = true};
	struct look l;

	ck_assert_int_eq(look_take(&nothing, &l), 0);
	ck_assert_str_eq(shown(NULL, &l, &v), "");
	look_free(&l);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_top");
	TCase *c = tcase_create("top");

	tcase_add_test(c, what_gpus_do_in_words);
	tcase_add_test(c, memory_in_words);
	tcase_add_test(c, a_list_of_what_changed);
	tcase_add_test(c, quantiles_of_what_changed);
	tcase_add_test(c, a_sum_that_fell);
	tcase_add_test(c, a_tree_that_opens_and_closes);
	tcase_add_loop_test(c, lengths_that_lie, 0, sizeof(lies) / sizeof(lies[0]));
	tcase_add_test(c, an_answer_of_nothing);
	suite_add_tcase(s, c);
	return s;
}
