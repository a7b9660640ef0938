/* SPDX-License-Identifier: MIT. view_metrics.c: derived metrics, against Proton's golden numbers.
 */
#include "export_format.h"
#include "metrics.h"
#include "metrics_peak.h"
#include "view_help.h"

static struct profile *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	struct profile *p = NULL;
	struct err e = {0};
	char *buf = malloc(1 << 20);
	size_t n;

	ck_assert_msg(f != NULL, "%s", path);
	n = fread(buf, 1, 1 << 20, f);
	(void)fclose(f);
	ck_assert_msg(export_read(buf, n, &p, &e) == 0, "%s", e.text);
	free(buf);
	return p;
}

static struct view *derive(const struct profile *p, const char *list)
{
	struct view *v;
	struct err e = {0};

	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_msg(view_derive(v, list, &e) == 0, "%s: %s", list, e.text);
	return v;
}

#define N (double)NAN

/* proton-viewer's own results for the three-kernel example: ROOT, foo0 (sm90), foo1 (sm89), foo2
 * (sm100). */
static const struct golden {
	const char *metric, *column;
	double want[4];
} golden[] = {
	{"util", "util", {N, 0.247044, 0.147830, 0.118451}},
	{"byte/s", "byte/s (inc)", {1.953125e11, 4.8828125e11, 4.8828125e10, 4.8828125e10}},
	{"gbyte/s", "gbyte/s (inc)", {195.3125, 488.28125, 48.828125, 48.828125}},
	{"tbyte/s", "tbyte/s (inc)", {0.1953125, 0.48828125, 0.048828125, 0.048828125}},
	{"flop8/s", "flop8/s (inc)", {3.417969e14, 4.8828125e14, 4.8828125e13, 4.8828125e14}},
	{"gflop8/s", "gflop8/s (inc)", {341796.9, 488281.25, 48828.125, 488281.25}},
	{"tflop8/s", "tflop8/s (inc)", {341.796875, 488.28125, 48.828125, 488.28125}},
	{"avg_time/ns", "avg_time/ns (inc)", {51200, 20480, 204800, 204800}},
	{"avg_time/ms", "avg_time/ms (inc)", {0.0512, 0.02048, 0.2048, 0.2048}},
	{"time/ns", "time/ns (inc)", {614400, 204800, 204800, 204800}},
	{"time/us", "time/us (inc)", {614.4, 204.8, 204.8, 204.8}},
	{"time/s", "time/s (inc)", {614400e-9, 204800e-9, 204800e-9, 204800e-9}},
	{"time/%", "time/% (inc)", {100, 100 / 3.0, 100 / 3.0, 100 / 3.0}},
	{"count", "count (inc)", {12, 10, 1, 1}},
	{"Count", "count (inc)", {12, 10, 1, 1}},
	{"time (ns)", "time (ns) (inc)", {614400, 204800, 204800, 204800}},
	{"flops8", "flops8 (inc)", {2.1e11, 1e11, 1e10, 1e11}},
};

START_TEST(golden_numbers)
{
	struct profile *p = read_file("tests/golden/three_kernels.hatchet");
	const struct golden *g;
	struct view *v;
	int i;

	for (g = golden; g < golden + sizeof(golden) / sizeof(golden[0]); g++) {
		v = derive(p, g->metric);
		ck_assert_str_eq(v->col[0].name, g->column);
		for (i = 0; i < 4; i++) {
			if (isnan(g->want[i]))
				ck_assert_msg(isnan(v->col[0].v[i]), "%s %d", g->metric, i);
			else
				ck_assert_msg(fabs(v->col[0].v[i] / g->want[i] - 1) < 1e-5,
					"%s %d: %g", g->metric, i, v->col[0].v[i]);
		}
		view_free(v);
	}
	profile_free(p);
}
END_TEST

