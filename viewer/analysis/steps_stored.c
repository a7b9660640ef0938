/* SPDX-License-Identifier: MIT. steps_stored.c: the steps of a session that kept no timeline, as they are stored beside its
 * tree: how long they took and what they were told; where there are very many, several together. */
#include <math.h>
#include <stdlib.h>

#include "series.h"
#include "step_pace.h"
#include "step_rows.h"
#include "table.h"

struct collecting {
	struct steps *s;
	const struct profile_select *select;
	uint64_t base_ns;
	int64_t process;
	uint32_t cap, cap_processes, cap_values[STEPS_VALUES_MAX];
};

static uint64_t since(uint64_t base_ns, uint64_t ns)
{
	return ns > base_ns ? ns - base_ns : 0;
}

static bool is_asked_for(const struct collecting *c, const struct step *x)
{
	const struct profile_select *s = c->select;

	if (s->to_ns != 0 && (x->begin_ns < s->from_ns || x->end_ns > s->to_ns))
		return false;
	return s->first_step == 0 ||
	       (x->number + x->of > s->first_step && x->number <= s->last_step);
}

static int put_values(struct collecting *c, const struct step_seen *seen)
{
	struct steps *s = c->s;
	uint32_t k, i, at, n;
	int r = 0;

	for (k = 0; k < seen->names->n; k++) {
		if (seen->point->v[k].n == 0)
			continue;
		at = steps_value(s, seen->names->name[k], &r);
		if (at == STEPS_VALUES_MAX && r == 0) {
			s->told_left_out++;
			continue;
		}
		n = at < STEPS_VALUES_MAX ? c->cap_values[at] : 0;
		if (r < 0 || !ZEROED_FOR(s->value[at], c->cap_values[at], s->n + 1))
			return -ENOMEM;
		for (i = n; i < c->cap_values[at]; i++)
			s->value[at][i] = (double)NAN;
		s->value[at][s->n] = seen->point->v[k].mean;
	}
	return 0;
}

static int on_point(void *arg, const struct step_seen *seen)
{
	const struct step_point *p = seen->point;
	struct collecting *c = arg;
	struct steps *s = c->s;
	struct step x = {.number = (uint32_t)p->first,
		.of = p->n,
		.took_ns = (double)p->took_ns,
		.begin_ns = since(c->base_ns, p->begin_ns),
		.end_ns = since(c->base_ns, p->end_ns)};
	int r;

	if (p->first > UINT32_MAX || s->n == STEPS_MAX || !is_asked_for(c, &x)) {
		s->left_out += s->n == STEPS_MAX;
		return 0;
	}
	if (seen->process != c->process) {
		if (!ROOM_FOR(s->process, c->cap_processes, s->n_processes))
			return -ENOMEM;
		s->process[s->n_processes++] =
			(struct steps_process){seen->pid, seen->rank, (double)NAN, (double)NAN};
		c->process = seen->process;
	}
	x.process = s->n_processes - 1;
	if (!ROOM_FOR(s->step, c->cap, s->n))
		return -ENOMEM;
	r = put_values(c, seen);
	s->thinned |= p->n > 1;
	s->step[s->n] = x;
	s->n += r == 0;
	return r;
}

/* Each number has a place for each step. */
static int fill_up(struct collecting *c)
{
	struct steps *s = c->s;
	uint32_t k, i, n;

	for (k = 0; k < s->n_values; k++) {
		n = c->cap_values[k];
		if (!ZEROED_FOR(s->value[k], c->cap_values[k], s->n + 1))
			return -ENOMEM;
		for (i = n; i < c->cap_values[k]; i++)
			s->value[k][i] = (double)NAN;
	}
	return pace_mark(s);
}

int steps_stored(struct sqlite3 *db, int64_t id, const struct profile_select *s, struct steps **ret,
	struct err *e)
{
	struct collecting c = {.s = calloc(1, sizeof(*c.s)), .select = s, .process = -1};
	const int64_t base_ns = series_base(db, id);
	int r = -ENOMEM;

	c.base_ns = base_ns > 0 ? (uint64_t)base_ns : 0;
	if (c.s != NULL)
		c.s->texts = profile_new();
	if (c.s != NULL && c.s->texts != NULL) {
		c.s->stored = true;
		r = step_each(db, id, s->process, on_point, &c, e);
	}
	if (r == 0)
		r = fill_up(&c);
	if (r == 0 && c.s->n == 0)
		r = -ENODATA;
	if (r < 0)
		steps_free(c.s);
	else
		*ret = c.s;
	return r == -ENOMEM ? err_set(e, r, "out of memory for steps") : r;
}
