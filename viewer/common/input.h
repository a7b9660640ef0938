/* SPDX-License-Identifier: MIT. input.h: files that are read: what would keep whoever opens or reads it waiting is
 * refused, in words. */
#ifndef PROTOND_VIEWER_INPUT_H
#define PROTOND_VIEWER_INPUT_H

#include "err.h"

/* 0: a regular file. -EBADMSG: a folder, a pipe, a socket, a device; the words end in `next`, what to do. */
int input_check(const char *path, const char *next, struct err *e);
/* A descriptor of such a file, or of a shell's <(COMMAND); opening never waits. */
int input_open(const char *path, const char *next, struct err *e);

#endif
