/* SPDX-License-Identifier: MIT. top_look.h: what the daemon says of a live session at one instant
 * (the answer to `top`), and the difference of two such. No I/O. */
#ifndef PROTOND_VIEWER_TOP_LOOK_H
#define PROTOND_VIEWER_TOP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "codec.h"
#include "hist.h"

#define LOOK_CELLS   2500u /* asked for at most, those with the largest sums */
#define LOOK_JOBS    512u
#define LOOK_DEVICES 64u

struct look_cell {
	const char *path;     /* names with a slash between them */
	const uint32_t *part; /* [n_parts]: bytes of each; n_parts 0: it is one name */
	uint32_t n_parts;
	uint8_t class;
	uint64_t count, sum_ns;
	const void *hist; /* packed (hist.h); 0 bytes: not known */
	uint32_t hist_bytes;
};

struct look_job {
	uint32_t pid;
	int64_t rank; /* -1: none */
};

struct look_device {
	uint8_t uuid[16];
	bool known; /* the uuid is */
	uint32_t number;
	char name[65];
	uint64_t busy_ns; /* of all jobs together */
};

struct look {
	struct arena *arena; /* of all that it points to */
	struct look_cell *cell;
	uint32_t n, n_jobs, n_devices;
	struct look_job *job; /* that take part and run, by rank */
	struct look_device *device;
	int64_t id;
	char name[128], state[16];
	uint64_t now_ns, duration_ns, drops, cost_ns;
	uint64_t left_out; /* cells that the answer had no room for */
};

/* -ENOMEM; what is missing or of another type counts as 0 or "". Cells are in order of path and
 * class, which look_find() needs. */
int look_take(const msgpack_object *answer, struct look *ret);
void look_free(struct look *l); /* zeroed and freed ones are fine */

/* What happened to a cell between `before` and its own look. before NULL, or without it: all of it. */
struct look_change {
	uint64_t count, ns;
};
struct look_change look_since(const struct look *before, const struct look_cell *c);
/* The durations in between; false: not known. */
bool look_durations(const struct look *before, const struct look_cell *c, struct hist_counts *ret);
/* Steps that ended in between, of all jobs. False: there is no scope that is a step. */
bool look_steps(const struct look *before, const struct look *now, uint64_t *ret);
/* Share of the time between the two that a device was busy; [0] of look.device. before NULL: since
 * the session began. */
double look_busy(const struct look *before, const struct look *now, uint32_t device);
bool look_has_gpu(const struct look *l); /* some of it ran on one */
double look_seconds(const struct look *before, const struct look *now);

#endif
