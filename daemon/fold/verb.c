/* SPDX-License-Identifier: MIT. verb.c: how sessions come, who is in them, when they record, and how
 * they end. Owns what a session owns.
 *
 *   START ──► ACTIVE ◄── ACTIVATE / DEACTIVATE ──► INACTIVE
 *               │                                     │
 *               └────────────── FINALIZE ─────────────┘
 *                                  ▼
 *                              FINALIZING
 *                                  │ FINALIZED, or its job ended
 *                                  ▼
 *                              FINALIZED ── collected ──► (gone)
 */
#include "verb.h"

#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "journal.h"
#include "label.h"
#include "loss.h"
#include "member.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "session.h"
#include "share.h"
#include "state.h"
#include "timeline.h"
#include "words.h"

/* An instant in ns and, if a ring named it, in that ring's raw clock: a job's own verbs take effect
 * exactly between its events. */
struct moment {
	uint64_t ns;
	const struct process *of; /* NULL: no ring named it */
	uint64_t clock;
};

static uint64_t moment_clock(const struct moment *m, struct process *p)
{
	return m->of == p ? m->clock : clockmap_clock(&p->clock, m->ns);
}

struct session *session_new(struct fold *f, const struct row_session *row)
{
	struct session *s;

	if (!ROOM_FOR(f->session, f->cap_sessions, f->n_sessions))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
	s->magic = SESSION_MAGIC;
	s->fold = f;
	s->row = *row;
	s->dirty = true;
	f->session[f->n_sessions++] = s;
	return s;
}

void session_free(struct session *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	MUST_SESSION(s);
	for (i = 0; i < s->n_parts; i++)
		part_free(s->part[i]);
	free(s->part);
	free(s->active.v);
	free(s->segment.v);
	free(s->note);
	chunks_fini(&s->chunks);
	readings_fini(&s->readings);
	s->magic = 0;
	free(s);
}

void session_drop_process(struct session *s, struct process *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n_parts; i++) {
		if (s->part[i]->process == p)
			part_free(s->part[i]);
		else
			s->part[n++] = s->part[i];
	}
	s->n_parts = n;
}

static void part_switch(struct part *part, bool active, const struct moment *m)
{
	const bool was = window_is_open(&part->window);

	part_set_active(part, active, moment_clock(m, part->process));
	if (active != was)
		loss_switched(part, active);
}

static void session_switch(struct session *s, bool active, const struct moment *m)
{
	uint32_t i;

	MUST_SESSION(s);
	if (active == (s->opened_ns != 0))
		return;
	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->attached)
			part_switch(s->part[i], active, m);
	if (active)
		session_open(s, m->ns);
	else
		session_close(s, m->ns);
}

/* --- who is in it --- */

/* A forked child is in its parent's automatic session: they are processes of one launch. */
static bool joins(const struct session *s, const struct process *p)
{
	const struct process *parent;

	if (s->row.source != SOURCE_AUTO || (p->row.flags & PROCESS_JOINS) == 0)
		return false;
	parent = process_find(p->fold, p->row.parent);
	return parent != NULL && parent->row.uid == p->row.uid && session_part(s, parent) != NULL;
}

static bool matches(const struct session *s, const struct process *p)
{
	const struct row_session *r = &s->row;

	if (p->row.ended_ns != 0 || (r->uid != 0 && r->uid != p->row.uid))
		return false;
	switch ((enum match_kind)r->match) {
	case MATCH_PID:
		return r->pid != 0 && r->pid == p->row.pid && r->uid == p->row.uid;
	case MATCH_TOKEN:
		return !hash_is_zero(r->token) && hash_same(r->token, p->row.token);
	case MATCH_USER:
		return true;
	case MATCH_COMMAND:
		return words_match(r->command, p->row.command);
	case MATCH_RING:
		return hash_same(r->owner, p->row.ring) || joins(s, p);
	}
	return false;
}

