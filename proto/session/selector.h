/* SPDX-License-Identifier: MIT. selector.h: the words that stand for a session, as they may be
 * written: @last, @-N, @auto, @job:PID, @tag:NAME. What they mean is docs/protocol.md's. */
#ifndef PROTOND_SESSION_SELECTOR_H
#define PROTOND_SESSION_SELECTOR_H

#include <stdint.h>

#define SELECTOR_BACK_MAX 4000u
#define SELECTOR_WORDS                                                                   \
	"use a name, an id, the beginning of a uuid, @last, @-1 for the one before it, " \
	"@auto for the newest automatic one, @job:PID or @tag:NAME"

enum selector_kind { SELECT_LAST, SELECT_AUTO, SELECT_JOB, SELECT_TAG };
struct selector {
	enum selector_kind kind;
	uint32_t back; /* how many before that one */
	uint32_t pid;
	const char *tag; /* in the text that was parsed; "" unless SELECT_TAG */
};

/* What is meant is of the first class that there is one of: somebody asked for it, and something is
 * in it, or it goes on. */
enum session_choice {
	CHOICE_ASKED,
	CHOICE_AUTO,
	CHOICE_ASKED_EMPTY,
	CHOICE_AUTO_EMPTY,
	CHOICE_MAX
};

/* -EINVAL: it is none. */
int selector_parse(const char *ref, struct selector *ret);

#endif
