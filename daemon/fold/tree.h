/* SPDX-License-Identifier: MIT. tree.h: what one session holds of one process: what
 * scopes and GPU work add to its cells. */
#ifndef PROTOND_TREE_H
#define PROTOND_TREE_H

#include <stdint.h>

struct busy;
struct cell;
struct gpu;
struct lane;
struct launch;
struct launch_config;
struct part;
struct rec_scope;
struct tree;

void tree_fini(struct tree *t);

void tree_scope(
	struct part *part, const struct lane *lane, const struct rec_scope *r, uint64_t own_ns);
void tree_open_scope(
	struct part *part, const struct lane *lane, uint32_t path, uint64_t begin, uint64_t end);
void tree_gpu(struct part *part, const struct launch *l, const struct gpu *g);

/* For restore. NULL, TABLE_NONE: out of memory. */
uint32_t tree_cell_put(struct part *part, const struct cell *key); /* whatever the ceiling */
void tree_hist_put(
	struct part *part, struct cell *c, uint32_t first, const uint32_t *count, uint32_t n);
struct launch_config *tree_config_put(struct part *part, uint32_t node, uint32_t id);
struct busy *tree_busy(struct part *part, uint32_t device);

#endif
