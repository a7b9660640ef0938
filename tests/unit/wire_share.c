/* SPDX-License-Identifier: MIT. wire_share.c: what one user may have of what all share. */
#include "quick.h"

#include "share.h"

static const struct share_case {
	const char *label;
	struct share share;
	uint64_t used, own, more;
	int want;
} cases[] = {
	{"there is room", {64, 16}, 20, 10, 1, 0},
	{"up to the share", {64, 16}, 20, 15, 1, 0},
	{"beyond it", {64, 16}, 20, 16, 1, -EDQUOT},
	{"in one piece", {64, 16}, 0, 0, 17, -EDQUOT},
	{"nothing is left", {64, 16}, 64, 0, 1, -ENOSPC},
	{"the last eighth is not for who has a sixteenth", {64, 16}, 56, 4, 1, -ENOSPC},
	{"but for who has less", {64, 16}, 56, 3, 1, 0},
	{"up to the end", {64, 16}, 63, 3, 1, 0},
	{"before it for all", {64, 16}, 55, 15, 1, 0},
	{"one user has all", {64, 64}, 63, 63, 1, 0},
	{"and no more", {64, 64}, 64, 64, 1, -ENOSPC},
	{"of nothing there is nothing", {0, 0}, 0, 0, 1, -ENOSPC},
};

START_TEST(test_room)
{
	const struct share_case *c = &cases[_i];

	ck_assert_msg(share_room(&c->share, c->used, c->own, c->more) == c->want, "%s", c->label);
}
END_TEST

START_TEST(test_a_quarter)
{
	ck_assert_uint_eq(share_of(1024, false).user, 256);
	ck_assert_uint_eq(share_of(1024, true).user, 1024);
	ck_assert_uint_eq(share_of(3, false).user, 1);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("wire_share");
	TCase *t = tcase_create("share");

	suite_add_tcase(s, t);
	tcase_add_loop_test(t, test_room, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(t, test_a_quarter);
	return s;
}
