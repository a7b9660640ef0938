/* SPDX-License-Identifier: MIT. web_stream.h: what goes on, as it goes: one stream of events to each
 * page that looks at a live session. Pages of one session share its looks; who reads slowly gets the
 * newest frame next, and never those between. For web_server.c, on its loop. */
#ifndef PROTOND_WEB_WEB_STREAM_H
#define PROTOND_WEB_WEB_STREAM_H

#include "web_live.h"

struct MHD_Connection;
struct MHD_Response;

#define STREAMS_MAX 16u /* pages at once */

struct stream_watch { /* a session that somebody looks at */
	char id[24];
	struct web_look *look;
	struct text frame; /* the newest */
	uint64_t number;   /* of it; 0: none yet */
	uint64_t due_ms, took_ms;
	bool over;
	uint32_t clients;
};

struct stream_client;
struct streams { /* zero-initialised: nobody */
	struct stream_watch watch[STREAMS_MAX];
	struct stream_client *client[STREAMS_MAX];
	uint64_t now_ms; /* the loop's, told with each turn */
};

/* The body of an answer to this connection; NULL: too many. */
struct MHD_Response *stream_open(struct streams *s, struct MHD_Connection *c, const char *id);
/* One whose look is due; NULL: none. */
struct stream_watch *stream_due(struct streams *s);
/* In how many ms there is something to do; -1: there are no streams. busy: no look can begin. */
int stream_wait_ms(const struct streams *s, bool busy);
/* On the worker's thread: into *ret, since the loop may read the frame before. */
void stream_look(struct web *w, struct stream_watch *of, struct text *ret, bool *ret_over);
void stream_looked(struct streams *s, struct stream_watch *of, struct text *take, bool over);
/* Wakes those that have something to send. */
void stream_turn(struct streams *s, uint64_t now_ms);
/* The last word to all of them; then, when their connections are closed, what is left. */
void stream_end(struct streams *s);
void stream_fini(struct streams *s);

#endif
