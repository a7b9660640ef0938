/* SPDX-License-Identifier: MIT. handover.pml: a lane that goes from thread to thread while the
 * daemon drains it: lane_claim(), lane_own(), lane_release() of agent/lane.c; what the daemon makes
 * of it in daemon/jobs/reader.c and daemon/fold/pipeline.c.
 *
 * Claim: each record of each thread is read once, in order, as that thread's; a tail never goes
 * back; a lane of a thread that runs says so, one of a thread that has ended says that; all of it
 * however the process is killed, with all its threads at once.
 *
 * A record is one cell. A thread claims a lane (one that was left and has room, or a fresh one, or
 * none; which of several the product takes is no matter of order: here there is one), writes THREAD and RECORDS more, and gives the lane back.
 *
 * Memory: each thread's stores to the ring become visible later, in any order; a release store, and
 * giving back the lock, wait for those before. What only the process sees (struct lane, the stack
 * of free lanes) is touched by who holds the lock or the lane.
 *
 * BREAK_1  the lock is given back without a release
 * BREAK_2  the lane is offered before its last record is published
 * BREAK_3  EXITED is said after the lane is offered
 * BREAK_4  no lock around the stack of free lanes
 * BREAK_5  a lane is taken that has no room for THREAD
 * BREAK_6  whose a record is, is taken from the lane's header as the daemon saw it last
 * BREAK_7  the next owner goes on at the head that it reads, not where the last one ended
 * BREAK_8  the store of tail is no release
 */
#define THREADS 3
#define LANES   1
#define CAP     2
#define RECORDS 1

/* A lane's state and the number of its owner: in the product two words, the second of which is
 * stored with release. */
#define EXITED(t) (8 + (t))
#define LIVE(t)   (4 + (t))

/* Record n of thread t; n 0: THREAD. */
#define RECORD(t, n) (1 + (t) * 4 + (n))

typedef ring_lane { /* what the daemon sees */
	byte cell[CAP];
	byte tail, state, head /* of the control file */
};
ring_lane ring[LANES];

typedef store_buffer {
	byte lane; /* of all that waits: a thread has one lane in its life here */
	byte cell, at, tail, state;
	bool cell_waits, tail_waits, state_waits
};
store_buffer sb[THREADS];
#define EMPTY(t) (!sb[t].cell_waits && !sb[t].tail_waits && !sb[t].state_waits)

byte mine[LANES];         /* struct lane: its owner's tail */
byte left[LANES], n_left; /* the stack of free lanes */
byte used;
bool lock;
bool killed;
byte began, ended;        /* threads that came to lane_claim(); that are over */
bool busy[LANES];         /* its owner is between THREAD and the end */

byte written[THREADS], taken[THREADS]; /* records published; records that the daemon took */

/* What only the process sees moves in one step where the lock is held. */
#ifdef BREAK_4
#define LOCK   skip
#define UNLOCK skip
#define ONE
#else
#define LOCK atomic { !lock -> lock = true }
#ifdef BREAK_1
#define UNLOCK lock = false
#else
#define UNLOCK atomic { EMPTY(me) -> lock = false } /* release */
#endif
#define ONE atomic
#endif

proctype memory(byte me)
{
end:	do
	:: sb[me].cell_waits ->
		d_step {
			ring[sb[me].lane].cell[sb[me].at % CAP] = sb[me].cell;
			sb[me].cell_waits = false;
			sb[me].cell = 0;
			sb[me].at = 0
		}
	:: sb[me].tail_waits ->
		d_step {
			ring[sb[me].lane].tail = sb[me].tail;
			sb[me].tail_waits = false;
			sb[me].tail = 0
		}
	:: sb[me].state_waits ->
		d_step {
			ring[sb[me].lane].state = sb[me].state;
			sb[me].state_waits = false;
			sb[me].state = 0
		}
	od
}

#define ROOM(l) (mine[l] + 1 - ring[l].head <= CAP) /* room(), head by acquire */

inline cell_store(n) /* plain */
{
	d_step {
		sb[me].cell = RECORD(me, n);
		sb[me].at = mine[l];
		sb[me].cell_waits = true
	}
}