START_TEST(peak_figures)
{
	const struct profile_device h200 = {.type = "CUDA",
		.id = "0",
		.arch_text = "90",
		.num_sms = 132,
		.clock_khz = 1980000,
		.memory_clock_khz = 3201000,
		.bus_width = 6144};
	struct profile_device d = h200;
	struct err e = {0};
	double v;

	ck_assert_int_eq(peak_flops(&h200, 8, &v, &e), 0);
	ck_assert_double_eq_tol(v / 1e12, 1976.5, 0.05);
	ck_assert_int_eq(peak_flops(&h200, 16, &v, &e), 0);
	ck_assert_double_eq_tol(v / 1e12, 988.2, 0.05);
	ck_assert_int_eq(peak_bytes(&h200, &v, &e), 0);
	ck_assert_double_eq_tol(v / 1e12, 4.917, 0.001);
	d.arch_text = "80";
	ck_assert_int_eq(peak_flops(&d, 32, &v, &e), 0);
	ck_assert_double_eq(v, 156e12);
	d.arch_text = "89";
	ck_assert_int_eq(peak_flops(&d, 64, &v, &e), 0);
	ck_assert_double_eq(v, 330.3e12 / 8);
	d.arch_text = "86";
	ck_assert_int_eq(peak_flops(&d, 8, &v, &e), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(e.text, "'86'"));
	ck_assert_int_eq(peak_bytes(&d, &v, &e), 0); /* bus and clock say it */
	d.type = "HIP";
	d.arch_text = "gfx942";
	ck_assert_int_eq(peak_bytes(&d, &v, &e), 0);
	ck_assert_double_eq(v, 5.3e12);
	ck_assert_int_eq(peak_flops(&d, 16, &v, &e), 0);
	ck_assert_double_eq(v, 4096.0 * 132 * 1980000e3 / 2);
	d.arch_text = "gfx1100";
	ck_assert_int_eq(peak_bytes(&d, &v, &e), -ENOTSUP);
}
END_TEST

/* A kernel with one metric of its own, on arch. */
static struct profile *one_kernel(const char *metric, double value, const char *arch)
{
	char text[1024];
	struct profile *p = NULL;
	struct err e;

	(void)snprintf(text, sizeof(text),
		"[{\"frame\":{\"name\":\"ROOT\"},\"metrics\":{\"time "
		"(ns)\":0,\"count\":0},\"children\":["
		"{\"frame\":{\"name\":\"k\"},\"metrics\":{\"time "
		"(ns)\":1000,\"count\":1,\"%s\":%.1f,"
		"\"device_id\":\"0\",\"device_type\":\"CUDA\"}}]},{\"CUDA\":{\"0\":{\"arch\":\"%"
		"s\",\"num_sms\":132,"
		"\"clock_rate\":1980000,\"memory_clock_rate\":3201000,\"bus_width\":6144}}}]",
		metric, value, arch);
	ck_assert_int_eq(export_read(text, strlen(text), &p, &e), 0);
	return p;
}

START_TEST(util_without_bytes)
{
	struct profile *p = one_kernel("flops16", 988.24831e12 * 1e-6 / 2, "90");
	struct view *v = derive(p, "util");

	ck_assert_double_eq_tol(v->col[0].v[1], 0.5, 1e-6);
	ck_assert(isnan(v->col[0].v[0]));
	view_free(v);
	profile_free(p);
	p = one_kernel("bytes", 4.916736e12 * 1e-6 / 4, "86"); /* no peak flops are needed */
	v = derive(p, "util");
	ck_assert_double_eq_tol(v->col[0].v[1], 0.25, 1e-6);
	view_free(v);
	profile_free(p);
}
END_TEST

