/* SPDX-License-Identifier: MIT. loop.h: what the I/O side of protond (daemon.c, commit.c, rings.c,
 * drain.c, intake.c, spool.c, sessions.c...) shares among its own files; the other rooms of the
 * daemon see daemon.h only.
 *
 *   job ──agent.sock──► intake.c ──► rings.c: struct ring ◄── spool.c (rings found at start)
 *                                       │ reader.c: pread
 *                     daemon.c tick ► drain.c ──► journal ──► fold ──► commit.c ──► store
 *
 * Loop thread only, all of it.
 */
#ifndef PROTOND_DAEMON_LOOP_H
#define PROTOND_DAEMON_LOOP_H

#include "daemon.h"
#include "log.h"
#include "reader.h"

#ifndef PROTOND_BUILD_VERSION
#define PROTOND_BUILD_VERSION "unknown"
#endif

#define RING_NAME_BYTES_TEXT 96u
#define DRAIN_BYTES          (2u << 20) /* per ring and tick */
#define DRAIN_NS             2000000u   /* likewise */
#define BEHIND_BYTES_S       (2u << 20) /* per ring and second, while the store is behind */
#define FRESH_MAX            (1u << 20) /* bytes of new rows that are collected at once */
#define FLUSH_BYTES          (1u << 20) /* staged, at most, between two flushes */
#define SETTLE_MS            5000u      /* a finalize waits so long for launches in flight */

#define container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

struct protond;
struct conn;

/* waiting: known from store, journal or spool, its file not seen yet;   live: being drained;
 * gone: the process is dead, the last drain is due;   ended: END is in the journal, the files go
 * when the store has it.          waiting ─► live ─► gone ─► ended ─► freed */
enum ring_state { RING_WAITING, RING_LIVE, RING_GONE, RING_ENDED };

struct ring {
	struct ring *next;
	struct protond *p;
	enum ring_state state;
	uint8_t uuid[16];
	uint32_t pid, ns_pid, uid; /* pid: the host's; 0 unknown */
	uint64_t pid_start;
	char file[RING_NAME_BYTES_TEXT]; /* below rings/, without suffix; "": a memfd */
	struct reader reader;            /* open in live and gone, and while its file is in ended */
	uint64_t *head; /* [RING_LANES_MAX] known before the file is open, or NULL */
	uint32_t n_heads;
	int ctl_fd;           /* -1: none */
	uint32_t want, nap;   /* what the control file says */
	uint32_t gpu_mask;    /* bits that the job's PROTOND_GPU leaves */
	uint32_t gpu_more;    /* bits that it adds */
	bool paused, adopted; /* adopted: PROCESS is in the journal */
	bool gpu_on;          /* its automatic session has GPU */
	bool unreadable;      /* its file became short: nothing more comes */
	bool noted;           /* dead: its last now block and counts are in the journal */
	bool kept, let_go;    /* systemd has it, too; is not to have it any more: kept.c */
	uint64_t beat_ns;     /* last one written */
	int pidfd;            /* -1: none */
	uv_poll_t pid_poll;   /* initialised while polling */
	bool polling, closing;
	struct conn *conn;     /* borrowed; NULL: the job is not connected */
	uint64_t gone_ns;      /* when the process was seen to be dead */
	uint64_t end_position; /* of the journal, behind END; 0: END is not flushed yet */
	uint64_t counts_sum;   /* of the counters last journaled, to see a change */
	bool joining;          /* fold_is_joining() at the last look */
	/* the window: see drain.c */
	uint8_t phase;
	uint32_t cursor;            /* lane that the phase is at */
	uint32_t sweeps;            /* counts taken */
	uint64_t taken_ns;          /* when it was last drained: see DRAIN_TICK */
	uint64_t look_ns, whole_ns; /* when this window began; when the last whole one did */
};

struct finalizer {
	struct finalizer *next;
	uint8_t session[16];
	uint64_t not_before_ns, deadline_ns;
	uint64_t asked_ns;   /* what its jobs published before is to be in the fold */
	bool say;            /* sessions.c: FINALIZE was not said yet */
	store_done_fn *done; /* may be NULL */
	void *arg;
};

#define ORPHANS_MAX 16u

struct protond {
	struct daemon d;
	enum auto_mode auto_mode;
	bool stopping, ok; /* ok: nothing forced us to end */
	bool looping;      /* d.loop is initialised */
	int lock_fd;
	/* Of files that were taken for rings, and of what was not: that may be a file of the job's
	 * own making, whose close() lasts as long as the job likes, and no ring's waits behind it.
	 */
	struct closer *closer, *stray_closer;
	struct ring *rings;
	uint32_t n_rings;

