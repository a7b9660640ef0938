/* SPDX-License-Identifier: MIT. change.h: what can be done to a session that lives, and to jobs.
 *
 * Each change becomes a VERB entry of the journal; nothing is changed past it. Whoever hands in a
 * struct session_ref got it from find.h: it is one that he may see.
 */
#ifndef PROTOND_QUERY_CHANGE_H
#define PROTOND_QUERY_CHANGE_H

#include "ask.h"
#include "find.h"
#include "journal.h"

/* What came of it. */
struct changed {
	struct session_ref session; /* as it is now; of a start: id, uuid and name */
	uint32_t jobs;              /* that it concerns */
	bool settled;               /* those jobs do it already */
};
typedef void changed_fn(void *arg, const struct refusal *no, const struct changed *c);

/* At once; *s is as it is then. -EALREADY: it has been finalized. */
int query_activate(struct daemon *d, struct session_ref *s, struct refusal *no);
int query_deactivate(struct daemon *d, struct session_ref *s, struct refusal *no);

/* Likewise: it records what these switches say, too, or no more: enum session_switch bits. */
int query_switch(
	struct daemon *d, struct session_ref *s, uint8_t on, uint8_t off, struct refusal *no);

/* Answers when all of it is stored. One that was finalized before: at once. */
#define FINALIZE_MS_MAX 60000u
void query_finalize(struct daemon *d, const struct asker *a, const struct session_ref *s,
	uint32_t timeout_ms, changed_fn *done, void *arg);

typedef void ready_fn(void *arg, const struct refusal *no);
/* What jobs wrote before is in the fold, or as much of it as could be brought; at once if the
 * session does not live. */
void query_drain(struct daemon *d, const struct session_ref *s, ready_fn *done, void *arg);
/* Likewise, and the database has it. */
void query_store(struct daemon *d, const struct session_ref *s, ready_fn *done, void *arg);

/* Jobs of the asker (all jobs, if privileged), or one of them by pid (0: all), let go of CUPTI or
 * have it again. -ENOENT: no such job. */
void query_pause(struct daemon *d, const struct asker *a, uint32_t pid, bool pause,
	changed_fn *done, void *arg);

/* Whether he may end the daemon: -EPERM for whoever is neither root nor its own user. */
int query_may_stop(const struct asker *a, struct refusal *no);

/* For the other files of this room: stamps the verb and applies it; -ENOSPC, -ENOMEM. And to a
 * session, without further words. And what is said where that failed. */
int change_apply(struct daemon *d, struct j_verb *v);
int change_apply_to(struct daemon *d, const struct session_ref *s, enum verb verb);
int change_failed(struct refusal *no, int r, const char *what, const char *name);

#endif
