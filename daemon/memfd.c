/* SPDX-License-Identifier: MIT. memfd.c: results too long for a message, as files in memory. */
#include "memfd.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "err.h"

int memfd_new(void)
{
	const int fd = memfd_create("protond-export", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? neg_errno() : fd;
}

int memfd_seal(int fd)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ||
		lseek(fd, 0, SEEK_SET) < 0)
		return neg_errno();
	return 0;
}

int memfd_of(const void *bytes, size_t n)
{
	const int fd = memfd_new();
	const uint8_t *at = bytes, *end = at + n;
	ssize_t some;
	int r = fd < 0 ? fd : 0;

	while (r == 0 && at < end) {
		some = write(fd, at, (size_t)(end - at));
		if (some < 0 && errno != EINTR)
			r = neg_errno();
		at += some > 0 ? some : 0;
	}
	if (r == 0)
		r = memfd_seal(fd);
	if (r == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return r;
}
