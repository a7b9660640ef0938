/* SPDX-License-Identifier: MIT. series.h: numbers over time, thinned to what can be seen: each metric of
 * each process, as the job told it, and each quantity of its GPUs and their host (series_device.c). */
#ifndef PROTOND_VIEWER_SERIES_H
#define PROTOND_VIEWER_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

struct export_left;
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
	int64_t pid, rank; /* pid 0: of a GPU or the host; rank -1: none */
	struct series_point
		*point; /* by time; of a stretch with too many, the least and the greatest */
	uint32_t n;
	uint64_t told, left_out; /* before it was thinned; beyond SERIES_READ */
};

struct series {
	struct series_one *one;
	uint32_t n, cap, left_out; /* metrics */
	struct profile *texts;
};

/* Of a session in an open store; as export_timeline_fn. -ENODATA: it kept no timeline and no
 * readings. */
int series_read(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct export_left *ret_left, struct series **ret, struct err *e);
/* Adds what is stored of GPUs and host; base_ns: the timeline's zero, or 0: it is looked for. -ENOMEM, -EBADMSG. */
int series_device(struct series *s, struct sqlite3 *db, int64_t id, int64_t base_ns, struct err *e);
/* Adds, to none so far, what steps were told, as it is stored beside the tree. process: of struct profile_select. -ENOMEM,
 * -EBADMSG. */
int series_steps(
	struct series *s, struct sqlite3 *db, int64_t id, const char *process, struct err *e);
/* Adds the curves of what is held of memory (holder_rows.h); base_ns, process: as above. -ENOMEM, -EBADMSG. */
int series_memory(struct series *s, struct sqlite3 *db, int64_t id, const char *process,
	int64_t base_ns, struct err *e);
/* The zero of a session that kept no timeline; CLOCK_MONOTONIC. */
int64_t series_base(struct sqlite3 *db, int64_t id);
/* These alone: of a timeline in which no number was told. */
int series_of_devices(struct sqlite3 *db, int64_t id, struct series **ret, struct err *e);
void series_free(struct series *s); /* NULL is fine */

#endif
