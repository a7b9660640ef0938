/* SPDX-License-Identifier: MIT. spans.c: the times of a session that were asked for. */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "table.h"

bool spans_asked(const struct profile_select *s)
{
	return s->to_ns != 0 || s->first_step != 0 || s->scope != NULL || s->one_phase ||
	       s->every_ns != 0;
}

int spans_check(const struct profile_select *s, struct err *e)
{
	if (s->one_phase && (s->to_ns != 0 || s->first_step != 0))
		return err_set(e, -EINVAL, "--phase cannot be used with --window or --step");
	if (s->every_ns != 0 && s->scope != NULL)
		return err_set(e, -EINVAL,
			"--every and --scope cannot be used together: either is what a step is");
	if (s->scope != NULL && *s->scope == '\0')
		return err_set(e, -EINVAL, "--scope needs names, as in --scope step/forward");
	return 0;
}

static bool by_scopes(const struct spans *sp)
{
	return sp->select->scope != NULL ||
	       (sp->select->first_step != 0 && sp->select->every_ns == 0);
}

void spans_begin(struct spans *sp, const struct profile_select *s)
{
	*sp = (struct spans){.select = s};
	if (!ROOM_FOR(sp->window.v, sp->window.cap, 0))
		sp->failed = true;
	else if (s->every_ns != 0 && s->first_step != 0)
		sp->window.v[sp->window.n++] = (struct span){
			select_every(s, s->first_step - 1), select_every(s, s->last_step)};
	else if (!s->one_phase)
		sp->window.v[sp->window.n++] =
			(struct span){s->from_ns, s->to_ns != 0 ? s->to_ns : UINT64_MAX};
}

struct profile_select spans_whole(const struct profile_select *s)
{
	struct profile_select all = *s;

	all.one_phase = false;
	all.from_ns = all.to_ns = 0;
	all.first_step = all.last_step = 0;
	return all;
}

/* --- the timeline */

void spans_open(struct spans *sp, struct timeline *w)
{
	if (sp->select->one_phase)
		sp->failed |= parts_phase(&sp->window, w, sp->select->phase) < 0;
}

void spans_process(struct spans *sp)
{
	sp->of.n = 0;
}

/* What of it lies in the windows. */
static void add(struct spans *sp, const struct span *v)
{
	uint32_t i;

	for (i = 0; i < sp->window.n && !sp->failed; i++) {
		const struct span *w = &sp->window.v[i];
		const struct span in = {v->begin > w->begin ? v->begin : w->begin,
			v->end < w->end ? v->end : w->end};

		if (in.end <= in.begin)
			continue;
		sp->many |= sp->of.n == SPANS_MAX;
		if (sp->many || !ROOM_FOR(sp->of.v, sp->of.cap, sp->of.n))
			sp->failed = true;
		else
			sp->of.v[sp->of.n++] = in;
	}
}

void spans_scope(struct spans *sp, struct timeline *w, const struct timeline_scope *s)
{
	if (by_scopes(sp) && (s->flags & TRACE_CALL) == 0 && timeline_step(w, s->node) &&
		(!sp->select->open_steps || (s->flags & TRACE_OPEN) != 0))
		add(sp, &(struct span){s->begin_ns, s->end_ns});
}

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Those that overlap become one. */
static void merge(struct parts_spans *of)
{
	uint32_t i, n = 0;

	for (i = 0; i < of->n; i++)
		if (n > 0 && of->v[i].begin <= of->v[n - 1].end)
			of->v[n - 1].end =
				of->v[i].end > of->v[n - 1].end ? of->v[i].end : of->v[n - 1].end;
		else
			of->v[n++] = of->v[i];
	of->n = n;
}

uint32_t spans_settle(struct spans *sp)
{
	const uint32_t first = sp->select->first_step;
	uint32_t n, last = sp->select->last_step;

	if (!by_scopes(sp)) {
		add(sp, &(struct span){0, UINT64_MAX});
		return 0;
	}
	n = sp->of.n;
	if (n > 1)
		qsort(sp->of.v, n, sizeof(*sp->of.v), by_begin);
	if (first != 0) {
		sp->most_steps = n > sp->most_steps ? n : sp->most_steps;
		last = last < n ? last : n;
		sp->of.n = first <= last ? last - first + 1 : 0;
		if (sp->of.n > 0)
			memmove(sp->of.v, sp->of.v + first - 1, sp->of.n * sizeof(*sp->of.v));
		n = sp->of.n;
	}
	merge(&sp->of);
	sp->times += n;
	return n;
}

uint64_t spans_clip(const struct spans *sp, uint64_t begin, uint64_t end)
{
	uint32_t low = 0, high = sp->of.n, middle;
	uint64_t sum = 0;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (sp->of.v[middle].end > begin)
			high = middle;
		else
			low = middle + 1;
	}
	for (; low < sp->of.n && sp->of.v[low].begin < end; low++) {
		const struct span *v = &sp->of.v[low];

		sum += (v->end < end ? v->end : end) - (v->begin > begin ? v->begin : begin);
	}
	return sum;
}

/* --- what was found */

int spans_verdict(const struct spans *sp, bool found, struct err *e)
{
	const struct profile_select *s = sp->select;

	if (sp->many)
		return err_set(e, -E2BIG,
			"a process has more than %u of these scopes; give --window A..B, too",
			SPANS_MAX);
	if (sp->failed)
		return err_set(e, -ENOMEM, "out of memory");
	if (found)
		return 0;
	if (s->scope != NULL && sp->times == 0 && sp->most_steps == 0)
		return err_set(e, -ENOENT,
			"no scope '%.80s' in the timeline; `protonview sql SOURCE \"select "
			"distinct path from scopes\"` lists them",
			s->scope);
	if (s->first_step != 0 && s->every_ns == 0 && sp->times == 0)
		return err_set(e, -ENOENT, "no step %u: the timeline has %u (%s)", s->first_step,
			sp->most_steps,
			s->scope != NULL ? "as --scope names them"
					 : "scopes named `step`, `step N` or `ProfilerStep#N`");
	return err_set(e, -ENOENT,
		"nothing of the session was recorded there, or no GPU worked for it; without "
		"--window, --step, --scope and --every the whole session is shown");
}

void spans_fini(struct spans *sp)
{
	free(sp->window.v);
	free(sp->of.v);
	*sp = (struct spans){.failed = false};
}
