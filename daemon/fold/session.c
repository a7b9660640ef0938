/* SPDX-License-Identifier: MIT. session.c: named recordings: who is in them, when they are active,
 * and how they end. Owns its spans, notes and parts.
 *
 *   START ─► ACTIVE ◄─ ACTIVATE / DEACTIVATE ─► INACTIVE
 *               └──────── FINALIZE ────────────────┘
 *                            ▼
 *                        FINALIZING ── FINALIZED, or its job's end ──► FINALIZED ── collected ──►
 * gone
 */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "engine.h"
#include "nodehash.h"
#include "words.h"

/* An instant: in ns, and as the raw clock of the ring that said it, so that the job's own verbs are
 * exact among its events. */
struct moment {
	uint64_t ns;
	const struct process *of; /* NULL: of none */
	uint64_t clock;
};

static uint64_t moment_clock(const struct moment *m, struct process *p)
{
	return m->of == p ? m->clock : clockmap_clock(&p->clock, m->ns);
}

struct session *session_find(const struct fold *f, const uint8_t uuid[16])
{
	uint32_t i;

	for (i = f->n_sessions; i-- > 0;)
		if (hash_same(f->session[i]->row.uuid, uuid))
			return f->session[i];
	return NULL;
}

struct session *session_by_id(const struct fold *f, int64_t id)
{
	uint32_t i;

	for (i = f->n_sessions; i-- > 0;)
		if (f->session[i]->row.id == id)
			return f->session[i];
	return NULL;
}

bool session_is_current(const struct session *s)
{
	return s->row.state != SESSION_IS_FINALIZED;
}

struct part *session_part(const struct session *s, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->process == p)
			return s->part[i];
	return NULL;
}

struct session *session_new(struct fold *f, const struct row_session *row)
{
	struct session *s;

	if (!ROOM_FOR(f->session, f->cap_sessions, f->n_sessions))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return NULL;
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
	for (i = 0; i < s->n_parts; i++)
		part_free(s->part[i]);
	free(s->part);
	free(s->active.v);
	free(s->segment.v);
	free(s->note);
	chunks_fini(&s->chunks);
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

/* Spans weigh on the process that came first: a job's own sessions have no other. */
static void spans_grew(struct session *s, uint32_t n)
{
	if (s->n_parts > 0)
		tree_grew(s->part[0], n * sizeof(struct span_row));
}

static uint32_t spans_of(const struct process *p)
{
	const struct session *s;
	uint32_t i, n = 0;

	for (i = 0; i < p->n_parts; i++) {
		s = p->part[i]->session;
		n += s->part[0]->process == p ? s->active.n + s->segment.n : 0;
	}
	return n;
}

static bool has_room_for_span(const struct session *s, const struct spans *spans)
{
	struct process *p = s->n_parts > 0 ? s->part[0]->process : NULL;
	uint32_t n;

	if (p == NULL || spans->n >= SPANS_MAX)
		return spans->n < SPANS_MAX;
	n = spans_of(p);
	return n < SPANS_LEAST || (n < 2 * SPANS_MAX && process_has_room(p));
}

static bool span_add(struct session *s, struct spans *spans, uint64_t ns)
{
	if (!ROOM_FOR(spans->v, spans->cap, spans->n)) {
		s->fold->no_memory = true;
		return false;
	}
	spans->v[spans->n++] = (struct span_row){{ns, 0}, true};
	spans->dirty++;
	spans_grew(s, 1);
	s->fold->fresh += (uint32_t)sizeof(struct row_segment);
	s->dirty = true;
	return true;
}

static void span_set_end(struct session *s, struct spans *spans, uint64_t ns)
{
	struct span_row *last = &spans->v[spans->n - 1];

	last->span.end = ns;
	spans->dirty += !last->dirty;
	last->dirty = true;
	s->dirty = true;
}

/* The session's own span begins; without room for it the last row goes on, over the pause. */
static void active_open(struct session *s, uint64_t ns)
{
	uint64_t last_end = s->active.n > 0 ? s->active.v[s->active.n - 1].span.end : 0;

	if (ns <= last_end && (s->row.source == SOURCE_JOB || last_end - ns < BOOT_NS))
		ns = last_end + 1; /* a row's key is its begin, and 0 is none */
	if (s->active.n > 0 && !has_room_for_span(s, &s->active)) {
		ns = s->active.v[s->active.n - 1].span.begin; /* as a restart will find it */
		s->row.active_ns -= last_end - ns;
		span_set_end(s, &s->active, 0);
	} else if (!span_add(s, &s->active, ns)) {
		return;
	}
	s->opened_ns = ns;
}

static void active_close(struct session *s, uint64_t ns)
{
	ns = ns <= s->opened_ns ? s->opened_ns + 1 : ns;
	span_set_end(s, &s->active, ns);
	s->row.active_ns += ns - s->opened_ns;
	s->opened_ns = 0;
	s->closed_ns = ns;
}

void session_boot(struct session *s, uint64_t ns)
{
	struct spans *a = &s->active;
	const bool active = s->opened_ns != 0;

	if (active)
		active_close(s, s->fold->now_ns);
	if (a->n > a->dirty) { /* the others are stored */
		memmove(a->v, a->v + (a->n - a->dirty), a->dirty * sizeof(*a->v));
		a->n = a->dirty;
	}
	if (active && span_add(s, a, ns))
		s->opened_ns = ns;
}

static void session_switch(struct session *s, bool active, const struct moment *m)
{
	uint32_t i;

	if (active == (s->opened_ns != 0))
		return;
	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->attached)
			part_set_active(s->part[i], active, moment_clock(m, s->part[i]->process));
	if (active)
		active_open(s, m->ns);
	else
		active_close(s, m->ns);
}

