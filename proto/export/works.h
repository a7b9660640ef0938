/* SPDX-License-Identifier: MIT. works.h: GPU work of a process in order of time, packed: some 9 bytes for each in place of
 * 40, since a session of 10 M events has millions. For parts.c. Work may come in any order; what is asked comes once
 * all of it is there. */
#ifndef PROTOND_EXPORT_WORKS_H
#define PROTOND_EXPORT_WORKS_H

#include "busy.h"

struct works_block {           /* WORKS_BLOCK of them, the last one fewer */
	uint64_t begin, reach; /* of the first; where the longest of all before it ends */
	uint8_t *bytes;
	uint32_t n_bytes, n;
};

struct works { /* zero-initialise; works_fini() */
	struct works_block *block;
	uint32_t n_blocks, cap_blocks, n;
	struct busy_work *held; /* what is not in order yet */
	uint32_t n_held, cap_held;
	uint32_t *run; /* the first block of each: in a run they are in order */
	uint32_t n_runs, cap_runs;
	uint64_t last, reach; /* of the run at hand: the last begin; the longest end */
};

bool works_add(struct works *w, const struct busy_work *v); /* false: out of memory */
/* All are there: they are in order, of one run. false: out of memory. */
bool works_settle(struct works *w);
/* Adds what v is made of. */
void works_window(const struct works *w, const struct span *v, uint64_t part[PART_MAX]);
/* All of them, in order. */
struct works_cursor {
	const struct works *w;
	uint32_t block, left; /* left: of the block */
	const uint8_t *at;
	uint64_t last;
};
void works_first(struct works_cursor *c, const struct works *w);
bool works_next(struct works_cursor *c, struct busy_work *ret); /* false: there is none */
/* How many begin before `ns`. */
uint32_t works_before(const struct works *w, uint64_t ns);
/* Where the first begins; UINT64_MAX: there is none. */
uint64_t works_begin(const struct works *w);
void works_clear(struct works *w); /* the next process; keeps some memory */
void works_fini(struct works *w);

#endif
