/* SPDX-License-Identifier: MIT. steps.c: steps, and what the GPU did in each. */
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "spans.h"
#include "step_pace.h"
#include "table.h"
#include "timeline_reading.h"

#define COMPILES_MAX 65536u /* of a process; later ones are not looked at */

struct value_at { /* of a step before its place is known */
	uint32_t step, name;
	double v;
};

struct reading {
	struct span *compile; /* of the process at hand: times in which something was compiled */
	uint32_t n_compiles, cap_compiles;
	struct steps *s;
	uint32_t cap, cap_processes, first; /* first: step of the process at hand */
	struct parts parts;
	struct value_at *value;
	uint32_t n_values, cap_values;
	uint64_t from_ns, to_ns; /* steps that lie in it */
	bool failed;
};

/* --- reading */

static void on_open(struct timeline *w)
{
	struct reading *r = w->mine;

	r->failed |= parts_open(&r->parts, w) < 0;
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	r->first = r->s->n;
	r->n_compiles = 0;
	parts_process(&r->parts);
	if (!ROOM_FOR(r->s->process, r->cap_processes, r->s->n_processes)) {
		r->failed = true;
		return;
	}
	r->s->process[r->s->n_processes++] =
		(struct steps_process){w->at.pid, w->at.ranked ? w->at.rank : -1, (double)NAN};
}

static uint32_t name_of(struct reading *r, const char *name)
{
	struct steps *s = r->s;
	uint32_t k;

	for (k = 0; k < s->n_values; k++)
		if (strcmp(s->value_name[k], name) == 0)
			return k;
	if (s->n_values == STEPS_VALUES_MAX)
		return STEPS_VALUES_MAX;
	s->value_name[k] = profile_text(s->texts, name, strlen(name));
	if (s->value_name[k] == NULL) {
		r->failed = true;
		return STEPS_VALUES_MAX;
	}
	return s->n_values++;
}

static void take_values(struct reading *r, const struct timeline *w,
	const struct timeline_scope *scope, uint32_t step)
{
	uint32_t i, name;
	double v;

	for (i = 0; i < scope->n_metrics; i++) {
		v = reading_number(&w->held[w->taken[i]]);
		name = isnan(v) ? STEPS_VALUES_MAX : name_of(r, w->held[w->taken[i]].name);
		if (name == STEPS_VALUES_MAX)
			continue;
		if (!ROOM_FOR(r->value, r->cap_values, r->n_values)) {
			r->failed = true;
			return;
		}
		r->value[r->n_values++] = (struct value_at){step, name, v};
	}
}

/* What torch.compile, Triton and the driver compile, as torch names its own scopes, a profile of Python its frames, and the
 * switch `overhead` the driver's. */
static bool is_compile(const struct timeline *w, const struct timeline_scope *scope)
{
	static const char *const parts[] = {"(dynamo_timed)", "torch/_dynamo/convert_frame.py",
		"torch/_inductor/compile_fx.py", "triton/compiler/compiler.py"};
	const char *name = w->known[scope->node].name;
	size_t i;

	if ((scope->flags & TRACE_CALL) != 0)
		return scope->call.class == CLASS_COMPILE;
	for (i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strstr(name, parts[i]) != NULL)
			return true;
	return false;
}

static void note_compile(
	struct reading *r, const struct timeline *w, const struct timeline_scope *scope)
{
	if (scope->end_ns <= scope->begin_ns || r->n_compiles == COMPILES_MAX ||
		!is_compile(w, scope))
		return;
	if (!ROOM_FOR(r->compile, r->cap_compiles, r->n_compiles))
		r->failed = true;
	else
		r->compile[r->n_compiles++] = (struct span){scope->begin_ns, scope->end_ns};
}

static void on_scope(struct timeline *w, const struct timeline_scope *scope)
{
	struct reading *r = w->mine;
	struct steps *s = r->s;

	parts_seen(&r->parts, scope->end_ns);
	note_compile(r, w, scope);
	if ((scope->flags & TRACE_CALL) != 0 || s->n_processes == 0 ||
		!timeline_step(w, scope->node) || scope->begin_ns < r->from_ns ||
		scope->end_ns > r->to_ns)
		return;
	if (s->n == STEPS_MAX) {
		s->left_out++;
		return;
	}
	if (!ROOM_FOR(s->step, r->cap, s->n)) {
		r->failed = true;
		return;
	}
	s->step[s->n] = (struct step){.process = s->n_processes - 1,
		.number = s->n, /* until it is sorted: what values know it by */
		.tid = scope->tid,
		.begin_ns = scope->begin_ns,
		.end_ns = scope->end_ns};
	take_values(r, w, scope, s->n);
	s->n++;
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;

	r->failed |= !parts_op(&r->parts, o);
}

