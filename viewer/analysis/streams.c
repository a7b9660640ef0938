/* SPDX-License-Identifier: MIT. streams.c: streams side by side. */
#include "streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runs.h"
#include "table.h"

struct piece { /* of an operation, in the times that were asked for; then a time in which a stream worked */
	uint64_t begin, end;
	uint32_t row; /* from 0, of the process */
};

struct edge { /* where a stream begins or ends to work */
	uint64_t ns;
	uint32_t row;
	bool ends;
};

struct adding {
	struct streams *to;
	const struct events *e;
	uint32_t first; /* row */
	struct table rows;
	struct piece *piece;
	uint32_t n, cap;
	struct edge *edge;
};

struct row_key {
	const struct adding *a;
	const struct event_op *o;
};

static bool row_is(const void *arg, uint32_t at)
{
	const struct row_key *k = arg;
	const struct streams_row *r = &k->a->to->row[k->a->first + at];

	return r->gpu == k->o->device && r->context == k->o->context && r->stream == k->o->stream;
}

/* TABLE_NONE: there are too many, or no memory: *ret_r. */
static uint32_t row_of(struct adding *a, const struct event_op *o, int *ret_r)
{
	const struct row_key k = {a, o};
	const uint32_t hash = table_mix((uint64_t)o->device << 32 | o->context, o->stream);
	uint32_t at = table_find(&a->rows, hash, row_is, &k);

	if (at != TABLE_NONE)
		return at;
	at = a->to->n - a->first;
	if (at == STREAMS_MAX) {
		a->to->left_out++;
		return TABLE_NONE;
	}
	if (!ROOM_FOR(a->to->row, a->to->cap, a->to->n) || table_add(&a->rows, hash, at) < 0) {
		*ret_r = -ENOMEM;
		return TABLE_NONE;
	}
	a->to->row[a->to->n++] =
		(struct streams_row){.gpu = o->device, .context = o->context, .stream = o->stream};
	return at;
}

/* What of an operation lies in the times that were asked for: pieces, in order. */
static int add_op(struct adding *a, const struct event_op *o)
{
	const struct parts_spans *of = &a->e->spans.of;
	uint32_t low = 0, high = of->n, middle, row;
	int r = 0;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (of->v[middle].end > o->start_ns)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == of->n || of->v[low].begin >= o->end_ns)
		return 0;
	row = row_of(a, o, &r);
	if (row == TABLE_NONE)
		return r;
	a->to->row[a->first + row].ops++;
	for (; low < of->n && of->v[low].begin < o->end_ns; low++) {
		const struct span *v = &of->v[low];

		if (!ROOM_FOR(a->piece, a->cap, a->n))
			return -ENOMEM;
		a->piece[a->n++] = (struct piece){v->begin > o->start_ns ? v->begin : o->start_ns,
			v->end < o->end_ns ? v->end : o->end_ns, row};
	}
	return 0;
}

static int by_row(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Those of a stream that touch become one. */
static void merge(struct adding *a)
{
	struct piece *v = a->piece;
	uint32_t i, n = 0;

	runs_sort(v, a->n, sizeof(*v), by_row);
	for (i = 0; i < a->n; i++)
		if (n > 0 && v[n - 1].row == v[i].row && v[i].begin <= v[n - 1].end)
			v[n - 1].end = v[i].end > v[n - 1].end ? v[i].end : v[n - 1].end;
		else
			v[n++] = v[i];
	a->n = n;
}

static void add_gap(struct adding *a, struct streams_row *r, uint64_t begin, uint64_t end)
{
	const uint64_t ns = spans_clip(&a->e->spans, begin, end);

	r->gaps += ns > 0;
	r->longest_ns = ns > r->longest_ns ? ns : r->longest_ns;
}

/* Each stream by itself. */
static void add_streams(struct adding *a)
{
	const struct piece *v = a->piece;
	uint32_t i, from = 0;

	for (i = 0; i < a->n; i++) {
		struct streams_row *r = &a->to->row[a->first + v[i].row];

		if (i > 0 && v[i - 1].row == v[i].row)
			add_gap(a, r, v[i - 1].end, v[i].begin);
		else
			from = i;
		r->busy_ns += v[i].end - v[i].begin;
		r->sum_ns = r->busy_ns;
		if (i + 1 == a->n || v[i + 1].row != v[i].row)
			r->span_ns = spans_clip(&a->e->spans, v[from].begin, v[i].end);
	}
}

static int by_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->ends != y->ends ? (x->ends ? -1 : 1) : 0;
}

/* One GPU's streams side by side: the edges [from, n) of it, in order of time. */
static void sweep(struct adding *a, const struct edge *v, uint32_t n, struct streams_row *all)
{
	struct streams_row *row = a->to->row + a->first;
	uint64_t busy_from = 0, first = v[0].ns, idle_from = 0;
	uint32_t i, running = 0,
		    which = 0; /* which: of those that run, one xor the other …: of one, itself */

	for (i = 0; i < n; i++) {
		if (running == 1 && v[i].ns > v[i - 1].ns) {
			row[which].alone_ns += v[i].ns - v[i - 1].ns;
			all->alone_ns += v[i].ns - v[i - 1].ns;
		}
		which ^= v[i].row;
		if (!v[i].ends && running++ == 0) {
			if (i > 0 && v[i].ns > idle_from)
				add_gap(a, all, idle_from, v[i].ns);
			busy_from = v[i].ns;
		} else if (v[i].ends && --running == 0) {
			all->busy_ns += v[i].ns - busy_from;
			idle_from = v[i].ns;
		}
	}
	all->span_ns = spans_clip(&a->e->spans, first, v[n - 1].ns);
}

