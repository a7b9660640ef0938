/* SPDX-License-Identifier: MIT. busy.c: work of a GPU, added up in order of time. */
#include "busy.h"

#include <stdlib.h>
#include <string.h>

#include "runs.h"

static const struct span always = {0, UINT64_MAX};

static uint64_t within(const struct span *v, uint64_t begin, uint64_t end)
{
	begin = begin > v->begin ? begin : v->begin;
	end = end < v->end ? end : v->end;
	return end > begin ? end - begin : 0;
}

/* The idle time in front of work by cause; that before its launch is the host's, and is not counted
 * here. */
static void gap_add(uint64_t part[], uint64_t from, const struct busy_work *w, const struct span *v)
{
	if (w->launched == 0)
		part[PART_UNKNOWN] += within(v, from, w->begin);
	else if (w->launched >= from)
		part[PART_LAUNCH] += within(v, w->launched, w->begin);
	else if (w->begin - from < PART_GAP_NS)
		part[PART_GAP] += within(v, from, w->begin);
	else
		part[PART_QUEUED] += within(v, from, w->begin);
}

/* How much of it lies behind `until`, which moves on to its end. */
static uint64_t beyond(uint64_t *until, const struct busy_work *w, const struct span *v)
{
	const uint64_t from = w->begin > *until ? w->begin : *until;

	if (w->end <= from)
		return 0;
	*until = w->end;
	return within(v, from, w->end);
}

/* What of it lies in v. */
static void sums_add(struct busy_sums *s, const struct busy_work *w, const struct span *v)
{
	uint64_t all, kernels, compute;

	if (s->until != 0 && w->begin > s->until)
		gap_add(s->part, s->until, w, v);
	all = beyond(&s->until, w, v);
	kernels = w->part == PART_COPY ? 0 : beyond(&s->kernel_until, w, v);
	compute = w->part == PART_COMPUTE ? beyond(&s->compute_until, w, v) : 0;
	/* What hides other work takes its time from it. */
	s->part[PART_COMPUTE] += compute;
	s->part[PART_COMM] += kernels - compute;
	s->part[PART_COPY] += all - kernels;
}

static int by_begin(const void *a, const void *b)
{
	const struct busy_work *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->launched < y->launched ? -1 : x->launched > y->launched;
}

bool busy_is_before(const struct busy_work *a, const struct busy_work *b)
{
	return by_begin(a, b) < 0;
}

void busy_order(struct busy_work work[], uint32_t n)
{
	runs_sort(work, n, sizeof(*work), by_begin);
}

void busy_sort(struct busy *b)
{
	if (!b->sorted)
		busy_order(b->work, b->n);
	b->sorted = true;
}

static void settle(struct busy *b, uint32_t n)
{
	uint32_t i;

	if (n == 0)
		return;
	for (i = 0; i < n; i++)
		sums_add(&b->done, &b->work[i], &always);
	b->n -= n;
	memmove(b->work, b->work + n, b->n * sizeof(*b->work));
}

/* Room for one more. */
static bool make_room(struct busy *b, uint64_t known, bool grow)
{
	struct busy_work *grown = NULL;
	uint32_t n, cap;

	if (b->n < b->cap)
		return true;
	busy_sort(b);
	for (n = 0; n < b->n && b->work[n].begin < known; n++)
		;
	settle(b, n);
	if (b->n < b->cap - b->cap / 4)
		return true;
	cap = b->cap == 0 ? 64 : b->cap * 2;
	grow = b->cap == 0 || (grow && cap <= BUSY_WORK_MAX);
	if (grow)
		grown = reallocarray(b->work, cap, sizeof(*grown));
	if (grown != NULL) {
		b->work = grown;
		b->cap = cap;
		return true;
	}
	settle(b, b->n / 2);
	return !grow;
}

bool busy_add(struct busy *b, const struct busy_work *w, uint64_t known, bool grow)
{
	bool room;

	if (w->end <= w->begin)
		return true;
	b->dirty = true;
	b->first_ns = b->first_ns == 0 || w->begin < b->first_ns ? w->begin : b->first_ns;
	b->last_ns = w->end > b->last_ns ? w->end : b->last_ns;
	room = make_room(b, known, grow);
	if (b->n == b->cap) {
		sums_add(&b->done, w, &always);
		return room;
	}
	b->sorted = b->n == 0 || (b->sorted && by_begin(&b->work[b->n - 1], w) <= 0);
	b->work[b->n++] = *w;
	return room;
}

uint64_t busy_parts(struct busy *b, uint64_t ret[PART_MAX])
{
	struct busy_sums s = b->done;
	uint64_t all;
	uint32_t i;

	busy_sort(b);
	for (i = 0; i < b->n; i++)
		sums_add(&s, &b->work[i], &always);
	all = s.part[PART_COMPUTE] + s.part[PART_COMM] + s.part[PART_COPY];
	if (b->no_parts)
		memset(s.part, 0, sizeof(s.part));
	memcpy(ret, s.part, sizeof(s.part));
	return all;
}

void busy_restore(struct busy *b, const uint64_t part[PART_MAX], uint64_t all, uint64_t first_ns,
	uint64_t last_ns)
{
	memcpy(b->done.part, part, sizeof(b->done.part));
	b->no_parts = part[PART_COMPUTE] + part[PART_COMM] + part[PART_COPY] != all;
	if (b->no_parts)
		b->done.part[PART_COMPUTE] = all;
	b->first_ns = first_ns;
	b->last_ns = last_ns;
	b->done.until = b->done.kernel_until = b->done.compute_until = last_ns;
}

void busy_window_open(struct busy_window *w, const struct span *v, uint64_t until)
{
	*w = (struct busy_window){.v = *v, .s.until = until};
}

bool busy_window_add(struct busy_window *w, const struct busy_work *work)
{
	sums_add(&w->s, work, &w->v);
	return work->begin < w->v.end; /* else it ended the last idle time */
}

void busy_window_close(struct busy_window *w, uint64_t part[PART_MAX])
{
	uint64_t host = w->v.end - w->v.begin;
	uint32_t i;

	for (i = 0; i < PART_HOST; i++)
		host -= w->s.part[i];
	w->s.part[PART_HOST] = host;
	for (i = 0; i < PART_MAX; i++)
		part[i] += w->s.part[i];
}

void busy_fini(struct busy *b)
{
	free(b->work);
}
