/* SPDX-License-Identifier: MIT. web_live.h: a session that goes on, look by look: what was done since
 * the look before. On the worker's thread. */
#ifndef PROTOND_WEB_WEB_LIVE_H
#define PROTOND_WEB_WEB_LIVE_H

#include "web_api.h"

#define LIVE_TOP 20u /* names in a frame */

struct web_look; /* opaque: what the look before saw */

/* One more look at a session: a frame for the page, JSON in one line. *look: NULL at first; kept from
 * one to the next. *ret_over: nothing more will come. An error is a frame, too. */
void web_live_look(struct web *w, const char *id, struct web_look **look, struct text *ret_frame,
	bool *ret_over);
void web_look_free(struct web_look *l); /* NULL is fine */

#endif
