/* SPDX-License-Identifier: MIT. fold.h: the pipeline as a deterministic fold of the journal: drain
 * → correlate → tree, and the sessions that decide what goes where.
 *
 * fold_apply() is the only way in. It does no I/O, reads no clock and no environment, and never
 * fails on a job's bytes: what breaks the ring's laws is counted against that job (LOST_BAD) and
 * skipped. Loop thread only. Everything that grows has a ceiling (ceilings.h).
 *
 * Contract, asserted (MUST): a fold that was made and is not freed. fold_apply() gets an entry
 * that journal_commit() or journal_replay() gave, whole and 8-byte aligned; what is in it is not
 * believed. fold_restore() fills an empty fold. fold_waiting() takes back no more than it was
 * told. Inside: a part is detached before it is freed, and its process is freed after it; a
 * session that was forgotten is not used; slots and node, path and lane numbers that one file
 * hands to another are in range; and when all is freed, no byte is still counted.
 */
#ifndef PROTOND_FOLD_H
#define PROTOND_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "ceilings.h"
#include "err.h"
#include "journal.h"
#include "profile.h"
#include "ring.h"

struct fold;
struct process;

int fold_new(const struct fold_limits *l, struct fold **ret); /* -ENOMEM */
void fold_free(struct fold *f);

/* Applies one complete, CRC-checked entry. -ENOMEM: nothing was applied (the daemon ends; the
 * journal has it); -ENOSPC: a ceiling refused a process or session; -EDQUOT, -EMFILE: its user or
 * its process has as many sessions as may be; else 0. */
int fold_apply(struct fold *f, const struct journal_entry *e);

/* For an END that must not be applied: the process ends, and its sessions as they would; what it had
 * in flight or open is not looked at, and is lost. -ENOMEM. */
int fold_end_instead(struct fold *f, const struct journal_entry *e);

/* What the daemon must ask of a job now: bits of enum ring_want; 0 for an unknown ring. */
uint32_t fold_want(const struct fold *f, const uint8_t ring[16]);

/* A session that records this ring now keeps its events one by one. */
bool fold_has_timeline(const struct fold *f, const uint8_t ring[16]);

/* Sessions and processes as they stand; pointers are valid until the next fold call. */
struct fold_session {
	int64_t id;
	uint8_t uuid[16], owner[16], token[16];
	const char *name, *backend, *mode, *hook, *command;
	const char *first_command; /* of the first of its jobs; "": there is none */
	uint32_t uid, source, match, pid;
	int32_t job_number; /* -1 */
	uint8_t data, context, cpu, gpu;
	uint8_t switches; /* enum session_switch bits */
	uint8_t state;    /* enum session_state */
	bool gpu_seen;
	bool stored; /* final, and fold_seen() was told so: any answer of the store has it */
	bool empty;  /* over, with nothing in it */
	const char *tags, *note;
	int64_t created_ns, finalized_ns; /* 0: not over */
	uint64_t active_since_ns;         /* monotonic; 0 not active */
	uint64_t active_ns;               /* closed intervals */
	uint64_t daemon_ns;               /* CPU time that the daemon took for it */
	uint64_t launches, matched;
	uint32_t n_processes, n_live;
};
struct fold_process {
	int64_t id;
	uint8_t ring[16], token[16];
	uint32_t pid, ns_pid, uid;
	const char *command, *cwd, *gpu_text, *cupti_path, *version;
	int32_t rank, local_rank, world_size; /* -1 unknown */
	int64_t started_ns;
	bool ended;
	bool forged; /* what it says of itself cannot be: PROCESS_FORGED */
	uint32_t end_reason, gpu_state, cupti_version, driver_version;
	int32_t gpu_code;
	uint64_t events, launches, open_launches, kernels, drops, agent_ns, delivered_ns;
	const struct process *self; /* the fold's own */
};
typedef void fold_session_fn(void *arg, const struct fold_session *s);
typedef void fold_process_fn(void *arg, const struct fold_process *p);
void fold_each_session(const struct fold *f, fold_session_fn *fn, void *arg);
void fold_each_process(const struct fold *f, fold_process_fn *fn, void *arg);
bool fold_get_session(const struct fold *f, const uint8_t uuid[16], struct fold_session *ret);
bool fold_get_process(const struct fold *f, const uint8_t ring[16], struct fold_process *ret);
bool fold_is_member(const struct fold *f, const uint8_t session[16], const uint8_t ring[16]);
/* The ids of those sessions that it is in and that are uid's (-1: anybody's), as it joined them, at
 * most n. Returns how many. */
uint32_t fold_sessions_of(const struct fold_process *p, int64_t uid, int64_t *ret_ids, uint32_t n);
/* What a process of the session holds of memory now, by device and kind. */
struct fold_memory {
	uint32_t pid;
	const struct held_account *account;
	int64_t device; /* as CUDA numbers it; -1: the host */
};
typedef void fold_memory_fn(void *arg, const struct fold_memory *m);
void fold_each_memory(
	const struct fold *f, const uint8_t session[16], fold_memory_fn *fn, void *arg);
/* The job's own number → session uuid. */
bool fold_job_session(
	const struct fold *f, const uint8_t ring[16], uint32_t number, uint8_t ret_uuid[16]);
uint32_t fold_lane_bytes(const struct fold *f, const uint8_t ring[16]); /* 0: not known */
/* 0, or why the job's START of that number was refused: -EDQUOT, -ENOSPC, -EMFILE. Of the last few
 * only, and not over a restart. */