/* --- who is in it */

static bool matches(const struct session *s, const struct process *p)
{
	const struct row_session *r = &s->row;

	if (p->row.ended_ns != 0 || (r->uid != 0 && r->uid != p->row.uid))
		return false;
	switch ((enum match_kind)r->match) {
	case MATCH_PID:
		return r->pid != 0 && r->pid == p->row.pid;
	case MATCH_TOKEN:
		return !hash_is_zero(r->token) && hash_same(r->token, p->row.token);
	case MATCH_USER:
		return true;
	case MATCH_COMMAND:
		return words_match(r->command, p->row.command);
	case MATCH_RING:
		return hash_same(r->owner, p->row.ring);
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
		part_set_active(part, true, moment_clock(m, p));
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
		if (m.ns == 0 || m.ns > mono_ns) /* of another boot, whose clock was ahead */
			m.ns = mono_ns;
		if (matches(f->session[i], p))
			session_join(f->session[i], p, &m);
	}
}

/* --- ceilings */

/* A user has his share and no more. Where little is left of all, whoever has little comes first:
 * what is finalized stays until it is stored, so that many can be had for a moment. */
static int user_room(const struct fold *f, uint32_t uid)
{
	const uint32_t all = f->limit.sessions, share = f->limit.sessions_per_uid;
	uint32_t i, held = 0, current = 0;

	for (i = 0; i < f->n_sessions; i++) {
		if (f->session[i]->row.uid != uid)
			continue;
		held++;
		current += session_is_current(f->session[i]);
	}
	if (share >= all) /* there is one user */
		return f->n_sessions < all ? 0 : -ENOSPC;
	if (current >= share)
		return -EDQUOT;
	if (f->n_sessions >= all || (f->n_sessions >= all - all / 8 && held >= all / 16))
		return -ENOSPC;
	return 0;
}

static int refused(struct fold *f, uint32_t uid, int code)
{
	f->refused = (struct fold_refused){f->refused.n + 1, uid, code};
	return code;
}

struct fold_refused fold_refused(const struct fold *f)
{
	return f->refused;
}

