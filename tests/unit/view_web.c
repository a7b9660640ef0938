/* SPDX-License-Identifier: MIT. view_web.c: addresses, who may ask, numbers and families of the page. */
#include "quick.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family.h"
#include "gpu_terms.h"
#include "web_guard.h"
#include "web_json.h"
#include "web_query.h"

/* --- addresses */

static const struct {
	const char *uri, *path, *key, *value; /* path NULL: refused; value NULL: no such key */
} addresses[] = {
	{"/api/sessions", "api/sessions", "a", NULL},
	{"api/s/1/tree?phase=3", "api/s/1/tree", "phase", "3"},
	{"/", "", "token", NULL},
	{"/?token=abc", "", "token", "abc"},
	{"/a?x=1&y=2&x=3", "a", "x", "1"},
	{"/a?x=1&y=2&&", "a", "y", "2"},
	{"/a?x", "a", "x", ""},
	{"/a?x=", "a", "x", ""},
	{"/a?=v", "a", "", "v"},
	{"/a?x=%2f%3D%26+%2b", "a", "x", "/=& +"},
	{"/a%2fb+c", "a/b+c", "x", NULL},
	{"/a?x=1#y=2", "a", "x", "1"},
	{"/a?%78=1", "a", "x", "1"},
	{"/a?x=a=b", "a", "x", "a=b"},
	{"/%", NULL, "", NULL},
	{"/%4", NULL, "", NULL},
	{"/%zz", NULL, "", NULL},
	{"/%00", NULL, "", NULL},
	{"/a?x=%00", NULL, "", NULL},
	{"/a?x=%", NULL, "", NULL},
};

START_TEST(an_address)
{
	struct web_query q;
	const bool ok = web_query_parse(addresses[_i].uri, &q);
	const char *value;

	ck_assert_int_eq(ok, addresses[_i].path != NULL);
	if (!ok)
		return;
	ck_assert_str_eq(q.path, addresses[_i].path);
	value = web_query_get(&q, addresses[_i].key);
	ck_assert_int_eq(value != NULL, addresses[_i].value != NULL);
	if (value != NULL)
		ck_assert_str_eq(value, addresses[_i].value);
}
END_TEST

START_TEST(too_much_of_it)
{
	static char long_one[WEB_URI_MAX + 8];
	struct web_query q;
	uint64_t n = 7;

	memset(long_one, 'a', WEB_URI_MAX - 1);
	ck_assert(web_query_parse(long_one, &q));
	memset(long_one, 'a', WEB_URI_MAX);
	ck_assert(!web_query_parse(long_one, &q));
	ck_assert(!web_query_parse("a?1&2&3&4&5&6&7&8&9&0&1&2&3&4&5&6&7", &q));
	ck_assert(web_query_parse("a?n=12&big=99999999999999999999&neg=-1&empty=", &q));
	ck_assert(web_query_u64(&q, "none", 100, &n));
	ck_assert_uint_eq(n, 7);
	ck_assert(web_query_u64(&q, "n", 12, &n));
	ck_assert_uint_eq(n, 12);
	ck_assert(!web_query_u64(&q, "n", 11, &n));
	ck_assert(!web_query_u64(&q, "big", UINT64_MAX, &n));
	ck_assert(!web_query_u64(&q, "neg", 100, &n));
	ck_assert(!web_query_u64(&q, "empty", 100, &n));
}
END_TEST

/* --- who may ask */

static const struct {
	const char *host;
	bool ours;
} hosts[] = {
	{"localhost", true},
	{"LocalHost:8051", true},
	{"127.0.0.1:1", true},
	{"[::1]", true},
	{"[::1]:8051", true},
	{"10.0.0.5:80", true},
	{"hub.example", true},
	{"b.example:9", true},
	{"", false},
	{":80", false},
	{"localhost:", true},
	{"localhost:80x", false},
	{"localhost.", false},
	{"evil.example", false},
	{"127.0.0.1.evil.example", false},
	{"[::1", false},
	{"[::1]x", false},
	{"::1", false},
	{"localhost:80:80", false},
	{"user@localhost", false},
	{"hub.example,b.example", false},
	{"localhost/", false},
};

static struct guard guard_of(const char *allow)
{
	struct guard g;
	struct err e;

	ck_assert_int_eq(guard_init(&g, "10.0.0.5", allow, 8051, &e), 0);
	return g;
}

START_TEST(a_host)
{
	const struct guard g = guard_of("hub.example,,b.example");
	char origin[300];

	ck_assert_int_eq(guard_host(&g, hosts[_i].host), hosts[_i].ours);
	snprintf(origin, sizeof(origin), "http://%s", hosts[_i].host);
	ck_assert_int_eq(guard_origin(&g, origin), hosts[_i].ours);
	snprintf(origin, sizeof(origin), "https://%s", hosts[_i].host);
	ck_assert_int_eq(guard_origin(&g, origin), hosts[_i].ours);
	snprintf(origin, sizeof(origin), "ftp://%s", hosts[_i].host);
	ck_assert(!guard_origin(&g, origin));
}
END_TEST

