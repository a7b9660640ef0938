/* SPDX-License-Identifier: MIT. reader.h: a ring file as the daemon reads it: pread() only, every
 * byte copied before it is looked at, every number bounded. docs/ring.md has the rules V1-V15.
 *
 * Nothing here writes, and nothing here knows journal, fold or sockets.
 *
 * Contract (must.h): an open reader has lanes and a descriptor; a lane's number, and how much of it
 * is copied at once, are the caller's to bound. What stands in the file is checked, never asserted.
 */
#ifndef PROTOND_DAEMON_READER_H
#define PROTOND_DAEMON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "journal.h"
#include "ring.h"

#define READER_PIECE     (512u << 10) /* most bytes of a lane that are looked at in one go */
#define READER_NAMES     512u         /* most names in one journal entry */
#define READER_BAD_TICKS 3u    /* so often a lane may break the laws before it is quarantined */
#define READER_BAD_TAIL  0x80u /* flag in reader_lane.bad: the last tail read was unlawful */

struct reader_lane {
	uint64_t head;  /* taken into the journal up to here */
	uint64_t told;  /* the head that the control file says */
	uint64_t gone;  /* a former daemon took it up to here, and its journal lost what is behind
			  head: the job may write over it */
	uint64_t tail;  /* newest lawful one seen */
	uint64_t goal;  /* end of the window being drained; head: nothing to do */
	uint64_t first; /* end of the last mark in the window; up to here before others */
	uint64_t next;  /* of those, end of the ones to be taken now; head: not looked for */
	uint64_t next_clock; /* when the first of them was */
	uint32_t next_tid;   /* and whose */
	bool next_mixed;     /* as in struct reader_marks */
	uint64_t scanned;    /* the window was looked through up to here */
	uint64_t sums;       /* end of the open sums behind tail, at the last look; or tail */
	uint64_t open;       /* likewise, at the window's first look */
	uint64_t open_sum;   /* of their bytes, when they were last journaled: to see a change */
	uint64_t drop_full, drop_nested;
	uint32_t tid, generation, state, moves;
	uint32_t open_at; /* of the open ones, so many bytes are journaled in this window */
	uint32_t kept,
		kept_bytes; /* where the arena has [head, head + kept_bytes) of this window */
	uint8_t bad;        /* ticks in a row in which it broke the laws */
	bool quarantined;
	bool starts; /* the window has a session's START in this lane */
};

struct reader {
	int fd;               /* owned */
	struct ring_header h; /* the private copy; the file's is never read again */
	struct ring_layout l;
	uint32_t n_seen;                         /* lanes [0, n_seen) were claimed at some time */
	uint32_t names, paths, configs, devices; /* table entries taken so far */
	uint64_t bad_names;
	struct reader_lane *lane; /* NULL: not open */
	uint32_t cap;             /* of it: what is behind was never claimed */
};

/* What the opener knows about the file from elsewhere. */
struct reader_expect {
	uint32_t uid;         /* owner of the file and of the job */
	uint64_t pid_start;   /* 0: unknown, not compared */
	const uint8_t *uuid;  /* NULL: any */
	const uint8_t *store; /* NULL: any */
	const uint8_t *boot_id;
	bool any_fs; /* tests only: the file need not be on tmpfs */
};

/* The header's laws, on a private copy. -EPROTO another ABI, -EBADMSG a law is broken, -ESTALE
 * another boot or process, -EXDEV another store: always with words. */
int reader_check(const struct ring_header *h, uint64_t file_bytes, const struct reader_expect *x,
	struct ring_layout *ret, struct err *e);
/* Checks the descriptor and its header. Owns fd after success only. Further: -EACCES not the job's
 * file, -EMEDIUMTYPE not on tmpfs, -EIO, -ENOMEM. */
int reader_open(int fd, const struct reader_expect *x, struct reader *ret, struct err *e);
void reader_close(struct reader *r);           /* zeroed r is fine */
int reader_have(struct reader *r, uint32_t n); /* lanes [0, n) of those it has; -ENOMEM */

