/* SPDX-License-Identifier: MIT. critical.c: which step, and the longest path through it. */
#include "critical.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "critical_graph.h"
#include "steps.h"

#define FASTER 0.9

/* --- the path */

struct on_path { /* of a label */
	uint64_t ns;
	uint32_t times;
};

struct walk {
	const struct critical_graph *g;
	struct critical *c;
	struct longest l;
	double *dist;
	uint32_t *via, *order;
	struct on_path *of; /* [n_labels] */
};

static int by_time(const void *a, const void *b, void *of)
{
	const struct on_path *v = of;
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (v[x].ns != v[y].ns)
		return v[x].ns > v[y].ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int add_row(struct walk *w, uint32_t label)
{
	const struct critical_label *l = &w->g->label[label];
	struct critical *c = w->c;
	struct critical_row *row = &c->row[c->n_rows];

	longest_path(&w->l, label, FASTER, w->dist, NULL);
	*row = (struct critical_row){.name = profile_text(c->texts, l->name, strlen(l->name)),
		.part = l->part,
		.ns = w->of[label].ns,
		.times = w->of[label].times,
		.gain_ns = (double)(c->end_ns - c->begin_ns) - w->dist[w->g->end]};
	c->n_rows++;
	return row->name != NULL ? 0 : -ENOMEM;
}

static int fill_rows(struct walk *w)
{
	uint32_t i, n = w->g->n_labels;
	int r = 0;

	for (i = 0; i < n; i++)
		w->order[i] = i;
	if (n > 1)
		qsort_r(w->order, n, sizeof(*w->order), by_time, w->of);
	for (i = 0; i < n && w->of[w->order[i]].ns > 0 && r == 0; i++) {
		if (w->c->n_rows < CRITICAL_ROWS_MAX) {
			r = add_row(w, w->order[i]);
			continue;
		}
		w->c->left_out++;
		w->c->left_out_ns += w->of[w->order[i]].ns;
	}
	return r;
}

static int walk_path(struct walk *w)
{
	const struct critical_graph *g = w->g;
	uint32_t at;

	longest_path(&w->l, LONGEST_NONE, 1, w->dist, w->via);
	for (at = g->end; w->via[at] != LONGEST_NONE; at = g->edge[w->via[at]].from) {
		const struct longest_edge *e = &g->edge[w->via[at]];
		const uint64_t ns = (uint64_t)e->ns;

		w->of[e->label].ns += ns;
		w->of[e->label].times += ns > 0;
		w->c->part_ns[g->label[e->label].part] += ns;
	}
	return fill_rows(w);
}

static int read_graph(struct critical *c, const struct critical_graph *g)
{
	struct walk w = {.g = g,
		.c = c,
		.l = {g->n_nodes, g->first, g->edge},
		.dist = malloc(g->n_nodes * sizeof(*w.dist)),
		.via = malloc(g->n_nodes * sizeof(*w.via)),
		.order = malloc((g->n_labels + 1u) * sizeof(*w.order)),
		.of = calloc(g->n_labels + 1u, sizeof(*w.of))};
	int r = w.dist != NULL && w.via != NULL && w.order != NULL && w.of != NULL ? walk_path(&w)
										   : -ENOMEM;

	c->nodes = g->n_nodes;
	c->edges = g->n_edges;
	c->waits = g->waits;
	c->behind = g->behind;
	c->behind_ns = g->behind_ns;
	free(w.dist);
	free(w.via);
	free(w.order);
	free(w.of);
	return r;
}

struct asked {
	struct critical *c;
	uint32_t tid;
	bool done;
};

/* A window has what was recorded in it. */
static void cut_window(struct critical *c, const struct events *e)
{
	uint64_t begin = UINT64_MAX, end = 0;
	uint32_t i;

	for (i = 0; i < e->n_scopes; i++) {
		begin = e->scope[i].begin_ns < begin ? e->scope[i].begin_ns : begin;
		end = e->scope[i].end_ns > end ? e->scope[i].end_ns : end;
	}
	for (i = 0; i < e->n_ops; i++) {
		begin = e->op[i].start_ns < begin ? e->op[i].start_ns : begin;
		end = e->op[i].end_ns > end ? e->op[i].end_ns : end;
	}
	c->begin_ns = begin > c->begin_ns ? begin : c->begin_ns;
	c->end_ns = end < c->end_ns ? end : c->end_ns;
}

static int judge(void *arg, const struct events *e)
{
	struct asked *a = arg;
	struct critical_graph g;
	int r;

	if (a->done || e->n_scopes + e->n_ops == 0)
		return 0;
	a->done = true;
	if (a->c->step == 0) {
		a->c->pid = e->w->at.pid;
		a->c->rank = e->w->at.ranked ? e->w->at.rank : -1;
		cut_window(a->c, e);
	}
	r = critical_graph_new(e, a->c->begin_ns, a->c->end_ns, a->tid, &g);
	if (r < 0)
		return err_set(e->w->l.e, r, "out of memory");
	r = read_graph(a->c, &g);
	critical_graph_fini(&g);
	return r < 0 ? err_set(e->w->l.e, r, "out of memory") : 0;
}

/* --- which step */

static int by_length(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	const uint64_t v = x->end_ns - x->begin_ns, w = y->end_ns - y->begin_ns;

	if (v != w)
		return v < w ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The one that is asked for, of the first process; else of median length. */
static int choose_step(
	const struct profile_select *s, struct steps *all, struct asked *a, struct err *e)
{
	struct critical *c = a->c;
	struct step *step;
	uint32_t n;

	for (n = 0; n < all->n && all->step[n].process == all->step[0].process; n++)
		;
	c->steps = n;
	if (s->first_step > n)
		return err_set(e, -ENOENT, "no step %u: the process has %u", s->first_step, n);
	if (s->first_step == 0)
		qsort(all->step, n, sizeof(*all->step), by_length);
	step = &all->step[s->first_step != 0 ? s->first_step - 1 : (n - 1) / 2];
	c->pid = all->process[step->process].pid;
	c->rank = all->process[step->process].rank;
	c->step = step->number;
	c->begin_ns = step->begin_ns;
	c->end_ns = step->end_ns;
	a->tid = step->tid;
	return 0;
}

static int choose(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct asked *a, struct err *e)
{
	const struct profile_select whole = spans_whole(s);
	struct steps *all = NULL;
	int r;

	if (s->one_phase)
		return err_set(
			e, -EINVAL, "the path is of a step or of a --window, not of a phase");
	if (s->first_step != s->last_step)
		return err_set(e, -EINVAL, "--step: the path of one step, not of %u to %u",
			s->first_step, s->last_step);
	if (s->every_ns != 0 && s->first_step == 0)
		return err_set(
			e, -EINVAL, "--every: give --step N, too: the path is of one of them");
	if (s->every_ns != 0) {
		a->c->begin_ns = select_every(s, s->first_step - 1);
		a->c->end_ns = select_every(s, s->last_step);
		return 0;
	}
	if (s->to_ns != 0 && s->scope == NULL) {
		a->c->begin_ns = s->from_ns;
		a->c->end_ns = s->to_ns;
		return 0;
	}
	r = steps_read_times(db, id, s->to_ns != 0 ? s : &whole, ret_left, &all, e);
	if (r == 0 && all->n > 0)
		r = choose_step(s, all, a, e);
	else if (r == 0 && s->first_step == 0 && s->scope == NULL)
		a->c->end_ns = UINT64_MAX; /* all of it */
	else if (r == 0)
		r = err_set(e, -ENOENT,
			"no such step: the timeline has no scopes %s; --scope NAME says what a "
			"step "
			"is, --window A..B looks at a time without",
			s->scope != NULL ? "whose path ends so"
					 : "named `step`, `step N` or `ProfilerStep#N`");
	steps_free(all);
	return r;
}

static int read_it(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct asked *a, struct err *e)
{
	struct profile_select in = spans_whole(s);
	const struct critical *c = a->c;
	char word[32];

	in.scope = NULL;
	in.from_ns = c->begin_ns;
	in.to_ns = c->end_ns; /* and as much behind it, for what was launched and not waited for */
	if (c->step != 0) {
		in.to_ns += c->end_ns - c->begin_ns;
		snprintf(word, sizeof(word), "pid:%lld", (long long)c->pid);
		in.process = word;
	}
	return events_read(judge, a, db, id, &in, ret_left, e);
}

int critical_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct critical **ret, struct err *e)
{
	struct asked a = {.c = calloc(1, sizeof(*a.c))};
	int r = 0;

	if (a.c != NULL)
		a.c->texts = profile_new();
	if (a.c == NULL || a.c->texts == NULL)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = choose(db, id, s, ret_left, &a, e);
	if (r == 0)
		r = read_it(db, id, s, ret_left, &a, e);
	if (r == 0 && !a.done)
		r = err_set(e, -ENOENT,
			ret_left->gone > 0 ? "what was recorded there had left the timeline "
					     "(trace_mb and trace_s in protond.conf bound it)"
					   : "nothing was recorded there");
	if (r < 0)
		critical_free(a.c);
	else
		*ret = a.c;
	return r;
}

void critical_free(struct critical *c)
{
	if (c == NULL)
		return;
	profile_free(c->texts);
	free(c);
}
