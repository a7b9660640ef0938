/* SPDX-License-Identifier: MIT. tree.h: what one session holds of one process: cells by (node,
 * segment, device, class), metrics, launch configurations, GPU busy time. Owns them. */
#ifndef PROTOND_TREE_H
#define PROTOND_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "busy.h"
#include "profile.h"
#include "record.h"
#include "table.h"

struct part;
struct process;
struct gpu;
struct lane;
struct launch;

#define DEVICE_NONE    UINT8_MAX
#define CELL_CHUNK     128u
#define CONFIGS_A_NODE 8u /* launch configurations told apart for a kernel */
#define METRICS_MAX    65536u

struct cell {
	uint64_t count, sum_ns, min_ns, max_ns, bytes; /* min_ns UINT64_MAX: none yet */
	uint32_t node, segment;
	uint8_t device, class;
	bool dirty, stored;
	uint32_t open; /* scopes open at finalize or end */
	uint64_t untimed;
};
_Static_assert(sizeof(struct cell) == 64, "one cache line");

struct cell_slot { /* side by side: an event touches both, and a page less is a TLB miss less */
	struct cell cell;
	uint32_t hist[HIST_BUCKETS];
};

struct cell_chunk { /* never moves, so that growing copies nothing */
	_Alignas(64) struct cell_slot slot[CELL_CHUNK];
};

struct metric {
	uint32_t node, segment, name; /* name: of process.metric_name */
	uint8_t kind, type;
	bool dirty, stored;
	uint64_t bits, count;
	const char *text; /* STR: in the process's arena */
};

struct config {
	uint64_t count;
	uint32_t node, id, next; /* next: place + 1 of the node's next one */
	bool dirty, stored;
};

struct hint { /* of a node: the cell used last, the newest configuration; place + 1 */
	uint32_t cell, config;
};

struct dirty { /* places of what changed since the last collect; room for all there are */
	uint32_t *at, n, cap;
};

struct tree {
	struct cell_chunk **chunk;
	uint32_t n_cells, cap_chunks;
	struct table by_key;
	struct hint *hint; /* by node */
	uint32_t n_hints;
	struct metric *metric;
	uint32_t n_metrics, cap_metrics;
	struct table metric_by_key;
	struct config *config;
	uint32_t n_configs, cap_configs;
	struct dirty dirty_cells, dirty_metrics, dirty_configs;
	struct busy **busy;
	uint32_t n_busy;
};

void tree_fini(struct tree *t);

static inline struct cell *tree_at(const struct tree *t, uint32_t at)
{
	return &t->chunk[at / CELL_CHUNK]->slot[at % CELL_CHUNK].cell;
}

static inline uint32_t *tree_hist(const struct tree *t, uint32_t at)
{
	return t->chunk[at / CELL_CHUNK]->slot[at % CELL_CHUNK].hist;
}

/* Finds or makes, within the session's ceiling: beyond it the parent's (other), then ROOT's, stand
 * in, counted. TABLE_NONE: out of memory, or of everything. */
uint32_t tree_cell(struct part *part, const struct cell *key);

static inline void dirty_mark(struct dirty *d, bool *flag, uint32_t at)
{
	if (!*flag) {
		*flag = true;
		d->at[d->n++] = at;
	}
}

/* What the three kinds of events do. */
void tree_scope(
	struct part *part, const struct lane *lane, const struct rec_scope *r, uint64_t own_ns);
void tree_open_scope(
	struct part *part, const struct lane *lane, uint32_t path, uint64_t begin, uint64_t end);
void tree_gpu(struct part *part, const struct launch *l, const struct gpu *g);
void tree_metric(struct part *part, const struct lane *lane, const struct rec_metric *m);

/* For restore: as they were. NULL, TABLE_NONE: out of memory. */
uint32_t tree_cell_put(struct part *part, const struct cell *key); /* whatever the ceiling */
struct metric *tree_metric_put(struct part *part, const struct metric *key);
struct config *tree_config_put(struct part *part, uint32_t node, uint32_t id);
struct busy *tree_busy(struct part *part, uint32_t device);

#endif
