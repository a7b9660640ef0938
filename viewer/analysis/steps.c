/* SPDX-License-Identifier: MIT. steps.c: steps, and what the GPU did in each. */
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "parts.h"
#include "spans.h"
#include "step_pace.h"
#include "table.h"
#include "timeline_reading.h"

#define COMPILES_MAX 65536u /* of a process; later ones are not looked at */
/* Between a lookup and its region, in ns: without a compilation it is some us, or a wait for the GIL. */
#define COMPILES_NS 10000000u
#define LOOKUPS_MAX 256u
#define TOLD_MAX    (4u << 20) /* numbers of all processes; later ones likewise */
#define NO_STEP     UINT32_MAX
#define BESIDE      64u /* steps that go on at once, on other threads */

struct value_at {      /* of a step before its place is known */
	uint32_t step; /* as it was read; NO_STEP: the one that goes on at that time */
	uint32_t name, tid;
	uint64_t ns;
	double v;
};

struct lookup {
	uint64_t end;
	uint32_t tid;
};

struct reading {
	struct lookup lookup[LOOKUPS_MAX]; /* of torch.compile, whose region has not been seen */
	uint32_t n_lookups;
	struct span *compile; /* of the process at hand: times in which something was compiled */
	uint32_t n_compiles, cap_compiles;
	struct steps *s;
	uint32_t cap, cap_processes, first; /* first: step of the process at hand */
	struct parts parts;
	struct value_at *value;
	uint32_t n_values, cap_values, first_value; /* of the process at hand */
	bool last[STEPS_VALUES_MAX]; /* a number's last value holds; else they are added up */
	sqlite3 *db;
	int64_t id;
	uint64_t from_ns, to_ns; /* steps that lie in it */
	uint64_t every_ns; /* of these windows, if not of scopes; the process at hand was seen */
	uint64_t first_ns, last_ns; /* from and to there */
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
	r->first_value = r->n_values;
	r->n_compiles = r->n_lookups = 0;
	r->first_ns = UINT64_MAX;
	r->last_ns = 0;
	parts_process(&r->parts);
	if (!ROOM_FOR(r->s->process, r->cap_processes, r->s->n_processes)) {
		r->failed = true;
		return;
	}
	r->s->process[r->s->n_processes++] = (struct steps_process){
		w->at.pid, w->at.ranked ? w->at.rank : -1, (double)NAN, (double)NAN};
}

uint32_t steps_value(struct steps *s, const char *name, int *status)
{
	uint32_t k;

	for (k = 0; k < s->n_values; k++)
		if (strcmp(s->value_name[k], name) == 0)
			return k;
	if (s->n_values == STEPS_VALUES_MAX)
		return STEPS_VALUES_MAX;
	s->value_name[k] = profile_text(s->texts, name, strlen(name));
	if (s->value_name[k] == NULL) {
		*status = -ENOMEM;
		return STEPS_VALUES_MAX;
	}
	return s->n_values++;
}

/* Whether the tree has it as a property. */
static bool is_property(struct reading *r, const char *name)
{
	sqlite3_stmt *st;
	bool is;

	if (sqlite3_prepare_v2(r->db,
		    "SELECT 1 FROM metric WHERE session=?1 AND name=?2 AND kind=?3 LIMIT 1", -1,
		    &st, NULL) != SQLITE_OK)
		return true;
	(void)sqlite3_bind_int64(st, 1, r->id);
	(void)sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int(st, 3, KIND_PROPERTY);
	is = sqlite3_step(st) == SQLITE_ROW;
	(void)sqlite3_finalize(st);
	return is;
}

static void take_value(struct reading *r, const struct held *h, struct value_at at)
{
	const uint32_t before = r->s->n_values;
	int status = 0;

	at.v = reading_number(h);
	if (isnan(at.v))
		return;
	at.name = steps_value(r->s, h->name, &status);
	r->failed |= status < 0;
	if (r->s->n_values > before)
		r->last[before] = is_property(r, h->name);
	if (at.name == STEPS_VALUES_MAX)
		return;
	if (r->n_values == TOLD_MAX)
		r->s->told_left_out++;
	else if (!ROOM_FOR(r->value, r->cap_values, r->n_values))
		r->failed = true;
	else
		r->value[r->n_values++] = at;
}

