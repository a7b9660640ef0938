/* SPDX-License-Identifier: MIT. daemon.h: what the rooms of protond share: one loop, one owner.
 *
 * intake ─► ring reader ─► journal ─► fold ─► (collect) ─► store;  control ─► verbs ─► journal ─►
 * fold. Everything here runs on the loop thread. Nothing blocks it.
 */
#ifndef PROTOND_DAEMON_H
#define PROTOND_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "config.h"
#include "err.h"
#include "fold.h"
#include "host_clock.h"
#include "journal.h"
#include "memfd.h"
#include "store.h"

struct intake;
struct control;
struct request;

struct export;

struct daemon {
	uv_loop_t loop;
	struct daemon_config config;
	char runtime[232]; /* resolved directory */
	int runtime_fd, rings_fd;
	bool private; /* of one user; ends by itself when idle */
	struct fold *fold;
	struct journal *journal;
	struct store *store;
	struct sinks *sinks; /* the store, and whoever else gets what is collected */
	struct intake *intake;
	struct control *control;
	void (*const *verbs)(struct request *); /* of control.sock, by enum wire_verb: set first */
	uint8_t boot_id[16], store_uuid[16];
	uint64_t started_mono_ns, stored_position;
	uint64_t refused_connections, bad_rings, unable_jobs, skipped_entries; /* for status */
	struct err
		store_trouble;   /* likewise: why the last transaction failed; code 0: it did not */
	int journal_trouble;     /* likewise: of the last flush */
	struct err home_trouble; /* likewise: why there is no journal in the directory */
	char refused_text[256], unable_text[256]; /* why the last one was */
	uint32_t refused_uid, unable_uid;         /* whose that was: he may read the words */
	struct export *exports;                   /* timelines being written */
	bool no_exports;                          /* it ends: no further one is begun */
	struct lent lent;                         /* results that somebody has open */
};

/* --- daemon.c --- */

/* Appends an entry with this payload, applies it, and after the tick's flush lets jobs know what is
 * wanted of them now (intake_wants). -ENOSPC, -ENOMEM. */
int daemon_apply(struct daemon *d, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes);
/* Calls fn(arg, false), from a later turn of the loop, when what jobs wrote before this call is in
 * the fold, with NOW entries and anchors; after timeout_ms, when as much of it is as could be
 * brought. fn(arg, true): the daemon ends. -ENOMEM. */
typedef void drained_fn(void *arg, bool ends);
int daemon_when_drained(struct daemon *d, uint32_t timeout_ms, drained_fn *fn, void *arg);
/* All that is in the fold now goes to the store; done (may be NULL) when the transaction holds. */
void daemon_commit(struct daemon *d, store_done_fn *done, void *arg);
/* FINALIZE now, FINALIZED when settled or after timeout_ms, then commit; then done(arg, r, e).
 * Several may wait at once. */
void daemon_finalize(struct daemon *d, const uint8_t session[16], uint32_t timeout_ms,
	store_done_fn *done, void *arg);
#define JOBS_ANSWER_MS 2000u /* so long a client waits for them to do it */
/* Lets jobs know what is wanted now, and calls done(arg, 0, …) when all of uid (0: any) and pid (0:
 * any) do it, or done(arg, -ETIMEDOUT, …). */
struct settle_who {
	uint32_t uid, pid;
};
void daemon_settle(struct daemon *d, const struct settle_who *who, uint32_t timeout_ms,
	store_done_fn *done, void *arg);

/* --- intake.c: agent.sock and the rings --- */

int intake_new(struct daemon *d, struct intake **ret, struct err *e);
void intake_free(struct intake *i);
uint32_t intake_jobs(const struct intake *i); /* attached or with a ring not yet ended */
/* Jobs attached that have no ring yet (nothing was wanted of them) are visible here only. */
typedef void intake_job_fn(void *arg, uint32_t pid, uint32_t uid, const uint8_t ring[16],
	const char *info, uint32_t info_bytes, uint32_t gpu_state, const char *gpu_text);
void intake_each_job(const struct intake *i, intake_job_fn *fn, void *arg);
/* What each thread of a job is in, read from its ring now. Returns how many, at most n. */
uint32_t intake_now(struct intake *i, const uint8_t ring[16], struct j_now *ret, uint32_t n);
/* pause: WANT_GPU_PAUSE for the job (pid 0: all jobs of uid; UINT32_MAX uid: any). Returns how
 * many. */
uint32_t intake_pause(struct intake *i, uint32_t pid, uint32_t uid, bool pause);

#endif
