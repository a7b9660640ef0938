/* SPDX-License-Identifier: MIT. input.c: files that are read. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

int input_check(const char *path, const char *next, struct err *e)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
	if (S_ISREG(st.st_mode))
		return 0;
	return err_set(e, -EBADMSG, "%s is %s, not a file: %s", path,
		S_ISDIR(st.st_mode)    ? "a folder"
		: S_ISFIFO(st.st_mode) ? "a pipe"
		: S_ISSOCK(st.st_mode) ? "a socket"
				       : "a device",
		next);
}

/* A pipe that never had a name: who made it writes it. */
static bool is_unnamed_pipe(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

/* O_NONBLOCK for what is a regular file in name only (/proc/kmsg), and for what took its place since. */
int input_open(const char *path, const char *next, struct err *e)
{
	const bool waits = is_unnamed_pipe(path);
	int fd, r = waits ? 0 : input_check(path, next, e);

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK));
	return fd >= 0 ? fd : err_set(e, neg_errno(), "%s: %s", path, strerror(errno));
}