static void session_join(struct session *s, struct process *p, const struct moment *m)
{
	struct part *part;

	if (p->n_parts == PARTS_MAX) {
		note_add(s, p->row.id, "process %u is in %u sessions already: not in this one",
			p->row.pid, PARTS_MAX);
		return;
	}
	part = part_new(s, p);
	if (part == NULL) {
		p->fold->no_memory = true;
		return;
	}
	(void)part_attach(part);
	if (s->opened_ns != 0)
		part_switch(part, true, m);
}

void session_match_process(struct process *p, uint64_t mono_ns)
{
	struct fold *f = p->fold;
	struct moment m = {0};
	uint32_t i;

	for (i = 0; i < f->n_sessions; i++) {
		if (f->session[i]->row.state != SESSION_IS_ACTIVE &&
			f->session[i]->row.state != SESSION_IS_INACTIVE)
			continue;
		m.ns = f->session[i]->opened_ns;
		if (m.ns == 0 || m.ns > mono_ns) /* opened in another boot, whose clock was ahead */
			m.ns = mono_ns;
		if (matches(f->session[i], p))
			session_join(f->session[i], p, &m);
	}
}

/* --- verbs, whoever says them --- */

/* A user has his share and no more. Where little is left of all, whoever has little comes first:
 * what is finalized stays until it is stored, so that many can be had for a moment. */
static int user_room(const struct fold *f, uint32_t uid)
{
	const struct share s = {f->limit.sessions, f->limit.sessions_per_uid};
	uint32_t i, held = 0, current = 0;

	for (i = 0; i < f->n_sessions; i++) {
		if (f->session[i]->row.uid != uid)
			continue;
		held++;
		current += session_is_current(f->session[i]);
	}
	if (s.user < s.all && current >= s.user)
		return -EDQUOT;
	return share_left(&s, f->n_sessions, held, 1);
}

static int refused(struct fold *f, uint32_t uid, int code)
{
	f->refused = (struct fold_refused){f->refused.n + 1, uid, code};
	return code;
}

static int session_start(struct fold *f, struct row_session *row, const struct moment *m)
{
	struct session *s;
	uint32_t i;
	int r = user_room(f, row->uid);

	if (r < 0)
		return refused(f, row->uid, r);
	row->id = f->next_session;
	row->state = SESSION_IS_ACTIVE;
	s = session_new(f, row);
	if (s == NULL)
		return -ENOMEM;
	f->next_session++;
	(void)session_span_add(s, &s->segment, m->ns);
	session_switch(s, true, m);
	for (i = 0; i < f->n_processes; i++)
		if (matches(s, f->process[i]))
			session_join(s, f->process[i], m);
	return 0;
}

static void session_activate(struct session *s, const struct moment *m)
{
	if (s->row.state != SESSION_IS_INACTIVE)
		return;
	session_switch(s, true, m);
	s->row.state = SESSION_IS_ACTIVE;
	s->dirty = true;
}

static void session_deactivate(struct session *s, const struct moment *m)
{
	if (s->row.state != SESSION_IS_ACTIVE)
		return;
	session_switch(s, false, m);
	s->row.state = SESSION_IS_INACTIVE;
	s->dirty = true;
}

static void session_finalize(struct session *s, const struct moment *m)
{
	if (s->row.state != SESSION_IS_ACTIVE && s->row.state != SESSION_IS_INACTIVE)
		return;
	session_switch(s, false, m);
	s->row.state = SESSION_IS_FINALIZING;
	s->dirty = true;
}

