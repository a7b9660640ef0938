/* SPDX-License-Identifier: MIT. top_look.h: what the daemon says of a live session at one instant
 * (the answer to `top`), and the difference of two such. No I/O. */
#ifndef PROTOND_VIEWER_TOP_LOOK_H
#define PROTOND_VIEWER_TOP_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "codec.h"
#include "device_terms.h"
#include "hist.h"
#include "part_terms.h"
#include "step_rates.h"

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
	/* What else one job on it says; not of several jobs: what one waits for another may fill. */
	uint64_t part_ns[PART_MAX]; /* without PART_HOST */
	bool has_parts;
	uint32_t jobs;
	double reading[DEVICE_N]; /* NAN: not known */
};

/* Of all jobs together, on a device as CUDA numbers it. */
struct look_memory {
	int64_t device;
	uint64_t driver, driver_peak; /* what the driver gave */
	uint64_t allocated, peak, reserved;
	bool torch; /* the three are known */
};

struct look {
	struct arena *arena; /* of all that it points to */
	struct look_cell *cell;
	uint32_t n, n_jobs, n_devices;
	struct look_job *job; /* that take part and run, by rank */
	struct look_device *device;
	struct look_memory *memory;
	uint32_t n_memory;
	uint64_t resident; /* of its jobs; 0: unknown */
	int64_t id;
	char name[128], state[16];
	double told[RATE_MAX]; /* what steps were told so far, of all jobs; step_rates.h */
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
/* So many of that were told a second in between; NAN: none, or not known. */
double look_rate(const struct look *before, const struct look *now, enum step_rate rate);
/* Share of the time between the two that a device was busy; [0] of look.device. before NULL: since
 * the session began. */
double look_busy(const struct look *before, const struct look *now, uint32_t device);
/* The same device of another look; NULL: it has none, or there is none. */
const struct look_device *look_device_in(const struct look *l, const struct look_device *d);
/* top_gpu.c. What the time between the two was made of, shares of a mean device that add up to 1. false: not known. */
bool look_parts(const struct look *before, const struct look *now, double ret[PART_MAX]);
/* Words for each part, and for what the devices read: "compute 41.0%", "412 W", …; fn's false ends it. */
typedef bool look_word_fn(void *arg, const char *word);
/* top_look.c. Likewise, what steps were told in between: "1300.0 samples/s", "42100 tokens/s". */
void look_rate_words(
	const struct look *before, const struct look *now, look_word_fn *fn, void *arg);
void look_gpu_words(const struct look *before, const struct look *now, look_word_fn *fn, void *arg);
bool look_has_gpu(const struct look *l); /* some of it ran on one */
double look_seconds(const struct look *before, const struct look *now);

#endif
