/* SPDX-License-Identifier: MIT. output.h: a file that is complete or not there. */
#ifndef PROTOND_VIEWER_OUTPUT_H
#define PROTOND_VIEWER_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "err.h"

/* What ends the program, and takes what is half written with it. <signal.h> */
#define ENDING_SIGNALS SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGXCPU

struct output {
	char target[PATH_MAX]; /* behind links */
	char temporary[PATH_MAX + 8];
	FILE *file;
};

/* A device, a pipe: written through, never replaced. */
bool output_is_special(const char *path);
/* A temporary file beside the target, or standard output ("-"). */
int output_open(const char *path, struct output *ret, struct err *e);
/* The temporary file takes the target's name; force: replaces an old file. r < 0: an earlier
 * failure, which leaves no file and is returned. */
int output_close(const char *path, struct output *o, bool force, int r, struct err *e);

#endif