static void session_finalized(struct session *s, const struct moment *m, int64_t real_ns)
{
	uint32_t i;

	session_finalize(s, m);
	if (!session_is_current(s))
		return;
	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->attached)
			loss_rest(s->part[i]->process);
	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->attached)
			part_detach(s->part[i], moment_clock(m, s->part[i]->process));
	if (s->segment.n > 0)
		session_span_end(s, &s->segment, m->ns);
	s->row.state = SESSION_IS_FINALIZED;
	s->row.finalized_ns = real_ns > 0 ? real_ns : (int64_t)mono_to_real(s->fold, m->ns);
	if (s->row.finalized_ns < s->row.created_ns) /* the clock was set back in between */
		s->row.finalized_ns = s->row.active_ns < (uint64_t)(INT64_MAX - s->row.created_ns)
					      ? s->row.created_ns + (int64_t)s->row.active_ns
					      : INT64_MAX;
	s->dirty = true;
}

static void session_interrupted(struct session *s, const struct moment *m, int64_t real_ns)
{
	if (!session_is_current(s))
		return;
	session_finalized(s, m, real_ns);
	s->row.state = SESSION_IS_INTERRUPTED;
	note_add(s, 0,
		"whoever would have ended it was killed: it ends with what was stored by then");
}

static void session_phase(struct session *s, struct moment *m)
{
	const struct span_row *last = s->segment.n > 0 ? &s->segment.v[s->segment.n - 1] : NULL;
	uint32_t i;

	if (last != NULL && m->ns < last->span.begin)
		m->ns = last->span.begin;
	if (!session_is_current(s))
		return;
	if (s->segment.n == 0 || !session_has_room_for(s, &s->segment)) {
		note_add(s, 0, "more than %u phases: the rest is in the last", s->segment.n);
		return;
	}
	session_span_end(s, &s->segment, m->ns);
	if (!session_span_add(s, &s->segment, m->ns))
		return;
	for (i = 0; i < s->n_parts; i++) {
		if (!s->part[i]->attached)
			continue;
		part_set_segment(s->part[i], moment_clock(m, s->part[i]->process));
	}
}

static int session_delete(struct session *s, const struct moment *m)
{
	struct fold *f = s->fold;
	uint32_t i;

	if (!ROOM_FOR(f->deleted, f->cap_deleted, f->n_deleted))
		return -ENOMEM;
	session_finalized(s, m, 0);
	f->deleted[f->n_deleted++] = s->row.id;
	for (i = 0; f->session[i] != s; i++)
		;
	memmove(f->session + i, f->session + i + 1,
		(f->n_sessions - i - 1) * sizeof(f->session[0]));
	f->n_sessions--;
	session_free(s);
	return 0;
}

/* --- by the control socket --- */

static void row_of_verb(struct row_session *r, const struct j_verb *v)
{
	memcpy(r->uuid, v->session, 16);
	memcpy(r->token, v->token, 16);
	memcpy(r->owner, v->ring, 16);
	r->uid = v->uid;
	r->created_ns = v->realtime_ns;
	r->source = v->source;
	r->match = v->match;
	r->pid = v->pid;
	r->job_number = UINT32_MAX;
	r->data = v->data > SESSION_BOTH ? SESSION_TREE : v->data;
	r->context = v->context > SESSION_PYTHON ? SESSION_SHADOW : v->context;
	r->cpu = v->cpu > SESSION_CPU_OFF ? SESSION_CPU_ON : v->cpu;
	r->gpu = v->gpu > 2 ? 2 : v->gpu;
	r->switches = v->switches;
	words_field(r->name, sizeof(r->name), v->name, sizeof(v->name));
	words_field(r->backend, sizeof(r->backend), v->backend, sizeof(v->backend));
	words_field(r->mode, sizeof(r->mode), v->mode, sizeof(v->mode));
	words_field(r->hook, sizeof(r->hook), v->hook, sizeof(v->hook));
	words_field(r->command, sizeof(r->command), v->command, sizeof(v->command));
	words_field(r->nvtx_domains, sizeof(r->nvtx_domains), v->domains, sizeof(v->domains));
}

