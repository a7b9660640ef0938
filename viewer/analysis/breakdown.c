/* SPDX-License-Identifier: MIT. breakdown.c: parts of GPUs' time in windows, steps and scopes. */
#include "breakdown.h"

#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "table.h"
#include "text.h"
#include "timeline_reading.h"

struct reading {
	struct breakdown *b;
	struct parts parts;
	struct parts_spans window; /* of the session: what lies in none of them is not asked for */
	uint32_t phase;
	struct span *span; /* of the process at hand */
	uint32_t n, cap;
	uint8_t *match; /* of a node: 0 not looked at, 1 no, 2 yes */
	uint32_t cap_match;
	bool failed, many;
};

/* --- which times */

/* Whether a node's path ends in the names that were given. */
static bool ends_in(struct reading *r, struct timeline *w, uint32_t node)
{
	uint32_t up[TRACE_DEPTH_MAX], n = trace_names_path(&w->names, node, up);
	const size_t want = strlen(r->b->scope);
	struct text t = {0};
	bool ret;

	text_char(&t, '/');
	while (n-- > 0) {
		if (!node_is_scope(w->known[up[n]].kind) && n > 0)
			continue;
		text_str(&t, w->known[up[n]].name);
		text_char(&t, '/');
	}
	r->failed |= t.failed;
	ret = !t.failed && t.n >= want + 2 && t.s[t.n - want - 2] == '/' &&
	      memcmp(t.s + t.n - want - 1, r->b->scope, want) == 0;
	text_fini(&t);
	return ret;
}

static bool is_asked_for(struct reading *r, struct timeline *w, uint32_t node)
{
	if (r->b->scope == NULL)
		return timeline_is_step(w->known[node].name);
	if (!ZEROED_FOR(r->match, r->cap_match, node + 1)) {
		r->failed = true;
		return false;
	}
	if (r->match[node] == 0)
		r->match[node] = ends_in(r, w, node) ? 2 : 1;
	return r->match[node] == 2;
}

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Those that overlap become one. */
static void merge(struct reading *r)
{
	uint32_t i, n = 0;

	for (i = 0; i < r->n; i++)
		if (n > 0 && r->span[i].begin <= r->span[n - 1].end)
			r->span[n - 1].end = r->span[i].end > r->span[n - 1].end
						     ? r->span[i].end
						     : r->span[n - 1].end;
		else
			r->span[n++] = r->span[i];
	r->n = n;
}

/* The times of the process at hand, in order, apart from each other. Returns how many steps or scopes that
 * were. */
static uint32_t settle_spans(struct reading *r)
{
	struct breakdown *b = r->b;
	uint32_t n = r->n, first = b->first_step, last = b->last_step;

	if (n > 1)
		qsort(r->span, n, sizeof(*r->span), by_begin);
	if (first == 0) {
		merge(r);
		return n;
	}
	b->most_steps = n > b->most_steps ? n : b->most_steps;
	last = last < n ? last : n;
	r->n = first <= last ? last - first + 1 : 0;
	if (r->n > 0)
		memmove(r->span, r->span + first - 1, r->n * sizeof(*r->span));
	n = r->n;
	merge(r);
	return n;
}

/* --- the timeline */

static void on_open(struct timeline *w)
{
	struct reading *r = w->mine;

	r->failed |= parts_open(&r->parts, w) < 0;
	if (r->b->by_phase)
		r->failed |= parts_phase(&r->window, w, r->phase) < 0;
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	parts_process(&r->parts);
	r->n = 0;
}

/* What of it lies in the windows. */
static void add_span(struct reading *r, const struct span *v)
{
	uint32_t i;

	for (i = 0; i < r->window.n && !r->failed; i++) {
		const struct span *w = &r->window.v[i];
		const struct span in = {v->begin > w->begin ? v->begin : w->begin,
			v->end < w->end ? v->end : w->end};

		if (in.end <= in.begin)
			continue;
		r->many |= r->n == BREAKDOWN_SPANS_MAX;
		if (r->many || !ROOM_FOR(r->span, r->cap, r->n))
			r->failed = true;
		else
			r->span[r->n++] = in;
	}
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct reading *r = w->mine;

	parts_seen(&r->parts, s->end_ns);
	if ((r->b->scope != NULL || r->b->first_step != 0) && (s->flags & TRACE_CALL) == 0 &&
		is_asked_for(r, w, s->node))
		add_span(r, &(struct span){s->begin_ns, s->end_ns});
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;

	r->failed |= !parts_op(&r->parts, o);
}

