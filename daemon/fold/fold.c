/* SPDX-License-Identifier: MIT. fold.c: the pipeline as a deterministic fold of the journal: which
 * entry goes where. */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "correlate.h"
#include "held.h"
#include "ids.h"
#include "life.h"
#include "loss.h"
#include "now.h"
#include "part.h"
#include "pipeline.h"
#include "process.h"
#include "record.h"
#include "session.h"
#include "share.h"
#include "state.h"
#include "verb.h"

#define STEP_NS 1000000 /* a step of CLOCK_REALTIME worth a note */

int fold_new(const struct fold_limits *l, struct fold **ret)
{
	struct fold *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	if (l != NULL)
		f->limit = *l;
	if (f->limit.nodes == 0)
		f->limit.nodes = 262144;
	if (f->limit.trace_bytes == 0)
		f->limit.trace_bytes = 512ull << 20;
	if (f->limit.launches == 0)
		f->limit.launches = 1048576;
	if (f->limit.sweep == 0)
		f->limit.sweep = 2048;
	if (f->limit.sessions == 0)
		f->limit.sessions = 1024;
	if (f->limit.sessions_per_uid == 0)
		f->limit.sessions_per_uid = (uint32_t)share_of(f->limit.sessions, false).user;
	if (f->limit.bytes == 0)
		f->limit.bytes = 24ull << 20;
	if (f->limit.processes == 0)
		f->limit.processes = 4096;
	f->tsc = (struct anchors){.v = f->tsc_anchor, .cap = ANCHORS_KEPT};
	f->mono = (struct anchors){.v = f->mono_anchor, .cap = ANCHORS_KEPT};
	f->cost_known = true; /* the daemon counts from 0 */
	f->magic = FOLD_MAGIC;
	f->next_process = 1;
	f->next_session = 1;
	f->round = 1;
	*ret = f;
	return 0;
}

void fold_free(struct fold *f)
{
	uint32_t i;

	if (f == NULL)
		return;
	MUST_FOLD(f);
	f->ending = true;
	for (i = 0; i < f->n_sessions; i++)
		session_free(f->session[i]);
	for (i = 0; i < f->n_processes; i++)
		process_free(f->process[i]);
	MUST(f->held[WEIGHT_REST] == 0 && f->held[WEIGHT_FLIGHT] == 0 && f->sealed_bytes == 0 &&
		f->n_users == 0);
	free(f->user);
	free(f->session);
	free(f->process);
	free(f->new_anchor);
	free(f->deleted);
	f->magic = 0;
	free(f);
}

/* --- one function a type of entry; its payload has at least the bytes that the table says --- */

struct entry {
	const struct journal_entry *head;
	const void *payload; /* in the journal's memory, 8-byte aligned */
	uint32_t bytes;
	struct process *process; /* NULL: the entry is of no ring */
};
typedef int entry_fn(struct fold *f, const struct entry *e);

static int on_process(struct fold *f, const struct entry *e)
{
	const struct j_process *j = e->payload;

	return process_adopt(f, e->head, j, e->bytes - (uint32_t)sizeof(*j));
}

static int on_table(struct fold *f, const struct entry *e)
{
	const struct j_table *t = e->payload;

	(void)f;
	process_table(e->process, t, (const uint8_t *)(t + 1), e->bytes - (uint32_t)sizeof(*t));
	return 0;
}

static int on_lane(struct fold *f, const struct entry *e)
{
	const struct j_lane *l = e->payload;

	(void)f;
	if (l->bytes > e->bytes - sizeof(*l))
		loss_bad(e->process, 1);
	else
		pipeline_lane(e->process, l, (const uint8_t *)(l + 1), e->head->mono_ns);
	return 0;
}

static int on_sums(struct fold *f, const struct entry *e)
{
	const struct j_lane *l = e->payload;

	(void)f;
	if (l->bytes > e->bytes - sizeof(*l))
		loss_bad(e->process, 1);
	else
		pipeline_sums(e->process, l, (const uint8_t *)(l + 1));
	return 0;
}

static int on_counts(struct fold *f, const struct entry *e)
{
	const struct ring_counts *c = e->payload;

	loss_counts(e->process, c, (const struct j_drop *)(c + 1),
		(uint32_t)((e->bytes - sizeof(*c)) / sizeof(struct j_drop)));
	if (flight_is_joining(&e->process->flight)) {
		correlate_sweep(e->process);
		f->news = true;
	}
	process_now_see(e->process);
	return 0;
}