/* The text was checked before it was written; the journal is checked again. */
static void session_label(struct session *s, const struct j_verb *v)
{
	const enum label_kind kind = v->verb - VERB_RENAME;
	char text[sizeof(v->name)];

	memcpy(text, v->name, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	if (label_wrong(kind, text) == NULL &&
		label_apply(s->row.name, s->row.note, s->row.tags, kind, text) == 0)
		s->dirty = true;
}

static void session_switches(struct session *s, uint8_t switches)
{
	uint32_t i;

	if (!session_is_current(s))
		return;
	s->row.switches = switches;
	s->dirty = true;
	for (i = 0; i < s->n_parts; i++)
		part_set_switches(s->part[i]);
}

int session_verb(struct fold *f, const struct j_verb *v)
{
	struct session *s = session_find(f, v->session);
	struct moment m = {.ns = v->mono_ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : v->mono_ns};
	struct row_session row = {0};
	struct process *p;

	if (v->verb == VERB_START && s == NULL) {
		row_of_verb(&row, v);
		p = row.match == MATCH_RING ? process_find(f, row.owner) : NULL;
		if (p != NULL && p->n_parts == PARTS_MAX)
			return refused(f, row.uid, -EMFILE); /* it would end with nobody */
		return session_start(f, &row, &m);
	}
	if (s == NULL)
		return 0;
	if (v->verb == VERB_ACTIVATE)
		session_activate(s, &m);
	else if (v->verb == VERB_DEACTIVATE)
		session_deactivate(s, &m);
	else if (v->verb == VERB_FINALIZE)
		session_finalize(s, &m);
	else if (v->verb == VERB_FINALIZED)
		session_finalized(s, &m, v->realtime_ns);
	else if (v->verb == VERB_INTERRUPTED)
		session_interrupted(s, &m, v->realtime_ns);
	else if (v->verb == VERB_PHASE)
		session_phase(s, &m);
	else if (v->verb >= VERB_RENAME && v->verb <= VERB_UNTAG)
		session_label(s, v);
	else if (v->verb == VERB_SWITCH)
		session_switches(s, v->switches);
	else if (v->verb == VERB_DELETE)
		return session_delete(s, &m);
	return 0;
}

/* --- by the job itself --- */

static bool job_row(struct process *p, const struct rec_session *r, struct row_session *row)
{
	struct {
		uint32_t name;
		char *to;
		size_t cap;
	} text[] = {{r->name, row->name, sizeof(row->name)},
		{r->backend, row->backend, sizeof(row->backend)},
		{r->mode, row->mode, sizeof(row->mode)}, {r->hook, row->hook, sizeof(row->hook)},
		{r->domains, row->nvtx_domains, sizeof(row->nvtx_domains)}};
	uint32_t i, bytes;
	const char *from;

	if (r->data > SESSION_BOTH || r->context > SESSION_PYTHON || r->cpu > SESSION_CPU_OFF)
		return false;
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		text[i].name = table_name(p, text[i].name);
		if (text[i].name == TABLE_NONE)
			return false;
		from = name_text(p, text[i].name, &bytes);
		words_clean(text[i].to, text[i].cap, from, bytes);
	}
	session_number_uuid(p->row.ring, REC_ID(r->hdr), row->uuid);
	memcpy(row->owner, p->row.ring, 16);
	memcpy(row->token, p->row.token, 16);
	row->uid = p->row.uid;
	row->pid = p->row.pid;
	row->source = SOURCE_JOB;
	row->match = MATCH_RING;
	row->job_number = REC_ID(r->hdr);
	row->data = r->data;
	row->context = r->context;
	row->cpu = r->cpu;
	row->gpu = strcmp(row->backend, "none") == 0 ? 2 : 0;
	row->switches = r->switches;
	return true;
}

/* How many sessions the job started itself. *ret_ended: the oldest that only waits for the GPU. */
static uint32_t own_sessions(const struct process *p, struct session **ret_ended)
{
	struct session *s;
	uint32_t i, n = 0;

	*ret_ended = NULL;
	for (i = 0; i < p->n_parts; i++) {
		s = p->part[i]->session;
		if (s->row.source != SOURCE_JOB)
			continue;
		n++;
		if (s->row.state == SESSION_IS_FINALIZING &&
			(*ret_ended == NULL || s->row.job_number < (*ret_ended)->row.job_number))
			*ret_ended = s;
	}
	return n;
}