START_TEST(requests_that_fail)
{
	static const struct {
		const char *metric, *arch, *request;
		int want;
		const char *words;
	} cases[] = {
		{"flops8", "90", "nothing", -ENOENT, "'nothing'"},
		{"flops8", "90", "time/ms,nothing", -ENOENT, "'nothing'"},
		{"flops8", "90", "time/h", -EINVAL, "'h'"},
		{"flops8", "90", "nothing/%", -ENOENT, "'nothing/%'"},
		{"flops8", "90", "cpu_time/ms", -ENOENT, "'cpu_time/ms'"},
		{"flops8", "90", "byte/s", -ENOENT, "'byte/s'"},
		{"flops8", "90", "TIME/MS", -EINVAL, "'MS'"},
		{"flops8", "90", "", -EINVAL, "empty"},
		{"flops8", "90", "time/ms,", -EINVAL, "empty"},
		{"flops8", "90", "device_id", -EINVAL, "not a single number"},
		{"flops8", "86", "util", -ENOTSUP, "'86'"},
		{"flops", "90", "util", -ENOENT, "flops8"}, /* plain flops have no width */
		{"flops8", "90", "byte/s,tflop16/s", -ENOENT, "'tflop16/s'"},
		{"flops8", "90", "time/ms,flosp8", -ENOENT, "'flosp8'"}, /* mistyped */
		{"flops8", "90", "flops8[0]", -ENOENT, "'flops8[0]'"},   /* no list */
	};
	struct profile *p;
	struct view *v;
	struct err e;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		p = one_kernel(cases[i].metric, 1, cases[i].arch);
		ck_assert_int_eq(view_new(p, &v), 0);
		e.text[0] = '\0';
		ck_assert_msg(view_derive(v, cases[i].request, &e) == cases[i].want, "%s: %d %s",
			cases[i].request, e.code, e.text);
		ck_assert_msg(
			strstr(e.text, cases[i].words) != NULL, "%s: %s", cases[i].request, e.text);
		view_free(v);
		profile_free(p);
	}
}
END_TEST

/* What a profile has none of does not keep from seeing what it has. */
START_TEST(a_list_goes_on_where_one_is_missing)
{
	struct profile *p = one_kernel("n", 1, "90");
	struct view *v;
	struct err e;

	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_int_eq(view_derive(v, "flops,time/ns,util,gbyte/s,n", &e), 0);
	ck_assert_uint_eq(v->n_columns, 2);
	ck_assert_str_eq(v->col[0].name, "time/ns (inc)");
	ck_assert_str_eq(v->missing, "'flops', 'util', 'gbyte/s'");
	view_free(v);
	profile_free(p);
}
END_TEST

START_TEST(elements_of_a_list)
{
	struct profile *p = profile_new();
	const uint32_t at = profile_add_node(p, 0, "a", NODE_SCOPE),
		       m = profile_add_metric(p, "v (bytes)", KIND_EXCLUSIVE);
	const double two[] = {1.5, 2.5};
	struct view *v;
	struct err e;

	ck_assert_int_eq(
		profile_set(p, at, m, (struct value){.type = VALUE_VECTOR, .n = 2, .v = two}), 0);
	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_msg(view_derive(v, "v[1]", &e) == 0, "%s", e.text);
	ck_assert_str_eq(v->col[0].name, "v[1]");
	ck_assert_double_eq(v->col[0].v[at], 2.5);
	ck_assert_int_eq(view_derive(v, "v", &e), -EINVAL);
	ck_assert_int_eq(view_derive(v, "v[2]", &e), -EINVAL);
	ck_assert_int_eq(view_derive(v, "v[x]", &e), -ENOENT);
	view_free(v);
	profile_free(p);
}
END_TEST

