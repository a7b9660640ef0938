/* SPDX-License-Identifier: MIT. daemon_log.c: other people's words in a line of the log, and how many lines there are of
 * one cause. */
#include <string.h>
#include <unistd.h>

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

static const struct cause_case {
	uint64_t each, times, lines;
} cause_cases[] = {{0, 1000, 4}, {3, 3, 3}, {3, 9, 3}, {3, 1000, 6}, {20, 99, 20}};

START_TEST(a_cause_has_few_lines)
{
	const struct cause_case *c = &cause_cases[_i];
	struct log_cause cause = {.each = c->each};
	const int err = dup(STDERR_FILENO);
	char buf[8192];
	uint64_t lines = 0, i;
	ssize_t n;
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	ck_assert_int_ge(dup2(fd[1], STDERR_FILENO), 0);
	for (i = 0; i < c->times; i++)
		log_cause(&cause, LOG_ERR, "often", "a=%d", 1);
	ck_assert_int_ge(dup2(err, STDERR_FILENO), 0);
	n = read(fd[0], buf, sizeof(buf));
	for (i = 0; i < (uint64_t)(n > 0 ? n : 0); i++)
		lines += buf[i] == '\n';
	ck_assert_uint_eq(lines, c->lines);
	(void)close(fd[0]);
	(void)close(fd[1]);
	(void)close(err);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_log");
	TCase *t = tcase_create("quote");

	suite_add_tcase(s, t);
	tcase_add_loop_test(
		t, words_are_quoted, 0, (int)(sizeof(quote_cases) / sizeof(quote_cases[0])));
	tcase_add_loop_test(
		t, a_cause_has_few_lines, 0, (int)(sizeof(cause_cases) / sizeof(cause_cases[0])));
	return s;
}
