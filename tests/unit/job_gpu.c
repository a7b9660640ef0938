/* SPDX-License-Identifier: MIT. job_gpu.c: tests of the engine with backends of other vendors, and of
 * what it says of the GPU to libprotond of this version and of 0.1. */
#include "job_engine.h"

static struct {
	uint32_t starts, armed;
	int fails;
	struct gpu_report last;
	uint32_t reports;
} g;

static int g_probe(struct backend_status *ret, struct backend_error *e)
{
	(void)e;
	*ret = (struct backend_status){
		.gpu = {.library_version = 26, .driver_version = 13000, .path = "/lib/x.so"}};
	return 0;
}

static int g_start(bool armed, bool take, struct backend_error *e)
{
	(void)take;
	g.starts++;
	g.armed += armed;
	if (g.fails != 0)
		*e = (struct backend_error){999, "no driver"};
	return g.fails;
}

static uint64_t g_flush(bool force)
{
	(void)force;
	return 0;
}

static uint64_t g_pending(void)
{
	return 0;
}

static int g_stop(bool finalize, bool *ret_residual)
{
	*ret_residual = finalize;
	return 0;
}

static bool g_exit(uint32_t timeout_ms)
{
	(void)timeout_ms;
	return false;
}

static const struct backend_term g_term = {
	.name = "other", .injection = "", .vendor = VENDOR_AMD, .caps = CAP_KERNEL};
static const struct backend g_backend = {.term = &g_term,
	.probe = g_probe,
	.start = g_start,
	.flush = g_flush,
	.pending = g_pending,
	.stop = g_stop,
	.exit = g_exit};

static void g_report(const struct gpu_report *r)
{
	g.last = *r;
	g.reports++;
}

static void g_state(uint32_t state, int32_t code, uint32_t library, uint32_t driver,
	const char *path, const char *words)
{
	g.last = (struct gpu_report){.state = (uint16_t)state,
		.code = code,
		.library_version = library,
		.driver_version = driver};
	(void)snprintf(g.last.path, sizeof(g.last.path), "%s", path);
	(void)snprintf(g.last.words, sizeof(g.last.words), "%s", words);
	g.reports++;
}

static void is_on(void)
{
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(g.reports, 1);
	ck_assert_uint_eq(g.last.state, GPU_ON);
	ck_assert_uint_eq(g.last.library_version, 26);
	ck_assert_uint_eq(g.last.driver_version, 13000);
	ck_assert_str_eq(g.last.path, "/lib/x.so");
	ck_assert_str_eq(g.last.words, "");
}

START_TEST(another_vendor)
{
	t_host.gpu_report = g_report;
	t_open(NULL, true);
	core.backend = &g_backend;
	is_on();
	ck_assert_uint_eq(g.last.vendor, VENDOR_AMD);
}
END_TEST

START_TEST(a_host_of_0_1)
{
	t_host.gpu_report = NULL;
	t_host.gpu_state = g_state;
	t_host.bytes = HOST_BYTES_LEAST;
	t_open(NULL, true);
	core.backend = &g_backend;
	is_on();
	ck_assert_int_eq(t_e->want(WANT_ALL), 0);
	ck_assert_uint_eq(g.last.state, GPU_NONE);
	g.fails = -ENODEV;
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU), 0);
	ck_assert_uint_eq(g.last.state, GPU_FAILED);
	ck_assert_int_eq(g.last.code, 999);
	ck_assert_str_eq(g.last.words, "no driver");
}
END_TEST

START_TEST(without_graphs_nothing_is_armed)
{
	t_host.gpu_report = g_report;
	t_open(NULL, true);
	core.backend = &g_backend;
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_ARMED), 0);
	ck_assert_uint_eq(g.starts, 0);
	ck_assert_int_eq(t_e->want(WANT_ALL | WANT_GPU_ARMED | WANT_GPU), 0);
	ck_assert_uint_eq(g.starts, 1);
	ck_assert_uint_eq(g.armed, 0);
	ck_assert_uint_eq(g.last.state, GPU_ON);
}
END_TEST

static void all(TCase *c)
{
	tcase_add_test(c, another_vendor);
	tcase_add_test(c, a_host_of_0_1);
	tcase_add_test(c, without_graphs_nothing_is_armed);
}

Suite *suite(void)
{
	void (*const cases[])(TCase *) = {all, NULL};

	return t_suite("job_gpu", cases);
}