#ifdef BREAK_8
#define BEFORE true
#else
#define BEFORE (!sb[me].cell_waits && !sb[me].state_waits)
#endif

inline tail_store() /* lane_commit(): release */
{
	atomic {
		BEFORE -> mine[l] = mine[l] + 1;
		sb[me].tail = mine[l];
		sb[me].tail_waits = true;
		written[me]++
	}
}

inline claim()
{
	/* threads are alike: they come in the order of their numbers */
	began == me;
	LOCK;
	began = me + 1;
	ONE {
		k = n_left;
		l = LANES;
		if
		:: k > 0 ->
#ifdef BREAK_5
			l = left[k - 1];
			n_left = k - 1
#else
			if
			:: ROOM(left[k - 1]) -> l = left[k - 1]; n_left = k - 1 /* lane_left() */
			:: else
			fi
#endif
		:: k == 0 && used < LANES -> l = used; used++ /* lane_fresh() */
		:: else
		fi;
		k = 0
	};
	UNLOCK
}

inline offer()
{
	LOCK;
	ONE {
		k = n_left;
		left[k] = l;
		n_left = k + 1;
		k = 0
	};
	UNLOCK
}

inline exited()
{
	atomic { EMPTY(me) -> sb[me].state = EXITED(me); sb[me].state_waits = true } /* release */
}

inline write()
{
	do
	:: n <= RECORDS && ROOM(l) ->
		cell_store(n);
		tail_store();
		n++
	:: n <= RECORDS && !ROOM(l) -> n++ /* refused, and counted: lane.pml */
	:: n > RECORDS -> break
	od
}

inline release()
{
#ifdef BREAK_2
	cell_store(n);
	offer();
	tail_store();
	exited()
#else
#ifdef BREAK_3
	offer();
	exited()
#else
	exited();
	offer()
#endif
#endif
}

proctype thread(byte me)
{
	byte l, n, k;

	{
		claim();
		if
		:: l < LANES ->
			d_step {
				sb[me].lane = l;
#ifdef BREAK_7
				mine[l] = ring[l].head;
#endif
				sb[me].state = LIVE(me);
				sb[me].state_waits = true;
				busy[l] = true
			};
			write();
			busy[l] = false;
			release()
		:: else /* none to be had: what it does is counted */
		fi
	} unless { killed };
	d_step { l = 0; n = 0; k = 0; ended++ }
}

proctype killer()
{
	killed = true
}

inline take(l)
{
#ifdef BREAK_6
	who[l] = ring[l].state % 4;
#endif
	t = ring[l].tail; /* pread(); read_fence() */
	assert(t >= h[l] && t - h[l] <= CAP); /* V6 */
	do
	:: h[l] < t ->
		c = ring[l].cell[h[l] % CAP];
		d_step {
			assert(c != 0);
			c--;
#ifndef BREAK_6
			who[l] = (c % 4 == 0 -> c / 4 : who[l]);
#endif
			assert(c / 4 == who[l]);
			assert(c % 4 == 0 || c % 4 > last);
			last = c % 4;
			taken[c / 4]++;
			h[l] = h[l] + 1;
			c = 0
		}
	:: else -> break
	od;
	ring[l].head = t;
	t = 0
}

proctype daemon()
{
	byte h[LANES], who[LANES], t, c, last;

	do
	:: ring[0].tail != h[0] -> take(0)
	:: ended == THREADS && EMPTY(0) && EMPTY(1) && EMPTY(2) && ring[0].tail == h[0] -> break
	od;
	assert(taken[0] == written[0] && taken[1] == written[1] && taken[2] == written[2]);
	assert(!busy[0] || (ring[0].state >= 4 && ring[0].state < 8)); /* LIVE */
	assert(killed || ring[0].state >= 8)                           /* EXITED */
}

init
{
	atomic {
		run memory(0);
		run memory(1);
		run memory(2);
		run thread(0);
		run thread(1);
		run thread(2);
		run daemon();
		run killer()
	}
}
