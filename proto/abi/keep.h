/* SPDX-License-Identifier: MIT. keep.h: descriptors that a library keeps in somebody else's
 * program: never 0, 1 or 2. A program that has closed those goes on printing to them. */
#ifndef PROTOND_KEEP_H
#define PROTOND_KEEP_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Takes fd. The same file at 3 or above; -1 and errno, as for an fd that is none. */
static inline int fd_keep(int fd)
{
	int high, e;

	if (fd < 0 || fd > 2)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	e = errno;
	(void)close(fd);
	errno = e;
	return high;
}

#endif
