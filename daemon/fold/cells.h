/* SPDX-License-Identifier: MIT. cells.h: what one session holds of one process, as data: cells
 * by (node, segment, device, class), metrics, launch configurations, GPU busy time. tree.c and
 * metric.c fill it, collect.c and where.c read it. */
#ifndef PROTOND_CELLS_H
#define PROTOND_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "busy.h"
#include "gpu_terms.h"
#include "table.h"

#define DEVICE_NONE UINT8_MAX
#define CELL_CHUNK  128u
#define CELL_BYTES  96u /* about: itself, and what points at it */
#define METRICS_MAX 65536u

/* The histogram of a cell's durations (durations.c): buckets [first, first + n) of it, all others are
 * 0. A counter has 1 << depth bytes. */
struct hist {
	uint16_t first, n;
	uint8_t depth, size; /* size: it has HIST_LEAST << size bytes */
	uint8_t coarse, pad;
	uint8_t count[];
};
#define HIST_LEAST 16u
#define HIST_SIZES 10u
_Static_assert(sizeof(struct hist) == 8, "its counters are aligned");

static inline void *hist_counters(struct hist *h)
{
	return h->count;
}

struct cell {
	uint64_t count, sum_ns, min_ns, max_ns, bytes; /* min_ns UINT64_MAX: none yet */
	uint64_t untimed;  /* of the GPU: without times; of CLASS_CPU: open at finalize or end */
	struct hist *hist; /* NULL: all durations are in the bucket of min_ns; n 0: not known */
	uint32_t node;
	uint16_t segment;
	uint8_t device;
	uint8_t class : 7, dirty : 1;
};
_Static_assert(sizeof(struct cell) == 64, "one cache line");
_Static_assert(CLASS_MAX <= 1 << 7, "cell.class");

struct cell_chunk { /* never moves, so that growing copies nothing */
	_Alignas(64) struct cell cell[CELL_CHUNK];
};

struct metric {
	uint32_t node, segment, name; /* name: of process.metric_name */
	uint8_t kind, type;
	bool dirty, stored;
	uint64_t bits, count;
	const char *text; /* STR: in the process's arena */
};

struct launch_config {
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
	uint32_t n_cells, n_chunks, cap_chunks;
	uint32_t n_other;               /* cells of ROOT/(other), that were made as such */
	uint32_t n_stored;              /* cells that the store has, the first ones */
	struct arena *arena;            /* of chunks and histograms; NULL: none yet */
	uint64_t bytes;                 /* of all this, about */
	struct hist *spare[HIST_SIZES]; /* outgrown ones, by size; the next one stands in count */
	struct table by_key;
	struct hint *hint; /* by node */
	uint32_t n_hints;
	struct metric *metric;
	uint32_t n_metrics, cap_metrics;
	struct table metric_by_key;
	struct launch_config *config;
	uint32_t n_configs, cap_configs;
	struct dirty dirty_cells, dirty_metrics, dirty_configs;
	struct busy **busy;
	uint32_t n_busy;
};

static inline struct cell *tree_at(const struct tree *t, uint32_t at)
{
	return &t->chunk[at / CELL_CHUNK]->cell[at % CELL_CHUNK];
}

/* How many durations are in it. */
static inline uint64_t cell_timed(const struct cell *c)
{
	return c->class == CLASS_CPU || c->count < c->untimed ? c->count : c->count - c->untimed;
}

static inline void dirty_mark(struct dirty *d, bool *flag, uint32_t at)
{
	if (!*flag) {
		*flag = true;
		d->at[d->n++] = at;
	}
}

#endif
