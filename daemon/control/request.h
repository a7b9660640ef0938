/* SPDX-License-Identifier: MIT. request.h: one request of the control socket, from its frame to its
 * answer.
 *
 *   client.c ── frame ──► request_new() ──► verb(q) ──► daemon/query ──► request_done() ──►
 * client.c
 *
 * Contract, asserted (MUST), never on a client's bytes:
 * - A verb gets a request and answers it exactly once, now or later: request_result(), values,
 *   request_done(); or request_fail(), request_refuse(). From then on the request is not the
 * verb's.
 * - On the loop's thread.
 * - What crosses a `void *` comes back through request_of().
 * The client may be gone by then: the answer is thrown away.
 */
#ifndef PROTOND_CONTROL_REQUEST_H
#define PROTOND_CONTROL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "ask.h"
#include "codec.h"
#include "find.h"

#define REQUEST_MAGIC 0x52515354u

struct client;
struct daemon;
struct fair_user;
struct request;
typedef void verb_fn(struct request *q);
/* The answer is in q->out, or nothing is (no memory for words). *fd: goes with it, or -1. */
typedef void answer_fn(struct request *q, int *fd);

struct request {
	uint32_t magic; /* REQUEST_MAGIC until it is answered */
	uv_thread_t loop;
	struct client *client;       /* the client's own: NULL: gone */
	struct fair_user *user;      /* likewise: whose it is; NULL: ended */
	struct request *next, *prev; /* likewise: of the client */
	answer_fn *answer;           /* likewise; takes the request */
	struct daemon *d;
	struct asker who;
	struct session_ref session; /* of verbs that name one: params.h */
	verb_fn *then;              /* param_session(): goes on here */
	struct wire_msg msg;
	const msgpack_object *params; /* a map */
	struct wire_buf out;
	char *frame; /* the message's bytes, owned */
};

/* Reads the frame. -ENOMEM; -EBADMSG, -E2BIG with words: not a request. The caller fills in what is
 * the client's, d and who. */
int request_new(const char *frame, size_t n, struct request **ret, struct err *e);
void request_free(struct request *q); /* NULL is fine */
/* Gives back everything but the struct: what is left knows only that it was answered. */
void request_empty(struct request *q);

struct request *request_of(void *p);

/* Opens the result, a map: write keys and values, then request_done(). */
struct wire_buf *request_result(struct request *q);
/* Sends the result. *fd (or NULL; -1: none) travels with it and is closed here, whatever happens.
 */
void request_done(struct request *q, int *fd);
/* next: what to do about it, or "". code is e->code. */
void request_fail(struct request *q, const struct err *e, const char *next);
void request_refuse(struct request *q, const struct refusal *no);
/* -EINVAL: a parameter is not what it may be. */
void request_wrong(struct request *q, const char *what, const char *next);

#endif
