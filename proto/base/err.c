/* SPDX-License-Identifier: MIT. err.c: an error with words for people, owned by the caller. */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (e != NULL) {
		e->code = code;
		va_start(ap, fmt);
		vsnprintf(e->text, sizeof(e->text), fmt, ap);
		va_end(ap);
	}
	return code;
}
