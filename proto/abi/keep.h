/* SPDX-License-Identifier: MIT. keep.h: descriptors that a library keeps in somebody else's
 * program: never 0, 1 or 2. A program that has closed those goes on printing to them. */
#ifndef PROTOND_KEEP_H
#define PROTOND_KEEP_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Takes fd, which exec() closes. The same file at 3 or above; -1 and errno, as for an fd that is
 * none. EBUSY: another thread's dup2() has taken the number since, as a shell's does that redirects
 * an output and has closed it first. That one exec() does not close, and nor do we. */
static inline int fd_keep(int fd)
{
	int high, flags, e;

	if (fd < 0 || fd > 2)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	e = errno;
	flags = fcntl(fd, F_GETFD);
	if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
		if (high >= 0)
			(void)close(high);
		high = -1;
		e = EBUSY;
	} else {
		(void)close(fd);
	}
	errno = e;
	return high;
}

#endif