/* All of a GPU is a row behind those of the streams, which order() puts in place. */
static int add_gpu(struct adding *a, uint32_t gpu)
{
	const uint32_t streams = a->to->n;
	struct streams_row all = {.gpu = gpu};
	uint32_t i, n = 0;

	for (i = a->first; i < streams; i++)
		if (a->to->row[i].gpu == gpu && a->to->row[i].streams == 0) {
			all.streams++;
			all.ops += a->to->row[i].ops;
			all.sum_ns += a->to->row[i].busy_ns;
		}
	for (i = 0; i < a->n; i++) {
		if (a->to->row[a->first + a->piece[i].row].gpu != gpu)
			continue;
		a->edge[n++] = (struct edge){a->piece[i].begin, a->piece[i].row, false};
		a->edge[n++] = (struct edge){a->piece[i].end, a->piece[i].row, true};
	}
	if (n == 0)
		return 0;
	runs_sort(a->edge, n, sizeof(*a->edge), by_time);
	sweep(a, a->edge, n, &all);
	if (!ROOM_FOR(a->to->row, a->to->cap, a->to->n))
		return -ENOMEM;
	a->to->row[a->to->n++] = all;
	return 0;
}

static int add_gpus(struct adding *a)
{
	const uint32_t streams = a->to->n;
	uint32_t i, k;
	int r = 0;

	a->edge = malloc((2ul * a->n + 1) * sizeof(*a->edge));
	if (a->edge == NULL)
		return -ENOMEM;
	for (i = a->first; i < streams && r == 0; i++) {
		for (k = a->first; k < i && a->to->row[k].gpu != a->to->row[i].gpu; k++)
			;
		if (k == i)
			r = add_gpu(a, a->to->row[i].gpu);
	}
	return r;
}

static int in_order(const void *a, const void *b)
{
	const struct streams_row *x = a, *y = b;

	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	if ((x->streams == 0) != (y->streams == 0))
		return x->streams == 0 ? 1 : -1;
	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	return x->stream < y->stream ? -1 : x->stream > y->stream;
}

/* How much of what was asked for lies between the process' first and last event. */
static uint64_t window_of(const struct events *e)
{
	uint64_t first = UINT64_MAX, last = 0;
	uint32_t i;

	for (i = 0; i < e->n_scopes; i++) {
		first = e->scope[i].begin_ns < first ? e->scope[i].begin_ns : first;
		last = e->scope[i].end_ns > last ? e->scope[i].end_ns : last;
	}
	for (i = 0; i < e->n_ops; i++) {
		first = e->op[i].start_ns < first ? e->op[i].start_ns : first;
		last = e->op[i].end_ns > last ? e->op[i].end_ns : last;
	}
	return last > first ? spans_clip(&e->spans, first, last) : 0;
}

int streams_add(struct streams *s, const struct events *e)
{
	struct adding a = {.to = s, .e = e, .first = s->n};
	const uint64_t window = window_of(e);
	uint32_t i;
	int r = 0;

	for (i = 0; i < e->n_ops && r == 0; i++)
		r = add_op(&a, &e->op[i]);
	if (r == 0) {
		merge(&a);
		add_streams(&a);
		r = add_gpus(&a);
	}
	for (i = a.first; i < s->n; i++)
		s->row[i].window_ns = window;
	if (s->n - a.first > 1)
		qsort(s->row + a.first, s->n - a.first, sizeof(*s->row), in_order);
	table_fini(&a.rows);
	free(a.piece);
	free(a.edge);
	return r;
}

/* --- the timeline */

static void name_row(struct streams_row *r, const struct timeline *w)
{
	const char *name;
	size_t n;
	uint32_t i;

	for (i = 0; i < w->n_gpus && r->streams == 0; i++) {
		if (w->gpu[i].ordinal != r->gpu)
			continue;
		name = gpu_object_label(w->gpu[i].streams, r->stream, &n);
		if (name != NULL)
			(void)snprintf(r->name, sizeof(r->name), "%.*s",
				(int)(n < sizeof(r->name) ? n : 0), name);
	}
}

static int on_events(void *arg, const struct events *e)
{
	struct streams *s = arg;
	uint32_t i = s->n;
	const int r = streams_add(s, e);

	for (; i < s->n; i++) {
		s->row[i].pid = e->w->at.pid;
		s->row[i].rank = e->w->at.ranked ? e->w->at.rank : -1;
		name_row(&s->row[i], e->w);
	}
	return r < 0 ? err_set(e->w->l.e, r, "out of memory") : 0;
}

int streams_read(void *arg, struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct err *e)
{
	return events_read(on_events, arg, db, id, s, ret_left, e);
}

void streams_fini(struct streams *s)
{
	free(s->row);
	*s = (struct streams){0};
}