	uv_timer_t tick, second, commit_timer;
	uv_idle_t again; /* a tick at once; either this or the timer is set */
	uv_signal_t sig_term, sig_int, sig_hup;
	uint64_t quiet_since_ns;        /* last tick that moved anything */
	uint64_t ticked_ns;             /* the last tick */
	uint32_t nap, last_nap;         /* what jobs are told, or were; 0: we look often */
	uint64_t idle_since_ns;         /* no job and no client since; 0: there is one */
	uint64_t watchdog_ns, alive_ns; /* home_watchdog_ns(); when we last said that we live */
	uint32_t next_ring, next_gone;  /* round robin: of the living, of the dead */
	bool behind;                    /* the store does not keep up: see DRAIN_TICK */
	bool journal_stuck;             /* a flush failed: nothing is drained until one works */
	bool stage_stored; /* what could not be flushed is in a transaction: it is not to be flushed
			    */
	uint64_t staged;   /* bytes since the last flush */
	uint64_t drain_ns; /* for one ring in one tick: DRAIN_NS; tests take their time */

	/* The arena keeps one window's bytes between scanning and staging. */
	uint8_t *arena; /* DRAIN_BYTES + READER_PIECE */
	uint32_t arena_used;
	struct journal_entry
		*replayed; /* entries made while the journal is not written to, or NULL */

	uint64_t anchor_ns; /* when the last one was appended */
	uint64_t cost_ns;   /* as last appended */
	bool saw_session;   /* a SESSION record was drained since the sessions were looked at */

	struct kept *kept; /* what systemd handed over, until it is known whose it is */
	struct finalizer *finalizers;
	struct drained *drained; /* who waits: drained.c */
	struct orphans {
		uint8_t uuid[ORPHANS_MAX][16];
		uint32_t n;
	} orphans; /* runs without their protonctl, at the last look */
	struct settler *settlers;
	uint32_t commits; /* submitted, not done */
	bool commit_failed, commit_due, trim_due;
	bool apart;  /* the last tick was for a transaction or a trim, and not for the rings */
	bool closed; /* the store takes nothing more */
	struct asked *asked; /* who waits for the next one: commit.c */
	uint64_t last_commit_ns, pruned_ns, spool_ns;
	int64_t trimmed;     /* what malloc had left when it last gave back to the system */
	uint64_t flight[64]; /* journal positions, one per flight_s / 64 */
	uint32_t flight_at;
	uint64_t flight_ns;
};

static inline struct protond *protond_of(struct daemon *d)
{
	return container_of(d, struct protond, d);
}

/* --- config.c
 * --------------------------------------------------------------------------------------- */

/* Defaults, then file (NULL: the usual one, which may be missing), then PROTOND_* variables.
 * -ENOENT, -EINVAL with file, line and remedy. */
int config_load(struct config *c, const char *file, bool private, struct err *e);
int config_parse(struct config *c, const char *text, size_t bytes, const char *name, struct err *e);
void config_free(struct config *c);
int config_auto(const struct config *c, enum auto_mode *ret, struct err *e);

/* --- place.c: directories, sockets' places, the lock
 * ----------------------------------------------- */

/* Resolves and makes d->runtime and rings/ (owner and mode checked), opens both, takes the lock.
 * -EBUSY: another protond runs there. */
int home_open(struct protond *p, struct err *e);
void home_close(struct protond *p);
bool home_is_gone(const struct protond *p); /* somebody removed the directory below us */
/* Makes what lacks; *ret_new: the directory is another one now. */
int home_again(struct protond *p, bool *ret_new, struct err *e);
int home_db(
	const struct protond *p, char *ret, size_t n, struct err *e); /* and makes its directory */
int home_db_local(
	const struct protond *p, char *ret, size_t n, struct err *e); /* not on a network */
/* A protond answers on this directory's agent.sock. */
bool home_answers(const char *runtime);
/* The rings directory of a user, made if need be; *ret "" when there can be none: a memfd then. */
void home_rings_of(const struct protond *p, uint32_t uid, char *ret, size_t n);
/* The service: whoever started it starts it again. A private one may have a stranger's variables.
 */
bool home_is_managed(const struct protond *p);
/* To systemd's NOTIFY_SOCKET, with a descriptor unless it is -1. -ENOENT: there is none. */
int home_notify(const char *state, int fd);
uint64_t home_watchdog_ns(void); /* so often systemd wants to hear of us; 0: never */
/* systemd keeps descriptors for us. A private one may have a stranger's variables. */
bool home_keeps(const struct protond *p);
#define HOME_KEPT "ring-" /* what their names begin with */
/* Each that came back with a name like that, close-on-exec; it is the callee's. */
typedef void home_kept_fn(void *arg, int fd, const char *name, size_t bytes);
void home_kept(home_kept_fn *fn, void *arg);

