/* SPDX-License-Identifier: MIT. tree.h: what one session holds of one process: what
 * scopes and GPU work add to its cells. */
#ifndef PROTOND_TREE_H
#define PROTOND_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chunks.h"
#include "record.h"

struct busy;
struct cell;
struct gpu;
struct lane;
struct launch;
struct launch_config;
struct part;
struct rec_call;
struct rec_sample;
struct rec_scope;
struct tree;

void tree_fini(struct tree *t);
void *tree_take(struct tree *t, size_t bytes); /* zeroed; NULL: out of memory */

void tree_scope(
	struct part *part, const struct lane *lane, const struct rec_scope *r, uint64_t own_ns);
void tree_open_scope(
	struct part *part, const struct lane *lane, uint32_t path, uint64_t begin, uint64_t end);
void tree_seen_open(struct part *part, uint32_t path, uint64_t clock);
/* Of a sum: what came since it was last looked at. */
struct sum_part {
	uint64_t opened; /* clock at which it counts */
	struct burst_part burst;
	uint64_t n, ns, min_ns, max_ns; /* min, max: of all of the sum */
	uint32_t path, first;           /* first: bucket that count[0] is */
	bool surplus;                   /* they were of paths that had no room */
	uint32_t count[SUM_BUCKETS];
};
void tree_sum(struct part *part, const struct sum_part *s);
void tree_gpu(struct part *part, const struct launch *l, const struct gpu *g);
/* class: of r->kind. What it refers to is checked. */
void tree_call(struct part *part, const struct lane *lane, const struct rec_call *r, uint8_t class);
/* Every call, below its name; what failed is counted as that, too. */
void tree_api(struct part *part, const struct lane *lane, const struct rec_call *r);
void tree_launch_call(/* the call of a launch, of LAUNCH_ENDS */
	struct part *part, const struct lane *lane, const struct rec_launch *l, uint64_t end);
void tree_overhead(struct part *part, const struct launch *l, const struct gpu *g);
void tree_launch_delay(struct part *part, const struct launch *l, const struct gpu *g);
/* What it refers to is checked. */
void tree_sample(struct part *part, const struct rec_sample *r);
void tree_copy_call(struct part *part, const struct launch *l); /* the copy's call waited for it */
/* The node that a launch and its record stand on; *ret_op: it is an op's. */
uint32_t tree_gpu_place(
	struct part *part, const struct launch *l, const struct gpu *g, bool *ret_op);

/* For restore. NULL, TABLE_NONE: out of memory. */
uint32_t tree_cell_put(struct part *part, const struct cell *key); /* whatever the ceiling */
struct launch_config *tree_config_put(struct part *part, uint32_t node, uint32_t id);
struct busy *tree_busy(struct part *part, uint32_t device);

#endif
