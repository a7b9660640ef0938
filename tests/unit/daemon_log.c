/* SPDX-License-Identifier: MIT. daemon_log.c: other people's words in a line of the log. */
#include <string.h>

#include "log.h"
#include "quick.h"

static const struct quote_case {
	const char *from, *want;
	uint32_t room;
} quote_cases[] = {
	{"plain", "\"plain\"", 64},
	{"a \"b\" \\c", "\"a \\\"b\\\" \\\\c\"", 64},
	{"\x1b]0;x\x07\x7f\n", "\"?]0;x???\"", 64},
	{"K\xc3\xb6ln \xe6\x9d\xb1", "\"K\xc3\xb6ln \xe6\x9d\xb1\"", 64},
	{"\xe2\x80\xae"
	 "drow",
		"\"?drow\"", 64}, /* U+202E */
	{"\xc2\x9b"
	 "31m",
		"\"?31m\"", 64}, /* U+009B */
	{"\xff\xc3", "\"??\"", 64},
	{"cut where the room ends", "\"cut\"", 10},
	{"\xe6\x9d\xb1\xe6\x9d\xb1\xe6\x9d\xb1\xe6\x9d\xb1", "\"\xe6\x9d\xb1\xe6\x9d\xb1\"", 13},
	{"no room", "", 7},
};

START_TEST(words_are_quoted)
{
	const struct quote_case *c = &quote_cases[_i];
	char buf[64];

	memset(buf, 'x', sizeof(buf));
	ck_assert_str_eq(log_quote(buf, c->room, c->from), c->want);
	if (c->room < sizeof(buf))
		ck_assert_int_eq(buf[c->room], 'x');
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_log");
	TCase *t = tcase_create("quote");

	suite_add_tcase(s, t);
	tcase_add_loop_test(
		t, words_are_quoted, 0, (int)(sizeof(quote_cases) / sizeof(quote_cases[0])));
	return s;
}
