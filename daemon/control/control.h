/* SPDX-License-Identifier: MIT. control.h: a request of the control socket, between the server
 * (control.c), the verbs (verbs*.c) and the queries (query.c).
 *
 * A verb's handler gets a request and answers it once, now or later on the loop: request_result(),
 * values, request_done(); or request_fail(). Either frees the request. The client may be gone by
 * then: the answer is thrown away. All of it on the loop thread.
 */
#ifndef PROTOND_CONTROL_H
#define PROTOND_CONTROL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "codec.h"
#include "daemon.h"

/* Who is asking, from the socket. */
struct peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	bool privileged; /* root, or of the group protond, or this daemon is that user's own */
};

/* What a request's `session` refers to. */
struct session_ref {
	int64_t id, created_ns;
	uint8_t uuid[16];
	uint32_t uid, source, n_processes; /* source: enum session_source */
	uint8_t state;                     /* enum session_state */
	bool live;                         /* the fold has it */
	uint64_t duration_ns, launches, matched;
	char name[128];
	char command[80]; /* the beginning of its first process's; "": not stored yet */
};

struct client;
struct request;
typedef void verb_fn(struct request *q);

struct request {
	struct client *client;       /* NULL: gone */
	struct request *next, *prev; /* of the client */
	struct daemon *d;
	enum wire_verb verb;
	struct peer peer;
	struct session_ref session; /* of verbs that name one */
	struct wire_msg msg;
	const msgpack_object *params; /* a map */
	struct wire_buf out;
	verb_fn *then; /* query_session(): goes on here */
	void *work;    /* of the verb; free()d with the request */
	char frame[];  /* the message's bytes */
};

/* Opens the result, a map: write keys and values, then request_done(). */
struct wire_buf *request_result(struct request *q);
/* Sends the result. *fd (or NULL; -1: none) travels with it and is closed here, whatever happens.
 */
void request_done(struct request *q, int *fd);
/* next: what to do about it, or "". code is e->code. */
void request_fail(struct request *q, const struct err *e, const char *next);
/* The owner, root and the group may. */
bool request_may(const struct request *q, uint32_t owner);

/* One per verb of wire.h. */
#define X(id, method, who, help) verb_fn verb_##id;
WIRE_VERBS(X)
#undef X
extern verb_fn *const verb_table[WIRE_VERB_MAX];

/* --- query.c: what is asked of the fold and the store together ---------------------------------
 */

#define LOOK_MS 250u /* beside jobs that write without end: what is there by then */

/* Waits as LOOK_MS allows until what jobs wrote before is in the fold: a job's own session may be
 * meant. Finds params.session among live and stored ones that the peer may see, then calls then(q)
 * with q->session filled in; or fails the request. Empty or missing: @last. */
void query_session(struct request *q, verb_fn *then);

/* fn(q, ...) when what jobs did before the question is in the fold, or timeout_ms are over. */
void request_when_drained(struct request *q, uint32_t timeout_ms, drained_fn *fn);
/* Looks q->session up anew, by its uuid. */
void query_again(struct request *q, verb_fn *then);
/* The live session that a view takes when none is named: the newest that somebody asked for, else
 * the newest automatic one. -ENOENT. */
int query_newest_live(const struct request *q, struct session_ref *ret);
/* Writes "sessions": [...] of live and stored sessions into the result, then sends it. */
void query_list(struct request *q);
/* Appends finished jobs of params.session (in q->session when `by_session`) or of a pid, with their
 * notes, to the array that is open in q->out, closes it and sends the result. */
void query_ended(struct request *q, bool by_session, uint64_t pid);
/* One session as a sealed memfd, sent as {id, fd, bytes}. */
void query_portable(struct request *q);
void query_delete(struct request *q);
void query_prune(struct request *q, uint64_t older_than_s, uint64_t max_bytes);

/* verbs.c: every attached job, with a ring or without one yet. */
struct live_job {
	uint32_t pid, uid;
	const char *command; /* valid during the call */
};
typedef void live_job_fn(void *arg, const struct live_job *j);
void jobs_each_live(const struct daemon *d, live_job_fn *fn, void *arg);

#endif
