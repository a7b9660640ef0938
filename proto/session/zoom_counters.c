/* SPDX-License-Identifier: MIT. zoom_counters.c: a timeline's counters: the numbers that a job told, each
 * name of each process, as what stands in each pixel of a window.
 *
 * All of them are kept, from the opening on; where they are too many, those of a stretch together,
 * and the chunks are read again for windows in which that would be seen. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "zoom_int.h"

#define POINTS_MAX (1u << 18) /* of all counters: beyond, a stretch is twice as long */
#define CHUNKS_MAX 16u        /* that a question reads */

/* --- points */

static int by_time(const void *a, const void *b)
{
	const struct zoom_point *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

/* Two threads may have told them. */
static void sort(struct zoomed_points *p)
{
	uint32_t i;

	for (i = 1; i < p->n && p->v[i - 1].ns <= p->v[i].ns; i++)
		;
	if (i < p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_time);
}

static void join(struct zoom_point *to, const struct zoom_point *p)
{
	to->min = p->min < to->min ? p->min : to->min;
	to->max = p->max > to->max ? p->max : to->max;
	to->last = p->last;
	to->count += p->count;
}

/* false: out of memory. */
static bool add_point(struct zoomed_points *to, uint64_t stretch, const struct zoom_point *p)
{
	struct zoom_point *last = to->n > 0 ? &to->v[to->n - 1] : NULL;

	if (last != NULL && p->ns >= last->ns && p->ns / stretch == last->ns / stretch) {
		join(last, p);
		return true;
	}
	if (!ROOM_FOR(to->v, to->cap, to->n))
		return false;
	to->v[to->n++] = *p;
	return true;
}

/* Stretches of twice the length, until half of the room is free. */
static void thin(struct zoom *w)
{
	uint64_t all;
	uint32_t i, k, n;

	do {
		w->counter_ns *= 2;
		for (i = 0, all = 0; i < w->n_counters; i++) {
			struct zoomed_points *p = &w->counter[i].p;

			sort(p);
			n = p->n;
			for (k = p->n = 0; k < n; k++)
				(void)add_point(p, w->counter_ns, &p->v[k]); /* in place */
			all += p->n;
		}
	} while (all > POINTS_MAX / 2 && w->counter_ns < 1ull << 62);
}

/* --- a chunk's */

static double number_of(const struct trace_metric *m)
{
	double f;

	memcpy(&f, &m->bits, sizeof(f));
	return m->type == VALUE_F64   ? f
	       : m->type == VALUE_I64 ? (double)(int64_t)m->bits
	       : m->type == VALUE_U64 ? (double)m->bits
				      : (double)NAN;
}

/* *ret ZOOM_NONE: there are too many; once the session is open there are no more. */
static int counter_of(
	struct zoom *w, uint32_t process, const char *text, uint32_t *ret, struct err *e)
{
	struct zoomed_counter added = {.process = process};
	uint32_t i;

	for (i = 0; i < w->n_counters; i++)
		if (w->counter[i].process == process && strcmp(w->counter[i].text, text) == 0)
			break;
	*ret = i < w->n_counters ? i : ZOOM_NONE;
	if (i < w->n_counters || i == ZOOM_COUNTERS_MAX || w->show != NULL)
		return 0;
	added.name = profile_text(w->l.p, text, strlen(text));
	if (added.name == NULL || !ROOM_FOR(w->counter, w->cap_counters, w->n_counters))
		return zoom_no_memory(e);
	added.text = strdup(text);
	if (added.text == NULL)
		return zoom_no_memory(e);
	w->counter[w->n_counters++] = added;
	*ret = i;
	return 0;
}

/* of[text]: its counter, from 1 on; 0: it was not looked for, or there is none. */
static int take(struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, uint32_t *of,
	struct zoomed_points *to, struct err *e)
{
	struct trace_process *p = &w->process[k->process].p;
	const struct trace_metric *m = c->metric;
	uint32_t i = to == NULL ? k->counted : 0;
	int r;

	for (m += i; i < c->n[TRACE_N_METRICS]; i++, m++) {
		const double v = number_of(m);
		struct zoom_point point = {.min = v, .max = v, .last = v, .count = 1};

		if (!isfinite(v))
			continue;
		if (of[m->name] == 0) {
			r = counter_of(w, k->process, c->text[m->name], &of[m->name], e);
			if (r < 0)
				return r;
			of[m->name]++; /* ZOOM_NONE: 0 */
		}
		if (of[m->name] == 0) {
			w->untold += to == NULL;
			continue;
		}
		point.ns = trace_time_ring(&w->time, p, m->clock);
		k->told0 = point.ns < k->told0 ? point.ns : k->told0;
		k->told1 = point.ns > k->told1 ? point.ns : k->told1;
		if (!add_point(to != NULL ? &to[of[m->name] - 1] : &w->counter[of[m->name] - 1].p,
			    to != NULL ? 1 : w->counter_ns, &point))
			return zoom_no_memory(e);
	}
	return 0;
}

/* to: by counter; NULL: those that are kept. */
static int take_chunk(struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c,
	struct zoomed_points *to, struct err *e)
{
	uint32_t *of = calloc((size_t)c->n[TRACE_N_TEXTS] + 1, sizeof(*of));
	int r = of == NULL ? zoom_no_memory(e) : take(w, k, c, of, to, e);

	free(of);
	return r;
}

int zoom_add_counters(
	struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e)
{
	uint64_t all = 0;
	uint32_t i;
	int r;

	if (c->n[TRACE_N_METRICS] <= k->counted)
		return 0;
	r = take_chunk(w, k, c, NULL, e);
	for (i = 0; i < w->n_counters; i++)
		all += w->counter[i].p.n;
	if (r == 0 && all > POINTS_MAX)
		thin(w);
	return r;
}

int zoom_order_counters(struct zoom *w, struct err *e)
{
	uint32_t i;

	free(w->shown_counter);
	w->shown_counter = calloc((size_t)w->n_counters + 1, sizeof(*w->shown_counter));
	if (w->shown_counter == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < w->n_counters; i++) {
		const struct zoomed_counter *c = &w->counter[i];
		struct zoom_point all = {.min = HUGE_VAL, .max = -HUGE_VAL};
		uint32_t k;

		sort(&w->counter[i].p);
		for (k = 0; k < c->p.n; k++)
			join(&all, &c->p.v[k]);
		w->shown_counter[i] =
			(struct zoom_counter){c->name, c->process, all.count, all.min, all.max};
	}
	return 0;
}

void zoom_counters_fini(struct zoom *w)
{
	uint32_t i;

	for (i = 0; i < w->n_counters; i++) {
		free(w->counter[i].p.v);
		free(w->counter[i].text);
	}
	free(w->counter);
	free(w->shown_counter);
}

const struct zoom_counter *zoom_counters(
	const struct zoom *w, uint32_t *ret_n, uint64_t *ret_left_out)
{
	*ret_n = w->n_counters;
	*ret_left_out = w->untold;
	return w->shown_counter;
}

/* --- a window */

/* The first that is told at `at` or later. */
static uint32_t point_at(const struct zoomed_points *p, uint64_t at)
{
	uint32_t low = 0, high = p->n, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (p->v[mid].ns < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t pixel_of(const struct zoom_ask *a, uint32_t px, uint64_t ns)
{
	return (uint32_t)((i128)(ns - a->t0) * px / (a->t1 - a->t0));
}

/* Its pixels, into v unless that is NULL; returns how many. */
static uint32_t pixels(const struct zoomed_points *p, const struct zoom_ask *a, uint32_t px,
	uint32_t counter, struct zoom_count *v)
{
	uint32_t i, at, n = 0, last = ZOOM_NONE;

	for (i = point_at(p, a->t0); i < p->n && p->v[i].ns < a->t1; i++) {
		at = pixel_of(a, px, p->v[i].ns);
		if (at != last)
			n++;
		if (v != NULL && at != last)
			v[n - 1] = (struct zoom_count){counter, at, p->v[i]};
		else if (v != NULL)
			join(&v[n - 1].all, &p->v[i]);
		last = at;
	}
	return n;
}

/* The chunks of the window again; *ret NULL: there are too many. */
static int read_window(
	struct zoom *w, const struct zoom_ask *a, struct zoomed_points **ret, struct err *e)
{
	struct zoomed_points *to;
	struct trace_chunk c;
	uint32_t i, n = 0;
	int r = 0;

	for (i = 0; i < w->n_chunks; i++)
		n += w->chunk[i].told0 < a->t1 && w->chunk[i].told1 >= a->t0;
	*ret = NULL;
	if (n > CHUNKS_MAX)
		return 0;
	*ret = to = calloc((size_t)w->n_counters + 1, sizeof(*to));
	if (to == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < w->n_chunks && r == 0; i++) {
		if (w->chunk[i].told0 >= a->t1 || w->chunk[i].told1 < a->t0)
			continue;
		r = zoom_read_chunk(w, i, trace_chunk_read_metrics, &c, e);
		if (r < 0)
			break;
		r = take_chunk(w, &w->chunk[i], &c, to, e);
		trace_chunk_fini(&c);
	}
	for (i = 0; i < w->n_counters; i++)
		sort(&to[i]);
	return r;
}

struct counting {
	struct zoom *w;
	const struct zoom_ask *a;
	struct zoomed_points *read; /* NULL: those that are kept */
};

static const struct zoomed_points *points_of(const struct counting *q, uint32_t counter)
{
	return q->read != NULL ? &q->read[counter] : &q->w->counter[counter].p;
}

/* Half as many pixels, until it fits. */
static uint32_t fit(const struct counting *q, const bool *wanted, uint32_t *px)
{
	uint32_t i, n;

	for (*px = q->a->px;; *px = (*px + 1) / 2) {
		for (i = 0, n = 0; i < q->w->n_counters; i++)
			if (wanted[i])
				n += pixels(points_of(q, i), q->a, *px, i, NULL);
		if (n <= ZOOM_COUNTS_MAX || *px == 1)
			return n;
	}
}

static int count(struct counting *q, const bool *wanted, struct zoom_counts *ret, struct err *e)
{
	const struct zoomed_points *p;
	uint32_t i, at, n = fit(q, wanted, &ret->px);

	ret->v = calloc((size_t)n + 1, sizeof(*ret->v));
	ret->before = calloc((size_t)q->w->n_counters + 1, sizeof(*ret->before));
	if (ret->v == NULL || ret->before == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < q->w->n_counters; i++) {
		p = &q->w->counter[i].p;
		at = point_at(p, q->a->t0);
		ret->before[i] = at > 0 ? p->v[at - 1].last : (double)NAN;
		if (wanted[i])
			ret->n += pixels(points_of(q, i), q->a, ret->px, i, ret->v + ret->n);
	}
	ret->coarse = ret->px < q->a->px ||
		      (q->read == NULL && q->w->counter_ns > (q->a->t1 - q->a->t0) / ret->px &&
			      q->w->counter_ns > 1);
	return 0;
}

int zoom_count(struct zoom *w, const struct zoom_ask *a, struct zoom_counts *ret, struct err *e)
{
	struct counting q = {.w = w, .a = a};
	bool *wanted = calloc((size_t)w->n_counters + 1, sizeof(*wanted));
	uint32_t i;
	int r = zoom_check(a, e);

	*ret = (struct zoom_counts){.n = 0};
	if (r == 0 && wanted == NULL)
		r = zoom_no_memory(e);
	for (i = 0; r == 0 && i < w->n_counters; i++)
		wanted[i] = a->lane == NULL;
	for (i = 0; r == 0 && a->lane != NULL && i < a->n_lanes; i++)
		if (a->lane[i] < w->n_counters)
			wanted[a->lane[i]] = true;
	if (r == 0 && w->counter_ns > 1 && w->counter_ns > (a->t1 - a->t0) / a->px)
		r = read_window(w, a, &q.read, e);
	if (r == 0)
		r = count(&q, wanted, ret, e);
	for (i = 0; q.read != NULL && i < w->n_counters; i++)
		free(q.read[i].v);
	free(q.read);
	free(wanted);
	if (r < 0)
		zoom_counts_fini(ret);
	return r;
}

void zoom_counts_fini(struct zoom_counts *c)
{
	free(c->v);
	free(c->before);
	*c = (struct zoom_counts){.n = 0};
}
