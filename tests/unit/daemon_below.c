/* SPDX-License-Identifier: MIT. daemon_below.c: what is opened below a directory of ours, and what is
 * not. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "quick.h"
#include <stdlib.h>
#include <unistd.h>

#include "below.h"

static char home[64];
static int dir;

static void setup(void)
{
	(void)snprintf(home, sizeof(home), "/dev/shm/protond-below-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(home));
	dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mkdirat(dir, "u1", 0700), 0);
	ck_assert_int_eq(symlinkat("u1", dir, "link"), 0);
	ck_assert_int_eq(mkfifoat(dir, "fifo", 0600), 0);
	(void)close(openat(dir, "u1/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	ck_assert_int_eq(symlinkat("file", dir, "u1/link"), 0);
}

static void teardown(void)
{
	static const char *const made[] = {"u1/link", "u1/file", "fifo", "link"};
	size_t i;

	for (i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		(void)unlinkat(dir, made[i], 0);
	(void)unlinkat(dir, "u1", AT_REMOVEDIR);
	(void)close(dir);
	(void)rmdir(home);
}

static const struct open_case {
	const char *path;
	int flags, want;
} open_cases[] = {
	{"u1/file", O_RDONLY, 0},
	{"u1/file", O_PATH, 0},
	{"u1", O_RDONLY | O_DIRECTORY, 0},
	{".", O_RDONLY | O_DIRECTORY, 0},
	{"fifo", O_RDONLY | O_NONBLOCK, 0},
	{"u1/none", O_RDONLY, -ENOENT},
	{"u1/link", O_RDONLY, -ELOOP},
	{"link/file", O_RDONLY, -ENOTDIR},
	{"fifo", O_RDONLY | O_DIRECTORY, -ENOTDIR},
};

START_TEST(opens)
{
	const struct open_case *c = &open_cases[_i];
	const int fd = below_open(dir, c->path, c->flags);

	ck_assert_msg(fd < 0 ? fd == c->want : c->want == 0, "%s: %d", c->path, fd);
	if (fd >= 0)
		ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	(void)close(fd);
}
END_TEST

START_TEST(enters_no_mount)
{
	const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(below_open(root, "proc", O_PATH), -EXDEV);
	ck_assert_int_eq(below_open(root, "proc/self/status", O_RDONLY), -EXDEV);
	(void)close(root);
}
END_TEST

START_TEST(unlinks)
{
	below_unlink(dir, "u1/file");
	ck_assert_int_lt(faccessat(dir, "u1/file", F_OK, 0), 0);
	below_unlink(dir, "fifo");
	ck_assert_int_lt(faccessat(dir, "fifo", F_OK, 0), 0);
	below_unlink(dir, "link/link"); /* not by way of a link */
	ck_assert_int_eq(faccessat(dir, "u1/link", F_OK, AT_SYMLINK_NOFOLLOW), 0);
}
END_TEST

/* A file, a device and a pipe say nothing of themselves: they are not opened. */
START_TEST(only_memory)
{
	const int fds = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int pipes[2], other[3], i, fd;
	char name[16];

	ck_assert_int_eq(pipe(pipes), 0);
	other[0] = openat(dir, "u1/file", O_RDONLY | O_CLOEXEC);
	other[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	other[2] = pipes[0];
	for (i = 0; i < 3; i++) {
		(void)snprintf(name, sizeof(name), "%d", other[i]);
		ck_assert_int_eq(below_memory(fds, name), -EXDEV);
	}
	fd = memfd_create("protond-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	(void)snprintf(name, sizeof(name), "%d", fd);
	ck_assert_int_ge(below_memory(fds, name), 0);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("daemon_below");
	TCase *t = tcase_create("below");

	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, opens, 0, sizeof(open_cases) / sizeof(open_cases[0]));
	tcase_add_test(t, enters_no_mount);
	tcase_add_test(t, unlinks);
	tcase_add_test(t, only_memory);
	return s;
}
