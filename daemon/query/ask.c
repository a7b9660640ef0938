/* SPDX-License-Identifier: MIT. ask.c: the words of a refusal. */
#include "ask.h"

#include <stdarg.h>
#include <stdio.h>

int refuse(struct refusal *no, int code, const char *next, const char *fmt, ...)
{
	va_list ap;

	no->err.code = code;
	no->next = next;
	va_start(ap, fmt);
	vsnprintf(no->err.text, sizeof(no->err.text), fmt, ap);
	va_end(ap);
	return code;
}

int refuse_err(struct refusal *no, const struct err *e, const char *next)
{
	*no = (struct refusal){.err = *e, .next = next};
	return e->code;
}

int refuse_memory(struct refusal *no)
{
	return refuse(no, -ENOMEM, "try again later", "protond is out of memory");
}
