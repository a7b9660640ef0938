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

#include "err.h"
#include "fold.h"
#include "journal.h"
#include "memfd.h"
#include "store.h"

struct intake;
struct control;

enum auto_mode { AUTO_OFF, AUTO_SCOPES, AUTO_FULL };

/* clang-format off */
/* One table: protond.conf keys, PROTOND_* variables (upper case), --help, protond(8). */
#define CONFIG(X) /* key            type  default            what */                                                \
        X(runtime_dir,     STR, "",       "directory of sockets, rings and journal; empty: the usual place")         \
        X(db,              STR, "",       "database file, an absolute path (PROTOND_DB may be relative); empty: the usual place") \
        X(auto_session,    STR, "scopes", "automatic session of each job: off, scopes, full")                        \
        X(retention_days,  U64, "30",     "finalized sessions older than this are deleted; 0: never")                \
        X(retention_mb,    U64, "2048",   "the oldest sessions are deleted beyond this size; 0: never")              \
        X(commit_ms,       U64, "1000",   "longest time between two transactions, ms")                               \
        X(journal_mb,      U64, "64",     "journal since the last transaction that forces one, MiB")                 \
        X(flight_s,        U64, "0",      "keep at least this many seconds of journal; 0: only what is needed")      \
        X(lanes,           U64, "0",      "lanes of a ring, 64 MiB of them at most; 0: the library's default")       \
        X(lane_kb,         U64, "0",      "size of a lane, KiB, a power of two; 0: the library's default")           \
        X(trace_mb,        U64, "512",    "a session's timeline: the oldest leaves beyond this size")                \
        X(trace_s,         U64, "0",      "what of a timeline is older than this leaves; 0: at no age")              \
        X(idle_exit_s,     U64, "60",     "a private daemon ends after this long without job and client; 0: never")  \
        X(memory_mb,       U64, "24",     "for the trees of all jobs; what needs more counts in (other), MiB")         \
        X(jobs_per_uid,    U64, "256",    "attached jobs of one user")                                               \
        X(sessions_per_uid, U64, "0",    "sessions of one user that are not finalized; 0: a quarter of all 1024, of a private daemon all")
/* clang-format on */

struct config {
#define CONFIG_STR              char *
#define CONFIG_U64              uint64_t
#define X(key, type, def, help) CONFIG_##type key;
	CONFIG(X)
#undef X
};

struct export;

struct daemon {
	uv_loop_t loop;
	struct config config;
	char runtime[232]; /* resolved directory */
	int runtime_fd, rings_fd;
	bool private; /* of one user; ends by itself when idle */
	struct fold *fold;
	struct journal *journal;
	struct store *store;
	struct sinks *sinks; /* the store, and whoever else gets what is collected */
	struct intake *intake;
	struct control *control;
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
uint64_t mono_ns(void);
int64_t real_ns(void);

/* --- home.c */

/* The socket of this name that the service manager listens on for us (sd_listen_fds(3)), close-on-
 * exec and non-blocking; it is given once. -1: there is none. */
int home_inherited(const char *name, int type);

/* How many descriptors jobs, clients and exports that somebody has open may take; the rest of the
 * limit is our own. */
struct shares {
	uint32_t jobs, clients, lent;
};
struct shares home_descriptors(void);

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

/* --- control.c: control.sock --- */

int control_new(struct daemon *d, struct control **ret, struct err *e);
void control_free(struct control *c);
uint32_t control_clients(const struct control *c);

/* --- export.c --- */

/* Stored session → text of `format` in a sealed memfd of at most 1 GiB, lent to uid; done on the
 * loop with the descriptor (the caller closes it) and the size in *x. Commits first. phases: 0 all,
 * else that phase, from 1. */
struct export_result {
	int fd;
	uint64_t bytes;
	char name[128];
};
typedef void export_done_fn(void *arg, int r, const struct err *e, const struct export_result *x);
void export_session(struct daemon *d, uint32_t uid, const uint8_t session[16], const char *format,
	uint32_t phases, export_done_fn *done, void *arg);
/* Ends those that are being written, and lets none begin; their done() is called. Turns the loop.
 */
void export_stop(struct daemon *d);

#endif
