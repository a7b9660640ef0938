/* SPDX-License-Identifier: MIT. busy.h: what the time of a GPU is made of (part_terms.h), from intervals
 * of work that come in any order. Bounded memory. Pure.
 *
 * Work waits until all that begins before some moment is known; then what lies before it is added up,
 * in order of time, and forgotten. Records come a buffer of each thread at a time, so the order may be
 * off by thousands.
 */
#ifndef PROTOND_SESSION_BUSY_H
#define PROTOND_SESSION_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#include "part_terms.h"

/* More than this does not wait: then the older half is added up before its time, and work that comes
 * still later counts only with what lies behind that. */
#define BUSY_WORK_MAX 65536u

struct span {
	uint64_t begin, end;
};

struct busy_work {
	uint64_t begin, end;
	uint64_t launched; /* in the same time; 0: not known */
	enum gpu_part part;
};

/* Of work in order of its begin. */
struct busy_sums {
	uint64_t part[PART_MAX]; /* PART_HOST: 0 */
	/* The ends so far: of all work, of kernels, of those that compute. */
	uint64_t until, kernel_until, compute_until;
};

struct busy {
	uint32_t device;
	bool dirty, no_parts; /* no_parts: some was counted by a protond that knew none */
	bool sorted;          /* work[] is */
	uint64_t first_ns, last_ns;
	struct busy_sums done;
	struct busy_work *work; /* [n], what waits; busy_fini() */
	uint32_t n, cap;
};

/* known: all work that begins before it has been added. grow: work[] may take more memory; if not, or
 * there is none (false), what waited is added up before its time. */
bool busy_add(struct busy *b, const struct busy_work *w, uint64_t known, bool grow);
/* Both put work[] in order. PART_HOST is left at 0: it is the rest of the session's active time. All
 * parts are 0 where they are not known. */
uint64_t busy_parts(struct busy *b, uint64_t ret[PART_MAX]); /* and for how long some work ran */
void busy_sort(struct busy *b);
/* In order of time, as windows want it. */
void busy_order(struct busy_work work[], uint32_t n);
bool busy_is_before(const struct busy_work *a, const struct busy_work *b);
/* One window, of work in order: the first that ends behind v's begin is the first that is added; until: where the longest
 * of those before it ends. false: what comes behind it lies behind v. Closed, all of v is in part[], PART_HOST as well. */
struct busy_window {
	struct span v;
	struct busy_sums s;
};
void busy_window_open(struct busy_window *w, const struct span *v, uint64_t until);
bool busy_window_add(struct busy_window *w, const struct busy_work *work);
void busy_window_close(struct busy_window *w, uint64_t part[PART_MAX]);
/* As it was stored: nothing waits. */
void busy_restore(struct busy *b, const uint64_t part[PART_MAX], uint64_t all, uint64_t first_ns,
	uint64_t last_ns);
void busy_fini(struct busy *b);

#endif