static void add_row(
	struct reading *r, struct timeline *w, const struct parts_gpu *g, uint32_t times)
{
	const struct gpu_seen *seen = timeline_gpu(w, g->device);
	struct breakdown *b = r->b;
	struct breakdown_row *row;
	uint32_t i;

	if (seen == NULL || !ROOM_FOR(b->row, b->cap, b->n)) {
		r->failed = true;
		return;
	}
	row = &b->row[b->n++];
	*row = (struct breakdown_row){.pid = w->at.pid,
		.rank = w->at.ranked ? w->at.rank : -1,
		.gpu = seen->ordinal,
		.times = times};
	memcpy(row->uuid, seen->uuid, sizeof(row->uuid));
	for (i = 0; i < r->n; i++)
		row->window_ns += parts_window(&r->parts, g, &r->span[i], row->part_ns);
	if (row->window_ns == 0)
		b->n--;
}

static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	struct breakdown *b = r->b;
	uint32_t times = 0, i;

	if (b->scope != NULL || b->first_step != 0)
		times = settle_spans(r);
	else
		add_span(r, &(struct span){0, UINT64_MAX});
	b->times += times;
	r->failed |= !parts_settle(&r->parts, w);
	for (i = 0; i < r->parts.n_gpus && !r->failed; i++)
		add_row(r, w, &r->parts.gpu[i], times);
}

/* --- all */

/* What one process waits for another may fill. */
static void mark_shared(struct breakdown *b)
{
	static const uint8_t unknown[16];
	uint32_t i, k;

	for (i = 0; i < b->n; i++)
		for (k = 0; k < b->n && !b->row[i].shared; k++)
			b->row[i].shared =
				k != i && b->row[k].pid != b->row[i].pid &&
				memcmp(b->row[i].uuid, unknown, sizeof(unknown)) != 0 &&
				memcmp(b->row[i].uuid, b->row[k].uuid, sizeof(unknown)) == 0;
}

static int nothing(const struct breakdown *b, struct err *e)
{
	if (b->scope != NULL && b->times == 0)
		return err_set(e, -ENOENT,
			"no scope '%.80s' in the timeline; `protonview sql SOURCE \"select "
			"distinct "
			"path "
			"from scopes\"` lists them",
			b->scope);
	if (b->first_step != 0 && b->times == 0)
		return err_set(e, -ENOENT,
			"no step %u: the timeline has %u (scopes named `step`, `step N` or "
			"`ProfilerStep#N`)",
			b->first_step, b->most_steps);
	return err_set(e, -ENOENT,
		"nothing of the session was recorded there, or no GPU worked for it; without "
		"--window, --step and --scope the whole session is shown");
}

int breakdown_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.process_end = on_process_end};
	struct breakdown *b = arg;
	struct span window = {b->from_ns, b->to_ns != 0 ? b->to_ns : UINT64_MAX};
	struct reading r = {.b = b, .phase = s->phase, .window = {.v = &window, .n = 1}};
	struct profile_select all = *s;
	int status;

	if (b->by_phase)
		r.window = (struct parts_spans){.v = NULL};
	all.one_phase = false;
	all.from_ns = all.to_ns = 0; /* an idle time may begin before a window, and end behind it */
	all.first_step = all.last_step = 0;
	status = reading_run(&form, &r, &r.failed, db, id, &all, ret_left, e);
	if (r.many)
		status = err_set(e, -E2BIG,
			"a process has more than %u of these scopes; give --window A..B, too",
			BREAKDOWN_SPANS_MAX);
	if (status == 0 && b->n == 0)
		status = nothing(b, e);
	mark_shared(b);
	parts_fini(&r.parts);
	free(r.span);
	free(r.match);
	if (b->by_phase)
		free(r.window.v);
	return status;
}

void breakdown_fini(struct breakdown *b)
{
	free(b->row);
	b->row = NULL;
	b->n = b->cap = 0;
}
