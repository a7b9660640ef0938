/* SPDX-License-Identifier: MIT. nap.pml: a daemon that looks seldom is woken (daemon/pace.c,
 * agent/lane.c: lane_wake()). The job stores tail and then, at the end of a quarter, looks whether
 * the daemon naps; the daemon says that it does, looks at tails once more, and sleeps.
 *
 * Claim: what the job stored is drained; nobody sleeps beside it. The timer that would wake the
 * daemon anyway is left out: it would hide a lost wake-up as a delay.
 *
 * Memory: a store becomes visible later; a fence waits for it.
 *
 * BREAK_1  the job looks without a fence behind its store of tail
 * BREAK_2  the daemon looks without a fence behind its store of nap
 * BREAK_3  the daemon sleeps without looking once more
 */
bool tail, tail_todo, nap, nap_todo;
bool bell, drained;

proctype memory()
{
end:	do
	:: tail_todo -> d_step { tail = true; tail_todo = false }
	:: nap_todo -> d_step { nap = true; nap_todo = false }
	od
}

proctype job()
{
	tail_todo = true;
#ifndef BREAK_1
	!tail_todo;
#endif
	if
	:: nap -> bell = true
	:: else
	fi
}

proctype daemon()
{
	nap_todo = true;
#ifndef BREAK_2
	!nap_todo;
#endif
#ifndef BREAK_3
	if
	:: tail -> drained = true
	:: else
	fi;
#endif
	if
	:: drained
	:: else -> bell; drained = true
	fi
}

init
{
	atomic { run memory(); run job(); run daemon() }
}
