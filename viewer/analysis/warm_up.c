/* SPDX-License-Identifier: MIT. warm_up.c: the host's sums without those of the first steps, and of those that did not end. */
#include "warm_up.h"

#include <errno.h>
#include <math.h>

#include "export_format.h"
#include "spans.h"
#include "step_pace.h"
#include "window.h"

double warm_up_factor(const struct steps *s)
{
	const uint32_t most = pace_warm_most(s);
	uint32_t i, n = 0;

	for (i = 0; i < s->n; i++)
		n += s->step[i].number <= most;
	return n < s->n ? (double)s->n / (s->n - n) : 1;
}

static double without(double all, double warm, double factor)
{
	return fmax(0, all - warm) * factor;
}

static void take(struct facts *f, const struct facts *warm, double factor)
{
	uint32_t i;

	f->step_wait_ns = 0;
	for (i = 0; i < f->p->n_nodes; i++) {
		struct fact_node *n = &f->node[i];
		const struct fact_node *w = &warm->node[i];

		if (n->step == PROFILE_NONE)
			continue;
		n->cpu_ns = without(n->cpu_ns, w->cpu_ns, factor);
		n->calls = without(n->calls, w->calls, factor);
		n->sync_ns = without(n->sync_ns, w->sync_ns, factor);
		n->wait_ns = without(n->wait_ns, w->wait_ns, factor);
		n->alloc_ns = without(n->alloc_ns, w->alloc_ns, factor);
		n->allocs = without(n->allocs, w->allocs, factor);
		n->pin_ns = without(n->pin_ns, w->pin_ns, factor);
		n->pins = without(n->pins, w->pins, factor);
		f->step_wait_ns += n->step == i ? n->wait_ns : 0;
	}
}

/* From the first to the last of the first `most` steps of each process. */
static struct profile_select reach(
	const struct steps *s, const struct profile_select *of, uint32_t most)
{
	struct profile_select in = spans_whole(of);
	uint32_t i;

	in.first_step = 1;
	in.last_step = most;
	in.from_ns = UINT64_MAX;
	for (i = 0; i < s->n; i++) {
		if (s->step[i].number > most)
			continue;
		in.from_ns = s->step[i].begin_ns < in.from_ns ? s->step[i].begin_ns : in.from_ns;
		in.to_ns = s->step[i].end_ns > in.to_ns ? s->step[i].end_ns : in.to_ns;
	}
	return in;
}

/* What those steps have; the others count for as much more. */
static int leave_out(struct facts *f, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, const struct profile_select *in, double factor,
	struct err *e)
{
	const struct profile_select whole = spans_whole(s);
	struct export_left left = {0};
	struct facts *warm = NULL;
	struct window w = {.host_only = true};
	int r = profile_load(db, id, &whole, &w.p, e);

	if (r == 0 && w.p->n_nodes == f->p->n_nodes)
		r = window_read(&w, db, id, in, &left, e);
	if (r == 0 && facts_new(w.p, s, &warm) < 0)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0 && warm->p->n_nodes == f->p->n_nodes)
		take(f, warm, factor);
	facts_free(warm);
	profile_free(w.p);
	if (r != -ENOENT && r != -E2BIG)
		return r;
	*e = (struct err){0};
	return 0;
}

static bool any_is_open(const struct steps *s)
{
	uint32_t i;

	for (i = 0; i < s->n && !s->step[i].open; i++)
		;
	return i < s->n;
}

int warm_up_leave_out(struct facts *f, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, struct err *e)
{
	const uint32_t most = pace_warm_most(f->step);
	struct profile_select in = spans_whole(s);
	int r = 0;

	if (!f->is_part && any_is_open(f->step)) {
		in.first_step = 1;
		in.last_step = UINT32_MAX;
		in.open_steps = true;
		r = leave_out(f, db, id, s, &in, 1, e);
	}
	if (r == 0 && !f->is_part && most > 0) {
		in = reach(f->step, s, most);
		r = leave_out(f, db, id, s, &in, warm_up_factor(f->step), e);
	}
	return r;
}
