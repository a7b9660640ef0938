/* SPDX-License-Identifier: MIT. sessions.h: a list of sessions as people read it, the same from
 * protonctl and from protonview. */
#ifndef PROTOND_VIEWER_SESSIONS_H
#define PROTOND_VIEWER_SESSIONS_H

#include "pick.h"
#include "term.h"

#define SESSIONS_NONE "no session yet; `protonctl run -- CMD` makes one\n"

void sessions_head(struct text *t, const struct term *term);
void sessions_row(struct text *t, const struct term *term, const struct pick_row *row);

#endif
