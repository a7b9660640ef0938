/* SPDX-License-Identifier: MIT. sums.pml: sums of a thread that finds no room for records (agent/sums.c), and
 * what the daemon makes of them (daemon/sums.c, daemon/fold/sums.c).
 *
 * Claim: each event is counted once, and its time is added once, whichever side is killed when;
 * one that knew of a START, or was over when FINALIZE was called, is in the session; one that was
 * over when START was called, or knew of FINALIZE, is not.
 *
 * A sum is a record behind `tail`, before `end`. It has the clock at which it was opened, a count
 * (the sum of its buckets: there is no other word for it) and a time. It is cumulative; what is being
 * added stands in the redo word first, and who reads for the last time completes it, so that no
 * number ever falls. Its owner closes it, by moving tail to end, when it sees that `cut` moved. The
 * session's thread stamps, publishes the record, raises `cut`, and returns. The daemon looks at tail
 * and end, then at what was said, takes what is final, then journals absolutes of what was open at
 * the look, and the fold applies differences at the clock at which the sum was opened; then it tells
 * `head`. The session ends with the first window that began when FINALIZE had returned.
 *
 * Each store is seen at once: the order of the stores is what counts.
 *
 * BREAK_1  no redo word
 * BREAK_2  the redo word is cleared before the time is added
 * BREAK_3  the last read does not redo
 * BREAK_4  the fold adds absolutes
 * BREAK_5  a record that tail passed is added whole
 * BREAK_6  the cut is raised before the stamp
 * BREAK_7  the owner does not look at the cut
 * BREAK_8  sums that were opened after the look are folded, too
 * BREAK_9  head is told before the journal has the records
 * BREAK_10 a place is taken again without a look at head
 * BREAK_11 the fold forgets last absolutes when the daemon is killed
 * BREAK_12 the cut is raised before the record is published
 * BREAK_13 the clock of a sum is read before the cut is looked at
 * BREAK_14 end passes a sum before it is written
 * BREAK_15 the session ends with a window that began before FINALIZE returned
 */
#define SLOTS  1
#define EVENTS 2
#define LOOKS  2 /* while the job lives */

typedef sum {
	byte opened, count, time
};
sum lane[SLOTS];
byte tail, end, head;         /* positions; head is the daemon's */
byte redo_pos, redo_count;    /* position + 1; 0: nothing to redo */
byte cut, clock = 1;
bool ends;                    /* the one verb: FINALIZE of a session from the beginning, or START */
bool said, called, returned;  /* said: its record is published */
byte stamp;
bool killed, over, said_all;

/* The model's own. */
byte added, refused, least, most;

/* --- the job --- */

proctype session()
{
	{
		called = true;
#ifdef BREAK_6
		cut = 1;
#endif
		d_step { stamp = clock; clock++ }
#ifdef BREAK_12
		cut = 1;
#endif
		said = true;
		cut = 1;
		returned = true
	} unless { killed };
	said_all = true
}

inline write_sum()
{
	d_step {
#ifdef BREAK_13
		lane[end % SLOTS].opened = now;
#else
		lane[end % SLOTS].opened = clock;
#endif
		lane[end % SLOTS].count = 0;
		lane[end % SLOTS].time = 0;
		clock++
	}
}

inline open_sum()
{
#ifdef BREAK_14
	end++;
	d_step {
		lane[(end - 1) % SLOTS].opened = clock;
		lane[(end - 1) % SLOTS].count = 0;
		lane[(end - 1) % SLOTS].time = 0;
		clock++
	};
#else
	write_sum();
	end++;
#endif
	at = end
}

inline add()
{
#ifndef BREAK_1
	d_step {
		redo_count = lane[(at - 1) % SLOTS].count + 1; /* and the time: each event takes 1 */
		redo_pos = at
	}
#endif
	lane[(at - 1) % SLOTS].count++;
#ifdef BREAK_2
	redo_pos = 0;
#endif
	lane[(at - 1) % SLOTS].time++;
	d_step {
		redo_pos = 0;
		added++;
		least = least + ((ends && !called) || (!ends && knew) -> 1 : 0);
		most = most + ((ends && !knew) || (!ends && called) -> 1 : 0);
		knew = false
	}
}

