/* SPDX-License-Identifier: MIT. metric.h: values that a job gives to its scopes. */
#ifndef PROTOND_METRIC_H
#define PROTOND_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "chunks.h"

struct gpu;
struct lane;
struct launch;
struct metric;
struct part;
struct rec_metric;

void tree_metric(struct part *part, const struct lane *lane, const struct rec_metric *m);
/* Of a CAPTURED record, in the session and phase of its launch. */
void tree_captured(struct part *part, const struct launch *l, const struct gpu *g);
/* Of a total: what came since it was last looked at. */
struct total_part {
	uint32_t path, name;
	uint64_t opened, n;
	uint64_t before, sum; /* as it was, and is */
	uint64_t latest;      /* the last value */
	struct burst_part burst;
	uint8_t type, flags; /* flags: METRIC_COUNTED and its like */
	bool surplus;        /* they were of paths that had no room */
};
void tree_total(struct part *part, const struct total_part *x);
/* A number that the fold itself gives to a node: summed; most: the largest counts, of the scope alone. */
struct tree_number {
	uint32_t node, segment;
	const char *name;
	uint64_t value;
	bool most;
};
void tree_number(struct part *part, const struct tree_number *x);
/* What was given to the node so far; NULL: nothing. name: of process.metric_name. */
const struct metric *tree_metric_find(
	const struct part *part, uint32_t node, uint32_t segment, uint32_t name);
/* For restore: finds or makes; NULL: a ceiling, counted, or out of memory. */
struct metric *tree_metric_put(struct part *part, const struct metric *key);

#endif