START_TEST(launch_metadata_is_left_out)
{
	struct profile *p = read_file("tests/golden/triton.hatchet");
	struct view *v = derive(p, "time/ns,cpu_time/ns,cpu_time/%,bytes");

	ck_assert_double_eq(
		v->col[0].v[0], 1664); /* without the 4064 ns of the metadata's kernel */
	ck_assert(!v->keep[help_node(p, "__proton_launch_metadata")]);
	ck_assert(!v->keep[help_node(p, "cuda_kernel")]);
	ck_assert_str_eq(v->col[1].name, "cpu_time/ns (inc)");
	ck_assert_double_eq(v->col[1].v[1], 12345);
	ck_assert(isnan(v->col[1].v[0])); /* exclusive: no sum at the parent */
	ck_assert_str_eq(v->col[2].name, "cpu_time/%");
	ck_assert_double_eq(v->col[2].v[1], 100);
	ck_assert_double_eq(v->col[3].v[0], 2);
	view_free(v);
	profile_free(p);
	p = read_file("tests/golden/frames.hatchet");
	v = derive(p, NULL);
	ck_assert(!v->keep[help_node(p, "empty")]); /* nothing in it, nothing below it */
	view_free(v);
	profile_free(p);
}
END_TEST

START_TEST(defaults_and_totals)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	struct view *v;
	struct err e;

	help_train(db);
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_str_eq(view_default(p), "gpu_time/ms,gpu_count,cpu_time/ms");
	v = derive(p, "time/ns,cpu_time/ns,copy_time/ns,gpu_time/ns,gpu_count,gpu_time/%,gpu_time");
	ck_assert_double_eq(view_total(v, 0), 8000);
	ck_assert_double_eq(view_total(v, 1), 1500); /* forward's 700 is inside step's */
	ck_assert_double_eq(view_total(v, 2), 64);
	ck_assert_double_eq(view_total(v, 3), 8064); /* kernels and copies */
	ck_assert_str_eq(v->col[3].name, "gpu_time/ns (inc)");
	ck_assert_double_eq(view_total(v, 4), 23);
	ck_assert_str_eq(v->col[4].name, "gpu_count (inc)");
	ck_assert_double_eq(v->col[3].v[help_node(p, "[memcpy HtoD]")], 64);
	ck_assert_double_eq(v->col[3].v[help_node(p, "step")], 3064);
	ck_assert(isnan(v->col[0].v[help_node(p, "[memcpy HtoD]")])); /* as it was */
	ck_assert_double_eq(v->col[5].v[0], 100);
	ck_assert_str_eq(v->col[6].name, "gpu_time (inc)");
	view_free(v);
	profile_free(p);
	help_exec(db, "DELETE FROM cell WHERE class IN (1, 2, 8)"); /* copies alone are GPU work */
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_str_eq(view_default(p), "gpu_time/ms,gpu_count,cpu_time/ms");
	v = derive(p, NULL);
	ck_assert_double_eq(view_total(v, 0), 64e-6);
	ck_assert_double_eq(view_total(v, 1), 3);
	view_free(v);
	profile_free(p);
	help_exec(db, "DELETE FROM cell WHERE class > 0; DELETE FROM metric");
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_str_eq(view_default(p), "cpu_time/ms,calls");
	profile_free(p);
	help_exec(db, "DELETE FROM cell");
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_ptr_null(view_default(p));
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* Without GPU work, time is that of scopes: ROOT / (train 100 ms / step 80 / (forward 30,
 * backward 40), ...). */
START_TEST(time_of_scopes)
{
	struct profile *p = read_file("tests/golden/scopes.hatchet");
	struct view *v = derive(p, "time/ms,time/%,avg_time/ms,avg_cpu_time/ms,self_time/ms,"
				   "self_cpu_time/%,time");
	const uint32_t step = help_node(p, "step");
	struct err e;

	ck_assert_str_eq(v->col[0].name, "time/ms (inc)");
	ck_assert_double_eq(v->col[0].v[step], 80);
	ck_assert_double_eq(v->col[0].v[0], view_total(v, 0)); /* ROOT has its children's */
	ck_assert_double_gt(v->col[0].v[0], 100 - 1e-9);
	ck_assert_str_eq(v->col[1].name, "time/% (inc)");
	ck_assert_double_eq(v->col[1].v[0], 100);
	ck_assert_double_eq_tol(v->col[1].v[step], 8000 / v->col[0].v[0], 1e-9);
	ck_assert_double_eq(v->col[2].v[step], 20); /* of its calls */
	ck_assert_double_eq(v->col[3].v[step], 20);
	ck_assert_double_eq(v->col[4].v[step], 10);
	ck_assert_double_eq_tol(v->col[5].v[step], 1000 / v->col[0].v[0], 1e-9);
	ck_assert(isnan(v->col[5].v[0]));
	ck_assert_double_eq(v->col[6].v[step], 80e6);
	view_free(v);
	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_int_eq(view_derive(v, "util", &e), -ENOENT);
	ck_assert_int_eq(view_derive(v, "count", &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "scopes have time and calls"));
	view_free(v);
	profile_free(p);
}
END_TEST

