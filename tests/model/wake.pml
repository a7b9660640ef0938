/* SPDX-License-Identifier: MIT. wake.pml: who wakes whom, and that no wake-up is lost. Records need
 * none (the daemon looks at tails by its timer); wishes and questions do:
 *
 *   LINK   a program asks (libclient/session.c: ask(), want_less()), another thread has news
 *          (pd_ring() alone), the daemon wants (daemon/intake.c: conn_want(), PING and PONG), a
 *          thread enters scopes (api.c); the parked thread serves them all (park.c, daemon_link.c)
 *   FIRST  the first calls in a process, or in a forked child, where the gate is GATE_WAKE
 *          (thread.c: pd_thread_cold(), wake_up())
 *   FLUSH  two threads wait for the agent's thread (agent/worker.c: flushed_once(), work())
 *
 * Claim: nobody sleeps for ever; what was asked for holds when ask() returns, when the PONG is
 * there, and in the end; whoever sees GATE_ON sees the engine's functions; one thread is parked.
 * Deadlines are left out: they would hide a lost wake-up as a delay.
 *
 * Memory: what the asking and the parked thread store becomes visible later, in any order; a release
 * store, and a read-modify-write with release, wait for what comes before. A system call on a socket
 * or futex, and the start of a thread, do so too.
 *
 * BREAK_1   the bell is rung before `asked` is raised
 * BREAK_2   the bell is hushed after the look at `asked`, not before
 * BREAK_3   `change` is raised without release
 * BREAK_4   ask() looks at `answered`, then at `change`
 * BREAK_5   what is wanted is read before `asked`
 * BREAK_6   GATE_ON is stored without release
 * BREAK_7   the waiter is woken before `change` is raised
 * BREAK_8   a WANT that did not fit the socket counts as said
 * BREAK_9   PONG is said before what came before it is done
 * BREAK_10  GATE_OFF is stored after the parked thread was started
 * BREAK_11  waking up is no compare-and-swap
 * BREAK_12  the agent's thread looks at its bell after its work, not before
 * BREAK_13  the agent's thread reads what is asked of it after it has flushed
 * BREAK_14  `asked` is raised without release
 */
#define WAKE 0
#define OFF  1
#define ON   2

#define OURS   1 /* a session of the program's wants it */
#define THEIRS 2 /* the daemon's */

/* --- LINK */

byte local_want, local_todo; /* what a caller stores; not yet visible, + 1; 0: nothing */
byte asked, answered, answered_todo, change;
bool asleep;                 /* a caller, on `change` */
byte bell;                   /* datagrams in its socket */
#define BELL 1               /* it holds so many */
byte gate, gate_todo;
bool off_todo;               /* FIRST: GATE_OFF of the thread that wakes the library */
bool functions, functions_todo; /* HOT->enter, HOT->leave */
byte applied;                /* what the engine was told */
byte their_want;             /* link_.want */
chan sock = [1] of { byte };
#define PING 10
byte pongs;

proctype memory()
{
end:	do
	:: local_todo != 0 -> d_step { local_want = local_todo - 1; local_todo = 0 }
	:: answered_todo != 0 -> d_step { answered = answered_todo; answered_todo = 0 }
	:: functions_todo -> d_step { functions = true; functions_todo = false }
	:: gate_todo != 0 -> d_step { gate = gate_todo; gate_todo = 0 }
	:: off_todo -> d_step { gate = OFF; off_todo = false }
	od
}

/* Of the parked thread: */
#define DRAINED (answered_todo == 0 && gate_todo == 0 && !functions_todo)

inline ring_bell() /* pd_ring(); a system call */
{
	d_step {
		if
		:: bell < BELL -> bell++
		:: else /* full: it rings already */
		fi
	}
}

inline ask() /* up to where the caller waits */
{
#ifdef BREAK_1
	ring_bell();
#endif
#ifdef BREAK_14
	d_step { asked++; mine = asked };
	local_todo == 0; /* the system call */
#else
	atomic { local_todo == 0 -> asked++; mine = asked };
#endif
#ifndef BREAK_1
	ring_bell();
#endif
	skip
}

proctype caller()
{
	byte mine, was, seen, n;

	do
	:: n < 2 ->
		local_todo = 1 + OURS;
		ask();
		do
		:: true ->
#ifdef BREAK_4
			seen = answered;
			was = change;
#else
			was = change;
			seen = answered;
#endif
			if
			:: seen >= mine -> break
			:: else
			fi;
			d_step { asleep = (change == was); was = 0; seen = 0 };
			!asleep
		od;
		was = 0;
		seen = 0;
		assert((applied & OURS) != 0 && gate == ON);
		n++;
		if
		:: true ->
			local_todo = 1; /* want_less(): nobody waits */
			ask()
		:: n == 2
		fi
	:: else -> break
	od
}

proctype newsman()
{
	ring_bell()
}

proctype scoper()
{
	gate == ON;
	assert(functions)
}

inline gate_store(to)
{
#ifdef BREAK_6
	gate_todo = to
#else
	atomic { DRAINED -> gate_todo = to } /* release */
#endif
}

inline gate_on() /* gate_set() */
{
	functions_todo = !functions;
	gate_store(ON)
}

