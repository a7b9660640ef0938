/* SPDX-License-Identifier: MIT. launches.h: kernels by how they were launched, over all their paths: one row for each name and
 * configuration. */
#ifndef PROTOND_VIEWER_LAUNCHES_H
#define PROTOND_VIEWER_LAUNCHES_H

#include "occupancy.h"

#define LAUNCHES_SMALL_NS \
	10000u /* a small kernel: shorter than what launching it costs, or hardly longer */

struct launches_row {
	const char *name;
	uint8_t class;                       /* enum cell_class */
	const struct profile_config *config; /* NULL: not known */
	double count;
	double ns; /* of several configurations of a node each has its share by count: their times are stored together */
	bool has_occupancy;
	struct occupancy occupancy;
};

struct launches {                 /* launches_free() */
	struct launches_row *row; /* the most time first */
	uint32_t n;
	const struct profile_device
		*device;  /* whose limits count; NULL: GPUs that differ, or none that worked */
	double count, ns; /* of all rows */
	double small, small_ns; /* of those that take less than LAUNCHES_SMALL_NS on average */
	double low_ns;          /* of those below a quarter of an SM's warps */
	double tail_ns;         /* Σ time × tail */
	bool shared_out;        /* some time is a share by count */
};

/* Borrows p, which has configurations. -ENOMEM; -ENODATA: no kernels. */
int launches_new(const struct profile *p, struct launches **ret);
void launches_free(struct launches *l); /* NULL is fine */

#endif
