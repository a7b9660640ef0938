/* SPDX-License-Identifier: MIT. end.c: the end of a program whose main() ended by pthread_exit().
 * Its process ends with its last thread, in exit(0): but that would be one of ours, which never
 * end. Parked thread. */
#include "end.h"

#include <stdlib.h>

#include "doorbell.h"
#include "info.h"

/* The engine's thread is made and never ended by this one. /proc/self is of the main thread, which
 * is still listed when it has ended. */
void pd_end_with_program(void)
{
	const bool engine = atomic_load_explicit(&HOT->engine, memory_order_acquire) != NULL;
	const unsigned long rest = engine ? 3 : 2; /* the main thread, this one, the engine's */
	char buf[PD_STAT];
	const char *state = pd_stat(buf, 3), *threads;

	if (state == NULL || *state != 'Z')
		return;
	threads = pd_stat(buf, 20);
	if (threads != NULL && strtoul(threads, NULL, 10) == rest)
		(exit)(0); /* as the C library does behind a program's last thread */
}
