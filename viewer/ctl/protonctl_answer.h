/* SPDX-License-Identifier: MIT. protonctl_answer.h: what stands in a daemon's answer. For verbs. */
#ifndef PROTOND_PROTONCTL_ANSWER_H
#define PROTOND_PROTONCTL_ANSWER_H

#include <stdint.h>

#include "codec.h"
#include "name.h"
#include "sessions.h"

/* The session that an answer is about, where the user said `said`: a selector is said to be that
 * one, on standard error. Words for people: "12 'train'". */
struct named {
	struct session_answer s;
	char words[LABEL_NAME + 32];
};
void answer_session(const msgpack_object *map, const char *said, struct named *ret);

/* How many a list of that key has; *ret: the first. 0 leaves *ret alone. */
uint32_t answer_items(const msgpack_object *map, const char *key, const msgpack_object **ret);
/* The text itself, cut to fit; "" if it is not a text. Returns buf. */
const char *answer_text(const msgpack_object *o, char *buf, size_t n);
/* To standard output, harmless; columns 0: all of it. */
void answer_put(const msgpack_object *map, const char *key, size_t columns);
/* Adds all texts of an answer: which of them are names of kernels is seen by how they begin. */
int answer_names(struct names *names, const msgpack_object *o); /* -ENOMEM */

#endif
