/* SPDX-License-Identifier: MIT. daemon.h: the door of the loop: what daemon/query and
 * daemon/control see of it, and may ask. One loop, one owner: all of it on the loop's thread, and
 * nothing blocks it.
 *
 * intake ─► ring reader ─► journal ─► fold ─► (collect) ─► store;  control ─► verbs ─► journal ─►
 * fold.
 */
#ifndef PROTOND_DOOR_DAEMON_H
#define PROTOND_DOOR_DAEMON_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "err.h"

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "unknown"
#endif

struct control;
struct daemon_config;
struct export;
struct fold;
struct inquiry;
struct intake;
struct journal;
struct lent;
struct request;
struct sinks;
struct store;

struct daemon {
	uv_loop_t loop;
	pthread_t thread;                   /* the loop's */
	const struct daemon_config *config; /* the loop's own */
	const char *auto_session;           /* as config has it */
	uint64_t idle_exit_s;               /* likewise; 0 where it does not end by itself */
	char runtime[232];                  /* resolved directory */
	int runtime_fd, rings_fd, lock_fd;  /* it, rings/ in it, and its lock */
	bool made_runtime;                  /* by us, when it was opened */
	bool private;                       /* of one user; ends by itself when idle */
	struct fold *fold;
	struct journal *journal;
	struct store *store;
	struct sinks *sinks;   /* the store, and whoever else gets what is collected */
	struct intake *intake; /* attached.h */
	struct control *control;
	void (*const *verbs)(struct request *); /* of control.sock, by enum wire_verb: set first */
	uint8_t boot_id[16], store_uuid[16];
	uint64_t started_mono_ns, stored_position;
	uint64_t refused_connections, bad_rings, unable_jobs, skipped_entries; /* for status */
	uint64_t readings_dropped, readings_refused; /* likewise: of protond-device */
	uint64_t
		held_back; /* likewise: rings passed over, whose user has his share of the journal */
	uint64_t given_up; /* likewise: rings of the dead, whose user left too much memory */
	uint32_t held_back_uid, given_up_uid; /* the last one's */
	struct err
		store_trouble;   /* likewise: why the last transaction failed; code 0: it did not */
	bool store_lacks;        /* likewise: what it did not store is more than upkeep */
	int journal_trouble;     /* likewise: of the last flush */
	struct err home_trouble; /* likewise: why there is no journal in the directory */
	/* Why the last one was, and whose that was: he may read the words. */
	char refused_text[256], unable_text[256], bad_ring_text[256];
	uint32_t refused_uid, unable_uid, bad_ring_uid;
	struct export *exports;    /* timelines being written */
	struct inquiry *inquiries; /* to the database: inquire.h */
	bool ends;                 /* nothing further is begun for anybody */
	struct lent *lent;         /* results that somebody has open: memfd.h */
};

#define MUST_LOOP(d) MUST(pthread_equal((d)->thread, pthread_self()))

/* What became of what was asked: 0, or -errno with words. */
typedef void asked_fn(void *arg, int r, const struct err *e);

/* Appends an entry with this payload, applies it, and after the tick's flush lets jobs know what is
 * wanted of them now (wants_tell). -ENOSPC, -ENOMEM. */
int daemon_apply(struct daemon *d, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes);
/* Calls fn(arg, false), from a later turn of the loop, when what that user's jobs (-1: all) wrote
 * before this call is in the fold, with NOW entries and anchors; after timeout_ms, when as much of
 * it is as could be brought. fn(arg, true): the daemon ends. -ENOMEM. */
typedef void drained_fn(void *arg, bool ends);
int daemon_when_drained(
	struct daemon *d, int64_t uid, uint32_t timeout_ms, drained_fn *fn, void *arg);
/* All that is in the fold now goes to the store; done (may be NULL) when the transaction holds. */
void daemon_commit(struct daemon *d, asked_fn *done, void *arg);
/* FINALIZE now, FINALIZED when settled or after timeout_ms, then commit; then done(arg, r, e).
 * Several may wait at once. */
void daemon_finalize(struct daemon *d, const uint8_t session[16], uint32_t timeout_ms,
	asked_fn *done, void *arg);
#define JOBS_ANSWER_MS 2000u /* so long a client waits for them to do it */
/* Lets jobs know what is wanted now, and calls done(arg, 0, …) when all of uid (0: any) and pid (0:
 * any) do it, or done(arg, -ETIMEDOUT, …). */
struct settle_who {
	uint32_t uid, pid;
};
void daemon_settle(struct daemon *d, const struct settle_who *who, uint32_t timeout_ms,
	asked_fn *done, void *arg);

#endif