proctype owner()
{
	byte n, at, saw;
	bool knew;
#ifdef BREAK_13
	byte now;
#endif

	{
		do
		:: n < EVENTS ->
			d_step { knew = returned; n++ }
#ifdef BREAK_13
			d_step { now = clock; clock++ }
#endif
#ifndef BREAK_7
			atomic {
				if
				:: cut != saw ->
					saw = cut;
					at = 0;
					tail = end
				:: else
				fi
			}
#endif
			if
#ifdef BREAK_10
			:: at == 0 -> open_sum()
#else
			:: at == 0 && end - head < SLOTS -> open_sum()
			:: at == 0 && end - head == SLOTS -> refused++
#endif
			:: at != 0
			fi;
			if
			:: at != 0 -> add()
			:: else
			fi
		:: else -> break
		od
	} unless { killed };
	over = true
}

proctype killer()
{
	killed = true
}

/* --- the daemon --- */

/* The fold, a function of the journal: it outlives the daemon. */
byte last_count[SLOTS], last_time[SLOTS], last_pos[SLOTS]; /* last_pos: position + 1 */
bool known;                   /* the verb */
bool frozen;                  /* the session has ended */
byte in, out, in_time, out_time;
byte kept;                    /* head, as the journal has it */

inline apply(pos, c, b)
{
	if
	:: last_pos[pos % SLOTS] != pos + 1 ->
		last_pos[pos % SLOTS] = pos + 1;
		last_count[pos % SLOTS] = 0;
		last_time[pos % SLOTS] = 0
	:: else
	fi;
#ifdef BREAK_4
	last_count[pos % SLOTS] = 0;
	last_time[pos % SLOTS] = 0;
#endif
#ifdef BREAK_5
	last_count[pos % SLOTS] = (pos < t -> 0 : last_count[pos % SLOTS]);
	last_time[pos % SLOTS] = (pos < t -> 0 : last_time[pos % SLOTS]);
#endif
	if
	:: !frozen && ((ends && (!known || o < stamp)) || (!ends && known && o >= stamp)) ->
		in = in + c - last_count[pos % SLOTS];
		in_time = in_time + b - last_time[pos % SLOTS]
	:: else ->
		out = out + c - last_count[pos % SLOTS];
		out_time = out_time + b - last_time[pos % SLOTS]
	fi;
	last_count[pos % SLOTS] = c;
	last_time[pos % SLOTS] = b;
	o = 0;
	c = 0;
	b = 0
}

/* An entry each: of a record that tail passed, which is where head goes; of one that is open. */
inline read_sums()
{
	do
	:: p < t || p < e ->
		d_step { /* pread(): a word after the other */
			o = lane[p % SLOTS].opened;
			c = lane[p % SLOTS].count
		}
		d_step {
			b = lane[p % SLOTS].time;
			if
#ifndef BREAK_3
			:: dead && redo_pos == p + 1 -> c = redo_count; b = redo_count
#endif
			:: else
			fi;
			apply(p, c, b);
			p++;
			kept = (p <= t -> p : kept)
		}
	:: else -> break
	od
}

proctype daemon()
{
	byte t, e, p, o, c, b;
	bool dead, asked;
	byte crashes, looks;

	do
	:: looks < LOOKS || (over && said_all) ->
		looks = (looks < LOOKS -> looks + 1 : looks);
		d_step { dead = over && said_all; asked = returned }
		if /* one pread() has both words */
		:: t = tail; e = end
		:: e = end; t = tail
		fi;
		known = said; /* the first phase */
#ifdef BREAK_8
		e = end;
#endif
#ifdef BREAK_9
		head = t;
		if
		:: crashes < 1 -> goto crash
		:: true
		fi;
#endif
		p = kept;
		read_sums();
		if
		:: crashes < 1 ->
			goto crash
		:: true
		fi;
#ifdef BREAK_15
		frozen = frozen || (ends && known);
#else
		frozen = frozen || (ends && known && asked);
#endif
		head = kept;
		goto done;
crash:		crashes++; /* and started again: it tells what the journal has */
		dead = false;
#ifdef BREAK_11
		last_pos[0] = 0;
#endif
		head = kept;
done:		skip;
		d_step { t = 0; e = 0; p = 0; o = 0; c = 0; b = 0; asked = false }
		if
		:: dead -> break
		:: else
		fi
	od;
	assert(in + out == in_time + out_time);
	assert(in + out == added || (killed && in + out == added + 1));
	assert(in >= least && in <= most + (killed -> 1 : 0))
}

init
{
	if
	:: ends = true
	:: ends = false
	fi;
	atomic { run session(); run owner(); run daemon(); run killer() }
}
