/* SPDX-License-Identifier: MIT. lane.pml: one lane: its owner (agent/lane.c) and the daemon
 * (daemon/jobs/reader.c, daemon/drain.c). docs/ring.md has the protocol.
 *
 * Claim: every published record is read exactly once, whole and in order; a refused one is counted,
 * and what LOST records tell is never more; the owner may be killed at any step.
 *
 * A cell is 8 bytes, a lap CAP cells, a record 1 or 3 cells, LOST 2. Positions never wrap.
 *
 * Memory: the owner's stores become visible later, in any order, by memory(); a release store waits
 * for those before it, and those behind it may overtake it. That is what C11 and ARM leave of it on
 * one side; x86 does less. An owner that is killed has its stores drained all the same. The daemon's
 * loads stay in order, because of read_fence() between them; BREAK_6 is without.
 *
 * BREAK_1  tail is stored before the record
 * BREAK_2  the store of tail is no release
 * BREAK_3  the daemon gives the bytes back before it has copied them
 * BREAK_4  no pad: a record is written over the end of the lap
 * BREAK_5  the pad is not counted when room is looked for
 * BREAK_6  the daemon's loads of the bytes come before that of tail
 * BREAK_7  losses are forgotten where LOST finds no room
 * BREAK_8  a refused record is not counted
 */
#define CAP   4
#define TRIES 4
#define POS   16

/* What a cell holds: cell k of record i, l cells long; the two cells of a LOST that tells n; a PAD
 * of n cells. */
#define CELL(i, l, k) ((i) * 16 + (l) * 4 + (k))
#define LOST(n, k)    (128 + (n) * 2 + (k))
#define PAD(n)        (192 + (n))
#define ANY           255 /* behind a PAD's first cell */

byte mem[CAP], todo[CAP]; /* visible; stored and not yet visible, 0: nothing */
byte tail, tail_todo;
bool tail_waits;
byte head;                /* of the control file: a system call writes it, at once */
bool killed, over;

byte want[POS];           /* what stands at each position, by the owner's word */
byte attempted, published, dropped, told, untold;

#define QUIET (todo[0] == 0 && todo[1] == 0 && todo[2] == 0 && todo[3] == 0)

proctype memory()
{
	do
	:: todo[0] != 0 -> d_step { mem[0] = todo[0]; todo[0] = 0 }
	:: todo[1] != 0 -> d_step { mem[1] = todo[1]; todo[1] = 0 }
	:: todo[2] != 0 -> d_step { mem[2] = todo[2]; todo[2] = 0 }
	:: todo[3] != 0 -> d_step { mem[3] = todo[3]; todo[3] = 0 }
	:: tail_waits -> d_step { tail = tail_todo; tail_waits = false }
	:: over && QUIET && !tail_waits -> break
	od
}

inline store(at, what)
{
	d_step {
		want[at] = what;
#ifdef BREAK_4
		if
		:: (at) / CAP == t / CAP -> todo[(at) % CAP] = what
		:: else /* into what stands behind the lane */
		fi
#else
		todo[(at) % CAP] = what
#endif
	}
}

inline commit(n) /* lane_commit(): release */
{
#ifndef BREAK_2
	QUIET;
#endif
	d_step { t = t + n; tail_todo = t; tail_waits = true }
}

inline room(n) /* room() */
{
	h = head; /* acquire */
	d_step {
		if
		:: h <= t && h > seen -> seen = h
		:: else
		fi;
		pad = ((t % CAP) + n > CAP -> CAP - (t % CAP) : 0);
#ifdef BREAK_4
		pad = 0;
#endif
#ifdef BREAK_5
		ok = t + n - seen <= CAP;
#else
		ok = t + pad + n - seen <= CAP;
#endif
		h = 0
	}
	if
	:: ok && pad > 0 ->
		store(t, PAD(pad));
		d_step {
			k = 1;
			do
			:: k < pad -> want[t + k] = ANY; k++
			:: else -> break
			od;
			k = 0
		}
		commit(pad)
	:: else
	fi;
	d_step {
		if
		:: ok && seen < (t / CAP) * CAP -> limit = seen + CAP
		:: ok && seen >= (t / CAP) * CAP -> limit = (t / CAP) * CAP + CAP
		:: else
		fi;
		pad = 0
	}
}

inline tell() /* lost_tell() */
{
	if
	:: untold == 0 -> ok = true
	:: else ->
#ifdef BREAK_7
		k = untold;
		untold = 0;
		room(2);
		if
		:: ok -> untold = k
		:: else
		fi;
		k = 0;
#else
		room(2);
#endif
		if
		:: ok ->
			k = untold;
			untold = 0;
			store(t, LOST(k, 0));
			store(t + 1, LOST(k, 1));
			k = 0;
			commit(2)
		:: else
		fi
	fi
}

proctype owner()
{
	byte t, seen, limit, h, pad, l, k;
	bool ok;

	{
		do
		:: attempted < TRIES ->
			if
			:: l = 1
			:: l = 3
			fi;
			attempted++;
			ok = t + l <= limit;
			if
			:: !ok ->
				tell();
				if
				:: ok -> room(l)
				:: else
				fi
			:: else
			fi;
			if
			:: !ok ->
				d_step { untold++; limit = 0 }
#ifndef BREAK_8
				dropped++
#endif
			:: else ->
#ifdef BREAK_1
				d_step { tail_todo = t + l; tail_waits = true; published++ }
#endif
				do
				:: k < l -> store(t + k, CELL(attempted, l, k)); k++
				:: else -> break
				od;
				k = 0;
#ifdef BREAK_1
				t = t + l
#else
				commit(l);
				published++
#endif
			fi;
			l = 0;
			ok = false
		:: else -> break
		od
	} unless { killed };
	over = true
}

proctype killer()
{
	killed = true
}

proctype daemon()
{
	byte h, t, p, c, n, last;
#ifdef BREAK_6
	byte early[CAP];
#endif

	do
	:: tail != h ->
#ifdef BREAK_6
		do
		:: p < CAP -> early[p] = mem[p]; p++
		:: else -> break
		od;
#endif
		t = tail; /* pread(), read_fence() */
		assert(t > h && t - h <= CAP); /* V6 */
#ifdef BREAK_3
		head = t;
#endif
		p = h;
		do
		:: p < t -> /* pread(): one cell after the other */
#ifdef BREAK_6
			c = early[p % CAP];
#else
			c = mem[p % CAP];
#endif
			d_step {
				assert(want[p] != 0); /* published by its owner */
				assert(want[p] == ANY || c == want[p]);
				if
				:: want[p] == ANY || c >= 192
				:: else ->
					if
					:: c >= 128 -> told = told + (c % 2 == 0 -> (c - 128) / 2 : 0)
					:: else ->
						assert(c % 4 != 0 || c / 16 > last);
						assert(c % 4 == 0 || c / 16 == last);
						last = c / 16;
						n = n + (c % 4 == 0 -> 1 : 0)
					fi
				fi;
				p++;
				c = 0
			}
		:: else -> break
		od;
		/* the copy is in the journal */
		head = t;
		d_step { h = t; t = 0; p = 0 }
	:: over && QUIET && !tail_waits && tail == h -> break
	od;
	/* killed between the two: it was published, and the count is the model's own */
	assert(n == published || (killed && n == published + 1));
	assert(killed || (attempted == n + dropped && dropped == told + untold));
	assert(!killed || (n + dropped <= attempted && attempted <= n + dropped + 1 && told <= dropped))
}

init
{
	atomic { run memory(); run owner(); run daemon(); run killer() }
}
