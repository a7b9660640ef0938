/* SPDX-License-Identifier: MIT. time_namespace.h: CLOCK_MONOTONIC as the machine has it, whichever
 * time namespace (time_namespaces(7)) a process is in: times of a job, its daemon and whoever reads
 * them are of one clock. Whoever says or compares such times includes it.
 */
#ifndef PROTOND_TERMS_TIME_NAMESPACE_H
#define PROTOND_TERMS_TIME_NAMESPACE_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIME_NS_TEXT 64 /* bytes of "time:[4026531834]" */

/* Else the offsets are of one that this process has made, which only its children have. */
static inline int time_namespace_is_own(void)
{
	char own[TIME_NS_TEXT] = "", theirs[TIME_NS_TEXT] = "";

	return readlink("/proc/self/ns/time", own, sizeof(own) - 1) > 0 &&
	       readlink("/proc/self/ns/time_for_children", theirs, sizeof(theirs) - 1) > 0 &&
	       strcmp(own, theirs) == 0;
}

/* By how much this process's is ahead; 0 also where a kernel has no such namespaces. */
static inline int64_t time_namespace_ahead_ns(void)
{
	static const char first[] = "monotonic ";
	char text[128] = "", *end;
	const int fd = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	int64_t s;

	if (fd >= 0)
		(void)close(fd);
	if (n <= 0 || strncmp(text, first, sizeof(first) - 1) != 0 || !time_namespace_is_own())
		return 0;
	s = strtoll(text + sizeof(first) - 1, &end, 10);
	return s * 1000000000 + strtoll(end, NULL, 10);
}

#endif
