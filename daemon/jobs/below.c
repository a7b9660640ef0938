/* SPDX-License-Identifier: MIT. below.c: files of others, opened without a question to them.
 *
 * Each step is opened with O_PATH, which asks nothing of a file, compared with ours by what
 * the kernel knows without asking, and only then opened itself. openat2() can do it at once, but not
 * before Linux 5.6, nor where a seccomp filter is older than it.
 */
#include "below.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"

static bool same_device(int a, int b)
{
	struct statx x, y;

	return statx(a, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) == 0 &&
	       statx(b, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &y) == 0 &&
	       x.stx_dev_major == y.stx_dev_major && x.stx_dev_minor == y.stx_dev_minor;
}

/* One name, on the file system of `like`. */
static int step(int dir, const char *name, int flags, int like)
{
	const int fd = openat(dir, name, O_PATH | O_CLOEXEC | flags);

	if (fd < 0)
		return neg_errno();
	if (same_device(fd, like))
		return fd;
	(void)close(fd);
	return -EXDEV;
}

/* What O_PATH found. Takes at, which may be -errno. */
static int open_found(int at, int flags)
{
	char self[40];
	int fd;

	if (at < 0 || (flags & O_PATH) != 0)
		return at;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	fd = open(self, flags | O_CLOEXEC);
	fd = fd < 0 ? neg_errno() : fd;
	(void)close(at);
	return fd;
}

static int walk(int dir, const char *path)
{
	const char *slash = strchr(path, '/');
	char name[64];
	int at, fd;

	if (slash == NULL)
		return step(dir, path, O_NOFOLLOW, dir);
	if (snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	at = step(dir, name, O_NOFOLLOW, dir);
	if (at < 0)
		return at;
	fd = walk(at, slash + 1);
	(void)close(at);
	return fd;
}

int below_open(int dir, const char *path, int flags)
{
	return open_found(walk(dir, path), flags);
}

int below_memory(int dir, const char *name)
{
	const int ours = memfd_create("protond", MFD_CLOEXEC);
	int at;

	if (ours < 0)
		return neg_errno();
	at = step(dir, name, 0, ours);
	(void)close(ours);
	return open_found(at, O_RDONLY | O_NONBLOCK);
}

void below_unlink(int dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[64];
	int at;

	if (slash == NULL) {
		(void)unlinkat(dir, path, 0);
		return;
	}
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	at = below_open(dir, parent, O_PATH);
	if (at < 0)
		return;
	(void)unlinkat(at, slash + 1, 0);
	(void)close(at);
}
