/* SPDX-License-Identifier: MIT. ask.h: who asks, and how somebody is refused.
 *
 * daemon/query answers questions about sessions, jobs and the daemon itself with plain structs; it
 * knows neither sockets nor MessagePack, so that the control socket is one front end among others.
 *
 *   front end ── asker, wish ──► query_xxx() ──► fold, now                    ──► struct, or
 * visitor └─► store_ask(): store_ask.h ──┘     done(arg, …)
 *
 * Contract, asserted (MUST) where it can be:
 * - All of it is called, and calls back, on the loop's thread.
 * - done() is called exactly once for each question, before query_xxx() returns or later; the asker
 *   keeps `arg` alive until then. It may ask further questions.
 * - In done(), `no` is NULL and the answer is there, or `no` says why there is none. Both are the
 *   question's and valid during the call only, unless the header says otherwise.
 * - What an asker may not see does not exist: "no session", not "not permitted".
 * - The store's thread touches nothing but the question's own struct.
 */
#ifndef PROTOND_QUERY_ASK_H
#define PROTOND_QUERY_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct daemon;

struct asker {
	uint32_t uid, pid; /* pid 0: not a process of this host */
	bool privileged;   /* root, or of the group protond, or this daemon is that user's own */
};

/* The owner, root and the group may. */
static inline bool asker_may(const struct asker *a, uint32_t owner)
{
	return a->privileged || a->uid == owner;
}

/* Whose it is when lists are made: -1 everybody's. */
static inline int64_t asker_sees(const struct asker *a)
{
	return a->privileged ? -1 : (int64_t)a->uid;
}

/* Why there is no answer: what happened (err.code is -errno), and what to do about it. */
struct refusal {
	struct err err;
	const char *next; /* static words, or "" */
};

/* Fills it in; returns code. */
int refuse(struct refusal *no, int code, const char *next, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int refuse_err(struct refusal *no, const struct err *e, const char *next);
int refuse_memory(struct refusal *no);

/* What to do where the database failed. */
#define NEXT_DOCTOR "`protonctl doctor` checks the database"

#define LOOK_MS 250u /* beside jobs that write without end: what is there by then */

#endif
