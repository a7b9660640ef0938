/* SPDX-License-Identifier: MIT. wire_codec.c: frames of the control protocol: what is taken, what
 * is refused before an object is built, and that what is written can be read. */
#include "quick.h"
#include <stdlib.h>
#include <string.h>

#include "codec.h"

#define BYTES(s) (s), sizeof(s) - 1

/* clang-format off */
static const struct {
	const char *label, *bytes;
	size_t n;
	int want;
} checks[] = {
	{"nil", BYTES("\xc0"), 0},
	{"fixmap", BYTES("\x81\xa1k\x01"), 0},
	{"nothing", BYTES(""), -EBADMSG},
	{"something behind", BYTES("\xc0\xc0"), -EBADMSG},
	{"never used", BYTES("\xc1"), -EBADMSG},
	{"ext8", BYTES("\xc7\x01\x05z"), -EBADMSG},
	{"fixext1", BYTES("\xd4\x05z"), -EBADMSG},
	{"str8 over the end", BYTES("\xd9\x05" "abc"), -EBADMSG},
	{"str32 of 4 GiB", BYTES("\xdb\xff\xff\xff\xff" "abc"), -EBADMSG},
	{"bin32 cut in its length", BYTES("\xc6\xff\xff"), -EBADMSG},
	{"array32 of 4 G", BYTES("\xdd\xff\xff\xff\xff\xc0"), -E2BIG},
	{"map32 of 2 G pairs", BYTES("\xdf\x7f\xff\xff\xff\xc0"), -E2BIG},
	{"array16 with too few", BYTES("\xdc\x00\x03\xc0\xc0"), -EBADMSG},
	{"map without a value", BYTES("\x81\xa1k"), -EBADMSG},
	{"uint64 cut", BYTES("\xcf\x01\x02"), -EBADMSG},
	{"depth 16", BYTES("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0"), 0},
	{"depth 17", BYTES("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0"), -E2BIG},
	{"empty containers cost no depth", BYTES("\x92\x90\x80"), 0},
};

static const struct {
	const char *label, *bytes;
	size_t n;
	int want;
} messages[] = {
	{"request", BYTES("\x94\x00\x07\xa5hello\x80"), 0},
	{"response", BYTES("\x94\x01\x07\xc0\x80"), 0},
	{"notification", BYTES("\x93\x02\xa1w\x80"), 0},
	{"unknown type", BYTES("\x94\x03\x07\xc0\x80"), -EBADMSG},
	{"a map", BYTES("\x80"), -EBADMSG},
	{"empty array", BYTES("\x90"), -EBADMSG},
	{"method is a number", BYTES("\x94\x00\x07\x09\x80"), -EBADMSG},
	{"params are an array", BYTES("\x94\x00\x07\xa5hello\x90"), -EBADMSG},
	{"msgid negative", BYTES("\x94\x00\xff\xa5hello\x80"), -EBADMSG},
	{"msgid over 32 bits", BYTES("\x94\x00\xcf\x00\x00\x00\x01\x00\x00\x00\x00\xa5hello\x80"), -EBADMSG},
	{"request of five", BYTES("\x95\x00\x07\xa5hello\x80\xc0"), -EBADMSG},
	{"text", BYTES("GET / HTTP/1.1"), -EBADMSG},
};
/* clang-format on */

START_TEST(check_table)
{
	/* A copy of exact size, so that a sanitizer sees a byte too many. */
	char *copy = malloc(checks[_i].n + 1);

	memcpy(copy, checks[_i].bytes, checks[_i].n);
	ck_assert_msg(wire_check(copy, checks[_i].n) == checks[_i].want, "%s", checks[_i].label);
	free(copy);
}
END_TEST

START_TEST(message_table)
{
	struct wire_msg m = {.type = WIRE_REQUEST};
	struct err e;
	int r = wire_parse(messages[_i].bytes, messages[_i].n, &m, &e);

	ck_assert_msg(r == messages[_i].want, "%s: %d", messages[_i].label, r);
	ck_assert(r == 0 || (e.code == r && e.text[0] != '\0'));
	wire_msg_free(&m);
}
END_TEST

/* Every prefix of a good message is refused, and none reads beyond itself. */
START_TEST(every_prefix_is_refused)
{
	struct wire_buf b;
	size_t n;

	wire_buf_init(&b, 4096);
	wire_request(&b, 1, "start");
	wire_map(&b);
	wire_kv_str(&b, "name", "a name");
	wire_kv_u64(&b, "pid", UINT64_MAX);
	wire_kv_f64(&b, "x", 0.5);
	wire_kv_bin(&b, "token", "0123456789abcdef", 16);
	ck_assert_int_eq(wire_frame_end(&b), 0);
	for (n = 0; n < b.n - WIRE_HEADER; n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, b.bytes + WIRE_HEADER, n);
		ck_assert_int_eq(wire_check(copy, n), -EBADMSG);
		free(copy);
	}
	ck_assert_int_eq(wire_check(b.bytes + WIRE_HEADER, n), 0);
	wire_buf_free(&b);
}
END_TEST