int fold_job_refused(const struct fold *f, const uint8_t ring[16], uint32_t number);
/* Of sessions: as in ceilings.h. */
struct fold_refused fold_refused(const struct fold *f);
/* That code in words, with what to do. Returns it. */
int fold_refused_words(const struct fold *f, uint32_t uid, int code, struct err *e);
/* It is finalizing, and none of its launches is in flight. */
bool fold_is_settled(const struct fold *f, const uint8_t session[16]);

/* For `where`: the path in words, root first, "a/b/c"; returns bytes written as snprintf does. */
int fold_path_text(
	const struct fold *f, const uint8_t ring[16], uint32_t path, char *buf, size_t n);
/* What its scopes of that path said last of themselves (properties): "seq=17, sizes=[2, 3]", cut to fit.
 * Returns the bytes in buf. */
size_t fold_properties_text(
	const struct fold *f, const uint8_t ring[16], uint32_t path, char *buf, size_t n);
/* The scopes that its threads were in at the last NOW and have not left since, by lane, outermost
 * first; returns how many, at most n. */
uint32_t fold_open_scopes(
	const struct fold *f, const uint8_t ring[16], struct j_now *ret, uint32_t n);
struct fold_launch {
	uint64_t mono_ns; /* when it was launched */
	uint32_t path;
	const char *name; /* kernel, or "" */
	bool running;     /* a forced flush found it unfinished */
	uint32_t device, stream;
};
/* The oldest launches in flight, running ones first; returns how many, at most n. */
uint32_t fold_open_launches(
	const struct fold *f, const uint8_t ring[16], struct fold_launch *ret, uint32_t n);
/* Clock of a ring → CLOCK_MONOTONIC ns; 0 when unknown. */
uint64_t fold_mono_ns(const struct fold *f, const uint8_t ring[16], uint64_t clock);

/* For `top`: cells of a session, merged over processes; sums since the session began. What points
 * is valid during the call. */
struct hist_counts;
struct fold_cell {
	const char *path; /* words */
	uint8_t kind, class;
	uint64_t count, sum_ns, max_ns;
	const uint32_t *part; /* [n_parts]: bytes of each name in `path`, between them a slash */
	uint32_t n_parts;
	const struct hist_counts *hist; /* of all durations; NULL unless wished */
};
struct fold_top_wish {
	uint32_t n; /* so many, those with the largest sums */
	bool hist;
	const uint8_t *ring;   /* of this process alone; NULL: of all */
	const uint8_t *device; /* a uuid: what ran on it; NULL: all */
};
typedef void fold_cell_fn(void *arg, const struct fold_cell *c);
void fold_top(struct fold *f, const uint8_t session[16], const struct fold_top_wish *w,
	fold_cell_fn *fn, void *arg);
/* What each process did with a device, within the session. */
struct fold_busy {
	uint32_t pid, number; /* number: as the process has it */
	const uint8_t *uuid;  /* 16; NULL: not known */
	const char *name;     /* at most 64 bytes, perhaps without a NUL */
	uint64_t busy_ns;
	const uint64_t *part_ns; /* [PART_MAX] without PART_HOST; NULL: not known */
	/* Of each quantity of the device the newest reading, those of `known`; NULL: there is none of the
	 * last FOLD_READING_NS. */
	const float *reading;
	uint64_t known;
};
#define FOLD_READING_NS 15000000000ull
typedef void fold_busy_fn(void *arg, const struct fold_busy *b);
void fold_each_busy(const struct fold *f, const uint8_t session[16], fold_busy_fn *fn, void *arg);

/* What the steps of each process that takes part were told so far, of numbers that are added up; since the daemon began. */
struct fold_told {
	uint32_t pid;
	const char *name;
	double sum;
};
typedef void fold_told_fn(void *arg, const struct fold_told *t);
void fold_each_told(const struct fold *f, const uint8_t session[16], fold_told_fn *fn, void *arg);

/* --- to and from the store: rows, as in tables.h --- */

/* All rows changed since the last collect; marks them clean. -ENOMEM: nothing was marked. */
int fold_collect(struct fold *f, struct batch *ret);
/* More of this ring is in flight than one END should give up: LEAVE entries must come first. */
bool fold_has_many(const struct fold *f, const uint8_t ring[16]);
/* Records that waited are counted a piece at an entry, and open scopes are: it needs entries even if
 * nothing comes. */
bool fold_is_joining(const struct fold *f, const uint8_t ring[16]);
/* GPU records of it that came before their launch, and wait. 0: more launches wait for records. */
uint32_t fold_early(const struct fold *f, const uint8_t ring[16]);
/* In so many trees each event of it counts. */
uint32_t fold_trees(const struct fold *f, const uint8_t ring[16]);
/* So many more (less) bytes of rows are on their way to the store; they count for the ceiling. */
void fold_waiting(struct fold *f, int64_t more);
bool fold_is_dirty(const struct fold *f);
/* Something worth storing soon: more than the clocks and costs that an idle job and the daemon
 * itself tell every second. */
bool fold_has_news(const struct fold *f);
uint32_t fold_fresh(const struct fold *f); /* bytes of new rows since the last collect */
uint32_t fold_round(const struct fold *f); /* another after each collect */
/* What was collected up to that round is stored, and whoever asked the store before has an answer:
 * what is final of it goes with the next collect. */
void fold_seen(struct fold *f, uint32_t round);
/* Into an empty fold: what store_load() gave, which is the sessions that are not finalized and
 * all that belongs to them. The daemon sends the rings' tables again, as TABLE entries, before
 * any LANE. */
int fold_restore(struct fold *f, const struct batch *b);
/* The journal was applied. Until then, records of a restored process whose ring and tables are gone
 * are lost, and no law is broken. */
void fold_replayed(struct fold *f);
uint64_t fold_now_ns(const struct fold *f); /* CLOCK_MONOTONIC of the last entry */

#endif
