/* SPDX-License-Identifier: MIT. step_rates.c: how fast steps went. */
#include "step_rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "step_rows.h"
#include "table.h"

#define STEP_POINTS_MAX (1u << 20) /* of a process: the daemon writes a tenth of it */

enum step_rate step_rate_of(const char *metric)
{
	static const char *const told[RATE_MAX] = {
#define X(name, told) [RATE_##name] = told,
		STEP_RATES(X)
#undef X
	};
	const size_t n = strcspn(metric, " ");
	uint32_t k;

	for (k = RATE_STEPS + 1; k < RATE_MAX; k++)
		if (strncmp(metric, told[k], n) == 0 && told[k][n] == '\0')
			return k;
	return RATE_MAX;
}

/* Whatever is known ends later, so below its first begin nothing is. */
void step_rates_went_on(struct step_rate_sums *s, uint64_t begin_ns, uint64_t end_ns)
{
	const uint64_t end = s->until_ns != 0 && s->until_ns < end_ns ? s->until_ns : end_ns;

	if (begin_ns >= end)
		return;
	s->any_ns += (double)(end - begin_ns);
	s->until_ns = begin_ns > 0 ? begin_ns : 1;
}

void step_rates_add(struct step_rates *r, const struct step_rate_sums *s)
{
	const double at_once =
		s->any_ns > 0 && s->any_ns < s->ns[RATE_STEPS] ? s->ns[RATE_STEPS] / s->any_ns : 1;
	uint32_t k;

	for (k = 0; k < RATE_MAX; k++) {
		if (!(s->v[k] > 0) || !(s->ns[k] > 0))
			continue;
		r->a_s[k] += s->v[k] / s->ns[k] * at_once * 1e9;
		r->told[k]++;
	}
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

double step_median(double *v, uint32_t n)
{
	if (n == 0)
		return (double)NAN;
	qsort(v, n, sizeof(*v), by_value);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

uint32_t step_warm(const double *ns, uint32_t n, double *scratch, double *ret_median)
{
	uint32_t i;

	*ret_median = (double)NAN;
	if (n < STEP_WARM_LEAST)
		return 0;
	memcpy(scratch, ns, n * sizeof(*scratch));
	*ret_median = step_median(scratch, n);
	for (i = 0; i < n / 4 && ns[i] > STEP_WARM_SLOW * *ret_median; i++)
		;
	return i;
}

/* --- of stored steps */

struct point {
	uint64_t begin_ns, end_ns;
	double ns;                         /* of one of its steps */
	double n;                          /* steps */
	double v[RATE_MAX], has[RATE_MAX]; /* has: steps that were told it */
};

struct loading {
	struct step_rates *to;
	int64_t process;
	struct point *point;
	double *ns;
	uint32_t n, cap, cap_ns;
	struct err *e;
};

static int by_end(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int settle(struct loading *l)
{
	struct step_rate_sums sums = {.until_ns = 0};
	double median;
	uint32_t i, k, warm;

	if (l->n == 0)
		return 0;
	/* Behind the numbers, room to sort them. */
	if (!ZEROED_FOR(l->ns, l->cap_ns, 2 * l->n))
		return -ENOMEM;
	for (i = 0; i < l->n; i++)
		l->ns[i] = l->point[i].ns;
	warm = step_warm(l->ns, l->n, l->ns + l->n, &median);
	for (i = 0; i < l->n; i++) {
		const struct point *p = &l->point[i];

		l->to->steps += (uint64_t)p->n;
		l->to->warm += i < warm ? (uint64_t)p->n : 0;
		for (k = 0; k < RATE_MAX && i >= warm; k++) {
			sums.v[k] += p->v[k];
			sums.ns[k] += p->ns * p->has[k];
		}
	}
	qsort(l->point + warm, l->n - warm, sizeof(*l->point), by_end); /* threads come in turns */
	for (i = l->n; i-- > warm;)
		step_rates_went_on(&sums, l->point[i].begin_ns, l->point[i].end_ns);
	step_rates_add(l->to, &sums);
	l->n = 0;
	return 0;
}

static int on_point(void *arg, const struct step_seen *s)
{
	const struct step_point *x = s->point;
	struct loading *l = arg;
	struct point p = {.begin_ns = x->begin_ns,
		.end_ns = x->end_ns,
		.ns = (double)x->took_ns / (x->n > 0 ? x->n : 1),
		.n = x->n};
	enum step_rate rate;
	uint32_t k;
	int r;

	if (s->process != l->process) {
		r = settle(l);
		if (r < 0)
			return r;
		l->process = s->process;
	}
	p.v[RATE_STEPS] = p.has[RATE_STEPS] = p.n;
	for (k = 0; k < s->names->n; k++) {
		rate = x->v[k].n > 0 ? step_rate_of(s->names->name[k]) : RATE_MAX;
		if (rate == RATE_MAX)
			continue;
		p.v[rate] += x->v[k].mean * x->v[k].n;
		p.has[rate] = x->v[k].n;
	}
	if (l->n == STEP_POINTS_MAX)
		return err_set(l->e, -EBADMSG, "steps have more points than any session has");
	if (!ROOM_FOR(l->point, l->cap, l->n))
		return -ENOMEM;
	l->point[l->n++] = p;
	return 0;
}

int step_rates_load(struct sqlite3 *db, int64_t session, const char *process,
	struct step_rates *ret, struct err *e)
{
	struct loading l = {.to = ret, .process = -1, .e = e};
	int r;

	*ret = (struct step_rates){0};
	r = step_each(db, session, process, on_point, &l, e);
	if (r == 0)
		r = settle(&l);
	free(l.point);
	free(l.ns);
	return r == -ENOMEM ? err_set(e, r, "out of memory for steps") : r;
}
