/* SPDX-License-Identifier: MIT. waits.c: waits and their bubbles, out of a timeline. */
#include "waits.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "spans.h"
#include "step_pace.h"
#include "table.h"
#include "timeline_reading.h"
#include "warm_up.h"
#include "works.h"

struct call {
	uint64_t begin_ns, end_ns;
	uint32_t node;
};

struct reading {
	struct waits *w;
	uint32_t cap;
	struct works op;
	struct call *call;
	uint32_t n_calls, cap_calls;
	struct spans spans;              /* calls that begin in them */
	const struct steps *steps;       /* NULL: none are left out */
	uint32_t warm, first, processes; /* steps of a process that are; first: its first one */
	bool failed;
};

static void on_open(struct timeline *w)
{
	spans_open(&((struct reading *)w->mine)->spans, w);
}

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	spans_process(&r->spans);
	works_clear(&r->op);
	r->n_calls = 0;
	r->processes++;
	while (r->steps != NULL && r->first < r->steps->n &&
		r->steps->step[r->first].process + 1 < r->processes)
		r->first++;
}

/* Calls that get memory and give it back take their time in the driver: alloc_in_loop and pin_in_loop. */
static bool is_wait(uint8_t class)
{
	return gpu_classes[class].counts == COUNTS_SYNC && class != CLASS_ALLOC &&
	       class != CLASS_FREE && class != CLASS_REGISTER;
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	struct reading *r = w->mine;

	spans_scope(&r->spans, w, s);
	if ((s->flags & TRACE_CALL) == 0 || !is_wait(gpu_class_known(s->call.class)))
		return;
	if (r->n_calls == WAITS_MAX)
		r->w->left_out++;
	else if (!ROOM_FOR(r->call, r->cap_calls, r->n_calls))
		r->failed = true;
	else
		r->call[r->n_calls++] = (struct call){s->begin_ns, s->end_ns, s->node};
}

static void on_op(struct timeline *w, const struct timeline_op *o)
{
	struct reading *r = w->mine;

	if (r->op.n == WAITS_MAX)
		r->w->left_out++;
	else
		r->failed |= !works_add(
			&r->op, &(struct busy_work){.begin = o->start_ns, .end = o->end_ns});
}

