/* SPDX-License-Identifier: MIT. sessions.h: sessions as people read them, the same from protonctl
 * and from protonview. */
#ifndef PROTOND_VIEWER_SESSIONS_H
#define PROTOND_VIEWER_SESSIONS_H

#include "codec.h"
#include "label.h"
#include "listing.h"
#include "pick.h"
#include "term.h"

#define SESSIONS_NONE "no session yet; `protonctl run -- CMD` makes one\n"

void sessions_print(struct text *t, const struct term *term, const struct listing *l);
/* On standard error: how many are left out, and how to see them. */
void sessions_say_left_out(const struct listing *l);

/* A session of a daemon's answer. */
struct session_answer {
	struct pick_row row;
	char uuid[33], name[LABEL_NAME], state[16], source[16], command[256];
	char tags[LABEL_TAGS], note[LABEL_NOTE];
};
void session_of_answer(const msgpack_object *map, struct session_answer *ret);

/* "12 'train'", harmless. */
void session_words(const struct pick_row *row, char *ret, size_t n);
/* Where ref is a selector (@...): what it stands for, on standard error. */
void session_say(const char *ref, const struct pick_row *row);

#endif
