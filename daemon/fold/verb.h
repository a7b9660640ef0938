/* SPDX-License-Identifier: MIT. verb.h: what is said about sessions: over the control socket, by a
 * job, and by a job's coming and going. */
#ifndef PROTOND_VERB_H
#define PROTOND_VERB_H

#include <stdint.h>

struct fold;
struct j_verb;
struct process;
struct rec_session;
struct row_session;
struct session;

int session_verb(struct fold *f, const struct j_verb *v); /* -ENOMEM, -ENOSPC */
void session_record(struct process *p, const struct rec_session *r);
void session_match_process(struct process *p, uint64_t mono_ns); /* a new one: which is it in? */
void session_owner_ended(struct process *p, uint64_t mono_ns);   /* those that it said are final */
void session_drop_process(struct session *s, struct process *p); /* its part, clean, is forgotten */

struct session *session_new(struct fold *f, const struct row_session *row);
void session_free(struct session *s);

#endif