static void take_values(struct reading *r, const struct timeline *w,
	const struct timeline_scope *scope, uint32_t step)
{
	uint32_t i;

	for (i = 0; i < scope->n_metrics; i++)
		take_value(r, &w->held[w->taken[i]],
			(struct value_at){.step = step, .tid = scope->tid, .ns = scope->begin_ns});
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

static void add_compile(struct reading *r, uint64_t begin, uint64_t end)
{
	if (end <= begin || r->n_compiles == COMPILES_MAX)
		return;
	if (!ROOM_FOR(r->compile, r->cap_compiles, r->n_compiles))
		r->failed = true;
	else
		r->compile[r->n_compiles++] = (struct span){begin, end};
}

static void note_lookup(struct reading *r, uint32_t tid, uint64_t end)
{
	if (r->n_lookups == LOOKUPS_MAX)
		r->n_lookups = 0; /* none of them was followed by a region */
	r->lookup[r->n_lookups++] = (struct lookup){end, tid};
}

/* Without a profiler of its own torch says nothing of a compilation, but where it looks for what it has compiled, and what
 * it runs then: long after, if it had to be compiled. Scopes come as they end, so those inside of the region are newer. */
static void note_region(struct reading *r, uint32_t tid, uint64_t begin)
{
	uint32_t i;

	for (i = r->n_lookups; i > 0; i--)
		if (r->lookup[i - 1].tid == tid && r->lookup[i - 1].end <= begin)
			break;
	if (i == 0)
		return;
	if (begin - r->lookup[i - 1].end >= COMPILES_NS)
		add_compile(r, r->lookup[i - 1].end, begin);
	r->n_lookups = i - 1;
}

static void note_compile(
	struct reading *r, const struct timeline *w, const struct timeline_scope *scope)
{
	static const char region[] = "Torch-Compiled Region: ";
	const char *name = w->known[scope->node].name;

	if (is_compile(w, scope))
		add_compile(r, scope->begin_ns, scope->end_ns);
	else if ((scope->flags & TRACE_CALL) != 0)
		return;
	else if (strcmp(name, "TorchDynamo Cache Lookup") == 0)
		note_lookup(r, scope->tid, scope->end_ns);
	else if (strncmp(name, region, sizeof(region) - 1) == 0)
		note_region(r, scope->tid, scope->begin_ns);
}

static void note_times(struct reading *r, uint64_t begin, uint64_t end)
{
	r->first_ns = begin < r->first_ns ? begin : r->first_ns;
	r->last_ns = end > r->last_ns ? end : r->last_ns;
}

static void on_scope(struct timeline *w, const struct timeline_scope *scope)
{
	struct reading *r = w->mine;
	struct steps *s = r->s;

	parts_seen(&r->parts, scope->end_ns);
	note_compile(r, w, scope);
	note_times(r, scope->begin_ns, scope->end_ns);
	if ((scope->flags & TRACE_CALL) != 0 || s->n_processes == 0)
		return;
	if (r->every_ns != 0 || !timeline_step(w, scope->node)) {
		take_values(r, w, scope, NO_STEP);
		return;
	}
	if (scope->begin_ns < r->from_ns || scope->end_ns > r->to_ns)
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
		.cut = (scope->flags & (TRACE_OPEN | TRACE_BEGAN_BEFORE)) != 0,
		.open = (scope->flags & TRACE_OPEN) != 0,
		.begin_ns = scope->begin_ns,
		.end_ns = scope->end_ns};
	take_values(r, w, scope, s->n);
	s->n++;
}

static void on_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	if (((struct reading *)w->mine)->s->n_processes > 0)
		take_value(w->mine, h, (struct value_at){.step = NO_STEP, .tid = h->tid, .ns = ns});
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;

	note_times(r, o->start_ns, o->end_ns);
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

	if (p->n_gpus == 0)
		return;
	(void)parts_window(p, g, &v, s->part_ns);
	s->ops = works_before(&g->works, v.end) - works_before(&g->works, v.begin);
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

