/* SPDX-License-Identifier: MIT. series.h: the numbers that a job told, over time: each metric of each
 * process, thinned to what can be seen. */
#ifndef PROTOND_VIEWER_SERIES_H
#define PROTOND_VIEWER_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

struct sqlite3;

#define SERIES_MAX    256u       /* metrics of processes; further ones are counted */
#define SERIES_POINTS 4000u      /* of each, at most */
#define SERIES_READ   (1u << 20) /* numbers read of each; later ones are counted */

struct series_point {
	uint64_t ns; /* since the timeline's zero */
	double v;
};

struct series_one {
	const char *name;
	int64_t pid, rank; /* rank -1: none */
	struct series_point
		*point; /* by time; of a stretch with too many, the least and the greatest */
	uint32_t n;
	uint64_t told, left_out; /* before it was thinned; beyond SERIES_READ */
};

struct series {
	struct series_one *one;
	uint32_t n, left_out; /* metrics */
	struct profile *texts;
};

/* Of a session in an open store; as export_timeline_fn. -ENODATA: it kept no timeline. */
int series_read(struct sqlite3 *db, int64_t id, const struct profile_select *s, uint64_t *ret_gone,
	struct series **ret, struct err *e);
void series_free(struct series *s); /* NULL is fine */

#endif
