/* SPDX-License-Identifier: MIT. frame.c: how a Python frame's name is written. */
#include "frame.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

int frame_format_parse(const char *text, enum frame_format *ret, struct err *e)
{
	static const char *const names[] = {[FRAME_FULL] = "full",
		[FRAME_FILE_FUNCTION_LINE] = "file_function_line",
		[FRAME_FUNCTION_LINE] = "function_line",
		[FRAME_FILE_FUNCTION] = "file_function"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (enum frame_format)i;
			return 0;
		}
	}
	return err_set(e, -EINVAL,
		"-f '%s': use full, file_function_line, function_line or file_function", text);
}

static const char *after(const char *s, char c)
{
	const char *last = strrchr(s, c);

	return last == NULL ? s : last + 1;
}

/* A Python frame is "dir/file:line@function". */
const char *frame_format(enum frame_format f, const char *name, char *buf, size_t n)
{
	const char *file = after(name, '/'), *at = strrchr(name, '@');

	switch (f) {
	case FRAME_FILE_FUNCTION_LINE:
		return file;
	case FRAME_FUNCTION_LINE:
		return after(name, ':');
	case FRAME_FILE_FUNCTION:
		if (at == NULL || at < file)
			return file;
		if (snprintf(buf, n, "%.*s@%s", (int)strcspn(file, ":@"), file, at + 1) >= (int)n)
			buf[text_cut(buf, n - 2)] = '\0'; /* no part of a character */
		return buf;
	case FRAME_FULL:
	default:
		return name;
	}
}
