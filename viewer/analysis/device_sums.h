/* SPDX-License-Identifier: MIT. device_sums.h: what a session's GPUs and their host did, over all of it:
 * one sum for each quantity (device_terms.h). */
#ifndef PROTOND_VIEWER_DEVICE_SUMS_H
#define PROTOND_VIEWER_DEVICE_SUMS_H

#include <stdint.h>

#include "busy.h"
#include "device_terms.h"
#include "err.h"

struct sqlite3;

#define DEVICE_SUMS_MAX 65u /* GPUs, and the host */

struct device_sum {
	double known_ns; /* for how long it was measured, a counter from the first reading on; 0: never */
	double sum;  /* of a counter */
	double mean; /* of a gauge, by time */
	double most, last;
};

struct device_of_sums {
	uint32_t gpu; /* as `reading` numbers it; UINT32_MAX: the host */
	double all_ns;
	struct device_sum of[DEVICE_N];
};

struct device_sums {
	uint32_t n, left_out;
	struct device_of_sums one[DEVICE_SUMS_MAX];
};

/* Of a session in an open store: readings some of which lies in a time (CLOCK_REALTIME). -ENODATA: nothing was measured.
 * -ENOMEM, -EBADMSG with words. */
int device_sums_read(struct sqlite3 *db, int64_t id, const struct span *in,
	struct device_sums **ret, struct err *e);

#endif