inline apply() /* daemon_link.c */
{
#ifdef BREAK_5
	want = their_want | local_want;
	heard = asked;
#else
	heard = asked;
	want = their_want | local_want;
#endif
	if
	:: want == 0 -> gate_store(OFF)
	:: else
	fi;
	applied = want;
	if
	:: want != 0 -> gate_on()
	:: else
	fi;
	if /* link_answer() */
	:: heard != said -> atomic { DRAINED -> answered_todo = heard; said = heard } /* release */
	:: else
	fi;
	/* pd_changed() */
#ifdef BREAK_7
	asleep = false;
#endif
#ifndef BREAK_3
	DRAINED;
#endif
	change++;
#ifndef BREAK_7
	asleep = false;
#endif
	want = 0
}

inline serve() /* link_serve(), link_hear() */
{
	heard = asked;
	if
	:: heard != said -> apply()
	:: else
	fi
}

inline receive()
{
	do
	:: nempty(sock) ->
		sock ? m;
		if
		:: m == PING -> atomic { DRAINED -> pongs++ } /* a system call */
		:: else ->
			their_want = m;
#ifdef BREAK_9
			late = true
#else
			apply()
#endif
		fi;
		m = 0
	:: empty(sock) -> break
	od;
#ifdef BREAK_9
	if
	:: late -> late = false; apply()
	:: else
	fi;
#endif
	skip
}

proctype parked()
{
	byte heard, said, want, m;
	bool rung, readable;
#ifdef BREAK_9
	bool late;
#endif

	do
	:: true ->
#ifndef BREAK_2
		serve();
#endif
end:		atomic { bell > 0 || nempty(sock) -> rung = bell > 0; readable = nempty(sock) }; /* poll() */
#ifdef BREAK_2
		serve();
#endif
		if
		:: rung -> bell = 0; rung = false /* bell_hush() */
		:: else
		fi;
		if
		:: readable -> receive(); readable = false
		:: else
		fi
	od
}

proctype daemon()
{
	bool known;

	sock ! PING; /* for somebody else; the socket is full until the job reads */
	do
	:: !known ->
		if
		:: nfull(sock) -> sock ! THEIRS; known = true
		:: full(sock) ->
#ifdef BREAK_8
			known = true
#else
			skip /* said again in a second */
#endif
		fi
	:: known -> break
	od;
	sock ! PING;
	pongs == 2;
	assert((applied & THEIRS) != 0 && gate == ON)
}

/* --- FIRST */

byte awake, n_parked;

proctype parked_first()
{
	gate_on() /* the daemon wants it */
}

inline gate_off()
{
	off_todo = true
}

inline park()
{
	!off_todo; /* the start of a thread */
	n_parked++;
	run parked_first()
}

inline wake_up()
{
#ifdef BREAK_10
	park();
	gate_off();
	awake = 2
#else
	gate_off();
	awake = 2;
	park()
#endif
}

proctype first_call()
{
	if
	:: gate == WAKE -> /* pd_thread_cold() */
#ifdef BREAK_11
		if
		:: awake == 0 -> awake = 1; wake_up()
		:: else
		fi
#else
		if
		:: atomic { awake == 0 -> awake = 1 }; wake_up()
		:: awake != 0 /* another thread does it; this one goes on with its stack */
		fi
#endif
	:: gate != WAKE
	fi
}

/* --- FLUSH */

byte launched, delivered;  /* a bit for each thread */
byte flush_asked, flush_done, done_todo;
byte agent_bell;
bool agent_sleeps, waits[2]; /* on the bell; on flush_done */

proctype done_memory()
{
end:	do
	:: done_todo != 0 -> d_step { flush_done = done_todo; done_todo = 0 }
	od
}

proctype flusher(byte me)
{
	byte mine, done;

	launched = launched | (1 << me);
	d_step { flush_asked++; mine = flush_asked };
	agent_bell++; /* agent_ring() */
	agent_sleeps = false;
	do
	:: true ->
		done = flush_done;
		if
		:: done >= mine -> break
		:: else
		fi;
		d_step { waits[me] = (flush_done == done); done = 0 };
		!waits[me]
	od;
	assert((delivered & (1 << me)) != 0)
}

proctype agent()
{
	byte seen, wanted;

	seen = agent_bell;
	do
	:: true ->
		/* work() */
#ifndef BREAK_13
		wanted = flush_asked;
#endif
		delivered = launched;
#ifdef BREAK_13
		wanted = flush_asked;
#endif
		if
		:: wanted != flush_done -> done_todo = wanted
		:: else
		fi;
		done_todo == 0; /* agent_wake(): a system call */
		d_step { waits[0] = false; waits[1] = false; wanted = 0 };
#ifdef BREAK_12
		seen = agent_bell;
#endif
		d_step { agent_sleeps = (agent_bell == seen); seen = 0 };
end:		!agent_sleeps;
		seen = agent_bell
	od
}

/* --- */

mtype = { LINK, FIRST, FLUSH };

proctype in_the_end(mtype which)
{
	timeout;
	if
	:: which == LINK -> assert(applied == (THEIRS | local_want) && gate == ON)
	:: which == FIRST -> assert(n_parked == 1 && gate == ON && functions)
	:: which == FLUSH -> assert(flush_done == flush_asked)
	fi
}

init
{
	if
	:: atomic { run memory(); run first_call(); run first_call(); run in_the_end(FIRST) }
	:: atomic { run done_memory(); run flusher(0); run flusher(1); run agent(); run in_the_end(FLUSH) }
	:: atomic {
		gate = OFF;
		run memory();
		run caller();
		run newsman();
		run scoper();
		run parked();
		run daemon();
		run in_the_end(LINK)
	   }
	fi
}
