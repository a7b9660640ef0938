/* SPDX-License-Identifier: MIT. output_folder.h: a folder that is complete or not there. */
#ifndef PROTOND_VIEWER_OUTPUT_FOLDER_H
#define PROTOND_VIEWER_OUTPUT_FOLDER_H

#include <limits.h>
#include <stdbool.h>

#include "err.h"

struct output_folder {
	char temporary[PATH_MAX];
};

/* A temporary folder beside the target. mark: a file that each folder of this kind has: what has
 * none is not overwritten. -EEXIST with words. From here to the close a signal that would end the
 * program only says so: whoever writes asks, and stops. */
int output_folder_open(
	const char *path, const char *mark, bool force, struct output_folder *ret, struct err *e);
bool output_folder_ended(void);
/* The temporary folder takes the target's name; force: in place of an older one. r < 0: an earlier
 * failure, which leaves nothing and is returned. */
int output_folder_close(
	const char *path, struct output_folder *o, bool force, int r, struct err *e);

#endif