static int by_call(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static bool is_warm(const struct reading *r, const struct call *c)
{
	uint32_t i;

	for (i = r->first; r->steps != NULL && i < r->steps->n; i++) {
		const struct step *s = &r->steps->step[i];

		if (s->process + 1 != r->processes || s->number > r->warm ||
			s->begin_ns > c->begin_ns)
			break;
		if (c->begin_ns < s->end_ns)
			return true;
	}
	return false;
}

/* The GPU's work of a process in order, up to where it was looked at; and the call that waited last. */
struct look {
	struct works_cursor at;
	struct busy_work op; /* the next one, if there are more */
	bool more;
	uint64_t dry;           /* when the work so far has ended */
	uint64_t idle;          /* how long there was none since the call */
	struct wait_site *site; /* of the call, NULL: it does not count */
	uint64_t sure, most;    /* of its bubble, and what it may give back */
};

static void look_until(struct look *k, uint64_t ns)
{
	for (; k->more && k->op.begin <= ns; k->more = works_next(&k->at, &k->op)) {
		k->idle += k->op.begin > k->dry ? k->op.begin - k->dry : 0;
		k->dry = k->op.end > k->dry ? k->op.end : k->dry;
	}
}

/* Had it not waited, all that the host does up to the next such call would have been so much earlier: of
 * the time without work it is no more than that, and what the next launch takes. */
static void call_gives(struct look *k, uint64_t next_call)
{
	look_until(k, next_call);
	if (k->more && next_call > k->dry) /* behind the last work nothing waits */
		k->idle += next_call - k->dry;
	k->idle = k->idle < k->most ? k->idle : k->most;
	if (k->site != NULL) /* a call of another thread may have begun before the bubble did */
		k->site->gain_ns += k->idle > k->sure ? k->idle : k->sure;
	k->site = NULL;
}

/* What runs when a call comes back it did not wait for, and no idle time is its. */
static void call_ends(
	struct look *k, const struct call *c, uint64_t next_call, struct wait_site *site)
{
	const uint64_t took = c->end_ns - c->begin_ns;
	uint64_t next, bubble;

	look_until(k, c->end_ns);
	site->calls++;
	site->blocked_ns += took;
	k->site = k->dry <= c->end_ns ? site : NULL;
	k->most = took + WAIT_RELAUNCH_NS;
	k->idle = 0;
	k->dry = k->dry > c->begin_ns ? k->dry : c->begin_ns;
	next = k->op.begin < next_call ? k->op.begin : next_call;
	bubble = k->site != NULL && k->more && next > k->dry ? next - k->dry : 0;
	site->bubble_ns += bubble;
	k->sure = bubble < k->most ? bubble : k->most;
	site->sure_ns += k->sure;
}

/* Calls by their begin; one inside of another is part of it. */
static void on_process_end(struct timeline *w)
{
	struct reading *r = w->mine;
	struct look k = {0};
	uint64_t done = 0;
	uint32_t i, n;

	(void)spans_settle(&r->spans);
	r->failed |= r->spans.failed;
	if (r->n_calls == 0 || r->failed)
		return;
	if (!ZEROED_FOR(r->w->site, r->cap, w->names.n) || !works_settle(&r->op)) {
		r->failed = true;
		return;
	}
	qsort(r->call, r->n_calls, sizeof(*r->call), by_call);
	works_first(&k.at, &r->op);
	k.more = works_next(&k.at, &k.op);
	for (i = 0; i < r->n_calls; i++) {
		const struct call *c = &r->call[i];

		if (c->end_ns <= done) /* threads side by side wait for the same */
			continue;
		call_gives(&k, c->begin_ns);
		for (n = i + 1; n < r->n_calls && r->call[n].begin_ns < c->end_ns; n++)
			;
		if (spans_clip(&r->spans, c->begin_ns, c->begin_ns + 1) > 0 && !is_warm(r, c))
			call_ends(&k, c, n < r->n_calls ? r->call[n].begin_ns : UINT64_MAX,
				&r->w->site[c->node]);
		done = c->end_ns;
	}
	call_gives(&k, UINT64_MAX);
}

static uint64_t times(uint64_t n, double factor)
{
	return (uint64_t)((double)n * factor + 0.5);
}

static void on_close(struct timeline *w)
{
	struct reading *r = w->mine;
	const double factor = r->warm > 0 ? warm_up_factor(r->steps) : 1;
	uint32_t i;

	r->w->n = r->cap < w->names.n ? r->cap : w->names.n;
	for (i = 0; i < r->w->n && !r->failed; i++) {
		struct wait_site *site = &r->w->site[i];
		const uint32_t up = w->known[i].parent;

		/* An import names the root, too. */
		if (r->warm > 0) {
			site->calls = times(site->calls, factor);
			site->blocked_ns = times(site->blocked_ns, factor);
			site->bubble_ns = times(site->bubble_ns, factor);
			site->sure_ns = times(site->sure_ns, factor);
			site->gain_ns = times(site->gain_ns, factor);
		}
		site->parent =
			up != PROFILE_NONE && w->known[up].kind == NODE_ROOT ? PROFILE_NONE : up;
		site->name = profile_text(r->w->texts, w->known[i].name, strlen(w->known[i].name));
		r->failed = site->name == NULL;
	}
}

int waits_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	const struct steps *steps, struct export_left *ret_left, struct waits **ret, struct err *e)
{
	static const struct timeline_form form = {.open = on_open,
		.process = on_process,
		.scope = on_scope,
		.op = on_op,
		.process_end = on_process_end,
		.close = on_close};
	const struct profile_select all = spans_whole(s);
	struct reading r = {.w = calloc(1, sizeof(*r.w)),
		.steps = steps,
		.warm = steps != NULL ? pace_warm_most(steps) : 0};
	int status;

	if (r.w != NULL)
		r.w->texts = profile_new();
	spans_begin(&r.spans, s);
	r.failed = r.w == NULL || r.w->texts == NULL;
	status = reading_run(&form, &r, &r.failed, db, id, &all, ret_left, e);
	if (r.spans.many)
		status = spans_verdict(&r.spans, false, e);
	spans_fini(&r.spans);
	works_fini(&r.op);
	free(r.call);
	if (status < 0)
		waits_free(r.w);
	else
		*ret = r.w;
	return status;
}

void waits_free(struct waits *w)
{
	if (w == NULL)
		return;
	free(w->site);
	profile_free(w->texts);
	free(w);
}
