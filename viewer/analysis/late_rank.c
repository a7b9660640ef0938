/* SPDX-License-Identifier: MIT. late_rank.c: who comes last to collectives, and what it does meanwhile. */
#include "late_rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "step_pace.h"

#define NEARLY 0.9 /* of the most: an inner scope that has so much stands for its outer ones */
#define MOST   0.5
#define LASTS  3u /* steps in a row: from there on they wait */

struct work {
	const struct ranks *r;
	const struct steps *s;
	uint32_t first[RANKS_MAX], n[RANKS_MAX]; /* of each process its steps */
	double comm_ns[RANKS_MAX];               /* in collectives; NAN: it is no rank */
	double buf[RANKS_MAX];
};

/* The median of all ranks' numbers but one's. */
static double of_others(struct work *w, const double *v, uint32_t but)
{
	uint32_t k, n = 0;

	for (k = 0; k < w->r->n; k++)
		if (k != but && !isnan(w->comm_ns[k]))
			w->buf[n++] = v[k];
	return step_median(w->buf, n);
}

/* --- collectives */

static void find_steps(struct work *w)
{
	const struct steps *s = w->s;
	uint32_t i, k;

	for (i = 0; s != NULL && i < s->n; i++) {
		const struct steps_process *p = &s->process[s->step[i].process];

		for (k = 0; k < w->r->n; k++)
			if (w->r->process[k].pid == p->pid && w->r->process[k].rank == p->rank)
				break;
		if (k == w->r->n)
			continue;
		if (w->n[k]++ == 0)
			w->first[k] = i;
	}
}

static double comm_of(const struct step *s)
{
	return (double)s->part_ns[PART_COMM];
}

/* The median step's, times the steps; NAN: they are too few. */
static double comm_of_steps(struct work *w, uint32_t k)
{
	double *v = malloc((w->n[k] + (size_t)1) * sizeof(*v)), ns = (double)NAN;
	uint32_t i, n = 0;

	for (i = w->first[k]; v != NULL && i < w->first[k] + w->n[k]; i++)
		if (!w->s->step[i].warm)
			v[n++] = comm_of(&w->s->step[i]);
	if (n >= STEP_WARM_LEAST / 2 && w->n[k] >= STEP_WARM_LEAST)
		ns = step_median(v, n) * w->n[k];
	free(v);
	return ns;
}

static uint32_t measure(struct work *w, struct late_rank *l)
{
	uint32_t k, n = 0;

	for (k = 0; k < w->r->n; k++) {
		const double ns = ranks_meeting_ns(w->r, k);

		w->comm_ns[k] = ns > 0 ? ns : (double)NAN;
		n += ns > 0;
	}
	l->by_steps = w->s != NULL;
	for (k = 0; k < w->r->n; k++)
		if (!isnan(w->comm_ns[k]) && isnan(comm_of_steps(w, k)))
			l->by_steps = false;
	for (k = 0; k < w->r->n && l->by_steps; k++)
		if (!isnan(w->comm_ns[k]))
			w->comm_ns[k] = comm_of_steps(w, k);
	return n;
}

static double time_of(const struct work *w, uint32_t k, bool by_steps)
{
	double ns = 0;
	uint32_t i;

	if (!by_steps)
		return (double)w->r->process[k].total_ns;
	for (i = w->first[k]; i < w->first[k] + w->n[k]; i++)
		ns += w->s->step[i].warm ? w->s->process[w->s->step[i].process].median_ns
					 : step_ns(&w->s->step[i]);
	return ns;
}

/* How much longer the others were in collectives in one step of the late one. */
static double wait_in(struct work *w, uint32_t late, uint32_t i)
{
	double comm[RANKS_MAX];
	uint32_t k;

	for (k = 0; k < w->r->n; k++)
		comm[k] = i < w->n[k] ? comm_of(&w->s->step[w->first[k] + i]) : 0;
	return of_others(w, comm, late) - comm[late];
}

