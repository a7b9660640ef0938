/* SPDX-License-Identifier: MIT. hist.h: histograms of durations, whose quantiles are within 3 % of
 * the true ones. Pure.
 *
 * Buckets. A duration of octave o, [2^o, 2^(o+1)) ns, is in one of 17 buckets of equal width. Below
 * 32 ns no bucket has two whole numbers; from 2^59 ns (18 years) on all are in the last one.
 *
 * The bound. Let a and b be the lowest and the highest whole number of a bucket. hist_answer() says
 * 2ab / (a + b), which is off from both of them by the same share, (b - a) / (b + a), and by less
 * from what lies between. As a >= 2^o and b - a < 2^o / 17, that is less than (1/17) / (2 + 1/17) =
 * 1/35, or 2.86 %. No answer does better for a and b, so 16 buckets, 1/33, are too few for 3 %.
 *
 * A quantile q of n durations is the one of rank ceil(q n), from 1. Buckets count exactly and add up
 * exactly, so its bucket is known, whatever was merged. (Linear buckets an octave: HdrHistogram, G.
 * Tene. The answer: DDSketch, Masson, Rim and Lee, VLDB 2019.)
 *
 * Coarse. Databases of before have two buckets an octave, in cell.hist. Each of their counts is put
 * where it is off by the least: such quantiles are within 22 %, from 48 ns to 2^37 ns. */
#ifndef PROTOND_SESSION_HIST_H
#define PROTOND_SESSION_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buckets.h"

double hist_answer(uint32_t bucket); /* ns, for any duration in it */
uint64_t hist_lowest(
	uint32_t bucket); /* ns: the lowest in it, or in those behind it when none can be */

/* Counts of buckets [first, first + n), at their own places; all others are 0 and not initialised. */
struct hist_counts {
	uint32_t first, n;
	bool coarse;
	uint64_t count[HIST_BUCKETS];
};

/* q in (0, 1]; NAN when empty. */
double hist_quantile(const struct hist_counts *h, double q);
/* Takes in the buckets [first, end), with zeros; h->n may be 0. */
void hist_reach(struct hist_counts *h, uint32_t first, uint32_t end);

/* As it is stored: first * 2 + coarse, then the counts, LEB128 all; a 0 stands with how many zeros
 * follow it. Zeros at the ends are not stored, and of an empty one nothing is. */
#define HIST_PACKED_MAX(n) (10u + 10u * (size_t)(n))
size_t hist_pack(const struct hist_counts *h, uint8_t *ret_bytes); /* HIST_PACKED_MAX(h->n) */
/* Anybody's bytes. False, and empty: they are none of ours. */
bool hist_unpack(const void *bytes, size_t n, struct hist_counts *ret);
/* cell.hist of a cell with these shortest and longest durations: 64 little-endian u32, zeros at the
 * end cut. */
void hist_unpack_old(
	const void *bytes, size_t n, uint64_t min_ns, uint64_t max_ns, struct hist_counts *ret);

#endif
