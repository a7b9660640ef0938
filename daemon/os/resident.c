/* SPDX-License-Identifier: MIT. resident.c: the second number of /proc/PID/statm. */
#include "resident.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t resident_bytes(uint32_t pid)
{
	const long page = sysconf(_SC_PAGESIZE);
	char text[128];
	const char *second;
	ssize_t n;
	int fd;

	(void)snprintf(text, sizeof(text), "/proc/%u/statm", pid);
	fd = pid != 0 && page > 0 ? open(text, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	second = strchr(text, ' ');
	return second != NULL ? strtoull(second, NULL, 10) * (uint64_t)page : 0;
}
