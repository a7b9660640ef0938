/* SPDX-License-Identifier: MIT. step_row.h: how long the steps of a process took and what they were told, a
 * point a step, or for several of them where there are very many: up to STEP_ROW_POINTS of them as the bytes
 * of a row of `step`. Pure; any thread. */
#ifndef PROTOND_SESSION_STEP_ROW_H
#define PROTOND_SESSION_STEP_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

#define STEP_ROW_POINTS 32u
#define STEP_NAMES      16u  /* numbers of the steps of a process */
#define STEP_NAME_BYTES 128u /* of one, cut there */

struct step_value { /* of one number, over the steps of a point that have it */
	double mean, least, most;
	uint32_t n; /* how many have it */
};

struct step_point {
	uint64_t first;            /* number of its first step, from 1 */
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC: of the first and of the last */
	uint64_t took_ns;          /* of all of them together */
	uint32_t n;                /* steps */
	struct step_value v[STEP_NAMES];
};

struct step_names {
	uint32_t n;
	char name[STEP_NAMES][STEP_NAME_BYTES];
};

/* *ret is malloc()ed. -ENOMEM. */
int step_row_pack(const struct step_names *names, const struct step_point *p, uint32_t n,
	void **ret, uint32_t *ret_n);
/* Bytes of a stranger's database: at most STEP_ROW_POINTS points, in order, all numbers finite. -EBADMSG with
 * words, -ENOMEM. */
int step_row_unpack(const void *bytes, size_t n, struct step_names *ret_names,
	struct step_point ret[STEP_ROW_POINTS], uint32_t *ret_n, struct err *e);

#endif
