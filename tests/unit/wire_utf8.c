/* SPDX-License-Identifier: MIT. wire_utf8.c: which characters of other people's text are shown as
 * they are, and how the others stand in JSON. */
#include "quick.h"
#include <stdlib.h>

#include "text.h"
#include "utf8.h"

/* clang-format off */
static const struct { uint32_t from, to; } obeyed[] = {
	{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x200b, 0x200f}, {0x2028, 0x202e},
	{0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f},
};
static const struct { const char *in, *out; } json[] = {
	{"gr\xc3\xb6\xc3\x9f\xf0\x9f\x98\x80", "\"gr\xc3\xb6\xc3\x9f\xf0\x9f\x98\x80\""},
	{"a\n\x1b", "\"a\\n\\u001b\""},
	{"so\xc2\xad" "ft", "\"so\\u00adft\""},
	{"\xf3\xa0\x81\x81z", "\"\\udb40\\udc41z\""},
	{"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
};
/* clang-format on */

START_TEST(what_a_terminal_would_obey)
{
	uint32_t c, i;
	bool hit;

	for (c = 0; c <= 0x10ffff; c++) {
		hit = false;
		for (i = 0; i < sizeof(obeyed) / sizeof(obeyed[0]); i++)
			hit |= c >= obeyed[i].from && c <= obeyed[i].to;
		if (utf8_is_control(c) != hit)
			ck_abort_msg("U+%04X", c);
	}
}
END_TEST

START_TEST(json_keeps_the_value)
{
	struct text t = {0};

	text_json(&t, json[_i].in);
	text_char(&t, '\0');
	ck_assert_str_eq(t.s, json[_i].out);
	free(t.s);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("wire_utf8");
	TCase *t = tcase_create("utf8");

	suite_add_tcase(s, t);
	tcase_add_test(t, what_a_terminal_would_obey);
	tcase_add_loop_test(t, json_keeps_the_value, 0, sizeof(json) / sizeof(json[0]));
	return s;
}
