/* SPDX-License-Identifier: MIT. quick.h: what every unit test includes. suite() is the program's,
 * run by main.c; and Check without a note in a file of every assertion that holds: a test of a
 * million records makes millions, and Check reads them all. */
#ifndef QUICK_H
#define QUICK_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

Suite *suite(void); /* the tests of this program */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

/* Under a sanitizer a quarter of the random rounds is enough, as all are run without one; make check-long, which
 * sets PD_ROUNDS_ALL, has all under it, too. */
static inline bool all_rounds(void)
{
#ifdef SANITIZED
	return getenv("PD_ROUNDS_ALL") != NULL;
#else
	return true;
#endif
}

static inline int rounds(int n)
{
	return all_rounds() ? n : (n + 3) / 4;
}

#undef ck_assert_msg
#define ck_assert_msg(expr, ...)     \
	((expr) ? (void)0            \
		: _ck_assert_failed( \
			  __FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__))

#endif
