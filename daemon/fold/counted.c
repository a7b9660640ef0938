/* SPDX-License-Identifier: MIT. counted.c: what a job says that it could not count, as notes of its sessions: what
 * happened, and what helps. Of the job there are numbers alone; the words are made here. */
#include "counted.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "counter_terms.h"
#include "loss.h"
#include "process.h"
#include "session.h"
#include "state.h"

#define NOTE_BYTES sizeof(((struct note *)NULL)->text)

/* "instructions, cycles" */
static void names_of(uint32_t kinds, char *buf, size_t n)
{
	size_t used = 0;
	uint32_t i;

	*buf = '\0';
	for (i = 0; i < COUNTER_MAX && used < n; i++) {
		const char *metric = cpu_counter(i)->metric;

		if ((kinds >> i & 1) != 0)
			used += (size_t)snprintf(buf + used, n - used, "%s%.*s",
				used > 0 ? ", " : "", (int)strcspn(metric, " "), metric);
	}
}

static bool any_of_kernel(uint32_t kinds)
{
	uint32_t i;

	for (i = 0; i < COUNTER_MAX; i++)
		if ((kinds >> i & 1) != 0 && cpu_counter(i)->kernel)
			return true;
	return false;
}

/* Why perf_event_open() refused, and what helps. most: of kernel.perf_event_paranoid that would do. */
static void why(const struct rec_counters *r, int most, char *buf, size_t n)
{
	if ((r->code == EACCES || r->code == EPERM) && r->paranoid > most &&
		r->paranoid != INT32_MAX)
		snprintf(buf, n,
			": for root alone here: sysctl kernel.perf_event_paranoid=%d (it is %d) "
			"lets "
			"everybody",
			most, r->paranoid);
	else if (r->code == EACCES || r->code == EPERM)
		snprintf(buf, n,
			": forbidden here; in a container --cap-add PERFMON, or a seccomp profile "
			"with "
			"perf_event_open, helps");
	else if (r->code == ENOENT || r->code == EOPNOTSUPP || r->code == ENODEV)
		snprintf(buf, n,
			": this machine gives no such counters (a virtual one?); "
			"PROTOND_COUNTERS=task_clock,page_faults are the kernel's own");
	else if (r->code == ENOSYS)
		snprintf(buf, n, ": this kernel has no perf_event_open");
	else if (r->code == EINVAL)
		snprintf(buf, n,
			": the CPU has them not, or not so many at once; ask for fewer in "
			"PROTOND_COUNTERS");
	else
		snprintf(buf, n, ": perf_event_open: error %d", r->code);
}

static void words_of(const struct rec_counters *r, char buf[NOTE_BYTES])
{
	const uint32_t kinds = REC_ID(r->hdr);
	char names[80], reason[160];

	switch ((enum counters_what)REC_FLAGS(r->hdr)) {
	case COUNTERS_REFUSED:
		names_of(kinds, names, sizeof(names));
		why(r, any_of_kernel(kinds) ? 1 : 2, reason, sizeof(reason));
		snprintf(buf, NOTE_BYTES, "not counted: %.79s%.159s", names, reason);
		break;
	case COUNTERS_LIMIT:
		snprintf(buf, NOTE_BYTES,
			"some threads are not counted: each counter takes a descriptor, and a "
			"quarter "
			"of `ulimit -n`, at most 1024, is for them");
		break;
	case COUNTERS_GONE:
		snprintf(buf, NOTE_BYTES,
			"a thread is not counted any more: the program closed its counters' "
			"descriptors");
		break;
	case COUNTERS_WORDS:
		snprintf(buf, NOTE_BYTES,
			"PROTOND_COUNTERS has an unknown word, or more than %u: " COUNTERS_DEFAULT
			" are counted",
			COUNTERS_AT_ONCE);
		break;
	case COUNTERS_WHAT_MAX:
	default:
		buf[0] = '\0';
	}
}

static bool has_note(const struct session *s, int64_t process, const char *text)
{
	uint32_t i;

	for (i = 0; i < s->n_notes; i++)
		if (s->note[i].process == process && strcmp(s->note[i].text, text) == 0)
			return true;
	return false;
}

static void tell_one(const struct part *part, const struct rec_counters *r)
{
	const int64_t id = part->process->row.id;
	char text[NOTE_BYTES];

	words_of(r, text);
	if (!has_note(part->session, id, text))
		note_add(part->session, id, "%s", text);
}

void counted_tell(struct part *part)
{
	const struct process *p = part->process;
	uint32_t i;

	for (i = 0; i < p->n_uncounted && (part->switches & SWITCH_COUNTERS) != 0; i++)
		tell_one(part, &p->uncounted[i]);
}

bool counted_said(struct process *p, const struct rec_counters *r)
{
	const uint8_t what = REC_FLAGS(r->hdr);
	uint32_t i;

	if (what < COUNTERS_REFUSED || what >= COUNTERS_WHAT_MAX ||
		REC_ID(r->hdr) >= 1u << COUNTER_MAX ||
		(what == COUNTERS_REFUSED) != (REC_ID(r->hdr) != 0))
		return false;
	for (i = 0; i < p->n_uncounted; i++)
		if (p->uncounted[i].code == r->code && REC_FLAGS(p->uncounted[i].hdr) == what &&
			REC_ID(p->uncounted[i].hdr) == REC_ID(r->hdr))
			break;
	if (i == UNCOUNTED_KEPT) /* one that says ever more is not heard */
		return true;
	p->uncounted[i] = *r;
	p->n_uncounted += i == p->n_uncounted;
	for (i = 0; i < p->n_parts; i++)
		counted_tell(p->part[i]);
	return true;
}