static int on_state(struct fold *f, const struct entry *e)
{
	(void)f;
	process_state(e->process, e->payload);
	return 0;
}

static int on_now(struct fold *f, const struct entry *e)
{
	(void)f;
	process_now(e->process, e->payload, (uint32_t)(e->bytes / sizeof(struct j_now)));
	return 0;
}

static int on_end(struct fold *f, const struct entry *e)
{
	(void)f;
	process_use_clock(e->process);
	process_end(e->process, e->payload, e->head->mono_ns);
	return 0;
}

static void use_clocks(struct fold *f)
{
	uint32_t i;

	for (i = 0; i < f->n_processes; i++)
		process_use_clock(f->process[i]);
}

static int on_verb(struct fold *f, const struct entry *e)
{
	struct j_verb v = {0};

	memcpy(&v, e->payload, e->bytes < sizeof(v) ? e->bytes : sizeof(v));
	use_clocks(f);
	return session_verb(f, &v);
}

static void clock_stepped(struct fold *f, int64_t by_ns)
{
	uint32_t i;

	for (i = 0; i < f->n_sessions; i++)
		if (f->session[i]->row.state == SESSION_IS_ACTIVE)
			note_add(
				f->session[i], 0, "clock stepped by %+.3f ms", (double)by_ns / 1e6);
}

static int on_anchor(struct fold *f, const struct entry *e)
{
	const struct j_anchor *j = e->payload;
	struct anchor a = {j->clock, j->monotonic_ns, j->realtime_ns, j->error_ns};
	bool known = f->tsc.n + f->mono.n > 0;
	int64_t offset;
	uint32_t i;

	if (a.mono_ns > CLOCK_NS_MAX || a.real_ns > CLOCK_NS_MAX)
		return 0;
	if (!ROOM_FOR(f->new_anchor, f->cap_new_anchors, f->n_new_anchors))
		return -ENOMEM;
	f->new_anchor[f->n_new_anchors++] =
		(struct row_anchor){j->ring_clock, a.clock, a.mono_ns, a.real_ns, a.error_ns};
	if (a.mono_ns + BOOT_NS < f->now_ns) {
		for (i = 0; i < f->n_sessions; i++)
			session_boot(f->session[i], a.mono_ns);
		f->now_ns = a.mono_ns;
	}
	anchors_add(j->ring_clock == RING_CLOCK_TSC ? &f->tsc : &f->mono, &a);
	offset = (int64_t)(a.real_ns - a.mono_ns);
	if (known && llabs(offset - f->offset_ns) > STEP_NS)
		clock_stepped(f, offset - f->offset_ns);
	f->offset_ns = offset;
	use_clocks(f);
	for (i = 0; i < f->n_processes; i++) {
		if (f->process[i]->row.ended_ns != 0 || f->process[i]->flight.by_key.n == 0)
			continue;
		correlate_sweep(f->process[i]);
		f->process[i]->dirty = true;
		f->news = true;
	}
	return 0;
}

static int on_leave(struct fold *f, const struct entry *e)
{
	(void)f;
	process_use_clock(e->process);
	correlate_leave(e->process);
	e->process->dirty = true;
	return 0;
}

/* Shares the daemon's CPU time since the last such entry equally among the sessions that record. */
static int on_cost(struct fold *f, const struct entry *e)
{
	const struct j_cost *c = e->payload;
	uint64_t more = c->cpu_ns;
	uint32_t i, n = 0;

	if (!f->cost_known)
		more = 0; /* how much was shared before is not known */
	else if (c->cpu_ns >= f->cost_ns)
		more -= f->cost_ns; /* else a new daemon counts from 0 */
	f->cost_ns = c->cpu_ns;
	f->cost_known = true;
	for (i = 0; i < f->n_sessions; i++)
		n += f->session[i]->row.state == SESSION_IS_ACTIVE;
	for (i = 0; i < f->n_sessions && more >= n; i++) {
		if (f->session[i]->row.state != SESSION_IS_ACTIVE)
			continue;
		f->session[i]->row.daemon_ns += more / n;
		f->session[i]->dirty = true;
	}
	return 0;
}

