/* SPDX-License-Identifier: MIT. find.h: which session is meant, and which there are: the fold's
 * live ones laid over the stored ones. The store may be a commit behind, so the fold is right where
 * both know a session. */
#ifndef PROTOND_QUERY_FIND_H
#define PROTOND_QUERY_FIND_H

#include "ask.h"
#include "label.h"
#include "selector.h"

/* A session as it stood when it was looked up. */
struct session_ref {
	int64_t id, created_ns, ended_ns; /* ended_ns 0: not over */
	uint8_t uuid[16];
	uint32_t uid, source, n_processes; /* source: enum session_source */
	uint8_t state;                     /* enum session_state */
	bool live;                         /* the fold has it */
	bool empty;                        /* over, with nothing in it */
	uint64_t duration_ns, launches, matched;
	char name[LABEL_NAME];
	char command[80]; /* the beginning of its first process's; "": not stored yet */
	char tags[LABEL_TAGS], note[LABEL_NOTE];
};

struct fold_session;
void session_ref_of(struct session_ref *r, const struct fold_session *f);

typedef void session_found_fn(void *arg, const struct refusal *no, const struct session_ref *s);

#define NEXT_REF SELECTOR_WORDS

/* What `ref` means to the asker (docs/protocol.md; "" is @last): a name, an id, the beginning of a
 * uuid, a selector. Waits as LOOK_MS allows until what jobs wrote before is in the fold: a job's
 * own session may be meant. */
void query_session(struct daemon *d, const struct asker *a, const char *ref, session_found_fn *done,
	void *arg);
/* The session of this uuid as it stands now, in the fold or stored. */
void query_session_again(struct daemon *d, const struct asker *a, const uint8_t uuid[16],
	session_found_fn *done, void *arg);
/* The live session that a view takes when none is named: the newest that somebody asked for, else
 * the newest automatic one. False: there is none. */
bool query_newest_live(const struct daemon *d, const struct asker *a, struct session_ref *ret);

/* Newest first. */
struct session_list {
	const struct session_ref *session;
	uint32_t n, left_out; /* left_out: no memory for so many */
};
typedef void session_list_fn(void *arg, const struct refusal *no, const struct session_list *l);
/* All that the asker may see, live and stored. Waits likewise. */
void query_sessions(struct daemon *d, const struct asker *a, session_list_fn *done, void *arg);

#endif
