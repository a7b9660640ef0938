/* SPDX-License-Identifier: MIT. zoom_sums.c: what is in a box of a timeline, by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "zoom_int.h"

static int sum_order(const void *a, const void *b)
{
	const struct zoom_sum *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void sum_add(struct zoom_sum *s, uint64_t length)
{
	s->min_ns = s->count == 0 || length < s->min_ns ? length : s->min_ns;
	s->max_ns = length > s->max_ns ? length : s->max_ns;
	s->total_ns = load_sum(s->total_ns, length);
	s->count++;
}

/* --- a chunk */

/* A chunk that is added up: no tracks, no rows, and of all its columns when and where alone. */
struct summing {
	struct zoom *w;
	const struct zoom_ask *a;
	const bool *wanted;
	struct zoom_sum *of; /* [w->names.n] */
	const struct zoomed_chunk *k;
	struct trace_chunk c;
	struct zoom_sum *here;        /* [c's nodes] */
	bool *stream, *tasks, *syncs; /* of c's streams and threads, whether they are wanted; as
					 tasks, as calls that wait */
	bool whole;                   /* all of it lies in the box */
};

static bool touches(const struct summing *q, uint64_t start, uint64_t end)
{
	return q->whole || (start < q->a->t1 && (end > q->a->t0 || start == q->a->t0));
}

static void sum_scopes(struct summing *q)
{
	struct trace_process *p = &q->w->process[q->k->process].p;
	const struct trace_scope *s = q->c.scope;
	uint32_t i;

	for (i = 0; i < q->c.n[TRACE_N_SCOPES]; i++, s++) {
		const bool wanted = (s->flags & TRACE_SPAN) != 0 ? q->tasks[s->thread]
				    : trace_is_sync(s)           ? q->syncs[s->thread]
						       : q->wanted[q->k->thread[s->thread]];
		uint64_t start, end;

		if (!wanted)
			continue;
		start = trace_time_ring(&q->w->time, p, s->begin);
		end = trace_time_ring(&q->w->time, p, s->end);
		end = end > start ? end : start;
		if (touches(q, start, end))
			sum_add(&q->here[s->node], end - start);
	}
}

static void sum_ops(struct summing *q)
{
	const struct trace_op *o = q->c.op;
	uint64_t start = 0;
	uint32_t i;

	for (i = 0; i < q->c.n[TRACE_N_OPS]; i++, o++) {
		if (!q->stream[o->stream])
			continue;
		if (!q->whole)
			start = trace_time_real(&q->w->time, o->start);
		if (touches(q, start, start + (o->end - o->start)))
			sum_add(&q->here[o->node], o->end - o->start);
	}
}

/* What the chunk's streams and threads are called here: all of them are known. */
static bool wanted_here(const struct summing *q, uint8_t kind, uint32_t device, uint32_t number)
{
	const uint32_t at = zoom_lane_of(q->w, (struct zoomed_lane){.process = q->k->process,
						       .device = device,
						       .number = number,
						       .kind = kind});

	return at < q->w->n_lanes && q->wanted[at];
}

static int begin_chunk(struct summing *q, struct err *e)
{
	const struct trace_chunk *c = &q->c;
	uint32_t i;

	q->here = calloc((size_t)c->n[TRACE_N_NODES] + 1, sizeof(*q->here));
	q->stream = calloc((size_t)c->n[TRACE_N_STREAMS] + 1, sizeof(*q->stream));
	q->tasks = calloc((size_t)c->n[TRACE_N_THREADS] + 1, sizeof(*q->tasks));
	q->syncs = calloc((size_t)c->n[TRACE_N_THREADS] + 1, sizeof(*q->syncs));
	if (q->here == NULL || q->stream == NULL || q->tasks == NULL || q->syncs == NULL)
		return zoom_no_memory(e);
	for (i = 0; i < c->n[TRACE_N_STREAMS]; i++)
		q->stream[i] =
			wanted_here(q, ZOOM_STREAM, c->stream[i].device, c->stream[i].stream);
	for (i = 0; i < c->n[TRACE_N_THREADS]; i++) {
		q->tasks[i] = wanted_here(q, ZOOM_TASKS, ZOOM_NONE, c->thread[i].tid);
		q->syncs[i] = wanted_here(q, ZOOM_SYNCS, ZOOM_NONE, c->thread[i].tid);
	}
	return 0;
}

static void join(struct zoom_sum *to, const struct zoom_sum *s)
{
	to->min_ns = to->count == 0 || s->min_ns < to->min_ns ? s->min_ns : to->min_ns;
	to->max_ns = s->max_ns > to->max_ns ? s->max_ns : to->max_ns;
	to->total_ns = load_sum(to->total_ns, s->total_ns);
	to->count += s->count;
}

