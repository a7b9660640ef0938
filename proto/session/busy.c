/* SPDX-License-Identifier: MIT. busy.c: the lengths of unions of intervals that come nearly in order, and
 * what lies between them. */
#include "busy.h"

#include <string.h>

/* The idle time in front of a span by cause; that before the launch of what ends it is the host's,
 * and is not counted here. */
static void gap_add(uint64_t idle[], uint64_t from, const struct busy_span *s)
{
	if (from == 0 || from >= s->begin)
		return;
	if (s->launched == 0)
		idle[PART_UNKNOWN - PART_IDLE] += s->begin - from;
	else if (s->launched >= from)
		idle[PART_LAUNCH - PART_IDLE] +=
			s->launched < s->begin ? s->begin - s->launched : 0;
	else if (s->begin - from < PART_GAP_NS)
		idle[PART_GAP - PART_IDLE] += s->begin - from;
	else
		idle[PART_QUEUED - PART_IDLE] += s->begin - from;
}

/* Turns the older half into a sum. */
static void spans_settle(struct busy_spans *u, uint64_t *idle)
{
	uint32_t i, half = BUSY_SPANS / 2;

	for (i = 0; i < half; i++) {
		u->done_ns += u->span[i].end - u->span[i].begin;
		if (idle != NULL)
			gap_add(idle, i == 0 ? u->mark : u->span[i - 1].end, &u->span[i]);
	}
	u->mark = u->span[half - 1].end;
	u->n -= half;
	memmove(u->span, u->span + half, u->n * sizeof(*u->span));
}

/* Inserts one in the middle, joined with all spans that it touches. */
static void spans_insert(struct busy_spans *u, struct busy_span s)
{
	uint32_t from = u->n, to;

	while (from > 0 && u->span[from - 1].end >= s.begin)
		from--;
	for (to = from; to < u->n && u->span[to].begin <= s.end; to++) {
		if (u->span[to].begin <= s.begin) {
			s.begin = u->span[to].begin;
			s.launched = u->span[to].launched;
		}
		s.end = u->span[to].end > s.end ? u->span[to].end : s.end;
	}
	memmove(u->span + from + 1, u->span + to, (u->n - to) * sizeof(*u->span));
	u->span[from] = s;
	u->n = u->n - (to - from) + 1;
}

static void spans_add(struct busy_spans *u, struct busy_span s, uint64_t *idle)
{
	struct busy_span *last = u->n > 0 ? &u->span[u->n - 1] : NULL;

	if (last != NULL && s.begin >= last->begin && s.begin <= last->end) {
		last->end = s.end > last->end ? s.end : last->end;
		return;
	}
	s.begin = s.begin < u->mark ? u->mark : s.begin;
	if (s.end <= s.begin)
		return;
	if (u->n == BUSY_SPANS)
		spans_settle(u, idle);
	s.begin = s.begin < u->mark ? u->mark : s.begin;
	if (s.end > s.begin)
		spans_insert(u, s);
}

static uint64_t spans_ns(const struct busy_spans *u)
{
	uint64_t ns = u->done_ns;
	uint32_t i;

	for (i = 0; i < u->n; i++)
		ns += u->span[i].end - u->span[i].begin;
	return ns;
}

void busy_add(struct busy *b, enum gpu_part part, uint64_t begin, uint64_t end, uint64_t launched)
{
	const struct busy_span s = {begin, end, launched};

	if (end <= begin)
		return;
	b->dirty = true;
	b->first_ns = b->first_ns == 0 || begin < b->first_ns ? begin : b->first_ns;
	b->last_ns = end > b->last_ns ? end : b->last_ns;
	spans_add(&b->of[BUSY_ALL], s, b->idle);
	if (part != PART_COPY)
		spans_add(&b->of[BUSY_KERNELS], s, NULL);
	if (part == PART_COMPUTE)
		spans_add(&b->of[BUSY_COMPUTE], s, NULL);
}

uint64_t busy_ns(const struct busy *b)
{
	return spans_ns(&b->of[BUSY_ALL]);
}

/* The unions may settle at different times, and what comes late may be lost to a smaller one only
 * after it is lost to the larger: no part is less than 0. */
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void busy_parts(const struct busy *b, uint64_t ret[PART_MAX])
{
	const struct busy_spans *all = &b->of[BUSY_ALL];
	const uint64_t any = spans_ns(all), kernels = spans_ns(&b->of[BUSY_KERNELS]),
		       compute = spans_ns(&b->of[BUSY_COMPUTE]);
	uint32_t i;

	memset(ret, 0, PART_MAX * sizeof(*ret));
	if (b->no_parts)
		return;
	memcpy(ret + PART_IDLE, b->idle, sizeof(b->idle));
	for (i = 0; i < all->n; i++)
		gap_add(ret + PART_IDLE, i == 0 ? all->mark : all->span[i - 1].end, &all->span[i]);
	ret[PART_COMPUTE] = compute < any ? compute : any;
	ret[PART_COMM] = less(kernels < any ? kernels : any, ret[PART_COMPUTE]);
	ret[PART_COPY] = any - ret[PART_COMPUTE] - ret[PART_COMM];
}

void busy_restore(struct busy *b, const uint64_t part[PART_MAX], uint64_t all, uint64_t first_ns,
	uint64_t last_ns)
{
	uint32_t i;

	memcpy(b->idle, part + PART_IDLE, sizeof(b->idle));
	b->of[BUSY_ALL].done_ns = all;
	b->of[BUSY_KERNELS].done_ns = part[PART_COMPUTE] + part[PART_COMM];
	b->of[BUSY_COMPUTE].done_ns = part[PART_COMPUTE];
	b->no_parts = all > 0 && part[PART_COMPUTE] + part[PART_COMM] + part[PART_COPY] != all;
	b->first_ns = first_ns;
	b->last_ns = last_ns;
	for (i = 0; i < BUSY_UNIONS; i++)
		b->of[i].mark = last_ns;
}
