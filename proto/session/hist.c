/* SPDX-License-Identifier: MIT. hist.c: quantiles of histograms of durations, and their bytes in the
 * store. Pure. */
#include "hist.h"

#include <math.h>
#include <string.h>

#include "leb.h"

#define OLD_BUCKETS 64u

uint64_t hist_lowest(uint32_t bucket)
{
	const uint32_t octave = bucket < HIST_SUB ? 0 : bucket / HIST_SUB - 1;
	const uint64_t k = bucket - octave * HIST_SUB;

	return ((k << (octave + 4)) + HIST_SUB - 1) / HIST_SUB;
}

double hist_answer(uint32_t bucket)
{
	const double a = (double)hist_lowest(bucket), b = (double)hist_lowest(bucket + 1) - 1;

	return b <= a ? a : 2 * a * b / (a + b);
}

double hist_quantile(const struct hist_counts *h, double q)
{
	const uint32_t end = h->first + h->n;
	uint64_t n = 0, seen = 0;
	double rank;
	uint32_t b;

	for (b = h->first; b < end; b++)
		n += h->count[b];
	if (n == 0)
		return (double)NAN;
	rank = ceil(q * (double)n);
	for (b = h->first; b < end - 1; b++) {
		seen += h->count[b];
		if (seen > 0 && (double)seen >= rank)
			break;
	}
	return hist_answer(b);
}

void hist_reach(struct hist_counts *h, uint32_t first, uint32_t end)
{
	if (first == end)
		return;
	if (h->n == 0) {
		h->first = first;
		h->n = 1;
		h->count[first] = 0;
	}
	while (h->first > first) {
		h->count[--h->first] = 0;
		h->n++;
	}
	while (h->first + h->n < end)
		h->count[h->first + h->n++] = 0;
}

/* --- bytes --- */

size_t hist_pack(const struct hist_counts *h, uint8_t *ret_bytes)
{
	uint32_t b = h->first, end = h->first + h->n, zeros;
	uint8_t *at = ret_bytes;

	while (end > b && h->count[end - 1] == 0)
		end--;
	while (b < end && h->count[b] == 0)
		b++;
	if (b == end)
		return 0;
	at = leb_put(at, (uint64_t)b << 1 | h->coarse);
	while (b < end) {
		at = leb_put(at, h->count[b]);
		if (h->count[b++] != 0)
			continue;
		for (zeros = 0; h->count[b] == 0; b++)
			zeros++;
		at = leb_put(at, zeros);
	}
	return (size_t)(at - ret_bytes);
}

bool hist_unpack(const void *bytes, size_t n, struct hist_counts *ret)
{
	const uint8_t *at = bytes, *end;
	uint64_t v, b, zeros;
	bool bad = false;

	ret->first = ret->n = 0;
	ret->coarse = false;
	if (n == 0)
		return true; /* bytes may be NULL */
	end = at + n;
	v = leb_get(&at, end, &bad);
	if (v >> 1 >= HIST_BUCKETS)
		return false;
	for (b = v >> 1; at < end && !bad && b < HIST_BUCKETS; b++) {
		ret->count[b] = leb_get(&at, end, &bad);
		if (ret->count[b] != 0)
			continue;
		for (zeros = leb_get(&at, end, &bad); zeros > 0 && b + 1 < HIST_BUCKETS; zeros--)
			ret->count[++b] = 0;
	}
	if (bad || at < end)
		return false;
	ret->coarse = v & 1;
	ret->first = (uint32_t)(v >> 1);
	ret->n = (uint32_t)(b < HIST_BUCKETS ? b : HIST_BUCKETS) - ret->first;
	return true;
}

/* As hist_answer(), of the old halves [1, 1.5) and [1.5, 2) of an octave, from 2^5 on. */
static uint64_t old_answer(uint32_t bucket)
{
	return (bucket & 1 ? 12ull << (bucket / 2 + 5) : 6ull << (bucket / 2 + 5)) /
	       (bucket & 1 ? 7 : 5);
}

void hist_unpack_old(
	const void *bytes, size_t n, uint64_t min_ns, uint64_t max_ns, struct hist_counts *ret)
{
	const uint8_t *at = bytes;
	uint64_t ns, count;
	uint32_t b, to;

	ret->first = ret->n = 0;
	ret->coarse = true;
	for (b = 0; b < OLD_BUCKETS && b < n / 4; b++, at += 4) {
		count = (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 |
			(uint64_t)at[3] << 24;
		if (count == 0)
			continue;
		ns = old_answer(b);
		ns = ns > max_ns ? max_ns : ns;
		to = hist_bucket(ns < min_ns ? min_ns : ns);
		hist_reach(ret, to, to + 1);
		ret->count[to] += count;
	}
}
