/* SPDX-License-Identifier: MIT. busy.h: for how long a GPU had something running: the length of the
 * union of intervals that come nearly in order. Bounded memory. Pure.
 *
 * The newest BUSY_SPANS disjoint spans are kept; older ones are only a sum, and what comes later
 * and lies before the mark is not counted again.
 */
#ifndef PROTOND_BUSY_H
#define PROTOND_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#define BUSY_SPANS 512u

struct span {
	uint64_t begin, end;
};

struct busy {
	uint32_t device, n;
	uint64_t done_ns, mark; /* the sum of what lies before the mark */
	uint64_t first_ns, last_ns;
	bool dirty;
	struct span span[BUSY_SPANS]; /* disjoint, growing */
};

void busy_add(struct busy *b, uint64_t begin, uint64_t end);
uint64_t busy_ns(const struct busy *b);

#endif
