/* SPDX-License-Identifier: MIT. durations.c: histograms of cells. Most cells of a wide tree have few
 * durations, side by side: buckets are kept from the first to the last, each in as few bytes as the
 * fullest needs. An outgrown one is used again by the same tree. Loop thread. */
#include "durations.h"

#include <string.h>

#include "loss.h"
#include "part.h"
#include "process.h"
#include "state.h"
#include "tree.h"

_Static_assert(((size_t)HIST_LEAST << (HIST_SIZES - 1)) - sizeof(struct hist) >=
		       HIST_BUCKETS * sizeof(uint64_t),
	"the largest size has them all");

static struct hist hist_none; /* n stays 0 */

static size_t hist_bytes(uint32_t size)
{
	return (size_t)HIST_LEAST << size;
}

static uint64_t count_at(struct hist *h, uint32_t at)
{
	return h->depth == 0   ? h->count[at]
	       : h->depth == 1 ? ((uint16_t *)hist_counters(h))[at]
	       : h->depth == 2 ? ((uint32_t *)hist_counters(h))[at]
			       : ((uint64_t *)hist_counters(h))[at];
}

static void count_put(struct hist *h, uint32_t at, uint64_t count)
{
	if (h->depth == 0)
		h->count[at] = (uint8_t)count;
	else if (h->depth == 1)
		((uint16_t *)hist_counters(h))[at] = (uint16_t)count;
	else if (h->depth == 2)
		((uint32_t *)hist_counters(h))[at] = (uint32_t)count;
	else
		((uint64_t *)hist_counters(h))[at] = count;
}

/* Has room for [low, high], as much on either side. NULL: out of memory; hist_none: at the ceiling,
 * which is counted. */
static struct hist *hist_new(struct part *part, uint32_t low, uint32_t high, uint32_t depth)
{
	const uint32_t span = high - low + 1;
	struct tree *t = &part->tree;
	uint32_t size = 0, n, spare;
	struct hist *h;

	while (hist_bytes(size) - sizeof(struct hist) < (size_t)span << depth)
		size++;
	h = t->spare[size];
	if (h != NULL) {
		memcpy(&t->spare[size], h->count, sizeof(h));
		memset(h, 0, hist_bytes(size));
	} else if (!process_has_room(part->process)) {
		note_count(part, NOTE_HIST, 1);
		return &hist_none;
	} else {
		h = tree_take(t, hist_bytes(size));
		if (h == NULL) {
			part->process->fold->no_memory = true;
			return NULL;
		}
		part_grew(part, hist_bytes(size));
	}
	n = (uint32_t)(hist_bytes(size) - sizeof(struct hist)) >> depth;
	n = n < HIST_BUCKETS ? n : HIST_BUCKETS;
	spare = (n - span) / 2;
	low = low > spare ? low - spare : 0;
	h->first = (uint16_t)(low + n > HIST_BUCKETS ? HIST_BUCKETS - n : low);
	h->n = (uint16_t)n;
	h->depth = (uint8_t)depth;
	h->size = (uint8_t)size;
	return h;
}

static void hist_spare(struct tree *t, struct hist *h)
{
	if (h == NULL || h == &hist_none)
		return;
	memcpy(h->count, &t->spare[h->size], sizeof(h));
	t->spare[h->size] = h;
}

/* The same counts with room for [low, high], and `depth`. */
static void hist_move(
	struct part *part, struct cell *c, uint32_t low, uint32_t high, uint32_t depth)
{
	struct hist *old = c->hist, *h = hist_new(part, low, high, depth);
	uint32_t i;

	if (h == NULL)
		return;
	for (i = 0; h != &hist_none && old != NULL && i < old->n; i++)
		if (old->first + i - h->first < h->n)
			count_put(h, old->first + i - h->first, count_at(old, i));
	if (h != &hist_none && old != NULL)
		h->coarse = old->coarse;
	c->hist = h;
	hist_spare(&part->tree, old);
}

static uint32_t depth_of(uint64_t count)
{
	return count <= UINT8_MAX ? 0 : count <= UINT16_MAX ? 1 : count <= UINT32_MAX ? 2 : 3;
}

void durations_reach(struct part *part, struct cell *c, uint64_t ns)
{
	const uint32_t bucket = hist_bucket(ns), first = hist_bucket(c->min_ns);
	const uint64_t before = cell_timed(c) - 1;
	const uint32_t low = bucket < first ? bucket : first;
	const struct hist *h = c->hist;
	uint32_t high;

	if (h == NULL && before > 0 && bucket != first) {
		hist_move(part, c, low, bucket > first ? bucket : first, depth_of(before));
		if (c->hist != NULL && c->hist != &hist_none)
			count_put(c->hist, first - c->hist->first, before);
	} else if (h != NULL && h->n > 0 && bucket - h->first >= h->n) {
		high = hist_bucket(c->max_ns);
		hist_move(part, c, low, bucket > high ? bucket : high, h->depth);
	}
	c->min_ns = ns < c->min_ns ? ns : c->min_ns;
	c->max_ns = ns > c->max_ns ? ns : c->max_ns;
}

