/* SPDX-License-Identifier: MIT. wire_label.c: names, tags and notes of sessions, and the words that
 * stand for one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "label.h"
#include "quick.h"
#include "selector.h"

Suite *suite(void);

static const struct tag_case {
	const char *before, *tag, *added, *dropped;
} tag_cases[] = {
	{"", "a", "a", ""},
	{"a", "a", "a", ""},
	{"a", "b", "a b", "a"},
	{"a b c", "b", "a b c", "a c"},
	{"a b c", "c", "a b c", "a b"},
	{"ab abc", "a", "ab abc a", "ab abc"},
	{"ab abc", "bc", "ab abc bc", "ab abc"},
};

START_TEST(a_tag)
{
	const struct tag_case *c = &tag_cases[_i];
	char added[LABEL_TAGS], dropped[LABEL_TAGS];

	snprintf(added, sizeof(added), "%s", c->before);
	snprintf(dropped, sizeof(dropped), "%s", c->before);
	ck_assert_int_eq(label_add_tag(added, c->tag), 0);
	ck_assert_str_eq(added, c->added);
	ck_assert(label_has_tag(added, c->tag));
	label_drop_tag(dropped, c->tag);
	ck_assert_str_eq(dropped, c->dropped);
	ck_assert(!label_has_tag(dropped, c->tag));
}
END_TEST

START_TEST(tags_are_bounded)
{
	char tags[LABEL_TAGS] = "", tag[LABEL_TAG], full[LABEL_TAGS];
	int i, r = 0;

	for (i = 0; r == 0; i++) {
		snprintf(tag, sizeof(tag), "%031d", i);
		memcpy(full, tags, sizeof(full));
		ck_assert_ptr_null(label_tag_wrong(tag));
		r = label_add_tag(tags, tag);
	}
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_int_eq(i, 8 + 1);
	ck_assert_str_eq(tags, full);
}
END_TEST

START_TEST(what_may_be_one)
{
	static const char *const no_tag[] = {
		"", "a b", "a\n", "\x1b[2J", "é", "12345678901234567890123456789012"};
	static const char *const no_name[] = {"", "@x", "a\nb", "a\x7f"};
	char longest[LABEL_NOTE + 1];
	size_t i;

	for (i = 0; i < sizeof(no_tag) / sizeof(no_tag[0]); i++)
		ck_assert_ptr_nonnull(label_tag_wrong(no_tag[i]));
	for (i = 0; i < sizeof(no_name) / sizeof(no_name[0]); i++)
		ck_assert_ptr_nonnull(label_name_wrong(no_name[i]));
	ck_assert_ptr_null(label_tag_wrong("release/v1.2:a+b=c_d-e"));
	ck_assert_ptr_null(label_name_wrong("größe 1"));
	ck_assert_ptr_null(label_note_wrong(""));
	ck_assert_ptr_nonnull(label_note_wrong("two\nlines"));
	memset(longest, 'x', sizeof(longest));
	longest[LABEL_NOTE] = '\0';
	ck_assert_ptr_nonnull(label_note_wrong(longest));
	ck_assert_ptr_nonnull(label_name_wrong(longest));
	longest[LABEL_NOTE - 1] = '\0';
	ck_assert_ptr_null(label_note_wrong(longest));
	ck_assert_ptr_null(label_name_wrong(longest));
}
END_TEST

static const struct selector_case {
	const char *ref;
	int want; /* enum selector_kind; -1: none */
	uint32_t back, pid;
	const char *tag;
} selector_cases[] = {
	{"@last", SELECT_LAST, 0, 0, ""},
	{"@-0", SELECT_LAST, 0, 0, ""},
	{"@-4000", SELECT_LAST, 4000, 0, ""},
	{"@-4001", -1, 0, 0, ""},
	{"@-", -1, 0, 0, ""},
	{"@--1", -1, 0, 0, ""},
	{"@-1x", -1, 0, 0, ""},
	{"@auto", SELECT_AUTO, 0, 0, ""},
	{"@automatic", -1, 0, 0, ""},
	{"@job:12", SELECT_JOB, 0, 12, ""},
	{"@job:", -1, 0, 0, ""},
	{"@job:4294967296", -1, 0, 0, ""},
	{"@tag:a", SELECT_TAG, 0, 0, "a"},
	{"@tag:", -1, 0, 0, ""},
	{"@tag:a b", -1, 0, 0, ""},
	{"@", -1, 0, 0, ""},
	{"", -1, 0, 0, ""},
};

START_TEST(selectors)
{
	const struct selector_case *c = &selector_cases[_i];
	struct selector s;

	ck_assert_int_eq(selector_parse(c->ref, &s), c->want < 0 ? -EINVAL : 0);
	if (c->want < 0)
		return;
	ck_assert_int_eq((int)s.kind, c->want);
	ck_assert_uint_eq(s.back, c->back);
	ck_assert_uint_eq(s.pid, c->pid);
	ck_assert_str_eq(s.tag, c->tag);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("wire_label");
	TCase *t = tcase_create("label");

	tcase_add_loop_test(t, a_tag, 0, sizeof(tag_cases) / sizeof(tag_cases[0]));
	tcase_add_test(t, tags_are_bounded);
	tcase_add_test(t, what_may_be_one);
	tcase_add_loop_test(t, selectors, 0, sizeof(selector_cases) / sizeof(selector_cases[0]));
	suite_add_tcase(s, t);
	return s;
}