/* The header alone, before anything is known: for the scan of left rings. */
int reader_peek(int fd, struct ring_header *ret);

/* Reads tails, states and drop counters of all claimed lanes (all: of every lane there is). A lane
 * whose tail breaks the laws keeps its old one and has `bad` raised. *ret_moved: some tail did.
 * -EIO: the file is gone or short. */
int reader_lanes(struct reader *r, bool all, bool *ret_moved);
/* [from, from + bytes) of a lane, across the lap's end if need be. -EIO. */
int reader_copy(const struct reader *r, uint32_t lane, uint64_t from, uint32_t bytes, void *to);

/* What was copied from the lane at `from` was not written over meanwhile, though the job may. */
bool reader_has_still(const struct reader *r, uint32_t lane, uint64_t from);

/* What the lane's owner was adding to a sum in these bytes, which stand at `from`, is added: for the
 * last look, when it is dead. -EIO. */
int reader_redo(const struct reader *r, uint32_t lane, uint64_t from, uint32_t bytes, void *p);

struct reader_walk {
	uint32_t whole; /* bytes up to the last whole lawful record that ends at or before `upto` */
	uint32_t reached;   /* bytes up to the last whole lawful record */
	uint32_t mark_end;  /* bytes up to the end of the last mark (REC_IS_MARK); 0: none */
	uint32_t start_end; /* likewise, of the first session's START */
	uint8_t last;       /* type of the last one */
	bool sessions;      /* there is a SESSION record */
	bool broken;        /* a law is broken at `reached`, not just the end of the bytes */
};
/* Walks a private copy of bytes that stand at position `from`. upto: in bytes. */
struct reader_walk reader_walk(
	const void *p, uint32_t bytes, uint64_t from, uint32_t lane_bytes, uint32_t upto);

/* In the same bytes: the first mark, and those after it that are not later than `until`. */
struct reader_marks {
	uint32_t end;     /* of the last of them; 0: there is none */
	uint32_t reached; /* as above; up to `end` when there is one */
	uint64_t clock;   /* of the first */
	uint32_t tid;     /* likewise, who wrote it, if it is no SESSION */
	bool mixed;       /* another thread may have written some of what is before it */
};
struct reader_marks reader_marks(
	const void *p, uint32_t bytes, uint64_t from, uint32_t lane_bytes, uint64_t until);

/* One lane, as reader_lanes() reads all of them. */
int reader_lane_again(struct reader *r, uint32_t lane);
/* Of the same bytes, those of whole lawful records of these types (bits: 1 << enum record_type), from the
 * first one on. */
uint32_t reader_only(
	const void *p, uint32_t bytes, uint64_t from, uint32_t lane_bytes, uint64_t types);

int reader_counts(const struct reader *r, struct ring_counts *ret);                      /* -EIO */
int reader_info(const struct reader *r, char ret[RING_INFO_BYTES], uint32_t *ret_bytes); /* -EIO */

/* How far the tables go now, names last, so that no path refers behind them. */
struct reader_extent {
	uint32_t names, paths, configs, devices;
};
int reader_extent(const struct reader *r, struct reader_extent *ret); /* -EIO */
bool reader_has_new(struct reader *r, enum j_table_which which, const struct reader_extent *x);
/* One J_TABLE payload with the next entries of a table, at most `bytes` long, and counts them as
 * taken. -EIO, -ENODATA. */
int reader_table(struct reader *r, enum j_table_which which, const struct reader_extent *x,
	void *to, uint32_t bytes, uint32_t *ret_bytes);
#define READER_TABLE_BYTES (sizeof(struct j_table) + READER_NAMES * (4 + NAME_BYTES_MAX))

/* Its thread is in it: it goes from lane to lane in a burst. */
bool reader_is_owned(const struct reader *r, uint32_t lane);
/* When the scope began that the thread of this lane added to a sum last, in whatever lane; 0: none. */
uint64_t reader_summed(const struct reader *r, uint32_t lane);
/* Open scopes of one lane, outermost first; the innermost n. */
uint32_t reader_now(const struct reader *r, uint32_t lane, struct j_now *ret, uint32_t n);

#endif
