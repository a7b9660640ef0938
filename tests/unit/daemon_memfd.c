/* SPDX-License-Identifier: MIT. daemon_memfd.c: results given away as memfds: who holds how much of
 * them, and when they count as returned. */
#include "quick.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memfd.h"

static struct lent lent;

static void begin(void)
{
	lent = (struct lent){.share = {32, 8}};
}

static void end(void)
{
	memfd_forget(&lent);
	ck_assert_uint_eq(lent.n, 0);
	ck_assert_ptr_null(lent.first);
}

/* Of that many bytes, none of which takes memory. */
static int lend(uint32_t uid, uint64_t bytes, int *ret_fd)
{
	struct err e = {0};
	int r;

	*ret_fd = memfd_new();
	ck_assert_int_ge(*ret_fd, 0);
	ck_assert_int_eq(ftruncate(*ret_fd, (off_t)bytes), 0);
	ck_assert_int_eq(memfd_seal(*ret_fd), 0);
	r = memfd_lend(&lent, uid, ret_fd, &e);
	ck_assert_int_eq(e.code, r);
	if (r < 0)
		(void)close(*ret_fd);
	return r;
}

START_TEST(test_bytes_of_a_user)
{
	int a, b, c;

	ck_assert_int_eq(lend(1000, LENT_BYTES - 4096, &a), 0);
	ck_assert_int_eq(lend(1000, 8192, &b), -EDQUOT);
	ck_assert_int_eq(lend(1001, 8192, &b), 0); /* another's */
	ck_assert_int_eq(lend(1000, 4096, &c), 0);
	(void)close(a);
	ck_assert_int_eq(lend(1000, 8192, &a), 0); /* looks who has what before it refuses */
	ck_assert_uint_eq(lent.n, 3);
	(void)close(a);
	(void)close(b);
	(void)close(c);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 0);
}
END_TEST

START_TEST(test_number)
{
	int fd[32], more, i;

	for (i = 0; i < 8; i++)
		ck_assert_int_eq(lend(1000, 1, &fd[i]), 0);
	ck_assert_int_eq(lend(1000, 1, &more), -EDQUOT); /* a quarter of them */
	for (; i < 28; i++)
		ck_assert_int_eq(lend(1000 + (uint32_t)i / 8, 1, &fd[i]), 0);
	ck_assert_int_eq(lend(1003, 1, &more), -EDQUOT); /* what is left is not for him */
	for (; i < 32; i++)
		ck_assert_int_eq(lend(1100 + (uint32_t)i, 1, &fd[i]), 0);
	ck_assert_int_eq(lend(1200, 1, &more), -EDQUOT); /* all of them */
	for (i = 0; i < 32; i++)
		(void)close(fd[i]);
}
END_TEST

/* All the ways to hold on to it. */
START_TEST(test_held)
{
	char path[32], byte;
	int fd, other;
	void *at;

	ck_assert_int_eq(lend(1000, 4096, &fd), 0);
	ck_assert_int_eq(write(fd, "x", 1), -1);
	ck_assert_int_eq(pread(fd, &byte, 1, 0), 1);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 1);
	other = dup(fd);
	(void)close(fd);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 1);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, other, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", other);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	(void)close(other);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 1);
	(void)munmap(at, 4096);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 1);
	at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	(void)close(fd);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 1);
	(void)munmap(at, 4096);
	memfd_returned(&lent);
	ck_assert_uint_eq(lent.n, 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_memfd");
	TCase *t = tcase_create("memfd");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, begin, end);
	tcase_add_test(t, test_bytes_of_a_user);
	tcase_add_test(t, test_number);
	tcase_add_test(t, test_held);
	return s;
}
