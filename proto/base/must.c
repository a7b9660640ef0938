/* SPDX-License-Identifier: MIT. must.c: the end of a program whose own promise is broken. */
#include "must.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void must_fail(const char *what, const char *file, int line, const char *function)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "event=must_failed what=\"%s\" at=%s:%d in=%s\n", what,
		file, line, function);

	if (n > (int)sizeof(text) - 1)
		n = (int)sizeof(text) - 1;
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0) {
		/* nobody listens: the core dump says it */
	}
	abort();
}