/* --- kept.c
 * ------------------------------------------------------------------------------------------ */

void kept_offer(struct ring *r);    /* to systemd, unless it has it or may not have it */
void kept_again(struct protond *p); /* once a second: what could not be said before */
/* Of a ring that is stored. False: systemd has let go of it, so that it may be dropped. */
bool kept_let_go(struct ring *r);
/* What systemd kept for us, at start: first all of it, then ring by ring, then the rest. */
int kept_receive(struct protond *p);                      /* -ENOMEM */
int kept_take(struct protond *p, const uint8_t uuid[16]); /* the caller's; -1: no further */
void kept_leave(struct protond *p);

/* --- clock.c
 * ----------------------------------------------------------------------------------------- */

struct clock_source {
	uint64_t (*clock)(void);
	uint64_t (*mono)(void);
	int64_t (*real)(void);
};
extern const struct clock_source clock_tsc, clock_mono;
/* Tightest of 20 brackets. */
void clock_anchor(const struct clock_source *s, uint32_t ring_clock, struct j_anchor *ret);

/* --- daemon.c
 * ------------------------------------------------------------------------------------------ */

int protond_init(struct protond *p, struct err *e);
int protond_run(struct protond *p); /* until a signal, or idle; exit status */
void protond_fini(struct protond *p);
void protond_stop(struct protond *p, const char *why);
void protond_fatal(
	struct protond *p, const char *why); /* ends without another word to the journal */
void protond_hurry(struct protond *p);       /* the next tick is now */

#define FLOW_BYTES  4096u /* less in 20 ms (a clock record a second) is no flow */
#define PACE_PARKED UINT64_MAX
/* ms until the next tick; PACE_PARKED: when somebody comes. moved: bytes in this one; works: a
 * session began or ended; more: there is more to be drained. */
uint64_t pace_ms(struct protond *p, uint64_t moved, bool works, bool more);

void protond_turn(struct protond *p); /* a tick, in the loop's next turn */
void protond_trim(struct protond *p); /* soon, what malloc has left goes back to the system */

/* An entry of the journal, or of nothing but the fold while p->replayed is set. begin gives space
 * for `bytes` of payload; end takes as many as were used, and applies it. */
int entry_begin(
	struct protond *p, uint16_t type, const uint8_t ring[16], uint32_t bytes, void **ret);
int entry_end(struct protond *p, uint32_t bytes);
int entry_put(struct protond *p, uint16_t type, const uint8_t ring[16], const void *payload,
	uint32_t bytes);
/* Writes what is staged; then heads may be told. False: not now (said once). */
bool protond_flush(struct protond *p);
void protond_unstage(struct protond *p); /* what is staged is stored: as if it were written */
void protond_anchor(struct protond *p, uint64_t at_most_every_ns);
void protond_note(struct protond *p); /* NOW and COUNTS of all rings, and an anchor */

/* --- commit.c
 * -------------------------------------------------------------------------------------------- */

void commit_periodic(struct protond *p);
bool commit_is_due(const struct protond *p);
bool commit_next(struct protond *p); /* begins the one that is due; false: none is */
void commit_end(struct protond *p);  /* before the store closes: who waits is told */
void commit_if_large(struct protond *p);
void finalize_check(struct protond *p);                         /* settled or overdue ones */
int finalize_add(struct protond *p, const struct finalizer *f); /* a copy; -ENOMEM */
/* Of a session that is finalizing: FINALIZED when settled, or at the deadline. */
void finalize_soon(struct protond *p, const uint8_t session[16], uint64_t deadline_ns,
	store_done_fn *done, void *arg);
/* Before its END. False: not all of its sessions yet, again in the next tick. */
bool finalize_owner_gone(struct protond *p, const uint8_t ring[16]);
bool finalize_is_waiting(const struct protond *p, const uint8_t session[16]);

/* --- settle.c
 * -------------------------------------------------------------------------------------------- */

void settle_check(struct protond *p); /* somebody answered, or is gone */
void settle_end(struct protond *p);   /* the daemon ends: nobody waits any more */

/* --- rings.c
 * --------------------------------------------------------------------------------------------- */

