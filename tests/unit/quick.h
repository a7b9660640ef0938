/* SPDX-License-Identifier: MIT. quick.h: what every unit test includes. suite() is the program's,
 * run by main.c; and Check without a note in a file of every assertion that holds: a test of a
 * million records makes millions, and Check reads them all. */
#ifndef QUICK_H
#define QUICK_H

#include <check.h>

Suite *suite(void); /* the tests of this program */

#undef ck_assert_msg
#define ck_assert_msg(expr, ...)     \
	((expr) ? (void)0            \
		: _ck_assert_failed( \
			  __FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__))

#endif