/* What a scope launched itself, and of what the share is. */
START_TEST(self_of_gpu_work)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	struct view *v;
	struct err e;

	help_train(db);
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	v = derive(p, "self_gpu_time/ns,self_time/ns,self_cpu_time/ns,self_time/%");
	ck_assert_double_eq(v->col[0].v[help_node(p, "step")], 64); /* the copy */
	ck_assert_double_eq(v->col[1].v[help_node(p, "forward")], 3000);
	ck_assert(isnan(v->col[1].v[help_node(p, "step")]));
	ck_assert_double_eq(v->col[1].v[0], 5000); /* nccl */
	ck_assert_double_eq(v->col[2].v[help_node(p, "step")], 800);
	ck_assert_double_eq(v->col[3].v[help_node(p, "sgemm")], 37.5);
	view_free(v);
	profile_free(p);
	help_exec(db, "DELETE FROM cell WHERE class IN (1, 2, 8)");
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_int_eq(view_derive(v, "time/%", &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "ask for gpu_time/%"));
	view_free(v);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

/* What waited, by how long was looked. */
START_TEST(depth_of_the_queue)
{
	sqlite3 *db = help_db(":memory:");
	struct profile *p;
	struct view *v, *ns;
	struct err e;
	uint32_t i, n = 0;

	help_train(db);
	help_exec(db, "UPDATE cell SET class = 29 WHERE class = 1"); /* launch_delay */
	ck_assert_int_eq(profile_load(db, 7, NULL, &p, &e), 0);
	p->head.duration_ns = 4000;
	v = derive(p, "queue_depth");
	ns = derive(p, "launch_delay/ns");
	ck_assert_str_eq(v->col[0].name, "queue_depth (inc)");
	for (i = 0; i < p->n_nodes; i++) {
		ck_assert_int_eq(isnan(v->col[0].v[i]), isnan(ns->col[0].v[i]));
		if (isnan(v->col[0].v[i]))
			continue;
		ck_assert_double_eq(v->col[0].v[i], ns->col[0].v[i] / 4000);
		n += v->col[0].v[i] > 0 ? 1u : 0u;
	}
	ck_assert_uint_gt(n, 1);
	view_free(v);
	view_free(ns);
	p->head.duration_ns = 0;
	ck_assert_int_eq(view_new(p, &v), 0);
	ck_assert_int_eq(view_derive(v, "queue_depth", &e), -ENOENT);
	ck_assert_ptr_nonnull(strstr(e.text, "does not say"));
	view_free(v);
	profile_free(p);
	sqlite3_close(db);
}
END_TEST

#define TESTS(X)                               \
	X(golden_numbers)                      \
	X(peak_figures)                        \
	X(util_without_bytes)                  \
	X(requests_that_fail)                  \
	X(a_list_goes_on_where_one_is_missing) \
	X(elements_of_a_list)                  \
	X(launch_metadata_is_left_out)         \
	X(defaults_and_totals) X(time_of_scopes) X(self_of_gpu_work) X(depth_of_the_queue)
HELP_SUITE("view_metrics", TESTS)
