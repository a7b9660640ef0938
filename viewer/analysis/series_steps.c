/* SPDX-License-Identifier: MIT. series_steps.c: what steps were told, as series, of a session that kept no
 * timeline: a point at the end of each step, or of several where there are very many. */
#include <stdlib.h>
#include <string.h>

#include "series.h"
#include "step_rows.h"
#include "table.h"

struct adding {
	struct series *s;
	int64_t base_ns, process;
	uint32_t first,
		room[SERIES_MAX]; /* first: of the process at hand; room: of s->one[i].point */
};

static struct series_one *one_of(struct adding *a, const struct step_seen *x, const char *name)
{
	struct series *s = a->s;
	uint32_t i;

	if (a->process != x->process)
		a->first = s->n;
	a->process = x->process;
	for (i = a->first; i < s->n; i++)
		if (strcmp(s->one[i].name, name) == 0)
			return &s->one[i];
	if (s->n == SERIES_MAX || !ROOM_FOR(s->one, s->cap, s->n))
		return NULL;
	s->one[s->n] = (struct series_one){
		.name = profile_text(s->texts, name, strlen(name)), .pid = x->pid, .rank = x->rank};
	return s->one[s->n].name != NULL ? &s->one[s->n++] : NULL;
}

static int add_point(void *arg, const struct step_seen *x)
{
	const struct step_point *p = x->point;
	struct adding *a = arg;
	struct series_one *one;
	uint32_t k;

	for (k = 0; k < x->names->n; k++) {
		if (p->v[k].n == 0)
			continue;
		one = one_of(a, x, x->names->name[k]);
		if (one == NULL && a->s->n < SERIES_MAX)
			return -ENOMEM;
		if (one == NULL) {
			a->s->left_out++;
			continue;
		}
		one->told += p->v[k].n;
		if (one->n == SERIES_READ) {
			one->left_out++;
			continue;
		}
		if (!ROOM_FOR(one->point, a->room[one - a->s->one], one->n))
			return -ENOMEM;
		one->point[one->n++] = (struct series_point){
			(int64_t)p->end_ns > a->base_ns ? p->end_ns - (uint64_t)a->base_ns : 0,
			p->v[k].mean};
	}
	return 0;
}

int series_steps(
	struct series *s, struct sqlite3 *db, int64_t id, const char *process, struct err *e)
{
	struct adding *a = calloc(1, sizeof(*a));
	int r = -ENOMEM;

	if (a != NULL) {
		a->s = s;
		a->base_ns = series_base(db, id);
		a->process = -1;
		r = step_each(db, id, process, add_point, a, e);
	}
	free(a);
	return r == -ENOMEM ? err_set(e, r, "out of memory") : r;
}