/* A GPU's are of those sessions that have a process on it; the host's of all that record. */
static bool uses(const struct session *s, const struct device_reading *r)
{
	const struct process *p;
	uint32_t i, k;

	if (r->gpu == DEVICE_HOST)
		return s->n_parts > 0;
	for (i = 0; i < s->n_parts; i++) {
		p = s->part[i]->process;
		for (k = 0; k < p->n_devices; k++)
			if (p->device[k].pci_domain == r->pci_domain &&
				p->device[k].pci_bus == r->pci_bus &&
				p->device[k].pci_device == r->pci_device)
				return true;
	}
	return false;
}

static int on_resident(struct fold *f, const struct entry *e)
{
	const struct j_resident *j = e->payload;
	struct process *p = e->process;
	uint32_t i;

	(void)f;
	for (i = 0; i < p->n_parts; i++)
		if ((p->part[i]->switches & SWITCH_ALLOC) != 0)
			held_resident(p->part[i], j->bytes, e->head->mono_ns);
	return 0;
}

static int on_device(struct fold *f, const struct entry *e)
{
	const struct device_reading *r = e->payload;
	uint32_t i;

	if (!device_reading_is_sane(r, e->bytes, e->head->mono_ns))
		return 0;
	for (i = 0; i < f->n_sessions; i++)
		if (f->session[i]->row.state == SESSION_IS_ACTIVE && uses(f->session[i], r) &&
			!readings_take(&f->session[i]->readings, r))
			return -ENOMEM;
	return 0;
}

/* clang-format off */
static const struct {
	entry_fn *apply;
	uint32_t bytes; /* at least */
	bool of_ring;   /* skipped unless its ring is known and not ended */
	bool upkeep;    /* not news by itself */
} appliers[J_MAX] = {
	[J_PROCESS] = {on_process, sizeof(struct j_process),   false, false},
	[J_TABLE]   = {on_table,   sizeof(struct j_table),     true,  false},
	[J_LANE]    = {on_lane,    sizeof(struct j_lane),      true,  true},
	[J_COUNTS]  = {on_counts,  sizeof(struct ring_counts), true,  true},
	[J_STATE]   = {on_state,   sizeof(struct j_state),     true,  false},
	[J_NOW]     = {on_now,     0,                          true,  false},
	[J_END]     = {on_end,     sizeof(struct j_end),       true,  false},
	[J_VERB]    = {on_verb,    J_VERB_LEAST,               false, false},
	[J_ANCHOR]  = {on_anchor,  sizeof(struct j_anchor),    false, true},
	[J_COST]    = {on_cost,    sizeof(struct j_cost),      false, true},
	[J_LEAVE]   = {on_leave,   0,                          true,  false},
	[J_SUMS]    = {on_sums,    sizeof(struct j_lane),      true,  true},
	[J_DEVICE]  = {on_device,  sizeof(struct device_reading), false, true},
	[J_RESIDENT] = {on_resident, sizeof(struct j_resident), true, true},
};
/* clang-format on */

int fold_apply(struct fold *f, const struct journal_entry *e)
{
	struct entry entry = {.head = e, .payload = e + 1};
	int r;

	MUST_FOLD(f);
	/* The caller checked it or made it; one that is still being made has no magic. */
	MUST(e->magic == JOURNAL_MAGIC && e->bytes >= sizeof(*e) && e->bytes <= JOURNAL_ENTRY_MAX);
	MUST(e->bytes % 8 == 0 && (uintptr_t)e % 8 == 0);
	if (f->no_memory)
		return -ENOMEM;
	if (e->type == 0 || e->type >= J_MAX || e->bytes < sizeof(*e) + appliers[e->type].bytes)
		return 0; /* a newer daemon wrote it */
	entry.bytes = e->bytes - (uint32_t)sizeof(*e);
	f->now_ns = e->mono_ns > f->now_ns ? e->mono_ns : f->now_ns;
	f->dirty = true;
	f->news |= !appliers[e->type].upkeep;
	f->no_space = false;
	if (appliers[e->type].of_ring) {
		entry.process = process_find(f, e->ring);
		if (entry.process == NULL || entry.process->row.ended_ns != 0)
			return 0;
	}
	r = appliers[e->type].apply(f, &entry);
	if (f->no_memory || r == -ENOMEM) {
		f->no_memory = true;
		return -ENOMEM;
	}
	return f->no_space ? -ENOSPC : r;
}

