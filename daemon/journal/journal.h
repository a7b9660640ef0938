/* SPDX-License-Identifier: MIT. journal.h: the daemon's own record of everything it took in.
 *
 * Files journal.SEQ in the runtime directory (tmpfs, 0600), SEQ growing; a position is SEQ << 32 |
 * offset. An entry is complete or it does not exist (length and CRC-32C); a torn tail is cut off at
 * open. The fold (fold.h) is a deterministic function of the entries in order: live, an entry is
 * appended first and applied second; after a restart the entries behind the store's position are
 * applied again. A lane's bytes are released to the job only after their entry was appended.
 *
 * Contract, asserted (MUST): one thread. A journal that is open. Staged, then committed, then
 * applied: an entry has its magic from journal_commit() on. A commit is of what was staged last,
 * and no longer than that. While journal_replay() calls, nothing is staged, flushed, forgotten
 * or closed. What stands in the files is nobody's promise: it is checked, cut off or skipped,
 * and counted.
 */
#ifndef PROTOND_JOURNAL_H
#define PROTOND_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "err.h"
#include "process_terms.h"
#include "session_terms.h"

#define JOURNAL_MAGIC         0x314e524au /* "JRN1" */
#define JOURNAL_SEGMENT_BYTES (16u << 20)
#define JOURNAL_ENTRY_MAX     (2u << 20)

/* clang-format off */
#define JOURNAL_TYPES(X) /* payload after struct journal_entry */                                   \
        X(PROCESS, 1) /* struct j_process, then the info text: a ring was adopted */                \
        X(TABLE,   2) /* struct j_table, then the new entries (and text): a ring's table grew */    \
        X(LANE,    3) /* struct j_lane, then the bytes: checked walkable, records as they stood */  \
        X(COUNTS,  4) /* struct ring_counts, then n × struct j_drop: loss counters of a ring */     \
        X(STATE,   5) /* struct j_state: a job's GPU state in words */                              \
        X(NOW,     6) /* struct j_now × n: what each thread is in; before a finalize or an end */   \
        X(END,     7) /* struct j_end: a process is gone, its ring drained */                       \
        X(VERB,    8) /* struct j_verb: a session verb of the control socket or of the daemon */    \
        X(ANCHOR,  9) /* struct j_anchor: what the ring clock is in ns */                           \
        X(COST,   10) /* struct j_cost: CPU time the daemon took */ \
        X(LEAVE,  11) /* nothing: the process is dead; some launches in flight leave, before END */ \
        X(SUMS,   12) /* as LANE, behind its head: sums as they stood, which may grow further */ \
        X(DEVICE, 13) /* struct device_reading: of protond-device, checked */ \
        X(RESIDENT, 14) /* struct j_resident: what a process has in RAM, each second */
/* clang-format on */

enum journal_type {
#define X(name, number) J_##name = (number),
	JOURNAL_TYPES(X)
#undef X
		J_MAX
};

struct journal_entry {
	uint32_t magic;
	uint32_t bytes; /* whole entry, a multiple of 8, ≤ JOURNAL_ENTRY_MAX */
	uint32_t crc;   /* CRC-32C of everything after this field */
	uint16_t type;  /* enum journal_type */
	uint16_t pad0;
	uint64_t mono_ns; /* when it was appended */
	uint8_t ring[16]; /* whose; zero for VERB, ANCHOR, COST */
			  /* payload follows */
};
_Static_assert(sizeof(struct journal_entry) == 40, "journal");

struct j_process {
	uint8_t boot_id[16], parent[16], token[16];
	uint32_t pid, ns_pid, uid, clock, tsc_khz; /* pid: the host's, from the socket; 0 unknown */
	uint32_t n_lanes, lane_bytes, flags;       /* of RV_ATTACH, and of process_terms.h */
	uint64_t pid_start;
	uint64_t created_clock, created_monotonic_ns, created_realtime_ns;
	uint32_t replay; /* 1: fed by a replay */
	uint32_t info_bytes;
	char version[32];
};

enum j_table_which { TABLE_PATHS = 1, TABLE_NAMES = 2, TABLE_CONFIGS = 3, TABLE_DEVICES = 4 };
struct j_table {
	uint32_t which, first, n;
	uint32_t text_bytes; /* NAMES: n × {u32 bytes, text, pad to 4} follows instead of entries */
};

struct j_lane {
	uint32_t lane;
	uint32_t bytes;
	uint64_t from; /* position of the first byte; from + bytes is the new head */
	uint32_t generation, tid;
};

struct j_drop { /* counters of one lane, absolute */
	uint32_t lane, pad0;
	uint64_t full, nested;
};