int fold_refused_words(const struct fold *f, uint32_t uid, int code, struct err *e)
{
	if (code == -EDQUOT)
		return err_set(e, code,
			"user %u has %u sessions that are not finalized, the most one user may "
			"have; finalize some: protonctl finalize NAME",
			uid, f->limit.sessions_per_uid);
	if (code == -EMFILE)
		return err_set(e, code,
			"the process is in %u sessions, or has %u of its own, the most it may; "
			"finalize some",
			PARTS_MAX, JOB_SESSIONS);
	return err_set(e, code,
		"there is no room for another session: of all users together there may be %u; "
		"finalize some: protonctl finalize NAME",
		f->limit.sessions);
}

/* --- verbs, whoever says them */

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
	(void)span_add(s, &s->segment, m->ns);
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
			part_detach(s->part[i], moment_clock(m, s->part[i]->process));
	if (s->segment.n > 0)
		span_set_end(s, &s->segment, m->ns);
	s->row.state = SESSION_IS_FINALIZED;
	s->row.finalized_ns = real_ns > 0 ? real_ns : (int64_t)mono_to_real(s->fold, m->ns);
	if (s->row.finalized_ns < s->row.created_ns) /* the clock was set back meanwhile */
		s->row.finalized_ns = s->row.active_ns < (uint64_t)(INT64_MAX - s->row.created_ns)
					      ? s->row.created_ns + (int64_t)s->row.active_ns
					      : INT64_MAX;
	s->dirty = true;
}

static void session_phase(struct session *s, struct moment *m)
{
	const struct span_row *last = s->segment.n > 0 ? &s->segment.v[s->segment.n - 1] : NULL;
	uint32_t i;

	if (last != NULL && m->ns < last->span.begin)
		m->ns = last->span.begin;
	if (!session_is_current(s))
		return;
	if (s->segment.n == 0 || !has_room_for_span(s, &s->segment)) {
		note_add(s, 0, "more than %u phases: the rest is in the last", s->segment.n);
		return;
	}
	span_set_end(s, &s->segment, m->ns);
	if (!span_add(s, &s->segment, m->ns))
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

/* --- by the control socket */

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
	(void)words_field(r->name, sizeof(r->name), v->name, sizeof(v->name));
	(void)words_field(r->backend, sizeof(r->backend), v->backend, sizeof(v->backend));
	(void)words_field(r->mode, sizeof(r->mode), v->mode, sizeof(v->mode));
	(void)words_field(r->hook, sizeof(r->hook), v->hook, sizeof(v->hook));
	(void)words_field(r->command, sizeof(r->command), v->command, sizeof(v->command));
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
	else if (v->verb == VERB_PHASE)
		session_phase(s, &m);
	else if (v->verb == VERB_DELETE)
		return session_delete(s, &m);
	return 0;
}

/* --- by the job itself */

void session_number_uuid(const uint8_t ring[16], uint32_t number, uint8_t ret[16])
{
	struct blake2s b;

	blake2s_init(&b);
	blake2s_add(&b, "protond session", 16);
	blake2s_add(&b, ring, 16);
	blake2s_add(&b, &number, sizeof(number));
	blake2s_done(&b, ret);
	ret[6] = (uint8_t)((ret[6] & 0x0f) | 0x80); /* a UUID of version 8: ours to define */
	ret[8] = (uint8_t)((ret[8] & 0x3f) | 0x80);
}

