/* SPDX-License-Identifier: MIT. cost.h: what each node of a tree costs by itself and with all
 * below it, in whole nanoseconds: what flame graphs, tables and pprof are made of. No I/O. */
#ifndef PROTOND_EXPORT_COST_H
#define PROTOND_EXPORT_COST_H

#include "profile.h"

/* One list for the formats that write each of them. What is of GPU work counts kernels, copies and
 * memsets; a scope's own CPU time is what no scope inside it took. */
/* clang-format off */
#define COSTS(X) /* name, unit */ \
	X(gpu_time, "nanoseconds") \
	X(cpu_time, "nanoseconds") \
	X(count,    "count") /* pieces of GPU work */ \
	X(calls,    "count") /* of scopes */ \
	X(sample_time, "nanoseconds") /* of samples; the last two, which few sessions have */ \
	X(cpu_samples, "count")
/* clang-format on */

#define X(name, unit) COST_##name,
enum cost { COSTS(X) COST_N };
#undef X

#define X(name, unit) [COST_##name] = #name,
static const char *const cost_names[COST_N] = {COSTS(X)};
#undef X

/* What a whole is of. */
static inline const char *cost_words(enum cost main)
{
	return main == COST_gpu_time   ? " of GPU time"
	       : main == COST_cpu_time ? " of CPU time"
				       : " of sampled time";
}

struct costs {
	uint64_t (*self)[COST_N], (*all)[COST_N]; /* [n_nodes] */
	enum cost
		main; /* what the tree is looked at by: GPU time, if there is any, else that of samples, else
			   CPU time */
	uint32_t n; /* the first ones of them; the others are all 0 */
};

int costs_new(const struct profile *p, struct costs *ret); /* -ENOMEM */
void costs_free(struct costs *c);

/* Depth first, each child after its elder: the next node after `at`, PROFILE_NONE at the end.
 * *ret_up: how many nodes end before it begins. */
uint32_t cost_next(const struct profile *p, uint32_t at, uint32_t *ret_up);

#endif
