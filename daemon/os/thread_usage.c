/* SPDX-License-Identifier: MIT. thread_usage.c: /proc/PID/task/TID. */
#include "thread_usage.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Minor and major faults are the 10th and the 12th field of `stat`; the name of the second may hold anything. */
bool thread_usage_parse(const char *schedstat, const char *stat, struct thread_usage *ret)
{
	const char *behind = strrchr(stat, ')');

	*ret = (struct thread_usage){0};
	return behind != NULL &&
	       sscanf(schedstat, "%" SCNu64 " %" SCNu64, &ret->cpu_ns, &ret->run_queue_ns) == 2 &&
	       sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64,
		       &ret->minor_faults, &ret->major_faults) == 2;
}

static bool read_file(uint32_t pid, uint32_t tid, const char *name, char *text, size_t n)
{
	char path[64];
	ssize_t got = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, n - 1);
		(void)close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

bool thread_usage_read(uint32_t pid, uint32_t tid, struct thread_usage *ret)
{
	char schedstat[128], stat[1024];

	return read_file(pid, tid, "schedstat", schedstat, sizeof(schedstat)) &&
	       read_file(pid, tid, "stat", stat, sizeof(stat)) &&
	       thread_usage_parse(schedstat, stat, ret);
}