START_TEST(written_is_read)
{
	struct wire_buf b;
	struct wire_msg m;
	struct err e;
	char text[8] = "", bin[4];
	uint64_t u = 0;
	bool yes = false;

	wire_buf_init(&b, 4096);
	wire_request(&b, 42, "where");
	wire_map(&b);
	wire_kv_str(&b, "s", "words");
	wire_kv_u64(&b, "u", 1ull << 40);
	wire_kv_i64(&b, "i", -5);
	wire_kv_bool(&b, "t", true);
	wire_kv_bin(&b, "b", "abcd", 4);
	wire_kv_str(&b, "nil", NULL);
	wire_str(&b, "list");
	wire_array(&b);
	wire_u64(&b, 1);
	wire_map(&b);
	wire_kv_f64(&b, "f", 0.25);
	wire_close(&b);
	ck_assert_int_eq(wire_frame_end(&b), 0); /* closes what is open */
	ck_assert_uint_eq(wire_frame_bytes(b.bytes), b.n - WIRE_HEADER);
	ck_assert_int_eq(wire_parse(b.bytes + WIRE_HEADER, b.n - WIRE_HEADER, &m, &e), 0);
	ck_assert_uint_eq(m.msgid, 42);
	ck_assert(m.method_bytes == 5 && memcmp(m.method, "where", 5) == 0);
	ck_assert_int_eq(wire_get_str(m.params, "s", text, sizeof(text)), 0);
	ck_assert_str_eq(text, "words");
	ck_assert_int_eq(wire_get_str(m.params, "s", text, 5), -EINVAL); /* no room for the NUL */
	ck_assert_int_eq(wire_get_u64(m.params, "u", &u), 0);
	ck_assert_uint_eq(u, 1ull << 40);
	ck_assert_int_eq(wire_get_u64(m.params, "i", &u), -EINVAL);
	ck_assert_int_eq(wire_i64_or(m.params, "i", 0), -5);
	ck_assert_int_eq(wire_get_bool(m.params, "t", &yes), 0);
	ck_assert(yes);
	ck_assert_int_eq(wire_get_bin(m.params, "b", bin, 4), 0);
	ck_assert_int_eq(wire_get_bin(m.params, "b", bin, 3), -EINVAL);
	ck_assert_ptr_null(wire_get(m.params, "nil"));
	ck_assert_ptr_null(wire_get(m.params, "none"));
	ck_assert_int_eq(wire_get_u64(m.params, "none", &u), 0);
	ck_assert_uint_eq(u, 1ull << 40); /* untouched */
	ck_assert_uint_eq(wire_get(m.params, "list")->via.array.size, 2);
	wire_msg_free(&m);
	wire_buf_free(&b);
}
END_TEST

START_TEST(nul_in_text_is_refused)
{
	struct wire_msg m;
	struct err e;
	char text[16] = "";

	ck_assert_int_eq(wire_parse(BYTES("\x94\x00\x01\xa1m\x81\xa1s\xa3"
					  "a\0b"),
				 &m, &e),
		0);
	ck_assert_int_eq(wire_get_str(m.params, "s", text, sizeof(text)), -EINVAL);
	wire_msg_free(&m);
}
END_TEST

START_TEST(ceiling_is_kept)
{
	struct wire_buf b;
	char text[100];
	int i;

	memset(text, 'x', sizeof(text));
	wire_buf_init(&b, 1000);
	wire_request(&b, 1, "m");
	wire_map(&b);
	for (i = 0; i < 100; i++) {
		wire_str(&b, "k");
		wire_strn(&b, text, sizeof(text));
	}
	ck_assert_int_eq(wire_frame_end(&b), -EMSGSIZE);
	ck_assert_uint_le(b.n, 1000);
	ck_assert_uint_eq(wire_buf_room(&b), 0);
	wire_request(&b, 2, "m"); /* and it can be used again */
	wire_map(&b);
	ck_assert_int_eq(wire_frame_end(&b), 0);
	wire_buf_free(&b);
}
END_TEST

START_TEST(writing_too_deep_fails)
{
	struct wire_buf b;
	int i;

	wire_buf_init(&b, 4096);
	wire_request(&b, 1, "m");
	for (i = 0; i < 64; i++)
		wire_array(&b);
	ck_assert_int_eq(wire_frame_end(&b), -E2BIG);
	wire_buf_free(&b);
}
END_TEST

START_TEST(every_verb_is_found)
{
	int i;

	for (i = 0; i < WIRE_VERB_MAX; i++)
		ck_assert_int_eq(
			wire_verb_find(wire_verbs[i].method, strlen(wire_verbs[i].method)), i);
	ck_assert_int_eq(wire_verb_find("hell", 4), -ENOENT);
	ck_assert_int_eq(wire_verb_find("hello!", 6), -ENOENT);
	ck_assert_int_eq(wire_verb_find("", 0), -ENOENT);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("wire_codec");
	TCase *t = tcase_create("all");

	tcase_add_loop_test(t, check_table, 0, (int)(sizeof(checks) / sizeof(checks[0])));
	tcase_add_loop_test(t, message_table, 0, (int)(sizeof(messages) / sizeof(messages[0])));
	tcase_add_test(t, every_prefix_is_refused);
	tcase_add_test(t, written_is_read);
	tcase_add_test(t, nul_in_text_is_refused);
	tcase_add_test(t, ceiling_is_kept);
	tcase_add_test(t, writing_too_deep_fails);
	tcase_add_test(t, every_verb_is_found);
	suite_add_tcase(s, t);
	return s;
}
