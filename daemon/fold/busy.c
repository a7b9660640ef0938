/* SPDX-License-Identifier: MIT. busy.c: the length of the union of intervals that come nearly in
 * order. */
#include "busy.h"

#include <string.h>

/* Turns the older half into a sum. */
static void busy_settle(struct busy *b)
{
	uint32_t i, half = BUSY_SPANS / 2;

	for (i = 0; i < half; i++)
		b->done_ns += b->span[i].end - b->span[i].begin;
	b->mark = b->span[half - 1].end;
	b->n -= half;
	memmove(b->span, b->span + half, b->n * sizeof(*b->span));
}

/* Inserts one in the middle, joined with all spans that it touches. */
static void busy_insert(struct busy *b, struct span s)
{
	uint32_t from = b->n, to;

	while (from > 0 && b->span[from - 1].end >= s.begin)
		from--;
	for (to = from; to < b->n && b->span[to].begin <= s.end; to++) {
		s.begin = b->span[to].begin < s.begin ? b->span[to].begin : s.begin;
		s.end = b->span[to].end > s.end ? b->span[to].end : s.end;
	}
	memmove(b->span + from + 1, b->span + to, (b->n - to) * sizeof(*b->span));
	b->span[from] = s;
	b->n = b->n - (to - from) + 1;
}

void busy_add(struct busy *b, uint64_t begin, uint64_t end)
{
	struct span *last = b->n > 0 ? &b->span[b->n - 1] : NULL;

	if (end <= begin)
		return;
	b->dirty = true;
	b->first_ns = b->first_ns == 0 || begin < b->first_ns ? begin : b->first_ns;
	b->last_ns = end > b->last_ns ? end : b->last_ns;
	if (last != NULL && begin >= last->begin && begin <= last->end) {
		last->end = end > last->end ? end : last->end;
		return;
	}
	begin = begin < b->mark ? b->mark : begin;
	if (end <= begin)
		return;
	if (b->n == BUSY_SPANS)
		busy_settle(b);
	begin = begin < b->mark ? b->mark : begin;
	if (end > begin)
		busy_insert(b, (struct span){begin, end});
}

uint64_t busy_ns(const struct busy *b)
{
	uint64_t ns = b->done_ns;
	uint32_t i;

	for (i = 0; i < b->n; i++)
		ns += b->span[i].end - b->span[i].begin;
	return ns;
}
