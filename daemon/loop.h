/* SPDX-License-Identifier: MIT. loop.h: the whole state of the loop, which ties the daemon's rooms
 * together: its parts, each of them in the header of its noun. For those files of daemon/ that put
 * parts together; the others take theirs. Query and control see door/. Loop thread, all of it.
 *
 *   job ── agent.sock ──► intake ──► attach ──► rings ◄── spool (rings found at start)
 *                                                 │
 *             daemon.c: tick ──► drain ──► entry ──► journal, fold ──► commit ──► store
 */
#ifndef PROTOND_DAEMON_LOOP_H
#define PROTOND_DAEMON_LOOP_H

#include "commit.h"
#include "config.h"
#include "container_of.h"
#include "daemon.h"
#include "device_link.h"
#include "drain.h"
#include "entry.h"
#include "fair.h"
#include "hello.h"
#include "memfd.h"
#include "own_sessions.h"
#include "rings.h"
#include "round.h"
#include "settle.h"
#include "thrift.h"
#include "turn.h"

/* The rooms' contracts, asserted where they meet (must.h):
 * - all of it on the loop's thread;
 * - a handle's callback finds what it was made for, not yet freed (magics);
 * - entry_end() after entry_begin(); a lane is drained after its PROCESS is in the journal; END
 * after the last drain; a ring is opened once;
 * - at most COMMITS_MAX transactions are under way, each told once. */
struct protond {
	struct daemon d;
	struct daemon_config config;
	struct lent lent;
	struct turn turn;
	struct rings rings;
	struct drain drain;
	struct entries entries;
	struct commits commits;
	struct settlers settlers;
	struct hello hello;
	struct finalizer *finalizers;
	struct drained *drained; /* who waits: drained.c */
	struct fair told;        /* whose turn it is to be told, of those */
	struct orphans orphans;
	struct thrift thrift;
	struct device_link device;
	/* Of what was taken for a ring and is none: that may be a file of the job's own making, whose
	 * close() lasts as long as the job likes, and no ring's waits behind it. */
	struct closer *stray_closer;

	uint64_t idle_since_ns; /* idle.c's: no job and no client since; 0: there is one */

	/* daemon.c's own */
	bool looping; /* d.loop is initialised */
	uv_timer_t second, commit_timer;
	uv_signal_t sig_term, sig_int, sig_hup;
	uint64_t watchdog_ns, alive_ns; /* manager_watchdog_ns(); when we last said that we live */
	uint64_t spool_ns;              /* the last look at rings/ */
	uint64_t former_ns;             /* the last instant of the daemon's former life; 0: none */
	struct turns {
		uint32_t cursor; /* the ring that is first in the next tick */
		struct round round;
	} live, gone;       /* whose ring is drained next */
	uint32_t asked_uid; /* whose ring was drained last because somebody asked */
	bool apart;      /* the last tick was for a transaction or a trim, and not for the rings */
	int64_t trimmed; /* what malloc had left when it last gave back to the system */
};

static inline struct protond *protond_of(struct daemon *d)
{
	return container_of(d, struct protond, d);
}

/* --- daemon.c --- */

void protond_bind(struct protond *p); /* first: its parts know each other, and the thread */
int protond_init(struct protond *p, struct err *e);
int protond_run(struct protond *p); /* until a signal, or idle; exit status */
void protond_fini(struct protond *p);
void protond_stop(struct protond *p, const char *why);

#endif