/* All that the process was seen in, or that was asked for; the last one ends where that does. */
static void make_windows(struct reading *r)
{
	const uint64_t every = r->every_ns,
		       first = r->first_ns > r->from_ns ? r->first_ns : r->from_ns,
		       last = r->last_ns < r->to_ns ? r->last_ns : r->to_ns;
	struct steps *s = r->s;
	uint64_t k;

	for (k = first / every; first < last && k * every < last; k++) {
		if (s->n == STEPS_MAX || k >= UINT32_MAX) {
			s->left_out++;
			break;
		}
		if (!ROOM_FOR(s->step, r->cap, s->n)) {
			r->failed = true;
			return;
		}
		s->step[s->n] = (struct step){.process = s->n_processes - 1,
			.number = s->n,
			.begin_ns = k * every,
			.end_ns = last < (k + 1) * every ? last : (k + 1) * every};
		s->n++;
	}
}

/* Of what was told below steps, which of them went on then: on its own thread, else any that did (autograd's threads have
 * none). Those that are in none leave. */
static void find_steps_of(struct reading *r)
{
	const struct step *step = r->s->step;
	uint32_t i, low, high, middle, n = r->first_value, best;

	for (i = r->first_value; i < r->n_values; i++) {
		struct value_at v = r->value[i];

		if (v.step == NO_STEP) {
			for (low = r->first, high = r->s->n; low < high;) {
				middle = low + (high - low) / 2;
				if (step[middle].begin_ns <= v.ns)
					low = middle + 1;
				else
					high = middle;
			}
			for (best = NO_STEP, high = 0; low-- > r->first && high < BESIDE; high++) {
				if (step[low].end_ns < v.ns)
					continue;
				best = best == NO_STEP || step[low].tid == v.tid ? low : best;
				if (step[low].tid == v.tid)
					break;
			}
			if (best == NO_STEP)
				continue;
			v.step = step[best].number;
		}
		r->value[n++] = v;
	}
	r->n_values = n;
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	struct step *step;
	uint32_t i;

	if (r->every_ns != 0 && r->s->n_processes > 0)
		make_windows(r);
	step = r->s->step;
	if (r->s->n > r->first + 1)
		qsort(step + r->first, r->s->n - r->first, sizeof(*step), by_begin);
	find_steps_of(r);
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
	for (i = 0; i < r->n_values; i++) {
		const struct value_at *v = &r->value[i];
		double *to = &s->value[v->name][place[v->step]];

		*to = isnan(*to) || r->last[v->name] ? v->v : *to + v->v;
	}
	free(place);
	for (i = 0; i < s->n; i++)
		if (r->every_ns != 0)
			s->step[i].number = (uint32_t)(s->step[i].begin_ns / r->every_ns + 1);
		else
			s->step[i].number = i > 0 && s->step[i - 1].process == s->step[i].process
						    ? s->step[i - 1].number + 1
						    : 1;
	return 0;
}

static int read_by(const struct timeline_form *form, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct export_left *ret_left, struct steps **ret,
	struct err *e)
{
	const struct profile_select all = spans_whole(s);
	struct reading r = {.s = calloc(1, sizeof(*r.s)),
		.parts.together = true,
		.db = db,
		.id = id,
		.from_ns = s->from_ns,
		.to_ns = s->to_ns != 0 ? s->to_ns : UINT64_MAX,
		.every_ns = s->every_ns};
	int status;

	if (r.s != NULL)
		r.s->texts = profile_new();
	r.failed = r.s == NULL || r.s->texts == NULL;
	status = reading_run(form, &r, &r.failed, db, id, &all, ret_left, e);
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

int steps_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct steps **ret, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.metric = on_metric,
		.op = on_op,
		.process_end = on_process_end};

	return read_by(&form, db, id, s, ret_left, ret, e);
}

int steps_read_times(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct steps **ret, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.process_end = on_process_end};

	return read_by(&form, db, id, s, ret_left, ret, e);
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
