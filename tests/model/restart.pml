/* SPDX-License-Identifier: MIT. restart.pml: the daemon killed at any step and started again:
 * drain.c, journal.c, entry.c (entry_flush, entry_end), commit.c, store.c, rings.c, spool.c
 * (restore, replay), restore.c. docs/ring.md and docs/store.md say why.
 *
 * Claim: each record that the job published is in the store exactly once, each verb that a client
 * was told of too, and the journal and the ring's file are there as long as a restart needs them.
 *
 * A record is a cell of one lane of CAP; a cell of the store (PARTS of them) sums up some of the
 * records, with two bits for each, so that the value says how often it counted which. The job does
 * not wait for the daemon: it publishes while there is room, also while no daemon lives, and ends at
 * any time. A verb that does not bear being applied twice may come once. The daemon is killed at
 * most KILLS times; a transaction may fail once, and is tried again.
 *
 * Memory: between job and daemon as in lane.pml, not here. Files keep what was written; the last
 * write of a killed daemon may be there in part.
 *
 * BREAK_1   the lane's head is told before the flush
 * BREAK_2   the position is stored before the rows, not with them
 * BREAK_3   the position is stored after the rows
 * BREAK_4   the journal is forgotten when the transaction is submitted
 * BREAK_5   a restart goes on at the store's head, not behind the journal's last entry
 * BREAK_6   half an entry at the journal's end is not cut off
 * BREAK_7   a batch overtakes one that failed
 * BREAK_8   the ring is removed when END is in the journal, before the store has it
 * BREAK_9   a client is answered before the flush
 * BREAK_10  rows are collected without a flush before
 * BREAK_11  a transaction that failed is not tried again
 * BREAK_12  a ring that outlived its END in the store is taken for one that nobody spoke for
 */
#define RECORDS 3
#define CAP     2
#define PARTS   2
#define KILLS   2
#define SEGMENT 2  /* entries of a segment of the journal */
#define ENTRIES 8
#define FLIGHT  2  /* batches on their way into the store */

/* The job's ring and its control file. */
byte cell[CAP];
byte tail, head;
bool gone;              /* the job has ended */
bool file = true;       /* the ring is in rings/ */

/* The journal: entries by their end; a VERB and an END have ends of their own. */
#define VERB 100
#define END  101
byte journal[ENTRIES];
byte flushed, kept;     /* entries in it; the first that was not forgotten */
bool torn;              /* half an entry behind them */

/* The store. A batch is what changed, in whole values, and the position that it reflects. */
typedef rows {
	bool has[PARTS];
	byte value[PARTS], verbs, lane, position;
	bool ended
};
rows store, flight[FLIGHT];
byte n_flight, n_stored; /* handed over; of these, stored and not told */
bool failed;             /* a transaction has failed once */

/* The daemon's memory: gone with it. */
typedef memory {
	byte value[PARTS], verbs, lane; /* the fold */
	bool ended, dirty, changed[PARTS];
	byte at;                        /* how far the lane was drained */
	byte staged[3], n_staged;
	byte end_position;              /* behind END; 0: not flushed */
	byte stored;                    /* the store's position, as it said */
	bool again                      /* a transaction failed: one more is due */
};
memory m;

bool killed;
byte kills;
bool asked, answered, done;

/* --- the job, the killer */

proctype job()
{
end:	do
	:: tail < RECORDS && tail - head < CAP -> d_step { cell[tail % CAP] = tail; tail++ }
	:: atomic { !gone -> gone = true; break }
	od
}

proctype killer()
{
end:	do
	:: atomic { kills < KILLS && !killed && !done -> killed = true; kills++ }
	od
}

/* --- the fold */

#define TIMES(r) (1 << (2 * ((r) / PARTS)))

inline apply(e) /* inside of d_step */
{
	m.dirty = true;
	if
	:: e == VERB -> m.verbs++
	:: e == END -> m.ended = true
	:: else ->
		do
		:: m.lane < e -> /* what was applied before is skipped: pipeline_lane() */
			m.value[m.lane % PARTS] = m.value[m.lane % PARTS] + TIMES(m.lane);
			m.changed[m.lane % PARTS] = true;
			m.lane++
		:: else -> break
		od
	fi
}