struct ring *ring_find(const struct protond *p, const uint8_t uuid[16]);
uint64_t rings_of(const struct protond *p, uint32_t uid);         /* of those that have not ended */
struct ring *ring_add(struct protond *p, const uint8_t uuid[16]); /* NULL: no memory */
/* Heads that the journal brought go into its reader, which may have been opened before. -ENOMEM. */
int ring_take_heads(struct ring *r);
/* Opens, checks and starts to drain. fd is taken on success. */
int ring_open(struct ring *r, int fd, const struct reader_expect *x, struct err *e);
/* Control file: made, or the old one found; heads and want written. -errno. */
int ring_control_open(struct ring *r);
int ring_control_fd(const struct ring *r); /* read-only descriptor, the caller's; -errno */
/* PROCESS, anchor and the automatic session. */
struct ring_origin {
	const uint8_t *token; /* NULL: none */
	uint32_t flags;
	const char *version;
};
int ring_adopt(struct ring *r, const struct ring_origin *o);
/* Watches the process; false: it is dead already. Takes pidfd (-1: opened here from r->pid). */
bool ring_watch(struct ring *r, int pidfd);
void ring_gone(struct ring *r); /* last drain, END */
void ring_drop(struct ring *r); /* forgets it; its files stay */
void ring_died(struct ring *r); /* live or waiting → gone */
void ring_want(struct ring *r); /* fold_want into the file and to the job */
bool ring_is_recording(const struct ring *r);
bool ring_wakes(const struct ring *r);                   /* its job heeds ring_ctl.nap */
bool ring_nap(struct ring *r, uint32_t nap);             /* says it */
void ring_release(struct ring *r);                       /* tells heads; after a flush only */
void rings_stored(struct protond *p, uint64_t position); /* frees what has ended before it */
void rings_free(struct protond *p);
uint64_t process_start(uint32_t pid); /* /proc/PID/stat, field 22; 0: no such process */

/* --- drain.c
 * ---------------------------------------------------------------------------------------------- */

/* DRAIN_TICK: DRAIN_BYTES or DRAIN_NS; while the store is behind, no more than BEHIND_BYTES_S since
 * the last call: whoever writes more drops its own, and is told. */
enum drain_budget { DRAIN_TICK, DRAIN_ALL };
/* Takes what the ring has into the journal and the fold, one window at a time. Returns bytes taken;
 * *ret_more: the budget ended before the window. -EIO: its file is unusable. -ENOSPC, -ENOMEM. */
int64_t drain_ring(struct ring *r, enum drain_budget budget, bool *ret_more);
/* Something may come of it yet. Of the dead, too: a session may be finalized before the tick that
 * writes END. */
bool drain_goes_on(const struct ring *r);
/* All that was published before that instant is in the fold, or never will be. */
bool drain_is_past(const struct ring *r, uint64_t ns);
/* The whole of every table into the fold. */
int drain_tables(struct ring *r, bool *ret_more, uint64_t deadline_ns);
int drain_now_block(struct ring *r); /* NOW, if a scope is open */
int drain_counts(struct ring *r);    /* COUNTS, if they changed */

/* --- intake.c
 * -----------------------------------------------------------------------------------------------
 */

void conn_want(struct conn *c, uint32_t want);
void conn_ring_gone(struct conn *c);                  /* its ring is freed */
void intake_sweep(struct intake *i, uint64_t now_ns); /* once a second */
uint32_t intake_conns(const struct intake *i);
int intake_relisten(struct intake *i, struct err *e);

/* --- attach.c
 * -----------------------------------------------------------------------------------------------
 */

/* --- drained.c
 * -------------------------------------------------------------------------------------------------
 */

/* As daemon_when_drained(), of one job, or of all (NULL). */
int when_drained(
	struct protond *p, const uint8_t ring[16], uint64_t deadline_ns, drained_fn *fn, void *arg);
void drained_check(struct protond *p); /* calls those that need not wait any longer */
void drained_end(struct protond *p);   /* calls all: the daemon ends */

/* --- spool.c
 * -------------------------------------------------------------------------------------------------
 */

int spool_journal(
	struct protond *p, struct err *e); /* opens the journal, above all that is stored */
int spool_restore(
	struct protond *p, struct err *e); /* store, journal and rings/ of a former life */
/* "32 hex digits" and that suffix, nothing else. */
bool spool_uuid(const char *name, const char *suffix, uint8_t ret[16]);
void spool_scan(struct protond *p);               /* rings whose job died before it could say so */
int spool_tables(struct ring *r, bool *ret_more); /* its tables into the fold, not the journal */

/* --- sessions.c
 * ---------------------------------------------------------------------------------------------- */

void session_auto(struct ring *r, const char *command); /* starts a job's automatic session */
void sessions_close(struct protond *p); /* finalizes those whose jobs are gone or asked for it */
void sessions_sweep(struct protond *p); /* and, twice seen, those that nobody is there to end */
/* What is wanted of a job that has no ring yet. */
struct job_face {
	uint32_t uid, pid;
	const uint8_t *token;
	const char *command;
};
uint32_t want_before_ring(const struct protond *p, const struct job_face *j);

#endif