static void job_refused(struct process *p, uint32_t number, int code)
{
	p->refused_start[p->n_refused_starts++ % REFUSED_KEPT] =
		(struct refused_start){number, code};
}

static void job_start(struct process *p, const struct rec_session *r, const struct moment *m)
{
	struct row_session row = {0};
	struct session *s, *ended;
	uint32_t n;
	int e;

	if (!job_row(p, r, &row) || row.job_number == SESSION_ALL) {
		loss_bad(p, 1);
		return;
	}
	s = session_find(p->fold, row.uuid);
	if (s != NULL) { /* it is there already, and goes on */
		session_activate(s, m);
		return;
	}
	/* A job cannot know how late the daemon is, so what it ended makes room. */
	n = own_sessions(p, &ended);
	if (ended != NULL && (n >= JOB_SESSIONS || p->n_parts == PARTS_MAX)) {
		session_finalized(ended, m, 0);
		n--;
	}
	if (row.job_number < p->n_numbers) {
		loss_bad(p, 1); /* a number is used once */
		return;
	}
	/* If the job is not in its own session, nobody's end would end that. */
	if (n >= JOB_SESSIONS || p->n_parts == PARTS_MAX) {
		job_refused(p, row.job_number, refused(p->fold, row.uid, -EMFILE));
		loss_bad(p, 1);
		return;
	}
	row.created_ns = (int64_t)mono_to_real(p->fold, m->ns);
	e = session_start(p->fold, &row, m);
	p->fold->no_memory |= e == -ENOMEM;
	p->fold->no_space |= e == -ENOSPC;
	if (e == 0)
		p->n_numbers = row.job_number + 1;
	else if (e != -ENOMEM)
		job_refused(p, row.job_number, e);
}

void session_record(struct process *p, const struct rec_session *r)
{
	const uint64_t ns = clockmap_ns(&p->clock, r->clock);
	struct moment m = {ns > CLOCK_NS_MAX ? CLOCK_NS_MAX : ns, p, r->clock};
	uint32_t number = REC_ID(r->hdr), i;
	uint8_t verb = REC_FLAGS(r->hdr);
	struct session *s;

	p->dirty = true;
	if (verb == SESSION_START) {
		job_start(p, r, &m);
		return;
	}
	for (i = 0; i < p->n_parts; i++) {
		s = p->part[i]->session;
		if (s->row.source != SOURCE_JOB || !hash_same(s->row.owner, p->row.ring) ||
			(number != SESSION_ALL && number != s->row.job_number))
			continue;
		if (verb == SESSION_ACTIVATE)
			session_activate(s, &m);
		else if (verb == SESSION_DEACTIVATE)
			session_deactivate(s, &m);
		else if (verb == SESSION_FINALIZE)
			session_finalize(s, &m);
		else if (verb == SESSION_PHASE)
			session_phase(s, &m);
	}
	if (verb == 0 || verb > SESSION_PHASE)
		loss_bad(p, 1);
}

/* --- the end of a job --- */

static bool has_others(const struct session *s, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->attached && s->part[i]->process != p)
			return true;
	return false;
}

/* Its own end with it, an automatic one with the last of its processes. */
void session_owner_ended(struct process *p, uint64_t mono_ns)
{
	struct moment m = {.ns = mono_ns};
	struct session *s;
	uint32_t i;

	for (i = p->n_parts; i-- > 0;) {
		s = p->part[i]->session;
		if (s->row.match == MATCH_RING && hash_same(s->row.owner, p->row.ring) &&
			(s->row.source != SOURCE_AUTO || !has_others(s, p)))
			session_finalized(s, &m, 0);
	}
}
