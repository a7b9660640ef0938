/* SPDX-License-Identifier: MIT. protonview_sessions.h: sessions for completion. For
 * protonview_run.c. */
#ifndef PROTOND_VIEWER_PROTONVIEW_SESSIONS_H
#define PROTOND_VIEWER_PROTONVIEW_SESSIONS_H

void sessions_complete(const char *begin); /* prints those that begin so */

#endif