static bool job_row(struct process *p, const struct rec_session *r, struct row_session *row)
{
	struct {
		uint32_t name;
		char *to;
		size_t cap;
	} text[] = {{r->name, row->name, sizeof(row->name)},
		{r->backend, row->backend, sizeof(row->backend)},
		{r->mode, row->mode, sizeof(row->mode)}, {r->hook, row->hook, sizeof(row->hook)}};
	uint32_t i, bytes;
	const char *from;

	if (r->data > SESSION_BOTH || r->context > SESSION_PYTHON || r->cpu > SESSION_CPU_OFF)
		return false;
	for (i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
		text[i].name = table_name(p, text[i].name);
		if (text[i].name == TABLE_NONE)
			return false;
		from = name_text(p, text[i].name, &bytes);
		(void)words_clean(text[i].to, text[i].cap, from, bytes);
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
	return true;
}

/* How many are the job's own; *ret_ended: the oldest that only waits for what the GPU still has. */
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

int fold_job_refused(const struct fold *f, const uint8_t ring[16], uint32_t number)
{
	const struct process *p = process_find(f, ring);
	uint32_t i;

	for (i = 0; p != NULL && i < p->n_refused_starts && i < REFUSED_KEPT; i++)
		if (p->refused_start[i].number == number)
			return p->refused_start[i].code;
	return 0;
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
	if (s != NULL) { /* its name is live already: it goes on */
		session_activate(s, m);
		return;
	}
	/* The job cannot know how late the daemon is: what it has ended makes room. */
	n = own_sessions(p, &ended);
	if (ended != NULL && (n >= JOB_SESSIONS || p->n_parts == PARTS_MAX)) {
		session_finalized(ended, m, 0);
		n--;
	}
	if (row.job_number < p->n_numbers) {
		loss_bad(p, 1); /* a number is used once */
		return;
	}
	/* One that the job is not in would end with nobody. */
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

/* --- the end of a job */

/* ", in 'a/b'": where the thread of the first lane was; "" when it was in no scope. */
static void last_place(const struct process *p, char ret[160])
{
	char text[144], clean[144];
	uint32_t i, at = UINT32_MAX;
	size_t n;

	ret[0] = '\0';
	for (i = 0; i < p->n_now && p->now[i].lane == p->now[0].lane; i++)
		at = p->now[i].path < p->n_paths ? p->now[i].path : at;
	if (at == UINT32_MAX)
		return;
	n = (size_t)fold_path_text(p->fold, p->row.ring, at, text, sizeof(text));
	if (n >= sizeof(text))
		(void)snprintf(text, sizeof(text), ".../%s", p->name[p->path[at].name].text);
	(void)words_field(clean, sizeof(clean), text, sizeof(text));
	(void)snprintf(ret, 160, ", in '%s'", clean);
}

static void note_end(struct session *s, const struct process *p, const struct j_end *e)
{
	uint32_t flying = correlate_flying(&p->correlate);
	uint32_t i, open = 0;
	char why[64] = "killed", place[160];

	for (i = 0; i < p->n_now; i++)
		open += p->now[i].path < p->n_paths;
	if (e->reason == END_EXITED) {
		if (s->row.source == SOURCE_JOB)
			note_add(s, p->row.id, "process %u ended without finalizing the session",
				p->row.pid);
		return;
	}
	if (e->reason == END_KILLED && e->status >= 0 && WIFSIGNALED(e->status))
		(void)snprintf(why, sizeof(why), "killed (signal %d)", WTERMSIG(e->status));
	else if (e->reason != END_KILLED)
		(void)snprintf(why, sizeof(why), "lost");
	last_place(p, place);
	note_add(s, p->row.id, "process %u was %s with %u scope%s open and %u launch%s in flight%s",
		p->row.pid, why, open, open == 1 ? "" : "s", flying, flying == 1 ? "" : "es",
		place);
}

void session_process_ended(struct process *p, const struct j_end *e, uint64_t mono_ns)
{
	struct moment m = {.ns = mono_ns};
	struct session *s;
	uint32_t i;

	for (i = 0; i < p->n_parts; i++)
		note_end(p->part[i]->session, p, e);
	correlate_end(p);
	for (i = p->n_parts; i-- > 0;) {
		s = p->part[i]->session;
		if (s->row.match == MATCH_RING && hash_same(s->row.owner, p->row.ring))
			session_finalized(s, &m, 0);
	}
}
