/* SPDX-License-Identifier: MIT. start.h: a new session, and which jobs it is for. */
#ifndef PROTOND_QUERY_START_H
#define PROTOND_QUERY_START_H

#include "ask.h"
#include "change.h"
#include "journal.h"

/* A session with what `wish` says: name, backend, mode, data, context, hook, cpu, gpu, source, and
 * match with its pid, token or command (a glob); verb, uid, session and the stamps are filled in
 * here. Answers when those jobs record, or have not said so in JOBS_ANSWER_MS. -ESRCH: no such job;
 * -EEXIST: the name is taken; -ENOSPC. */
void query_start(struct daemon *d, const struct asker *a, const struct j_verb *wish,
	changed_fn *done, void *arg);

/* -EEXIST: a live session of that user has it, and a name must say which one is meant. */
int query_name_is_free(const struct daemon *d, uint32_t uid, const char *name, struct refusal *no);

#endif
