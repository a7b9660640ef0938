/* SPDX-License-Identifier: MIT. sums.pml: sums of a thread that finds no room for records: slots that
 * it adds to, and what the daemon makes of them. The product does not have them yet: there a full lane with no
 * further one drops its records.
 *
 * Claim: each event is counted once, and its time is added once, whichever side is killed when;
 * one that knew of a START, or was over when FINALIZE was called, is in the session; one that was
 * over when START was called, or knew of FINALIZE, is not.
 *
 * A slot has the clock at which it was opened, a count (the sum of its buckets: there is no other
 * word for it) and a time. It is cumulative; what is being
 * added stands in the redo word first, and who reads for the last time completes it, so that no
 * number ever falls. Its owner opens another when it sees that `cut` moved, and slots below `first` are final. The session's
 * thread stamps, publishes the record, raises `cut`, and returns. The daemon looks at tails (here:
 * at what was said), reads `first`, then the slots, journals absolutes, and the fold applies
 * differences at the clock at which the slot was opened; then it tells `head`. A slot that was
 * opened after the first look waits: what was said before it may not be folded yet.
 *
 * Each store is seen at once: the order of the stores is what counts.
 *
 * BREAK_1  no redo word
 * BREAK_2  the redo word is cleared before the time is added
 * BREAK_3  the last read does not redo
 * BREAK_4  the fold adds absolutes
 * BREAK_5  `first` is read after the slots
 * BREAK_6  the cut is raised before the stamp
 * BREAK_7  the owner does not look at the cut
 * BREAK_8  slots that were opened after the first look are folded, too
 * BREAK_9  head is told before the journal has the slots
 * BREAK_10 a slot is taken again without a look at head
 * BREAK_11 the fold forgets last absolutes when the daemon is killed
 * BREAK_12 the cut is raised before the record is published
 */
#define SLOTS  1
#define EVENTS 2
#define LOOKS  2 /* while the job lives */

typedef slot {
	byte opened, count, time
};
slot ring[SLOTS];
byte tail, first, head;       /* positions; head is the daemon's */
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

inline open_slot()
{
	d_step {
		ring[tail % SLOTS].opened = clock;
		ring[tail % SLOTS].count = 0;
		ring[tail % SLOTS].time = 0;
		clock++;
		at = tail + 1
	}
	tail = at
}

inline add()
{
#ifndef BREAK_1
	d_step {
		redo_count = ring[(at - 1) % SLOTS].count + 1; /* and the time: each event takes 1 */
		redo_pos = at
	}
#endif
	ring[(at - 1) % SLOTS].count++;
#ifdef BREAK_2
	redo_pos = 0;
#endif
	ring[(at - 1) % SLOTS].time++;
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

	{
		do
		:: n < EVENTS ->
			d_step { knew = returned; n++ }
#ifndef BREAK_7
			atomic {
				if
				:: cut != saw ->
					saw = cut;
					at = 0;
					first = tail
				:: else
				fi
			}
#endif
			if
#ifdef BREAK_10
			:: at == 0 -> open_slot()
#else
			:: at == 0 && tail - head < SLOTS -> open_slot()
			:: at == 0 && tail - head == SLOTS -> refused++
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
byte in, out, in_time, out_time;
byte kept;                    /* head, as the journal has it */

inline apply(pos, c, b)
{
	d_step {
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
		if
		:: (ends && (!known || o < stamp)) || (!ends && known && o >= stamp) ->
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
}

#ifdef BREAK_8
#define FOLDED true
#else
#define FOLDED (o <= looked || dead)
#endif

inline read_slots()
{
	do
	:: p < t ->
		d_step { /* pread(): a word after the other */
			o = ring[p % SLOTS].opened;
			c = ring[p % SLOTS].count
		}
		atomic {
			b = ring[p % SLOTS].time;
			if
#ifndef BREAK_3
			:: dead && redo_pos == p + 1 -> c = redo_count; b = redo_count
#endif
			:: else
			fi;
			if
			:: FOLDED -> apply(p, c, b)
			:: else -> /* nor is anything behind it final for us */
				d_step { f = (f > p -> p : f); o = 0; c = 0; b = 0 }
			fi;
			p++
		}
	:: else -> break
	od
}
proctype daemon()
{
	byte t, f, p, o, c, b, looked;
	bool dead;
	byte crashes, looks;

	do
	:: looks < LOOKS || (over && said_all) ->
		looks = (looks < LOOKS -> looks + 1 : looks);
		d_step { dead = over && said_all; looked = clock - 1 }
		known = said; /* the first phase */
		d_step {
#ifndef BREAK_5
			f = first;
#endif
			t = tail
		}
#ifdef BREAK_9
		head = f;
		if
		:: crashes < 1 -> goto crash
		:: true
		fi;
#endif
		p = kept;
		read_slots();
#ifdef BREAK_5
		f = first;
		f = (f > t -> t : f);
#endif
		kept = f; /* the journal is flushed */
		if
		:: crashes < 1 ->
			goto crash
		:: true
		fi;
		head = f;
		goto done;
crash:		crashes++; /* and started again: it tells what the journal has */
		dead = false;
#ifdef BREAK_11
		last_pos[0] = 0;
#endif
		head = kept;
done:		skip;
		d_step { t = 0; f = 0; p = 0; o = 0; c = 0; b = 0; looked = 0 }
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