/* --- a process is over */

static int by_begin(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void fill_step(const struct parts *p, struct step *s)
{
	const struct parts_gpu *g = p->gpu;
	const struct span v = {s->begin_ns, s->end_ns};
	uint32_t i;

	if (p->n_gpus == 0)
		return;
	(void)parts_window(p, g, &v, s->part_ns);
	for (i = parts_from(g, v.begin); i < g->n && g->work[i].begin < v.end; i++)
		s->ops++;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* One inside of another, or beside it, is the same. Steps in which the time of each lies: they are in order. */
static void fill_compiles(struct reading *r)
{
	struct step *step = r->s->step;
	uint32_t i, k, first = r->first;
	uint64_t done = 0, from, to;

	if (r->n_compiles > 1)
		qsort(r->compile, r->n_compiles, sizeof(*r->compile), by_start);
	for (i = 0; i < r->n_compiles; i++) {
		const struct span *c = &r->compile[i];
		const bool is_new = c->begin >= done;

		from = c->begin > done ? c->begin : done;
		for (; first < r->s->n && step[first].end_ns <= from; first++)
			;
		for (k = first; k < r->s->n && step[k].begin_ns < c->end; k++) {
			const uint64_t begin = from > step[k].begin_ns ? from : step[k].begin_ns;

			to = c->end < step[k].end_ns ? c->end : step[k].end_ns;
			if (to <= begin)
				continue;
			step[k].compile_ns += to - begin;
			step[k].compiles += is_new;
		}
		done = c->end > done ? c->end : done;
	}
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	struct step *step = r->s->step;
	uint32_t i;

	if (r->s->n > r->first + 1)
		qsort(step + r->first, r->s->n - r->first, sizeof(*step), by_begin);
	r->failed |= !parts_settle(&r->parts, w);
	for (i = r->first; i < r->s->n && !r->failed; i++)
		fill_step(&r->parts, &step[i]);
	if (!r->failed)
		fill_compiles(r);
}

/* --- all */

/* Values were noted by the order of reading. */
static int place_values(struct reading *r)
{
	struct steps *s = r->s;
	uint32_t *place = malloc((s->n + (size_t)1) * sizeof(*place)), i, k;

	if (place == NULL)
		return -ENOMEM;
	for (i = 0; i < s->n; i++)
		place[s->step[i].number] = i;
	for (k = 0; k < s->n_values; k++) {
		s->value[k] = malloc((s->n + (size_t)1) * sizeof(double));
		for (i = 0; i < s->n && s->value[k] != NULL; i++)
			s->value[k][i] = (double)NAN;
		if (s->value[k] == NULL) {
			free(place);
			return -ENOMEM;
		}
	}
	for (i = 0; i < r->n_values; i++)
		s->value[r->value[i].name][place[r->value[i].step]] = r->value[i].v;
	free(place);
	for (i = 0; i < s->n; i++)
		s->step[i].number = i > 0 && s->step[i - 1].process == s->step[i].process
					    ? s->step[i - 1].number + 1
					    : 1;
	return 0;
}

int steps_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct steps **ret, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.process_end = on_process_end};
	const struct profile_select all = spans_whole(s);
	struct reading r = {.s = calloc(1, sizeof(*r.s)),
		.parts.together = true,
		.from_ns = s->from_ns,
		.to_ns = s->to_ns != 0 ? s->to_ns : UINT64_MAX};
	int status;

	if (r.s != NULL)
		r.s->texts = profile_new();
	r.failed = r.s == NULL || r.s->texts == NULL;
	status = reading_run(&form, &r, &r.failed, db, id, &all, ret_left, e);
	if (status == 0 && (place_values(&r) < 0 || pace_mark(r.s) < 0))
		status = err_set(e, -ENOMEM, "out of memory");
	parts_fini(&r.parts);
	free(r.value);
	free(r.compile);
	if (status < 0)
		steps_free(r.s);
	else
		*ret = r.s;
	return status;
}

void steps_free(struct steps *s)
{
	uint32_t k;

	if (s == NULL)
		return;
	for (k = 0; k < s->n_values; k++)
		free(s->value[k]);
	free(s->step);
	free(s->process);
	profile_free(s->texts);
	free(s);
}
