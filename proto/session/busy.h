/* SPDX-License-Identifier: MIT. busy.h: what the time of a GPU is made of (part_terms.h), from intervals
 * of work that come nearly in order. Bounded memory. Pure.
 *
 * Three unions of intervals hold it: of all work, of kernels, of kernels that compute. Of each the
 * newest BUSY_SPANS disjoint spans are kept; older ones are only a sum, and what comes later and lies
 * before the mark is not counted again.
 */
#ifndef PROTOND_BUSY_H
#define PROTOND_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#include "part_terms.h"

#define BUSY_SPANS 512u

struct span {
	uint64_t begin, end;
};

enum busy_union { BUSY_ALL, BUSY_KERNELS, BUSY_COMPUTE, BUSY_UNIONS };

struct busy_spans {
	uint64_t done_ns, mark; /* the sum of what lies before the mark */
	uint32_t n;
	struct busy_span {
		uint64_t begin, end;
		uint64_t launched; /* what begins the span; 0: not known */
	} span[BUSY_SPANS];        /* disjoint, growing */
};

struct busy {
	uint32_t device;
	bool dirty, no_parts; /* no_parts: some was counted by a protond that knew none */
	uint64_t first_ns, last_ns;
	uint64_t idle[PART_MAX - PART_IDLE]; /* of the gaps before BUSY_ALL's mark */
	struct busy_spans of[BUSY_UNIONS];
};

/* Work of a part before PART_IDLE. launched: when, in the same time; 0: not known. */
void busy_add(struct busy *b, enum gpu_part part, uint64_t begin, uint64_t end, uint64_t launched);
uint64_t busy_ns(const struct busy *b); /* some work ran */
/* PART_HOST is left at 0: it is the rest of the session's active time. All are if parts are not known. */
void busy_parts(const struct busy *b, uint64_t ret[PART_MAX]);
/* As it was stored: all of it lies before last_ns. */
void busy_restore(struct busy *b, const uint64_t part[PART_MAX], uint64_t all, uint64_t first_ns,
	uint64_t last_ns);

#endif
