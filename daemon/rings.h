/* SPDX-License-Identifier: MIT. rings.h: the rings that this daemon drains, one a process. For the
 * loop (daemon/). Loop thread.
 *
 *   waiting: known from store, journal or spool, its file not seen yet
 *   live:    being drained
 *   gone:    the process is dead, the last drain is due
 *   ended:   END is in the journal; the files go when the store has it
 *
 *   waiting ──► live ──► gone ──► ended ──► freed
 */
#ifndef PROTOND_DAEMON_RINGS_H
#define PROTOND_DAEMON_RINGS_H

#include <uv.h>

#include "reader.h"
#include "ring_name.h"

struct closer;
struct conn;
struct daemon;
struct drain;
struct entries;
struct kept;
struct thrift;
struct turn;

enum ring_state { RING_WAITING, RING_LIVE, RING_GONE, RING_ENDED };

#define RING_IS_ALIVE 0x474e4952u /* "RING"; 0 when it is freed */

struct ring {
	uint32_t magic;
	struct ring *next;
	struct rings *all;
	enum ring_state state;
	uint8_t uuid[16];
	uint32_t pid, ns_pid, uid; /* pid: the host's; 0 unknown */
	uint64_t pid_start;
	char file[RING_NAME_BYTES_TEXT]; /* below rings/, without suffix; "": a memfd */
	struct reader reader;            /* open in live and gone, and while its file is in ended */
	uint64_t *head; /* [RING_LANES_MAX] known before the file is open, or NULL */
	uint32_t n_heads;
	int ctl_fd;               /* -1: none */
	uint32_t want, nap;       /* what the control file says */
	uint32_t gpu_mask;        /* bits that the job's PROTOND_GPU leaves */
	uint32_t gpu_more;        /* bits that it adds */
	bool paused, adopted;     /* adopted: PROCESS is in the journal */
	bool gpu_on;              /* its automatic session has GPU */
	bool is_new, asked_twice; /* seen first in this life; the store was asked: twice.c */
	bool unreadable;          /* its file became short: nothing more comes */
	bool execed;              /* dead: its process runs on, as another program */
	bool noted;               /* dead: its last now block and counts are in the journal */
	bool kept, let_go; /* kept: systemd's FDSTORE holds a copy; let_go: we asked it to drop that
			      copy */
	uint64_t beat_ns;  /* last one written */
	int pidfd;         /* -1: none */
	uv_poll_t pid_poll; /* initialised while polling */
	bool polling, closing;
	struct conn *conn;     /* borrowed; NULL: the job is not connected */
	uint64_t serial;       /* of the last one; 0: there was none in this life */
	uint64_t gone_ns;      /* when the process was seen to be dead */
	uint64_t left_bytes;   /* memory that it left then: shed.c */
	uint64_t end_position; /* of the journal, behind END; 0: END is not flushed yet */
	uint64_t counts_sum;   /* of the counters last journaled, to see a change */
	uint64_t now_sum;      /* likewise of the now blocks; 0: events came since */
	uint64_t asked_ns;     /* somebody waited for what was published before then, at last */
	uint64_t note_ns;      /* somebody has waited for NOW and COUNTS since then; 0: nobody */
	uint64_t noted_ns;     /* when they were last taken */
	bool joining;          /* fold_is_joining() at the last look */
	/* as long as it is not adopted: see offered.c */
	uint64_t offered_ns, looked_ns;
	uint32_t offered_want; /* what its job was told */
	uint32_t came_flags;
	uint8_t came_token[16];
	char came_version[32];
	/* the window: see drain.c */
	uint8_t phase;
	uint32_t cursor;            /* lane that the phase is at */
	bool sessions;              /* the window has SESSION records, or may have */
	uint32_t gpu_lane;          /* that GPU work was seen in last, + 1: see drain_ahead.c */
	uint32_t sweeps;            /* counts taken */
	uint64_t taken_ns;          /* when it was last drained: see drain_ring() */
	uint64_t look_ns, whole_ns; /* when this window began; when the last whole one did */
	uint64_t look_clock;        /* ring clock at the end of its first look */
	/* its sums: see drain_sums.c */
	uint64_t sums_ns;    /* when the last window began that took what was open */
	bool sums_asked;     /* somebody waits for them */
	bool sums_due;       /* this window takes them */
	bool summing;        /* they grew between the last two times */
	bool sums_more;      /* they did since this window began to take them */
	uint32_t visit, cut; /* what the control file says */
};

struct rings {
	struct daemon *d;
	struct turn *turn;
	struct entries *entries; /* what is drained goes there */
	struct ring *first;
	uint32_t n;
	struct drain *drain;
	struct kept *kept; /* what systemd handed over, until it is known whose it is */
	struct thrift *thrift;
	struct closer *closer; /* of files that were taken for rings */
};

struct ring *ring_find(const struct rings *all, const uint8_t uuid[16]);
bool rings_work(const struct rings *all);                         /* one has not ended */
uint64_t rings_of(const struct rings *all, uint32_t uid);         /* of those that have not ended */
struct ring *ring_add(struct rings *all, const uint8_t uuid[16]); /* NULL: no memory */
/* Heads that the journal brought go into its reader, which may have been opened before. -ENOMEM. */
int ring_take_heads(struct ring *r);
/* Opens and checks it. Takes fd on success. As reader_open(). */
int ring_open(struct ring *r, int fd, const struct reader_expect *x, struct err *e);
/* Watches the process; false: it is dead already. Takes pidfd (-1: opened here from r->pid). */
bool ring_watch(struct ring *r, int pidfd);
void ring_died(struct ring *r); /* live or waiting → gone */
void ring_drop(struct ring *r); /* forgets it; its files stay */
void rings_free(struct rings *all);

#endif
