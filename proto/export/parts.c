/* SPDX-License-Identifier: MIT. parts.c: what GPUs did in a window of a timeline. */
#include "parts.h"

#include <sqlite3.h>
#include <string.h>

#include "table.h"

/* --- when the session was active, or in a phase */

static int add_span(struct parts_spans *to, struct timeline *w, sqlite3_stmt *st)
{
	const int64_t base = w->time.base_ns, begin = (int64_t)load_u64(st, 0),
		      end = (int64_t)load_u64(st, 1);
	const bool open = sqlite3_column_type(st, 1) == SQLITE_NULL;
	struct span v = {begin > base ? (uint64_t)begin - (uint64_t)base : 0, UINT64_MAX};

	if (!open && end <= base)
		return 0;
	if (!open)
		v.end = (uint64_t)end - (uint64_t)base;
	if (to->n > 0 && v.begin < to->v[to->n - 1].end)
		v.begin = to->v[to->n - 1].end; /* of a forged file: nothing counts twice */
	if (v.end <= v.begin)
		return 0;
	if (!ROOM_FOR(to->v, to->cap, to->n))
		return timeline_no_memory(w);
	to->v[to->n++] = v;
	return 0;
}

static int read_spans(struct parts_spans *to, struct timeline *w, const char *sql, uint32_t phase)
{
	sqlite3_stmt *st;
	int more, r = load_prepare(&w->l, sql, &st);

	if (r < 0)
		return r;
	if (sqlite3_bind_parameter_count(st) > 1)
		(void)sqlite3_bind_int64(st, 2, phase);
	while (r == 0 && (more = load_step(&w->l, st)) != 0)
		r = more < 0 ? more : add_span(to, w, st);
	(void)sqlite3_finalize(st);
	return r;
}

int parts_open(struct parts *p, struct timeline *w)
{
	return read_spans(&p->active, w,
		"SELECT begin_ns, end_ns FROM active WHERE session = ?1 ORDER BY begin_ns", 0);
}

int parts_phase(struct parts_spans *to, struct timeline *w, uint32_t phase)
{
	return read_spans(to, w,
		"SELECT begin_ns, end_ns FROM segment WHERE session = ?1 AND segment = ?2"
		" ORDER BY begin_ns",
		phase);
}

/* --- a process */

void parts_process(struct parts *p)
{
	uint32_t i;

	for (i = 0; i < p->n_gpus; i++)
		works_clear(&p->gpu[i].works);
	p->n_gpus = p->n_work = 0;
	p->known_ns = UINT64_MAX;
	p->last_ns = 0;
	p->gone = false;
}

static struct parts_gpu *gpu_of(struct parts *p, uint32_t device)
{
	uint32_t i, cap = p->cap_gpus;

	for (i = 0; i < p->n_gpus; i++)
		if (p->together || p->gpu[i].device == device || i + 1 == PARTS_GPUS_MAX)
			return &p->gpu[i];
	if (!ROOM_FOR(p->gpu, p->cap_gpus, p->n_gpus))
		return NULL;
	memset(p->gpu + cap, 0, (p->cap_gpus - cap) * sizeof(*p->gpu)); /* those of before stay */
	p->gpu[p->n_gpus].device = device;
	return &p->gpu[p->n_gpus++];
}

void parts_seen(struct parts *p, uint64_t end_ns)
{
	p->last_ns = end_ns > p->last_ns ? end_ns : p->last_ns;
}

bool parts_op(struct parts *p, const struct timeline_op *o)
{
	struct parts_gpu *g;

	parts_seen(p, o->end_ns);
	if (o->end_ns <= o->start_ns)
		return true;
	if (p->n_work == PARTS_WORK_MAX) {
		p->known_ns = o->start_ns < p->known_ns ? o->start_ns : p->known_ns;
		return true;
	}
	g = gpu_of(p, o->stream->device);
	p->n_work++;
	return g != NULL && works_add(&g->works, &(struct busy_work){o->start_ns, o->end_ns,
							 (o->op->flags & TRACE_UNLAUNCHED) != 0 ? 0
							 : o->launch_ns > 0 ? o->launch_ns
									    : 1,
							 part_of_class(o->op->class)});
}

bool parts_settle(struct parts *p, const struct timeline *w)
{
	uint32_t i;

	p->gone = w->events > w->kept;
	for (i = 0; i < p->n_gpus; i++)
		if (!works_settle(&p->gpu[i].works))
			return false;
	return true;
}

/* --- a window */

/* Takes what lies before `ns` away from *v, and returns how long that is. */
static uint64_t cut_before(struct span *v, uint64_t ns)
{
	const uint64_t begin = v->begin;

	if (ns > v->begin)
		v->begin = ns < v->end ? ns : v->end;
	return v->begin - begin;
}

static void window_add(
	const struct parts *p, const struct parts_gpu *g, struct span v, uint64_t part[PART_MAX])
{
	struct span rest = v;

	if (p->gone && g->works.n > 0)
		part[PART_UNKNOWN] += cut_before(&v, works_begin(&g->works));
	if (p->known_ns < v.end) {
		rest = v;
		(void)cut_before(&rest, p->known_ns);
		part[PART_UNKNOWN] += rest.end - rest.begin;
		v.end = rest.begin;
	}
	if (v.end > v.begin)
		works_window(&g->works, &v, part);
}

/* The first time of activity that ends behind a moment. */
static uint32_t active_at(const struct parts *p, uint64_t ns)
{
	uint32_t low = 0, high = p->active.n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (p->active.v[middle].end > ns)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint64_t parts_window(const struct parts *p, const struct parts_gpu *g, const struct span *v,
	uint64_t part[PART_MAX])
{
	uint64_t sum = 0;
	struct span in;
	uint32_t i;

	for (i = active_at(p, v->begin); i < p->active.n && p->active.v[i].begin < v->end; i++) {
		in = p->active.v[i];
		in.end = in.end == UINT64_MAX ? p->last_ns : in.end;
		in.begin = in.begin > v->begin ? in.begin : v->begin;
		in.end = in.end < v->end ? in.end : v->end;
		if (in.end <= in.begin)
			continue;
		window_add(p, g, in, part);
		sum += in.end - in.begin;
	}
	return sum;
}

void parts_fini(struct parts *p)
{
	uint32_t i;

	for (i = 0; i < p->cap_gpus; i++)
		works_fini(&p->gpu[i].works);
	free(p->gpu);
	free(p->active.v);
	*p = (struct parts){.together = false};
}
