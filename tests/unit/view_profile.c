/* SPDX-License-Identifier: MIT. view_profile.c: building a profile: text, nodes, metrics,
 * histograms. */
#include "arena.h"
#include "text.h"
#include "view_help.h"

START_TEST(text_is_made_valid)
{
	static const struct {
		const char *in;
		size_t n;
		const char *out;
	} cases[] = {
		{"plain", 5, "plain"}, {"", 0, ""},
		{"gr\xc3\xb6\xc3\x9f"
		 "e",
			7,
			"gr\xc3\xb6\xc3\x9f"
			"e"},
		{"\x1b[31m\n", 6, "\x1b[31m\n"}, /* control characters are the terminal's affair */
		{"a\0b", 3,
			"a\xe2\x90\x80"
			"b"},
		{"\xff\xfe", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong NUL */
		{"\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
		{"\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80"},
		{"x\xe2\x82", 3, "x\xef\xbf\xbd\xef\xbf\xbd"}, /* cut short */
	};
	struct profile *p = profile_new();
	size_t i;

	ck_assert_ptr_nonnull(p);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(profile_text(p, cases[i].in, cases[i].n), cases[i].out);
	profile_free(p);
}
END_TEST

START_TEST(text_has_an_end)
{
	static char in[PROFILE_TEXT_MAX + 8];
	struct profile *p = profile_new();
	const char *out;
	size_t at;

	ck_assert_ptr_nonnull(p);
	memset(in, 'x', sizeof(in));
	ck_assert_uint_eq(strlen(profile_text(p, in, PROFILE_TEXT_MAX)), PROFILE_TEXT_MAX);
	out = profile_text(p, in, sizeof(in));
	ck_assert_uint_eq(strlen(out), PROFILE_TEXT_MAX + 3);
	ck_assert_str_eq(out + PROFILE_TEXT_MAX, "\xe2\x80\xa6");
	for (at = 0; at < 4;
		at++) { /* a character of four bytes around the edge stays out, or in */
		memset(in, 'x', sizeof(in));
		memcpy(in + PROFILE_TEXT_MAX - at, "\xf0\x9f\x98\x80", 4);
		out = profile_text(p, in, sizeof(in));
		ck_assert_str_eq(out + PROFILE_TEXT_MAX - at, "\xe2\x80\xa6");
	}
	memset(in, 0x80, sizeof(in)); /* nowhere is an edge of a character */
	ck_assert_uint_le(strlen(profile_text(p, in, sizeof(in))), PROFILE_TEXT_MAX * 3u + 3u);
	profile_free(p);
}
END_TEST

START_TEST(nodes_keep_order)
{
	struct profile *p = profile_new();
	uint32_t a, b, c, i;

	a = profile_add_node(p, 0, "a", NODE_SCOPE);
	b = profile_add_node(p, a, "b", NODE_SCOPE);
	c = profile_add_node(p, a, "c", NODE_KERNEL);
	ck_assert_uint_eq(p->node[0].first_child, a);
	ck_assert_uint_eq(p->node[a].first_child, b);
	ck_assert_uint_eq(p->node[b].next_sibling, c);
	ck_assert_uint_eq(p->node[c].next_sibling, PROFILE_NONE);
	ck_assert_uint_eq(p->node[c].depth, 2);
	ck_assert_uint_eq(profile_add_node(p, 77, "x", NODE_SCOPE), PROFILE_NONE);
	for (i = p->node[c].depth, a = c; i < PROFILE_DEPTH_MAX; i++)
		a = profile_add_node(p, a, "deep", NODE_SCOPE);
	ck_assert_uint_ne(a, PROFILE_NONE);
	ck_assert_uint_eq(profile_add_node(p, a, "too deep", NODE_SCOPE), PROFILE_NONE);
	profile_free(p);
}
END_TEST

START_TEST(values_survive_growth)
{
	struct profile *p = profile_new();
	uint32_t m[40], i, j;
	char name[16];

	for (i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		m[i] = profile_add_metric(p, name, KIND_INCLUSIVE);
		ck_assert_uint_eq(profile_add_metric(p, name, KIND_EXCLUSIVE), m[i]);
		for (j = 0; j < 100; j++)
			ck_assert_uint_ne(profile_add_node(p, 0, "n", NODE_SCOPE), PROFILE_NONE);
		ck_assert_int_eq(profile_set(p, i * 100 + 1, m[i],
					 (struct value){.type = VALUE_U64, .u = i}),
			0);
	}
	for (i = 0; i < 40; i++) {
		ck_assert_uint_eq(profile_value(p, i * 100 + 1, m[i])->u, i);
		for (j = 0; j < 40; j++)
			if (j != i)
				ck_assert_uint_eq(
					profile_value(p, i * 100 + 1, m[j])->type, VALUE_NONE);
	}
	ck_assert_uint_eq(profile_find_metric(p, "m7"), m[7]);
	ck_assert_uint_eq(profile_find_metric(p, "m77"), PROFILE_NONE);
	profile_free(p);
}
END_TEST

START_TEST(metrics_are_bounded)
{
	struct profile *p = profile_new();
	uint32_t i;
	char name[16];

	for (i = 0; i < PROFILE_METRICS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		ck_assert_uint_eq(profile_add_metric(p, name, 0), i);
	}
	ck_assert_uint_eq(profile_add_metric(p, "one more", 0), PROFILE_NONE);
	profile_free(p);
}
END_TEST

START_TEST(arena_pieces_are_apart)
{
	struct arena *a = arena_new();
	unsigned char *piece[100];
	uint32_t i, j, wrong = 0;

	for (i = 0; i < 100; i++) {
		piece[i] = arena_take(a, i * 997);
		ck_assert_uint_eq((uintptr_t)piece[i] % 16, 0);
		for (j = 0; j < i * 997; j++)
			wrong += piece[i][j] != 0;
		memset(piece[i], (int)i, i * 997);
		ck_assert_str_eq(arena_text(a, "odd", 3), "odd");
	}
	for (i = 0; i < 100; i++)
		for (j = 0; j < i * 997; j++)
			wrong += piece[i][j] != i;
	ck_assert_uint_eq(wrong, 0);
	arena_free(a);
}
END_TEST

START_TEST(numbers_are_as_printf)
{
	static const double cases[] = {0, -0.0, 1, 0.0005, 0.0015, 0.0025, 1e-9, 123456.7895, 2.5,
		999.9995, 0.9995, 1e11, 1e15, -3.25, 1234567.0004999, 0.1};
	struct text t = {0};
	char *s, want[64];
	size_t i, n;
	double v;

	for (i = 0; i < 20000; i++) {
		v = i < 32 ? cases[i / 2] : (double)i * 0.37731 * ((double)(i % 7) + 0.0005);
		text_fixed(&t, v, i % 2 == 0 ? 3 : 0, (uint32_t)i % 24);
		ck_assert_int_eq(text_take(&t, &s, &n), 0);
		(void)snprintf(want, sizeof(want), "%*.*f", (int)i % 24, i % 2 == 0 ? 3 : 0, v);
		ck_assert_str_eq(s, want);
		free(s);
		text_json_f64(&t, v);
		ck_assert_int_eq(text_take(&t, &s, &n), 0);
		ck_assert(strtod(s, NULL) == v);
		ck_assert_ptr_nonnull(strpbrk(s, ".e"));
		free(s);
	}
	text_fixed(&t, -(double)NAN, 3, 5);
	text_json_f64(&t, (double)INFINITY);
	text_json(&t, "a\"\\\n\t\x01z");
	ck_assert_int_eq(text_take(&t, &s, &n), 0);
	ck_assert_str_eq(s, "  nannull\"a\\\"\\\\\\n\\t\\u0001z\"");
	free(s);
}
END_TEST

#define TESTS(X)                 \
	X(text_is_made_valid)    \
	X(text_has_an_end)       \
	X(nodes_keep_order)      \
	X(values_survive_growth) \
	X(metrics_are_bounded)   \
	X(arena_pieces_are_apart) X(numbers_are_as_printf)
HELP_SUITE("view_profile", TESTS)