/* --- entries on their way */

inline stage(e) /* entry_end(); nobody sees what it does before the flush */
{
	d_step {
		m.staged[m.n_staged] = e;
		m.n_staged++;
		apply(e)
	}
}

/* entry_flush(): a write(), in which the daemon may be killed, then the head. */
inline flush()
{
	i = 0;
	do
	:: i < m.n_staged ->
		torn = true; /* some of its bytes */
		d_step {
			torn = false;
			journal[flushed] = m.staged[i];
			flushed++;
			if
			:: m.staged[i] == END -> m.end_position = flushed
			:: else
			fi;
			i++
		}
	:: else -> break
	od;
	i = 0;
	d_step {
		m.n_staged = 0;
		m.staged[0] = 0;
		m.staged[1] = 0;
		m.staged[2] = 0
	};
	head = m.at;
#ifdef BREAK_8
	if
	:: m.end_position != 0 -> file = false
	:: else
	fi;
#endif
	skip
}

/* --- the store's thread */

inline put_rows(b)
{
	if
	:: b.has[0] -> store.value[0] = b.value[0]
	:: else
	fi;
	if
	:: b.has[1] -> store.value[1] = b.value[1]
	:: else
	fi;
	store.verbs = b.verbs;
	store.lane = b.lane;
	store.ended = b.ended
}

inline put_position(b) /* it never goes back */
{
	store.position = (b.position > store.position -> b.position : store.position)
}

#define IS_DUE (n_flight > n_stored && !killed)

proctype worker()
{
#if defined(BREAK_2) || defined(BREAK_3)
	byte life;
#endif

end:	do
#if defined(BREAK_2) || defined(BREAK_3)
	:: atomic {
		IS_DUE -> life = kills;
#ifdef BREAK_2
		put_position(flight[n_stored])
#else
		put_rows(flight[n_stored])
#endif
	   };
	   if
	   :: atomic {
		life == kills ->
#ifdef BREAK_2
		put_rows(flight[n_stored]);
#else
		put_position(flight[n_stored]);
#endif
		n_stored++
	      }
	   :: life != kills
	   fi
#else
	:: atomic {
		IS_DUE -> put_rows(flight[n_stored]);
		put_position(flight[n_stored]);
		n_stored++
	   }
#endif
	:: atomic {
		IS_DUE && !failed ->
		failed = true;
#ifdef BREAK_11
		n_stored++
#else
		m.again = true
#endif
	   }
#ifdef BREAK_7
	:: atomic {
		failed && n_flight == 2 && n_stored == 0 && !killed ->
		put_rows(flight[1]);
		put_position(flight[1]);
		put_rows(flight[0]);
		put_position(flight[0]);
		n_stored = 2
	   }
#endif
	od
}

/* --- the daemon's loop */

inline forget_rows(b)
{
	b.has[0] = false;
	b.has[1] = false;
	b.value[0] = 0;
	b.value[1] = 0;
	b.verbs = 0;
	b.lane = 0;
	b.position = 0;
	b.ended = false
}

/* Whole segments before the position, the oldest first. */
inline forget(position)
{
	do
	:: kept + SEGMENT <= position -> kept = kept + SEGMENT
	:: else -> break
	od
}

/* daemon_commit() */
inline commit()
{
#ifndef BREAK_10
	flush();
#endif
	d_step {
		flight[n_flight].has[0] = m.changed[0];
		flight[n_flight].has[1] = m.changed[1];
		flight[n_flight].value[0] = m.value[0];
		flight[n_flight].value[1] = m.value[1];
		flight[n_flight].verbs = m.verbs;
		flight[n_flight].lane = m.lane;
		flight[n_flight].ended = m.ended;
		flight[n_flight].position = flushed;
		m.changed[0] = false;
		m.changed[1] = false;
		m.again = false;
		m.dirty = false;
		n_flight++
	};
#ifdef BREAK_10
	flush();
#endif
#ifdef BREAK_4
	forget(flushed);
#endif
	skip
}