START_TEST(tokens)
{
	const struct guard g = guard_of(NULL), other = guard_of(NULL);
	struct guard full;
	struct err e;

	ck_assert(!guard_host(&g, NULL));
	ck_assert(guard_origin(&g, NULL)); /* what no page sends */
	ck_assert(!guard_origin(&g, "null"));
	ck_assert_str_eq(g.cookie, "protond-8051");
	ck_assert_uint_eq(strlen(g.token), 32);
	ck_assert_str_ne(g.token, g.value);
	ck_assert_str_ne(g.token, other.token);
	ck_assert(guard_same(g.token, g.token));
	ck_assert(!guard_same(g.token, g.value));
	ck_assert(!guard_same(g.token, ""));
	ck_assert(!guard_same(g.token, NULL));
	ck_assert_int_eq(guard_init(&full, "::1", "1,2,3,4,5,6,7,8,9,10,11,12,13", 1, &e), -EINVAL);
}
END_TEST

/* --- numbers */

static const struct {
	double v;
	const char *text;
} numbers[] = {
	{0, "0"},
	{-1, "-1"},
	{7, "7"},
	{1e9, "1000000000"},
	{9007199254740991.0, "9007199254740991"},
	{-9007199254740991.0, "-9007199254740991"},
	{0.5, "0.5"},
	{-0.25, "-0.25"},
	{1e300, "1e300"},
	{NAN, "null"},
	{INFINITY, "null"},
	{-INFINITY, "null"},
	{9007199254740992.0, "9007199254740992.0"},
};

START_TEST(a_number)
{
	struct text t = {0};
	double back;

	text_char(&t, '[');
	json_f64(&t, 1);
	json_f64(&t, numbers[_i].v);
	text_char(&t, '\0');
	ck_assert(strncmp(t.s, "[1,", 3) == 0);
	if (!isfinite(numbers[_i].v)) {
		ck_assert_str_eq(t.s + 3, "null");
	} else {
		back = strtod(t.s + 3, NULL);
		ck_assert(memcmp(&back, &numbers[_i].v, sizeof(back)) == 0);
		if (strchr(numbers[_i].text, 'e') == NULL)
			ck_assert_str_eq(t.s + 3, numbers[_i].text);
	}
	text_fini(&t);
}
END_TEST

/* --- families */

static const struct {
	const char *name;
	uint8_t class;
	const char *family;
} kernels[] = {
	{"nvjet_sm90_tst_192x96_64x5_1x2_h_bz_NTT", CLASS_COMPUTE, "gemm"},
	{"sm80_xmma_gemm_f32f32_f32f32", CLASS_COMPUTE, "gemm"},
	{"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", CLASS_COMPUTE, "attention"},
	{"void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", CLASS_COMPUTE, "attention"},
	{"sm80_xmma_fprop_implicit_gemm_f16", CLASS_COMPUTE, "conv"},
	{"void cudnn::winograd_nonfused::winogradForwardData4x4", CLASS_COMPUTE, "conv"},
	{"void at::native::vectorized_layer_norm_kernel<float, float>", CLASS_COMPUTE, "norm"},
	{"void (anonymous namespace)::softmax_warp_forward<float>", CLASS_COMPUTE, "softmax"},
	{"void at::native::multi_tensor_apply_kernel<TensorListMetadata<4>>", CLASS_COMPUTE,
		"optimizer"},
	{"void at::native::reduce_kernel<512, 1, {lambda(float)#1}>", CLASS_COMPUTE, "reduce"},
	{"void at::native::vectorized_elementwise_kernel<4>", CLASS_COMPUTE, "elementwise"},
	{"triton_poi_fused_add_0", CLASS_COMPUTE, "elementwise"},
	{"triton_per_fused_sum_1", CLASS_COMPUTE, "reduce"},
	{"my_own", CLASS_COMPUTE, "other"},
	{"", CLASS_COMPUTE, "other"},
	{"ncclDevKernel_AllReduce_Sum_f32_RING_LL", CLASS_COMM, "comm"},
	{"[memcpy HtoD]", CLASS_H2D, "copy"},
	{"[memset]", CLASS_MEMSET, "memset"},
	{"gemm", CLASS_CPU, ""},
	{"x", 255, "copy"},
};

START_TEST(a_family)
{
	ck_assert_str_eq(family_of(kernels[_i].name, kernels[_i].class), kernels[_i].family);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("view_web");
	TCase *t = tcase_create("page");

	tcase_add_loop_test(t, an_address, 0, sizeof(addresses) / sizeof(*addresses));
	tcase_add_test(t, too_much_of_it);
	tcase_add_loop_test(t, a_host, 0, sizeof(hosts) / sizeof(*hosts));
	tcase_add_test(t, tokens);
	tcase_add_loop_test(t, a_number, 0, sizeof(numbers) / sizeof(*numbers));
	tcase_add_loop_test(t, a_family, 0, sizeof(kernels) / sizeof(*kernels));
	suite_add_tcase(s, t);
	return s;
}
