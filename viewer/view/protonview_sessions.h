/* SPDX-License-Identifier: MIT. protonview_sessions.h: the sessions of a database, for others than
 * the verb: the page. */
#ifndef PROTOND_VIEWER_PROTONVIEW_SESSIONS_H
#define PROTOND_VIEWER_PROTONVIEW_SESSIONS_H

#include "protonview_verb.h"

/* The verb's "columns" and "rows", which envelope_rows_end() ends, behind what run->out has. -errno
 * with words. */
int sessions_rows(struct run *run);

#endif
