/* SPDX-License-Identifier: MIT. protonview_sessions.h: the sessions of a database, for others than
 * the verb: the page. */
#ifndef PROTOND_VIEWER_PROTONVIEW_SESSIONS_H
#define PROTOND_VIEWER_PROTONVIEW_SESSIONS_H

#include "protonview_verb.h"

/* The verb's envelope, into run->out. -errno with words. */
int sessions_json(struct run *run);

#endif
