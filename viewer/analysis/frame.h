/* SPDX-License-Identifier: MIT. frame.h: how a Python frame's name is written. Pure. */
#ifndef PROTOND_VIEWER_FRAME_H
#define PROTOND_VIEWER_FRAME_H

#include <stddef.h>

#include "err.h"

/* Proton's frame formats; the result is `name` or lies in buf. -EINVAL from _parse: unknown. */
enum frame_format {
	FRAME_FULL,
	FRAME_FILE_FUNCTION_LINE,
	FRAME_FUNCTION_LINE,
	FRAME_FILE_FUNCTION
};
int frame_format_parse(const char *text, enum frame_format *ret, struct err *e);
const char *frame_format(enum frame_format f, const char *name, char *buf, size_t n);

#endif