static void end_chunk(struct summing *q)
{
	uint32_t i;

	for (i = 0; q->here != NULL && i < q->c.n[TRACE_N_NODES]; i++)
		if (q->here[i].count > 0)
			join(&q->of[q->k->node[i]], &q->here[i]);
	free(q->here);
	free(q->stream);
	free(q->tasks);
	free(q->syncs);
	q->here = NULL;
	q->stream = q->tasks = q->syncs = NULL;
	trace_chunk_fini(&q->c);
}

/* Chunk by chunk, so that a box of any size takes no more memory. */
static int sum_chunks(struct summing *q, struct err *e)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < q->w->n_chunks && r == 0; i++) {
		q->k = &q->w->chunk[i];
		if (q->k->t0 >= q->a->t1 || q->k->t1 < q->a->t0)
			continue;
		q->whole = q->k->t0 >= q->a->t0 && q->k->t1 < q->a->t1;
		r = zoom_read_chunk(q->w, i,
			q->whole ? trace_chunk_read_lengths : trace_chunk_read_times, &q->c, e);
		if (r < 0)
			break;
		r = begin_chunk(q, e);
		if (r == 0) {
			sum_scopes(q);
			sum_ops(q);
		}
		end_chunk(q);
	}
	return r;
}

/* --- all of it */

static void sum_rest(struct zoom_sums *s, const struct zoom_sum *of, uint32_t n)
{
	uint32_t i;

	s->rest.name = ZOOM_NONE;
	for (i = ZOOM_SUMS_MAX; i < n; i++) {
		if (s->rest_names++ == 0 || of[i].min_ns < s->rest.min_ns)
			s->rest.min_ns = of[i].min_ns;
		s->rest.max_ns = of[i].max_ns > s->rest.max_ns ? of[i].max_ns : s->rest.max_ns;
		s->rest.total_ns = load_sum(s->rest.total_ns, of[i].total_ns);
		s->rest.count += of[i].count;
	}
}

struct by_text {
	const char *text;
	struct zoom_sum s;
};

static int text_order(const void *a, const void *b)
{
	return strcmp(((const struct by_text *)a)->text, ((const struct by_text *)b)->text);
}

/* of[node] become one for each name, in order of size; returns how many. */
static uint32_t sums_by_name(const struct zoom *w, struct zoom_sum *of, uint32_t n)
{
	struct by_text *v = calloc((size_t)n + 1, sizeof(*v));
	uint32_t i, k = 0, m = 0;

	for (i = 0; i < n && v != NULL; i++)
		if (of[i].count > 0)
			v[k++] = (struct by_text){w->names.v[i].name, of[i]};
	if (k > 1)
		qsort(v, k, sizeof(*v), text_order);
	for (i = 0; i < k; i++) {
		struct zoom_sum *last = m > 0 ? &of[m - 1] : NULL;

		if (last == NULL || strcmp(v[i].text, v[i - 1].text) != 0) {
			of[m++] = v[i].s;
			continue;
		}
		join(last, &v[i].s);
	}
	free(v);
	if (m > 1)
		qsort(of, m, sizeof(*of), sum_order);
	return v == NULL ? ZOOM_NONE : m;
}

int zoom_sums(struct zoom *w, const struct zoom_ask *a, struct zoom_sums *ret, struct err *e)
{
	struct zoom_sum *of = calloc((size_t)w->names.n + 1, sizeof(*of));
	bool *wanted = zoom_wanted(w, a->lane, a->n_lanes);
	const uint32_t n_nodes = w->names.n;
	uint32_t i, n = 0;
	int r = zoom_check(a, e);

	*ret = (struct zoom_sums){.n = 0};
	if (r == 0 && (of == NULL || wanted == NULL))
		r = zoom_no_memory(e);
	if (r == 0)
		r = sum_chunks(&(struct summing){.w = w, .a = a, .wanted = wanted, .of = of}, e);
	for (i = 0; r == 0 && i < n_nodes; i++)
		of[i].name = i;
	if (r == 0)
		n = sums_by_name(w, of, n_nodes);
	if (n == ZOOM_NONE)
		r = zoom_no_memory(e);
	free(wanted);
	if (r < 0) {
		free(of);
		return r;
	}
	sum_rest(ret, of, n);
	ret->sum = of;
	ret->n = n < ZOOM_SUMS_MAX ? n : ZOOM_SUMS_MAX;
	return 0;
}

void zoom_sums_fini(struct zoom_sums *s)
{
	free(s->sum);
	*s = (struct zoom_sums){.n = 0};
}
