/* SPDX-License-Identifier: MIT. store_ask.h: what the daemon asks of its database beside storing
 * and loading: rows come as structs, so that whoever asks needs no SQL.
 *
 * Work of store_ask() or store_call(), but for store_ask_open().
 * Texts of a row are valid during the call that shows it.
 */
#ifndef PROTOND_STORE_ASK_H
#define PROTOND_STORE_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct sqlite3;

#define STORE_ASK_ROWS 4096u /* that one question gives, at most */

enum store_which {
	STORE_BY_ID,   /* id */
	STORE_BY_TEXT, /* name, or uuid beginning with prefix; newest first */
	STORE_LAST,    /* of uid, by class (selector.h), newest first */
	STORE_AUTO,    /* likewise, automatic ones only */
	STORE_TAG,     /* likewise, with the tag `name` only */
	STORE_JOB,     /* of uid, or of everybody, in which a process `id` is; likewise */
	STORE_ALL      /* of uid, or of everybody; newest first */
};
struct store_wish {
	enum store_which which;
	int64_t id;
	int64_t uid;        /* -1: anybody's */
	const char *name;   /* not NULL */
	const char *prefix; /* of the uuid in lower-case hex; "": none */
};

struct stored_session {
	int64_t id, created_ns;
	uint8_t uuid[16];
	uint32_t uid, source; /* enum session_source */
	uint8_t state;        /* enum session_state */
	uint32_t n_processes;
	uint64_t active_ns, launches, matched;
	int64_t finalized_ns;                     /* 0: not over */
	bool empty;                               /* over, with nothing in it */
	const char *name, *command, *tags, *note; /* NULL: none */
};
/* -errno ends the question with "out of memory". */
typedef int stored_session_fn(void *arg, const struct stored_session *s);
int store_ask_sessions(struct sqlite3 *db, const struct store_wish *w, stored_session_fn *fn,
	void *arg, struct err *e);
/* -ENOENT: it is not stored (yet). */
int store_ask_id(struct sqlite3 *db, const uint8_t uuid[16], int64_t *ret_id, char ret_name[128],
	struct err *e);

/* Whether the process of that ring has ended. */
int store_ask_ring_ended(
	struct sqlite3 *db, const uint8_t ring[16], bool *ret_ended, struct err *e);

/* Jobs that have ended, newest first, a row for each note of them: the rows of one job follow each
 * other; a job without notes has one row. */
struct ended_wish {
	int64_t session; /* its id; 0: any */
	int64_t uid;     /* -1: anybody's */
	int64_t pid;     /* 0: any */
};
struct ended_row {
	int64_t process, pid, rank; /* rank -1: none */
	const char *command, *end;  /* NULL: none */
	const uint8_t *ring;
	uint32_t ring_bytes;
	const char *note; /* NULL: none */
	int64_t session;  /* it was in, the one that a selector means; 0: none */
	const char *session_name;
};
/* 1: no further row is wanted; -errno as above. */
typedef int ended_row_fn(void *arg, const struct ended_row *r);
int store_ask_ended(
	struct sqlite3 *db, const struct ended_wish *w, ended_row_fn *fn, void *arg, struct err *e);

void store_image_free(unsigned char *image); /* of store_portable(); any thread */

/* A connection of one's own that only reads, cached little. Any thread;
 * the caller closes it, whatever came back. */
int store_ask_open(const char *path, struct sqlite3 **ret, struct err *e);
void store_ask_close(struct sqlite3 *db); /* NULL is fine */

#endif