int fold_end_instead(struct fold *f, const struct journal_entry *e)
{
	struct process *p = process_find(f, e->ring);

	MUST_FOLD(f);
	if (f->no_memory)
		return -ENOMEM;
	if (e->type != J_END || e->bytes < sizeof(*e) + sizeof(struct j_end) || p == NULL ||
		p->row.ended_ns != 0)
		return 0;
	f->now_ns = e->mono_ns > f->now_ns ? e->mono_ns : f->now_ns;
	f->dirty = f->news = true;
	process_use_clock(p);
	process_end_instead(p, (const struct j_end *)(e + 1), e->mono_ns);
	return f->no_memory ? -ENOMEM : 0;
}

uint32_t fold_lane_bytes(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);

	return p != NULL ? p->row.lane_bytes : 0;
}

bool fold_is_joining(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);

	return p != NULL && (flight_is_joining(&p->flight) || p->now_seen < p->n_now);
}

uint32_t fold_early(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);

	return p != NULL && p->flight.waiting > flight_open(&p->flight) ? p->flight.waiting : 0;
}

uint32_t fold_trees(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);

	return p != NULL ? p->n_parts : 0;
}

bool fold_has_many(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);

	return p != NULL && p->row.ended_ns == 0 && correlate_has_many(p);
}

void fold_waiting(struct fold *f, int64_t more)
{
	MUST_FOLD(f);
	MUST(more >= 0 || f->waiting >= -(uint64_t)more);
	f->waiting += (uint64_t)more;
}

uint32_t fold_fresh(const struct fold *f)
{
	MUST_FOLD(f);
	return f->fresh;
}

bool fold_is_dirty(const struct fold *f)
{
	MUST_FOLD(f);
	return f->dirty;
}

uint32_t fold_round(const struct fold *f)
{
	MUST_FOLD(f);
	return f->round;
}

void fold_seen(struct fold *f, uint32_t round)
{
	MUST_FOLD(f);
	MUST(round <= f->round);
	f->seen = round > f->seen ? round : f->seen;
}

bool fold_has_news(const struct fold *f)
{
	MUST_FOLD(f);
	return f->news;
}

/* --- what a job is asked for --- */

/* Launches are still in flight, and not for longer than they may be. */
static bool still_delivering(const struct part *part)
{
	const struct session *s = part->session;

	return part->n_open > 0 && part->process->fold->now_ns - s->closed_ns < WAIT_NS;
}

static uint32_t part_want(const struct part *part)
{
	const struct session *s = part->session;
	uint32_t want = WANT_SCOPES | WANT_METRICS;

	if (s->row.state != SESSION_IS_ACTIVE)
		return part->gpu && still_delivering(part) ? WANT_GPU : 0;
	if (part->cpu)
		want |= WANT_CPU_TIME;
	if (part->gpu)
		want |= WANT_GPU;
	if (s->row.gpu == 1)
		want |= WANT_GPU_ARMED;
	if (part->python)
		want |= WANT_PYTHON;
	return want | want_of_switches(part->switches, part->gpu);
}

uint32_t fold_want(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);
	uint32_t want = 0, i;

	for (i = 0; p != NULL && i < p->n_parts; i++)
		want |= part_want(p->part[i]);
	return want;
}

bool fold_has_timeline(const struct fold *f, const uint8_t ring[16])
{
	const struct process *p = process_find(f, ring);
	uint32_t i;

	for (i = 0; p != NULL && i < p->n_parts; i++)
		if (p->part[i]->timeline != NULL &&
			p->part[i]->session->row.state == SESSION_IS_ACTIVE)
			return true;
	return false;
}

bool fold_is_settled(const struct fold *f, const uint8_t session[16])
{
	const struct session *s = session_find(f, session);
	const struct part *part;
	uint32_t i;

	if (s == NULL || session_is_over(s->row.state))
		return s != NULL;
	if (s->row.state != SESSION_IS_FINALIZING)
		return false;
	for (i = 0; i < s->n_parts; i++) {
		part = s->part[i];
		if (part->attached && (part->n_open > 0 || allocs_wait(part)))
			return false;
	}
	return true;
}
