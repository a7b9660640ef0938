/* SPDX-License-Identifier: MIT. below.c: files below a directory of ours that others write in.
 *
 * Each step is opened with O_PATH, which asks nothing of a file, compared with the directory by what
 * the kernel knows without asking, and only then opened itself. openat2() can do it at once, but not
 * before Linux 5.6, nor where a seccomp filter is older than it.
 */
#include "below.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "err.h"

static int device_of(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, ret) < 0 ? neg_errno()
										      : 0;
}

/* Of one name. */
static int step(int dir, const char *name)
{
	struct statx ours, there;
	const int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0)
		return neg_errno();
	r = device_of(dir, &ours);
	if (r == 0)
		r = device_of(fd, &there);
	if (r == 0 && (ours.stx_dev_major != there.stx_dev_major ||
			      ours.stx_dev_minor != there.stx_dev_minor))
		r = -EXDEV;
	if (r == 0)
		return fd;
	(void)close(fd);
	return r;
}

static int walk(int dir, const char *path)
{
	const char *slash = strchr(path, '/');
	char name[64];
	int at, fd;

	if (slash == NULL)
		return step(dir, path);
	if (snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path) >= (int)sizeof(name))
		return -ENAMETOOLONG;
	at = step(dir, name);
	if (at < 0)
		return at;
	fd = walk(at, slash + 1);
	(void)close(at);
	return fd;
}

int below_open(int dir, const char *path, int flags)
{
	const int at = walk(dir, path);
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
