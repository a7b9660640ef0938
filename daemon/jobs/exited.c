/* SPDX-License-Identifier: MIT. exited.c: which process a number means, and how it ended. */
#include "exited.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "err.h"

/* linux/pidfd.h of 6.15; older headers lack it, and older kernels answer ENOTTY or without the bit.
 */
struct pidfd_exit {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_exit) == 64, "PIDFD_INFO_SIZE_VER0");
#define PIDFD_GET_EXIT _IOWR(0xff, 11, struct pidfd_exit)
#define PIDFD_EXIT_BIT (1u << 3)

/* Fields of /proc/PID/stat, from the third on: `at` is behind the name of the command, which may
 * hold anything. NULL: no such process, or no such field. */
static const char *stat_read(uint32_t pid, char buf[1024])
{
	char path[40];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, buf, 1023);
	(void)close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return strrchr(buf, ')');
}

static const char *stat_field(const char *at, int number)
{
	int field;

	for (field = 2; at != NULL && field < number; field++) {
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
	return at;
}

uint64_t process_start(uint32_t pid)
{
	char buf[1024];
	const char *s = stat_field(stat_read(pid, buf), 22);

	return s != NULL ? strtoull(s, NULL, 10) : 0;
}

/* How a dead process ended that its parent has not waited for yet. -ENOENT: nobody's to tell. */
static int zombie_status(uint32_t pid, uint64_t start, int *ret)
{
	char buf[1024];
	const char *at = stat_read(pid, buf), *state = stat_field(at, 3),
		   *began = stat_field(at, 22), *code = stat_field(at, 52);

	if (state == NULL || *state != 'Z' || began == NULL || code == NULL ||
		strtoull(began, NULL, 10) != start)
		return -ENOENT;
	*ret = (int)strtol(code, NULL, 10);
	return 0;
}

/* The kernel's word on how a process ended, where it has one for a process that is not our child.
 * -EAGAIN: perhaps later; -ENOTTY: never. */
static int pidfd_status(int pidfd, int *ret)
{
	struct pidfd_exit x = {.mask = PIDFD_EXIT_BIT};

	if (pidfd < 0)
		return -ENOTTY;
	if (ioctl(pidfd, PIDFD_GET_EXIT, &x) < 0)
		return errno == ESRCH ? -EAGAIN : -ENOTTY;
	if ((x.mask & PIDFD_EXIT_BIT) == 0)
		return -EAGAIN;
	*ret = x.exit_code;
	return 0;
}

int process_status(int pidfd, uint32_t pid, uint64_t start, int *ret)
{
	const int x = pidfd_status(pidfd, ret);

	return x == -EAGAIN && zombie_status(pid, start, ret) == 0 ? 0 : x;
}