/* commit_on_stored() */
inline told()
{
	d_step {
		if
		:: flight[0].position > m.stored -> m.stored = flight[0].position
		:: else
		fi;
		flight[0].has[0] = flight[1].has[0];
		flight[0].has[1] = flight[1].has[1];
		flight[0].value[0] = flight[1].value[0];
		flight[0].value[1] = flight[1].value[1];
		flight[0].verbs = flight[1].verbs;
		flight[0].lane = flight[1].lane;
		flight[0].position = flight[1].position;
		flight[0].ended = flight[1].ended;
		forget_rows(flight[1]);
		n_flight--;
		n_stored--
	};
	forget(m.stored);
	if
	:: m.end_position != 0 && m.end_position <= m.stored -> file = false /* rings_stored() */
	:: else
	fi
}

/* drain_ring() */
inline drain()
{
	d_step {
		p = m.at;
		do
		:: p < tail ->
			assert(cell[p % CAP] == p);
			p++
		:: else -> break
		od;
		m.staged[m.n_staged] = p;
		m.n_staged++;
		m.at = p;
		apply(p);
		p = 0
	};
#ifdef BREAK_1
	head = m.at;
#endif
	skip
}

/* spool_restore(), up to where jobs are let in */
inline restore()
{
	d_step {
		m.value[0] = store.value[0];
		m.value[1] = store.value[1];
		m.verbs = store.verbs;
		m.lane = store.lane;
		m.ended = store.ended;
		m.changed[0] = false;
		m.changed[1] = false;
		m.at = store.lane;
		m.stored = store.position;
		m.end_position = 0;
		m.again = false;
		m.dirty = false;
		m.n_staged = 0;
		m.staged[0] = 0;
		m.staged[1] = 0;
		m.staged[2] = 0;
		n_flight = 0;
		n_stored = 0;
		forget_rows(flight[0]);
		forget_rows(flight[1]);
		i = 0;
		p = 0;
#ifdef BREAK_6
		hole = (torn && hole == ENTRIES -> flushed : hole);
#endif
		torn = false;
		assert(store.position >= kept); /* nothing that is needed was forgotten */
		i = store.position
	};
	do
	:: i < flushed && i < hole ->
		d_step {
			if
			:: journal[i] < VERB ->
				assert(file); /* the words behind its ids */
				m.at = journal[i]
			:: journal[i] == END -> m.end_position = 1 /* after the next transaction */
			:: else
			fi;
			apply(journal[i]);
			i++
		}
	:: else -> break
	od;
#ifdef BREAK_5
	m.at = store.lane;
#endif
	i = 0;
	if
	:: store.ended && file ->
#ifdef BREAK_12
		d_step { m.ended = false; m.lane = 0; m.at = (tail > CAP -> tail - CAP : 0) }
#else
		file = false
#endif
	:: else ->
		assert(m.at >= head); /* what the job was told is never more */
		head = m.at
	fi
}

inline live()
{
	do
	:: !m.ended && tail != m.at && m.n_staged < 2 -> drain()
	:: m.n_staged > 0 -> flush()
	:: !asked && m.n_staged < 3 ->
		asked = true;
		stage(VERB);
#ifdef BREAK_9
		answered = true;
#endif
		flush(); /* daemon_apply() */
		answered = true
	:: gone && tail == m.at && !m.ended && m.n_staged < 3 -> stage(END) /* ring_gone() */
	:: n_flight < FLIGHT && (m.dirty || m.again || (m.ended && file)) -> commit()
	:: n_stored > 0 -> told()
	:: gone && m.ended && !file && asked && n_flight == 0 && m.n_staged == 0 && !m.dirty -> break
	od
}

proctype daemon()
{
	byte i, p, hole = ENTRIES;

again:	{
		restore();
		live()
	} unless { atomic { killed -> i = 0; p = 0 } };
	if
	:: killed -> d_step { killed = false; n_flight = 0; n_stored = 0 }; goto again
	:: else
	fi;
	done = true;
	p = 0;
	do
	:: p < tail ->
		assert(store.value[p % PARTS] / TIMES(p) % 4 == 1);
		p++
	:: else -> break
	od;
	assert(store.lane == tail && store.ended);
	assert(store.verbs == 1 || (store.verbs == 0 && !answered))
}

init
{
	atomic { run job(); run killer(); run worker(); run daemon() }
}
