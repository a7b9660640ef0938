/* SPDX-License-Identifier: MIT. progress.h: how far a long work is, as a line on standard error where
 * that is a terminal, and nowhere else. */
#ifndef PROTOND_VIEWER_PROGRESS_H
#define PROTOND_VIEWER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* NULL: nobody sees it */
	uint64_t began_ns, drawn_ns;
	bool drawn;
};

void progress_begin(struct progress *p, const char *what);
/* done of all; bytes: written or read so far, 0: not said. */
void progress_step(struct progress *p, double done, double all, uint64_t bytes);
void progress_end(struct progress *p); /* the line is gone */

#endif
