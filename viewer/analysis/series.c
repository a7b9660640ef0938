/* SPDX-License-Identifier: MIT. series.c: numbers over time. */
#include "series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "timeline_reading.h"

struct reading {
	struct series *s;
	uint32_t *room; /* room[i]: of s->one[i].point */
	uint32_t cap_room;
	uint32_t first;  /* of the process at hand */
	int64_t base_ns; /* the timeline's zero; 0: it has none */
	bool failed;
};

static void on_process(struct timeline *w)
{
	struct reading *r = w->mine;

	r->first = r->s->n;
	r->base_ns = w->time.base_ns;
}

/* The series of this process and name; NULL: there is none for it. */
static struct series_one *series_of(struct reading *r, const struct timeline *w, const char *name)
{
	struct series *s = r->s;
	uint32_t i;

	for (i = r->first; i < s->n; i++)
		if (strcmp(s->one[i].name, name) == 0)
			return &s->one[i];
	if (s->n == SERIES_MAX) {
		s->left_out++;
		return NULL;
	}
	if (!ROOM_FOR(s->one, s->cap, s->n) || !ZEROED_FOR(r->room, r->cap_room, s->n + 1)) {
		r->failed = true;
		return NULL;
	}
	s->one[s->n] = (struct series_one){.name = profile_text(s->texts, name, strlen(name)),
		.pid = w->at.pid,
		.rank = w->at.ranked ? w->at.rank : -1};
	if (s->one[s->n].name == NULL) {
		r->failed = true;
		return NULL;
	}
	return &s->one[s->n++];
}

static void take(struct reading *r, const struct timeline *w, const struct held *h, uint64_t ns)
{
	const double v = reading_number(h);
	struct series_one *one = isnan(v) ? NULL : series_of(r, w, h->name);

	if (one == NULL)
		return;
	one->told++;
	if (one->n == SERIES_READ) {
		one->left_out++;
		return;
	}
	if (!ROOM_FOR(one->point, r->room[one - r->s->one], one->n)) {
		r->failed = true;
		return;
	}
	one->point[one->n++] = (struct series_point){ns, v};
}

static void on_scope(struct timeline *w, const struct timeline_scope *s)
{
	uint32_t i;

	for (i = 0; i < s->n_metrics; i++)
		take(w->mine, w, &w->held[w->taken[i]], s->begin_ns);
}

static void on_metric(struct timeline *w, const struct held *h, uint64_t ns)
{
	take(w->mine, w, h, ns);
}

static int by_time(const void *a, const void *b)
{
	const struct series_point *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : 0;
}

/* Of each stretch the least and the greatest, in the order in which they came. In place: what is
 * written never passes what is read. */
static void thin(struct series_one *one)
{
	const uint32_t stretches = SERIES_POINTS / 2;
	uint32_t i, at = 0, k, low, high, n = 0;

	for (k = 0; k < stretches; k++) {
		const uint32_t end = (uint32_t)((uint64_t)one->n * (k + 1) / stretches);

		low = high = at;
		for (i = at; i < end; i++) {
			low = one->point[i].v < one->point[low].v ? i : low;
			high = one->point[i].v > one->point[high].v ? i : high;
		}
		if (end > at) {
			const struct series_point a = one->point[low < high ? low : high],
						  b = one->point[low < high ? high : low];

			one->point[n++] = a;
			if (low != high)
				one->point[n++] = b;
		}
		at = end;
	}
	one->n = n;
}

int series_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct series **ret, struct err *e)
{
	static const struct timeline_form form = {
		.process = on_process, .scope = on_scope, .metric = on_metric};
	struct reading r = {.s = calloc(1, sizeof(*r.s))};
	uint32_t i;
	int status;

	if (r.s != NULL)
		r.s->texts = profile_new();
	r.failed = r.s == NULL || r.s->texts == NULL;
	status = reading_run(&form, &r, &r.failed, db, id, s, ret_left, e);
	if (status == -ENODATA) {
		status = series_steps(r.s, db, id, s->process, e);
		if (status == 0)
			status = series_memory(r.s, db, id, s->process, 0, e);
		if (status == 0)
			status = series_device(r.s, db, id, 0, e);
		if (status == 0 && r.s->n == 0)
			status = -ENODATA; /* in the timeline's words */
	} else if (status == 0) {
		status = series_memory(r.s, db, id, s->process, r.base_ns, e);
		if (status == 0)
			status = series_device(r.s, db, id, r.base_ns, e);
	}
	free(r.room);
	for (i = 0; status == 0 && i < r.s->n; i++) {
		struct series_one *one = &r.s->one[i];

		if (one->n > 1)
			qsort(one->point, one->n, sizeof(*one->point), by_time);
		if (one->n > SERIES_POINTS)
			thin(one);
	}
	if (status < 0)
		series_free(r.s);
	else
		*ret = r.s;
	return status;
}

void series_free(struct series *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	for (i = 0; i < s->n; i++)
		free(s->one[i].point);
	free(s->one);
	profile_free(s->texts);
	free(s);
}
