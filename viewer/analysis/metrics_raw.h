/* SPDX-License-Identifier: MIT. metrics_raw.h: what a name stands for in a profile: a metric of its
 * own, or one that the view computes of these (gpu_time, gpu_count, self_…). For metrics.c. */
#ifndef PROTOND_VIEWER_METRICS_RAW_H
#define PROTOND_VIEWER_METRICS_RAW_H

#include "metrics.h"

/* Kernels and copies together. */
#define GPU_TIME  "gpu_time"
#define GPU_COUNT "gpu_count"
#define SELF      "self_" /* before time, gpu_time and cpu_time: without what is in scopes below */

struct raw {
	double *v;        /* [n_nodes], NAN: none */
	double whole;     /* what X/% is of */
	uint32_t metric;  /* of the profile; of those added up, the first */
	bool inclusive;   /* a parent's holds its children's */
	bool is_computed; /* the view's: not as the profile has it */
	bool is_cpu;      /* "time" of a profile without GPU work: time of scopes */
};

uint32_t raw_find(const struct profile *p, const char *name);         /* PROFILE_NONE */
bool raw_has(const struct profile *p, const char *name);              /* raw_new() knows it */
double *raw_numbers_new(uint32_t n);                                  /* NANs */
int raw_new(const struct view *v, const char *name, struct raw *ret); /* -ENOENT, -ENOMEM */
bool raw_time_is_cpu(const struct profile *p);

#endif