/* Step by step: ranks that are late by turns are none that the others wait for. */
static void wait_by_steps(struct work *w, struct late_rank *l)
{
	const struct step *s = &w->s->step[w->first[l->at]];
	double *v = malloc((w->n[l->at] + (size_t)1) * sizeof(*v));
	uint32_t i, n = 0, row = 0;

	l->steps = w->n[l->at];
	for (i = 0; v != NULL && i < l->steps; i++)
		if (!s[i].warm)
			v[n++] = wait_in(w, l->at, i);
	l->step_wait_ns = v != NULL ? fmax(0, step_median(v, n)) : 0;
	l->wait_ns = l->step_wait_ns * l->steps;
	for (i = 0; i < l->steps && row < LASTS; i++)
		row = wait_in(w, l->at, i) > MOST * l->step_wait_ns ? row + 1 : 0;
	if (row == LASTS && i - LASTS >= LASTS)
		l->since = s[i - LASTS].number;
	free(v);
}

/* --- what it does meanwhile */

/* ns of each node and process, without what meets in it. */
static double *without_meetings(const struct ranks *r, const uint64_t *ns)
{
	const size_t n = r->n;
	double *v = malloc((r->p->n_nodes * n + 1) * sizeof(*v));
	uint32_t i, up;
	size_t k;

	for (i = 0; v != NULL && i < r->p->n_nodes; i++)
		for (k = 0; k < n; k++)
			v[i * n + k] = (double)ns[i * n + k];
	/* A parent comes before its children. The outermost that meets is taken off all around it. */
	for (i = r->p->n_nodes; v != NULL && i-- > 1;) {
		if (!rank_meets(&r->p->node[i]))
			continue;
		for (up = r->p->node[i].parent; up != PROFILE_NONE && !rank_meets(&r->p->node[up]);
			up = r->p->node[up].parent)
			;
		if (up != PROFILE_NONE)
			continue;
		for (up = i; up != PROFILE_NONE; up = r->p->node[up].parent)
			for (k = 0; k < n; k++)
				v[up * n + k] -= up == i ? v[i * n + k] : (double)ns[i * n + k];
	}
	return v;
}

static bool look_for_more(struct work *w, struct late_rank *l, const uint64_t *ns, bool host)
{
	const struct ranks *r = w->r;
	double *v = ns == NULL ? NULL : without_meetings(r, ns), most = 0, more;
	uint32_t i, in = PROFILE_NONE;

	for (i = 1; v != NULL && i < r->p->n_nodes; i++)
		most = fmax(most,
			v[(size_t)i * r->n + l->at] - of_others(w, v + (size_t)i * r->n, l->at));
	for (i = 1; v != NULL && i < r->p->n_nodes && most >= MOST * l->wait_ns; i++) {
		more = v[(size_t)i * r->n + l->at] - of_others(w, v + (size_t)i * r->n, l->at);
		if (more < NEARLY * most ||
			(in != PROFILE_NONE && r->p->node[i].depth <= r->p->node[in].depth))
			continue;
		in = i;
		l->node = i;
		l->host = host;
		l->more_ns = more;
	}
	free(v);
	return in != PROFILE_NONE;
}

bool late_rank_find(const struct ranks *r, const struct steps *s, struct late_rank *ret)
{
	struct work *w = calloc(1, sizeof(*w));
	double time[RANKS_MAX], least = HUGE_VAL;
	bool found;
	uint32_t k;

	*ret = (struct late_rank){.node = PROFILE_NONE, .step_wait_ns = (double)NAN};
	if (w == NULL || r->cost != COST_gpu_time) {
		free(w);
		return false;
	}
	w->r = r;
	w->s = s;
	find_steps(w);
	found = measure(w, ret) >= 2;
	for (k = 0; k < r->n && found; k++) {
		if (w->comm_ns[k] < least) { /* not of NAN */
			least = w->comm_ns[k];
			ret->at = k;
		}
		time[k] = time_of(w, k, ret->by_steps);
	}
	if (found) {
		ret->wait_ns = of_others(w, w->comm_ns, ret->at) - least;
		if (ret->by_steps)
			wait_by_steps(w, ret);
		ret->share = fmin(1, ret->wait_ns / fmax(of_others(w, time, ret->at), 1));
		if (!look_for_more(w, ret, r->ns, false))
			(void)look_for_more(w, ret, r->host_ns, true);
	}
	free(w);
	return found;
}
