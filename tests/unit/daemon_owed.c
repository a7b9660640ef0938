/* SPDX-License-Identifier: MIT. daemon_owed.c: what each user has in the journal that is not stored. */
#include "quick.h"

#include "owed.h"

static struct owed o;

static void begin(void)
{
	o = (struct owed){.share = {1000, 250}};
}

static void end(void)
{
	owed_fini(&o);
	ck_assert_uint_eq(o.n, 0);
}

START_TEST(test_a_share)
{
	owed_put(&o, 1, 249);
	ck_assert(!owed_is_over(&o, 1) && owed_is_large(&o));
	owed_put(&o, 1, 1);
	ck_assert(owed_is_over(&o, 1));
	ck_assert(!owed_is_over(&o, 2));
}
END_TEST

START_TEST(test_what_is_stored_is_not_owed)
{
	uint64_t first, second;

	owed_put(&o, 1, 200);
	first = owed_mark(&o);
	owed_put(&o, 1, 100);
	owed_put(&o, 2, 30);
	second = owed_mark(&o);
	ck_assert(owed_is_over(&o, 1));
	owed_stored(&o, first);
	ck_assert(!owed_is_over(&o, 1) && !owed_is_large(&o));
	owed_put(&o, 1, 150);
	ck_assert(owed_is_over(&o, 1));
	owed_stored(&o, second);
	ck_assert(!owed_is_over(&o, 1));
	ck_assert_uint_eq(o.put - o.stored, 150);
	ck_assert_uint_eq(o.n, 1);
}
END_TEST

START_TEST(test_the_last_eighth)
{
	uint32_t uid;

	for (uid = 1; uid <= 4; uid++)
		owed_put(&o, uid, 220);
	ck_assert(owed_is_over(&o, 1)); /* 880 of 1 000 */
	owed_put(&o, 5, 61);
	ck_assert(!owed_is_over(&o, 5));
	owed_put(&o, 5, 1);
	ck_assert(owed_is_over(&o, 5));
}
END_TEST

START_TEST(test_one_user_has_all)
{
	o.share.user = o.share.all;
	owed_put(&o, 1, 5000);
	ck_assert(!owed_is_over(&o, 1));
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_owed");
	TCase *t = tcase_create("owed");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, test_a_share);
	tcase_add_test(t, test_what_is_stored_is_not_owed);
	tcase_add_test(t, test_the_last_eighth);
	tcase_add_test(t, test_one_user_has_all);
	return s;
}
