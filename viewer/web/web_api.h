/* SPDX-License-Identifier: MIT. web_api.h: what the page asks and is answered: docs/web.md. Each
 * answer is made of what the tools' own libraries say; the server and the report hand it out. Of one
 * thread at a time. */
#ifndef PROTOND_WEB_WEB_API_H
#define PROTOND_WEB_WEB_API_H

#include "protonview_verb.h"
#include "web_query.h"

struct web; /* opaque: what is shown: web_api.c */

/* refs: sessions and files, as given to a tool; each is opened once, so that a wrong one is told at
 * once. db: NULL, or the database that --db names. -errno with words. */
int web_new(const char *db, struct xla_dump *xla, char *const *refs, int n, struct web **ret,
	struct err *e);
void web_free(struct web *w); /* NULL is fine */
/* The same sources, opened anew, for another thread. -ENOMEM. */
int web_twin(const struct web *w, struct web **ret);

struct web_answer {
	int status;       /* of HTTP */
	const char *type; /* of the body */
	char file[128];   /* "", or the name under which a browser keeps it */
	struct text body;
	int fd; /* the body is all of this file, from its beginning; -1: it is above */
	uint64_t fd_bytes;
};
void web_answer_fini(struct web_answer *a);

/* uri: "api/s/12/tree?phase=1", and nothing but "api/…". Always an answer: an error is one, too. */
void web_answer(struct web *w, const char *uri, struct web_answer *ret);
/* Slow ones read all of a session but its events, walking ones these, too; quick ones what is shown of it. */
enum web_pace { PACE_SLOW, PACE_WALK, PACE_QUICK, PACE_N };
enum web_pace web_pace_of(const char *uri);
/* The same for what went wrong elsewhere; code: -errno. */
void web_answer_error(struct web_answer *ret, int status, int code, const char *words);

/* The i-th of those that web_new() was given, as addresses have it: "12", or "f1" of a file. */
const char *web_shown(const struct web *w, int i);
/* Where the timeline of a session begins and ends; false: it has none. */
bool web_range(struct web *w, const char *id, uint64_t *ret_t0, uint64_t *ret_t1);
/* What a session or a file is called. */
void web_title(struct web *w, const char *id, char *ret, size_t n);

#endif
