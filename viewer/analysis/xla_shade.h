/* SPDX-License-Identifier: MIT. xla_shade.h: a session's operators by the names of XLA's dump, in all that is
 * read of an open database: exports, timelines, the page. The file stays as it is. */
#ifndef PROTOND_ANALYSIS_XLA_SHADE_H
#define PROTOND_ANALYSIS_XLA_SHADE_H

#include <stdbool.h>

#include "xla_dump.h"

struct sqlite3;

struct xla_shade {
	const struct xla_dump *dump;
	struct xla_named named;
	bool done; /* a database was opened */
};

/* source_options.prepare of a struct xla_shade. */
int xla_shade(void *shade, struct sqlite3 *db, int64_t session, struct err *e);

#endif
