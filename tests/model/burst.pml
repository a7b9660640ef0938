/* SPDX-License-Identifier: MIT. burst.pml: a thread that goes on in another lane when its own is
 * full: lane_further() of agent/lane.c; what the daemon makes of it in daemon/drain.c and
 * reader_is_owned() of daemon/jobs/reader.c.
 *
 * Claim: its records are taken once each, in the order in which it wrote them, whichever lanes they
 * are in; whoever looks finds it in one lane, and not in an older one than where it was when the
 * look began; all of it however it is killed.
 *
 * A record is one cell, and so is a mark, whose clock is the number of the move that it ends. A
 * lane keeps one cell for its mark. Which lane is next: any with room for two. What lane.pml has is
 * left out: each store is seen at once, and what the daemon does between its looks at tails, and
 * before it tells heads, is one step.
 *
 * BREAK_1  no mark is left behind
 * BREAK_2  the mark is written once the first record stands in the other lane
 * BREAK_3  marks are looked for up to the first look only
 * BREAK_4  lanes are taken up to their last marks, one after the other
 * BREAK_5  a window ends at the second look
 * BREAK_6  no room is kept for the mark
 * BREAK_7  the lane that was left says EXITED
 * BREAK_8  the new lane is LIVE before it says where the thread is
 * BREAK_9  the lane is LEFT before the other is LIVE, and says no longer where the thread was
 * BREAK_10 marks that were made after the first look are heeded, too
 */
#define LANES   3
#define CAP     3
#define RECORDS 7

#define LIVE   1
#define EXITED 2
#define LEFT   3

#define MARK(clock) (64 + (clock))

typedef ring_lane {
	byte cell[CAP];
	byte tail, head, state, moves;
	bool now /* its now block says where the thread is */
};
ring_lane ring[LANES];

byte at, moved;           /* the owner's: its lane; its moves */
bool killed, over;
byte attempted, written, dropped, taken;

#ifdef BREAK_6
#define SPARE 0
#else
#define SPARE 1
#endif
#define ROOM(l, n) (ring[l].tail + (n) + SPARE - ring[l].head <= CAP)

inline put(l, what)
{
	d_step {
		ring[l].cell[ring[l].tail % CAP] = what;
		ring[l].tail = ring[l].tail + 1
	}
}

inline mark_put(l)
{
	if
	:: ring[l].tail + 1 - ring[l].head <= CAP -> put(l, MARK(moved))
	:: else
	fi
}

inline further()
{
	if
	:: at != 0 && ROOM(0, 2) -> to = 0
	:: at != 1 && ROOM(1, 2) -> to = 1
	:: at != 2 && ROOM(2, 2) -> to = 2
	:: else -> to = LANES
	fi;
	if
	:: to == LANES
	:: else ->
		moved++;
#ifndef BREAK_1
#ifndef BREAK_2
		mark_put(at);
#endif
#endif
#ifdef BREAK_9
		ring[at].state = LEFT;
		ring[at].now = false;
#endif
#ifndef BREAK_8
		ring[to].now = true;
#endif
		ring[to].moves = moved;
		ring[to].state = LIVE;
#ifdef BREAK_8
		ring[to].now = true;
#endif
#ifdef BREAK_2
		was = at;
#endif
#ifdef BREAK_7
		ring[at].state = EXITED;
#else
#ifndef BREAK_9
		ring[at].state = LEFT;
#endif
#endif
		at = to
	fi;
	to = 0
}

proctype owner()
{
	byte to;
#ifdef BREAK_2
	byte was = LANES;
#endif

	ring[0].now = true;
	ring[0].state = LIVE;
	{
		do
		:: attempted < RECORDS ->
			attempted++;
			if
			:: !ROOM(at, 1) -> further()
			:: else
			fi;
			if
			:: ROOM(at, 1) -> put(at, attempted); written++
			:: else -> dropped++
			fi;
#ifdef BREAK_2
			if
			:: was < LANES -> mark_put(was); was = LANES
			:: else
			fi
#endif
		:: else -> break
		od
	} unless { killed };
	over = true
}

proctype killer()
{
	killed = true
}