struct j_state {
	uint32_t gpu; /* enum gpu_state */
	int32_t code;
	uint32_t library_version, driver_version;
	char path[256];
	char words[256];
};

struct j_now { /* one open scope of one thread */
	uint32_t lane, tid, depth, path;
	uint64_t
		begin; /* ring clock; 0 unknown, FRAME_INHERITED: the parent's, not to be counted */
};

struct j_end {
	uint32_t reason; /* enum end_reason */
	int32_t status;  /* wait status if known, else -1 */
};

enum verb {
	VERB_START = 1,
	VERB_ACTIVATE = 2,
	VERB_DEACTIVATE = 3,
	VERB_FINALIZE = 4,  /* no more time is added; waits for launches in flight */
	VERB_FINALIZED = 5, /* settled, or waited long enough */
	VERB_DELETE = 6,
	VERB_PHASE = 7,       /* the next segment begins */
	VERB_INTERRUPTED = 8, /* as FINALIZED, where nobody was left to say so */
	VERB_RENAME = 9,      /* these in the order of enum label_kind; the text is in `name` */
	VERB_NOTE = 10,
	VERB_TAG = 11,
	VERB_UNTAG = 12,
	VERB_SWITCH = 13, /* from now on it records what `switches` says */
};
struct j_verb {
	uint32_t verb;       /* enum verb */
	uint32_t uid;        /* owner */
	uint8_t session[16]; /* uuid */
	uint8_t ring[16], token[16];
	uint64_t mono_ns; /* when it takes effect */
	int64_t realtime_ns;
	uint32_t source;         /* START only from here, but for switches */
	uint8_t match, switches; /* switches: also of SWITCH */
	uint8_t pad0[2];
	uint32_t pid;
	uint8_t data, context, cpu, gpu; /* enums of session_terms.h */
	char name[128] /* also of a label */, backend[32], mode[64], hook[32],
		command[128]; /* NUL-terminated */
	char domains[128];    /* of NVTX, likewise; an older daemon's entry ends before it */
};
#define J_VERB_LEAST offsetof(struct j_verb, domains)

struct j_anchor {
	uint64_t clock, monotonic_ns, realtime_ns; /* at one instant */
	uint64_t error_ns;
	uint32_t ring_clock; /* enum ring_clock that `clock` is */
	uint32_t pad0;
};

struct j_resident {
	uint64_t bytes;
};

struct j_cost {
	uint64_t cpu_ns; /* of the daemon, since it started */
};

struct journal;

/* Opens the journal in directory fd `dir`, cuts a torn tail, positions for appending. */
int journal_open(int dir, struct journal **ret, struct err *e);
void journal_close(struct journal *j); /* NULL is fine; files stay */

/* Calls fn for every entry from `position` on, in order; stops at the first nonzero return and
 * passes it on. A position older than the oldest segment starts there (-ESTALE in *ret_gap, else
 * 0). */
typedef int journal_fn(void *arg, const struct journal_entry *e);
int journal_replay(struct journal *j, uint64_t position, journal_fn *fn, void *arg, int *ret_gap);

/* Stages an entry: space for `payload` bytes at ret_payload, valid until the next journal call.
 * -EMSGSIZE, -ENOMEM. journal_commit() fills in length and crc of the staged entry and returns it.
 * journal_flush() writes everything staged since the last flush with one write(). Entries may be
 * applied before the flush, but a lane is released, and a client answered, only after it. */
int journal_stage(struct journal *j, uint16_t type, const uint8_t ring[16], uint32_t payload,
	void **ret_payload);
const struct journal_entry *journal_commit(struct journal *j, uint32_t payload); /* may shrink it */
int journal_flush(struct journal *j); /* -ENOSPC: kept staged, nothing released */
/* False: bytes of a failed flush may still be in the file. */
bool journal_is_whole(const struct journal *j);
/* Forgets what is staged: the store has it. */
void journal_unstage(struct journal *j);
uint64_t journal_position(const struct journal *j); /* behind the last flushed entry */
uint64_t journal_bytes_since(const struct journal *j, uint64_t position);
/* Closes fd, at once or later, on whatever thread. */
typedef void journal_close_fn(void *arg, int fd);
/* Removes segments that lie wholly before position, but for the youngest keep_bytes. Their
 * memory goes with their last descriptor, milliseconds for each: `close_fn` may put that off;
 * NULL: here. */
void journal_forget(struct journal *j, uint64_t position, uint64_t keep_bytes,
	journal_close_fn *close_fn, void *arg);
/* Bytes that were not entries: torn tails cut off at open, and damage that a replay skipped. */
uint64_t journal_lost(const struct journal *j);

uint32_t crc32c(uint32_t crc, const void *p, size_t n);

#endif
