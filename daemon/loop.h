/* SPDX-License-Identifier: MIT. loop.h: the whole state of the loop, which ties the daemon's
 * rooms together. For the files of daemon/ itself; query and control see door/. Loop thread, all of it.
 *
 *   job ── agent.sock ──► intake ──► attach ──► rings ◄── spool (rings found at start)
 *                                                 │
 *             daemon.c: tick ──► drain ──► entry ──► journal, fold ──► commit ──► store
 */
#ifndef PROTOND_DAEMON_LOOP_H
#define PROTOND_DAEMON_LOOP_H

#include "config.h"
#include "container_of.h"
#include "daemon.h"
#include "memfd.h"
#include "must.h"
#include "turn.h"

#define ORPHANS_MAX 16u
/* The rooms' contracts, asserted where they meet (must.h):
 * - all of it on the loop's thread;
 * - a handle's callback finds what it was made for, not yet freed (magics);
 * - entry_end() after entry_begin(); a lane is drained after its PROCESS is in the journal; END
 * after the last drain; a ring is opened once;
 * - at most COMMITS_MAX transactions are under way, each told once. */

struct ring;

struct protond {
	struct daemon d;
	struct daemon_config config;
	struct lent lent;
	bool looping; /* d.loop is initialised */
	/* Of files that were taken for rings, and of what was not: that may be a file of the job's
	 * own making, whose close() lasts as long as the job likes, and no ring's waits behind it.
	 */
	struct closer *closer, *stray_closer;
	struct ring *rings;
	uint32_t n_rings;

	struct turn turn;
	uv_timer_t second, commit_timer;
	uv_signal_t sig_term, sig_int, sig_hup;
	uint64_t idle_since_ns;         /* no job and no client since; 0: there is one */
	uint64_t watchdog_ns, alive_ns; /* manager_watchdog_ns(); when we last said that we live */
	uint32_t next_ring, next_gone;  /* round robin: of the living, of the dead */
	bool behind;                    /* the store does not keep up: see DRAIN_TICK */
	bool journal_stuck;             /* a flush failed: nothing is drained until one works */
	bool adrift; /* the journal's directory is gone, and it has no place in the new one yet */
	bool stage_stored; /* what could not be flushed is in a transaction: it is not to be flushed
			    */
	bool begun;        /* entry_begin() was called, and not yet entry_end() */
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

	struct poison *poison; /* mapped, or NULL */
	struct kept *kept;     /* what systemd handed over, until it is known whose it is */
	struct finalizer *finalizers;
	struct drained *drained; /* who waits: drained.c */
	struct orphans {
		uint8_t uuid[ORPHANS_MAX][16];
		uint32_t n;
	} orphans; /* runs without their protonctl, at the last look */
	struct settler *settlers;
	uint32_t commits; /* submitted, not done */
	bool commit_failed;
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

/* --- daemon.c --- */

void protond_bind(struct protond *p); /* first: its parts know each other, and the thread */
int protond_init(struct protond *p, struct err *e);
int protond_run(struct protond *p); /* until a signal, or idle; exit status */
void protond_fini(struct protond *p);
void protond_stop(struct protond *p, const char *why);

#endif