/* Somebody asks where the thread is, or it was killed and is asked for the last time. */
inline ask()
{
	d_step { began = ring[0].state != 0; before = moved; best = LANES }
	i = 0;
	do
	:: i < LANES ->
		d_step {
			if
			:: (ring[i].state == LIVE || ring[i].state == LEFT) &&
					(best == LANES || ring[i].moves > most) ->
				best = i;
				most = ring[i].moves
			:: else
			fi;
			assert(ring[i].state != LIVE || ring[i].now);
			i++
		}
	:: else -> break
	od;
	i = 0;
	d_step {
		assert(best < LANES || !began);
		assert(best == LANES || most + 1 >= before); /* it may be on its way there */
		assert(best == LANES || ring[best].now);
		before = 0;
		began = false;
		best = 0;
		most = 0
	}
}

#define NEXT_MARK(l) \
	p = h[l]; \
	do \
	:: p < first[l] && ring[l].cell[p % CAP] < 64 -> p++ \
	:: else -> break \
	od

inline take(l, upto)
{
	d_step {
		do
		:: h[l] < upto ->
			c = ring[l].cell[h[l] % CAP];
			if
			:: c < 64 ->
				assert(c > last);
				last = c;
				taken++
			:: else
			fi;
			h[l] = h[l] + 1
		:: else -> break
		od;
		c = 0
	}
}

#ifdef BREAK_10
#define HEEDED(m) true
#else
#define HEEDED(m) ((m) <= MARK(looked))
#endif

/* Where the last mark below `upto` ends that is not later than the first look. */
inline find_marks(l, upto)
{
		first[l] = h[l];
		p = h[l];
		do
		:: p < upto ->
			if
			:: ring[l].cell[p % CAP] >= 64 && HEEDED(ring[l].cell[p % CAP]) -> first[l] = p + 1
			:: else
			fi;
			p++
		:: else -> break
		od;
		p = 0
}

proctype daemon()
{
	byte h[LANES], goal[LANES], seen[LANES], first[LANES];
	byte i, p, c, last, best, most, before, clock, looked;
	bool began, ends;

	do
	:: true -> ask()
	:: over || ring[0].tail != h[0] || ring[1].tail != h[1] || ring[2].tail != h[2] ->
		ends = over;
		i = 0;
		do
		:: i < LANES -> goal[i] = ring[i].tail; i++
		:: else -> break
		od;
		looked = moved; /* the clock */
		i = 0;
		do
		:: i < LANES ->
#ifdef BREAK_3
			seen[i] = goal[i];
#else
			seen[i] = ring[i].tail;
#endif
			assert(seen[i] - ring[i].head <= CAP); /* V6 */
			i++
		:: else -> break
		od;
		atomic {
			find_marks(0, seen[0]);
			find_marks(1, seen[1]);
			find_marks(2, seen[2]);
#ifdef BREAK_5
			goal[0] = seen[0];
			goal[1] = seen[1];
			goal[2] = seen[2];
#endif
			i = 0;
#ifdef BREAK_4
			i = 0;
			do
			:: i < LANES -> take(i, first[i]); i++
			:: else -> break
			od;
#else
			do /* the first in the order of their clocks */
			:: d_step {
					best = LANES;
					i = 0;
					do
					:: i < LANES ->
						if
						:: h[i] < first[i] ->
							NEXT_MARK(i);
							if
							:: best == LANES || ring[i].cell[p % CAP] < clock ->
								best = i;
								clock = ring[i].cell[p % CAP]
							:: else
							fi
						:: else
						fi;
						i++
					:: else -> break
					od;
					i = 0;
					p = 0;
					clock = 0
				}
				if
				:: best == LANES -> break
				:: else ->
					d_step { NEXT_MARK(best) }
					take(best, p + 1);
					p = 0
				fi
			od;
#endif
			i = 0;
			do
			:: i < LANES -> take(i, goal[i]); i++
			:: else -> break
			od;
			i = 0;
			do
			:: i < LANES ->
				ring[i].head = h[i];
				goal[i] = 0;
				seen[i] = 0;
				first[i] = 0;
				i++
			:: else -> break
			od;
			looked = 0
		};
		best = 0;
		if
		:: ends && ring[0].tail == h[0] && ring[1].tail == h[1] && ring[2].tail == h[2] -> break
		:: else
		fi
	od;
	/* killed between the two: it was published, and the count is the model's own */
	assert(taken == written || (killed && taken == written + 1));
	assert(killed || attempted == taken + dropped)
}

init
{
	atomic { run owner(); run daemon(); run killer() }
}
