/* SPDX-License-Identifier: MIT. session.c: what a session is known by, and when it was active. */
#include "session.h"

#include <string.h>

#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "session_terms.h"
#include "state.h"
#include "table.h"

struct session *session_find(const struct fold *f, const uint8_t uuid[16])
{
	uint32_t i;

	MUST_FOLD(f);
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
	return !session_is_over(s->row.state);
}

struct part *session_part(const struct session *s, const struct process *p)
{
	struct part *part;

	for (part = p->member; part != NULL && part->session != s; part = part->next)
		;
	return part;
}

void session_number_uuid(const uint8_t ring[16], uint32_t number, uint8_t ret[16])
{
	struct blake2s b;

	blake2s_init(&b);
	blake2s_add(&b, "protond session", 16);
	blake2s_add(&b, ring, 16);
	blake2s_add(&b, &number, sizeof(number));
	blake2s_done(&b, ret);
	ret[6] = (uint8_t)((ret[6] & 0x0f) | 0x80); /* UUID version 8: ours to define */
	ret[8] = (uint8_t)((ret[8] & 0x3f) | 0x80);
}

/* --- when it was active --- */

/* Spans count against the session's first process; a job's own sessions have no other. */
static void spans_grew(struct session *s, uint32_t n)
{
	if (s->n_parts > 0)
		part_grew(s->part[0], n * sizeof(struct span_row));
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

bool session_has_room_for(const struct session *s, const struct spans *spans)
{
	struct process *p = s->n_parts > 0 ? s->part[0]->process : NULL;
	uint32_t n;

	if (p == NULL || spans->n >= SPANS_MAX)
		return spans->n < SPANS_MAX;
	n = spans_of(p);
	return n < SPANS_LEAST || (n < 2 * SPANS_MAX && process_has_room(p));
}

bool session_span_add(struct session *s, struct spans *spans, uint64_t ns)
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

void session_span_end(struct session *s, struct spans *spans, uint64_t ns)
{
	struct span_row *last;

	MUST(spans->n > 0 && spans->n <= spans->cap);
	last = &spans->v[spans->n - 1];
	last->span.end = ns;
	spans->dirty += !last->dirty;
	last->dirty = true;
	s->dirty = true;
}

/* A span begins. If there is no room for it, the last one goes on as if there had been no pause. */
void session_open(struct session *s, uint64_t ns)
{
	uint64_t last_end = s->active.n > 0 ? s->active.v[s->active.n - 1].span.end : 0;

	MUST(s->opened_ns == 0);
	if (ns <= last_end && (s->row.source == SOURCE_JOB || last_end - ns < BOOT_NS))
		ns = last_end + 1; /* a row's key is its begin, which is not 0 */
	if (s->active.n > 0 && !session_has_room_for(s, &s->active)) {
		ns = s->active.v[s->active.n - 1].span.begin; /* where a restart would find it */
		s->row.active_ns -= last_end - ns;
		session_span_end(s, &s->active, 0);
	} else if (!session_span_add(s, &s->active, ns)) {
		return;
	}
	s->opened_ns = ns;
}

void session_close(struct session *s, uint64_t ns)
{
	MUST(s->opened_ns != 0);
	ns = ns <= s->opened_ns ? s->opened_ns + 1 : ns;
	session_span_end(s, &s->active, ns);
	s->row.active_ns += ns - s->opened_ns;
	s->opened_ns = 0;
	s->closed_ns = ns;
}

void session_boot(struct session *s, uint64_t ns)
{
	struct spans *a = &s->active;
	const bool active = s->opened_ns != 0;

	MUST_SESSION(s);
	if (active)
		session_close(s, s->fold->now_ns);
	if (a->n > a->dirty) { /* the store has the others */
		memmove(a->v, a->v + (a->n - a->dirty), a->dirty * sizeof(*a->v));
		a->n = a->dirty;
	}
	if (active && session_span_add(s, a, ns))
		s->opened_ns = ns;
}
