/* SPDX-License-Identifier: MIT. holding.c: who holds memory, out of a store. */
#include "holding.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holder_rows.h"
#include "step_rows.h"
#include "table.h"
#include "text.h"

static void holding_fini(struct holding *x)
{
	holder_scopes_free(x->h, x->scope);
	free(x->step);
}

/* NULL: the step was not told it. */
static const struct step_value *told_of(const struct step_seen *s, const char *name)
{
	uint32_t k;

	for (k = 0; k < s->names->n; k++)
		if (strcmp(s->names->name[k], name) == 0)
			return s->point->v[k].n > 0 ? &s->point->v[k] : NULL;
	return NULL;
}

static int on_step(void *arg, const struct step_seen *s)
{
	struct holding *x = arg;
	const struct step_point *p = s->point;
	const struct step_value *told;

	if (s->process != x->row.process || x->n_steps == HOLDING_STEPS)
		return 0;
	if (!ROOM_FOR(x->step, x->cap_steps, x->n_steps))
		return -ENOMEM;
	told = told_of(s, "allocated (bytes)");
	x->step[x->n_steps++] = (struct holding_step){
		p->begin_ns, p->end_ns, p->first, p->n, told != NULL ? told->mean : -1};
	x->torch.allocated = told != NULL ? told->mean : x->torch.allocated;
	told = told_of(s, "reserved (bytes)");
	x->torch.reserved = told != NULL ? told->mean : x->torch.reserved;
	told = told_of(s, "peak (bytes)");
	x->torch.peak = told != NULL && told->most > x->torch.peak ? told->most : x->torch.peak;
	return 0;
}

static void find_end(struct holding *x)
{
	uint32_t i;

	for (i = 0; i < x->h->n_accounts; i++) {
		const struct held_account *a = x->h->account[i];
		const uint64_t ns = a->n_points > 0 ? a->point[a->n_points - 1].ns : 0;

		x->end_ns = ns > x->end_ns ? ns : x->end_ns;
	}
}

struct reading {
	sqlite3 *db;
	int64_t session;
	holding_fn *fn;
	void *arg;
	struct err *e;
};

static int read_one(void *arg, const struct holder_row *row)
{
	struct reading *r = arg;
	struct holding x = {.row = *row, .h = row->h, .torch = {-1, -1, -1}};
	int status = holder_scopes(r->db, row->h, &x.scope, r->e);

	find_end(&x);
	if (status == 0)
		status = step_each(r->db, r->session, NULL, on_step, &x, r->e);
	if (status == -ENOMEM)
		err_set(r->e, status, "out of memory");
	if (status == 0)
		status = r->fn(r->arg, &x);
	holding_fini(&x);
	return status;
}

int holding_each(struct sqlite3 *db, int64_t session, const char *process, holding_fn *fn,
	void *arg, struct err *e)
{
	struct reading r = {db, session, fn, arg, e};

	return holder_each(db, session, process, read_one, &r, e);
}

uint64_t holding_at(const struct held_account *a, uint64_t ns)
{
	uint32_t low = 0, high = a->n_points, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (a->point[mid].ns <= ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low == 0 ? 0 : a->point[low - 1].last;
}

/* The most between them. */
static uint64_t most_in(const struct held_account *a, uint64_t from, uint64_t to)
{
	uint64_t most = holding_at(a, from);
	uint32_t i;

	for (i = 0; i < a->n_points; i++)
		if (a->point[i].ns >= from && a->point[i].ns <= to && a->point[i].most > most)
			most = a->point[i].most;
	return most;
}

/* Least squares of y over its place. */
static void line(const double *y, uint32_t n, struct holding_growth *ret)
{
	const double mean_x = (n - 1) / 2.0;
	double mean_y = 0, xx = 0, xy = 0, rest = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		mean_y += y[i] / n;
	for (i = 0; i < n; i++) {
		xx += (i - mean_x) * (i - mean_x);
		xy += (i - mean_x) * (y[i] - mean_y);
	}
	ret->slope = xy / xx;
	for (i = 0; i < n; i++) {
		const double off = y[i] - mean_y - ret->slope * (i - mean_x);

		rest += off * off;
	}
	ret->error = sqrt(rest / (n - 2) / xx);
}

struct curve { /* what a value of steps is made of */
	const struct holding *x;
	const struct held_account *a; /* NULL: what torch allocated */
	uint64_t first, last;
	uint64_t from_ns, to_ns;
};

/* Steps of a point that is of several lie between its ends. */
static uint32_t values(struct curve *c, double *y)
{
	uint32_t i, k, n = 0;

	for (i = 0; i < c->x->n_steps; i++) {
		const struct holding_step *s = &c->x->step[i];

		for (k = 0; k < s->n && n < HOLDING_STEPS; k++) {
			const uint64_t number = s->first + k;
			const double part = (double)(k + 1) / s->n;
			const uint64_t end =
				s->begin_ns + (uint64_t)((double)(s->end_ns - s->begin_ns) * part);

			if (number < c->first || (c->last != 0 && number > c->last) ||
				(c->a == NULL && s->allocated < 0))
				continue;
			c->from_ns = n == 0 ? s->begin_ns : c->from_ns;
			c->to_ns = end;
			y[n++] = c->a != NULL ? (double)holding_at(c->a, end) : s->allocated;
		}
	}
	return n;
}

static void grow(struct curve *c, struct holding_growth *ret)
{
	double *y = malloc(HOLDING_STEPS * sizeof(*y));
	uint32_t n, warm;

	*ret = (struct holding_growth){0};
	if (y == NULL)
		return;
	n = values(c, y);
	warm = c->first <= 1 && n > HOLDING_WARM_UP ? HOLDING_WARM_UP : 0;
	ret->all = n;
	ret->steps = n - warm;
	if (n > 0) {
		ret->at_first = (uint64_t)y[0];
		ret->at_last = (uint64_t)y[n - 1];
		ret->most = c->a != NULL ? most_in(c->a, c->from_ns, c->to_ns) : 0;
		ret->g = growth_of(y, n);
	}
	if (ret->steps >= HOLDING_LEAST)
		line(y + warm, ret->steps, ret);
	free(y);
}

void holding_growth(const struct holding *x, const struct held_account *a, uint32_t first,
	uint32_t last, struct holding_growth *ret)
{
	struct curve c = {.x = x, .a = a, .first = first, .last = last};

	grow(&c, ret);
}

bool holding_torch_growth(
	const struct holding *x, uint32_t first, uint32_t last, struct holding_growth *ret)
{
	struct curve c = {.x = x, .first = first, .last = last};

	grow(&c, ret);
	return ret->all > 0;
}
