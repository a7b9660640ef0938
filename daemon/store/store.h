/* SPDX-License-Identifier: MIT. store.h: SQLite on a thread of its own. daemon/store alone speaks
 * SQL for the daemon; reading a session as a tree is proto/session/profile.c's.
 *
 * CONTRACT. A caller that breaks it ends the daemon (MUST); what a file or a disk does is -errno.
 *   thread     all of store_* on the thread that opened it (the loop's), except store_queued() and
 *              store_path(); what takes a struct sqlite3 runs in a store_work_fn, on the worker or a reader
 *   state      no batch is submitted once store_close() began, not by a done() either;
 *              what a done() calls then is told -ECANCELED
 *   told       done() runs once for each submit, call and question, on the loop thread
 *   ownership  a batch that was submitted is read-only: nobody adds to it; *take is empty
 *   handles    what crosses a void * of libuv or SQLite has a magic
 */
#ifndef PROTOND_STORE_H
#define PROTOND_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "batch.h"
#include "err.h"
#include "label.h"

struct sqlite3;
struct store;
struct uv_loop_s; /* uv_loop_t of <uv.h> */

/* Opens or makes the database (0600, WAL, STRICT, application id, migrations by user_version),
 * starts the worker. Words in e: -EBADF not ours, -EPROTO made by a newer version, -EROFS, -ENOSPC,
 * -EUCLEAN corrupt (says where the copy is and what to do). A network file system: -EREMOTE (WAL
 * breaks there; the caller chooses a local path and says so). */
int store_open(const char *path, struct uv_loop_s *loop, struct store **ret, struct err *e);
/* Waits for what was submitted, checkpoints, joins. NULL is fine. */
void store_close(struct store *s);

const char *store_path(const struct store *s);
void store_uuid(const struct store *s, uint8_t ret[16]); /* made at creation, in meta */

/* Before the loop runs: everything of sessions that are not finalized, processes not ended,
 * counters, anchors, journal position. */
int store_load(struct store *s, struct batch *ret, struct err *e);
/* Likewise: the process of this ring has ended, and all of it is stored. */
bool store_has_ended(struct store *s, const uint8_t ring[16]);

/* One transaction with all rows of the batch and its journal position. Takes *take (contents; frees
 * it after). done runs on the loop thread: 0, or -errno with words; on failure the batch was kept
 * and is tried again with the next one, so that nothing is lost; the journal is not forgotten
 * meanwhile. */
typedef void store_done_fn(void *arg, int r, const struct err *e);
void store_submit(struct store *s, struct batch *take, store_done_fn *done, void *arg);
/* The same in two steps, for a batch that others get, too: takes *take, and the caller is an owner;
 * one more owner, until it is stored. Without memory both end the daemon: the journal has it. */
const struct batch *store_share(struct batch *take);
void store_put(struct store *s, const struct batch *shared, store_done_fn *done, void *arg);
uint32_t store_queued(const struct store *s); /* batches and calls not yet done */
struct sink_state;
void store_state(const struct store *s, struct sink_state *ret); /* as the first of the sinks */

/* Runs work(db, arg) on the worker, between transactions, after everything submitted before; then
 * done on the loop thread with its result. For what changes something. */
typedef int store_work_fn(struct sqlite3 *db, void *arg, struct err *e);
void store_call(struct store *s, store_work_fn *work, void *arg, store_done_fn *done);
/* The same for what only reads, on a thread and a connection of its own (store_reader.h): it waits
 * for no transaction, and has all that was told to be stored when it was asked, perhaps not what
 * waits. Of one kind the answers come in the order of the questions. */
enum store_reader_kind {
	STORE_QUESTION, /* milliseconds: somebody waits */
	STORE_LONG,     /* a whole session: as long as it takes */
	STORE_READERS
};
void store_ask(struct store *s, enum store_reader_kind kind, store_work_fn *work, void *arg,
	store_done_fn *done);

/* Finalized sessions that are to go: the oldest first, and never one of the newest `keep` of its
 * user. Nobody sees a session any more as soon as it is chosen; its rows go in pieces of a few
 * milliseconds, between which batches and calls are worked on. */
#define PRUNED_NAMED 64u
struct store_prune {
	int64_t uid;       /* whose; -1: everybody's */
	int64_t before_ns; /* all that ended before this (CLOCK_REALTIME); 0: not by age */
	uint64_t
		max_bytes; /* then until no more is left: of the file's live pages, or of one user's
			     * sessions (session.stored_bytes); 0: not by size */
	uint32_t keep;
	uint32_t slice_ms; /* it is over by then, and says whether there is more; 0: to its end */
	bool dry;          /* only says which would go */

	/* What became of it: how many were chosen, what they took, rows deleted for it so far; and
	 * which the first of them were. After a failure, too. */
	struct {
		uint32_t n, phase; /* phase, at: the store's own */
		int64_t at;
		uint64_t bytes, rows;
	} went;
	bool more;
	struct {
		int64_t id;
		char name[128];
	} first[PRUNED_NAMED];
	uint64_t until_ns, chosen_ns; /* the store's own */
};
/* *p is the store's until done(). The file is cut, too, unless a reader keeps it from that. */
void store_prune(struct store *s, struct store_prune *p, store_done_fn *done, void *arg);

/* What the database may take, and each user's sessions of it; 0: no limit. Whoever is over his
 * share loses his own oldest finalized sessions; beyond all of it whoever has most does, as long as
 * that is more than a sixteenth, or half of an even share. Looked at after each transaction. */
struct store_limits {
	uint64_t bytes, bytes_per_uid;
};
void store_limit(struct store *s, const struct store_limits *l);
/* Any thread. Something still leaves, by itself. */
bool store_is_leaving(const struct store *s);
/* Why it does not; it is tried once a second. False: it does. */
bool store_leave_trouble(struct store *s, struct err *ret);

/* Work functions' tools (worker thread). */
/* Nobody sees it any more; its rows, and those that nobody else needs, go by themselves. */
int store_delete_session(struct sqlite3 *db, int64_t id, struct err *e);
/* -ENOENT: it has gone; -ENOSPC: no more tags, or no room. */
int store_label_session(
	struct sqlite3 *db, int64_t id, enum label_kind kind, const char *text, struct err *e);
/* *ret: CLOCK_REALTIME has gone on for a day, as far as anybody looked: sessions may be too old. */
int store_clock_lasts(struct sqlite3 *db, int64_t real_ns, bool *ret, struct err *e);
/* One session as a portable file image, with its timeline or without: sqlite3_malloc64()ed by
 * sqlite3_serialize(). */
int store_portable(struct sqlite3 *db, int64_t id, bool timeline, unsigned char **ret,
	int64_t *ret_bytes, struct err *e);

#endif
