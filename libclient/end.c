/* SPDX-License-Identifier: MIT. end.c: the end of a program whose main() ended by pthread_exit().
 * Its process ends with its last thread, in exit(0): but that would be one of ours, which never
 * end. Parked thread. */
#include "doorbell.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the main thread, which is still listed when it has ended: its state, field 3, and how many
 * threads there are, field 20. The command name (field 2) may hold anything, also ") ". */
static bool main_stat(char *ret_state, unsigned long *ret_threads)
{
	const int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char buf[1024];
	const char *p;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	p = strrchr(buf, ')');
	if (p == NULL || p[1] == '\0')
		return false;
	*ret_state = p[2];
	for (int field = 2; p != NULL && field < 20; field++) {
		p = strchr(p, ' ');
		p = p != NULL ? p + 1 : NULL;
	}
	*ret_threads = p != NULL ? strtoul(p, NULL, 10) : 0;
	return p != NULL;
}

/* The engine's thread is made and never ended by this one. */
void pd_end_with_program(void)
{
	const bool engine = atomic_load_explicit(&HOT->engine, memory_order_acquire) != NULL;
	const unsigned long rest = engine ? 3 : 2; /* the main thread, this one, the engine's */
	unsigned long threads;
	char state;

	if (main_stat(&state, &threads) && state == 'Z' && threads == rest)
		(exit)(0); /* as the C library does behind a program's last thread */
}