void durations_deepen(struct part *part, struct cell *c, uint32_t at)
{
	const struct hist *h = c->hist;
	const uint32_t bucket = h->first + at, depth = h->depth;

	if (depth == 3)
		return;
	hist_move(part, c, hist_bucket(c->min_ns), hist_bucket(c->max_ns), depth + 1u);
	if (c->hist != h && c->hist != &hist_none)
		count_put(c->hist, bucket - c->hist->first, 1ull << (8u << depth));
}

/* Adds to a bucket that h has. */
static void count_more(struct part *part, struct cell *c, uint32_t bucket, uint64_t n)
{
	const uint64_t count = count_at(c->hist, bucket - c->hist->first) + n;
	const uint32_t depth = depth_of(count);

	if (depth > c->hist->depth) {
		hist_move(part, c, c->hist->first, c->hist->first + c->hist->n - 1u, depth);
		if (c->hist == NULL || c->hist == &hist_none)
			return;
	}
	count_put(c->hist, bucket - c->hist->first, count);
}

/* Buckets that s, and what is counted already, need. */
static void reach(struct part *part, struct cell *c, uint32_t low, uint32_t high, uint64_t before)
{
	const struct hist *h = c->hist;
	const uint32_t least = hist_bucket(c->min_ns), most = hist_bucket(c->max_ns);

	if (h != NULL && low >= h->first && high - h->first < h->n)
		return;
	if (before != 0) {
		low = low < least ? low : least;
		high = high > most ? high : most;
	}
	hist_move(part, c, low, high, h != NULL ? h->depth : depth_of(before));
	if (h == NULL && before != 0 && c->hist != NULL && c->hist != &hist_none)
		count_put(c->hist, least - c->hist->first, before);
}

void durations_sum(struct part *part, struct cell *c, const struct sum_part *s)
{
	const uint64_t before = cell_timed(c) - s->n;
	uint32_t low = 0, high = SUM_BUCKETS - 1, i;

	while (low < high && s->count[low] == 0)
		low++;
	while (high > low && s->count[high] == 0)
		high--;
	if ((c->hist != NULL || low != high ||
		    (before != 0 && hist_bucket(c->min_ns) != s->first + low) ||
		    hist_bucket(s->min_ns) != s->first + low) &&
		c->hist != &hist_none)
		reach(part, c, s->first + low, s->first + high, before);
	for (i = low; i <= high && c->hist != NULL && c->hist != &hist_none; i++)
		if (s->count[i] != 0)
			count_more(part, c, s->first + i, s->count[i]);
	c->min_ns = s->min_ns < c->min_ns ? s->min_ns : c->min_ns;
	c->max_ns = s->max_ns > c->max_ns ? s->max_ns : c->max_ns;
}

void durations_put(struct part *part, struct cell *c, const struct hist_counts *from)
{
	const uint32_t end = from->first + from->n;
	const uint64_t timed = cell_timed(c);
	uint32_t least, most, b;
	uint64_t fullest = 0;

	if (timed == 0)
		return;
	c->max_ns = c->max_ns < c->min_ns ? c->min_ns : c->max_ns; /* INVARIANT of the rest */
	least = hist_bucket(c->min_ns);
	most = hist_bucket(c->max_ns);
	if (from->n == 0) {
		c->hist = &hist_none;
		return;
	}
	if (!from->coarse && from->n == 1 && from->first == least && from->count[least] == timed)
		return;
	for (b = from->first; b < end; b++)
		fullest = from->count[b] > fullest ? from->count[b] : fullest;
	c->hist = hist_new(part, from->first < least ? from->first : least,
		end > most + 1 ? end - 1 : most, depth_of(fullest));
	if (c->hist == NULL || c->hist == &hist_none)
		return;
	for (b = from->first; b < end; b++)
		count_put(c->hist, b - c->hist->first, from->count[b]);
	c->hist->coarse = from->coarse;
}

void durations_get(const struct cell *c, struct hist_counts *ret)
{
	uint32_t i;

	if (c->hist == NULL) {
		ret->first = hist_bucket(c->min_ns);
		ret->count[ret->first] = cell_timed(c);
		ret->n = 1;
		ret->coarse = false;
		return;
	}
	ret->first = c->hist->first;
	ret->n = c->hist->n;
	ret->coarse = c->hist->coarse;
	for (i = 0; i < ret->n; i++)
		ret->count[ret->first + i] = count_at(c->hist, i);
}
