/* SPDX-License-Identifier: MIT. store_sweep.h: what nobody refers to any more: nodes, ended processes
 * and what hangs on them, old anchors. For the files of the store. Worker thread.
 *
 *   mark cells, metrics, configs ─► climb to parents ─► mark members ─► delete nodes, processes,
 *                                                                       anchors ─► done
 *
 * It reads every cell once, in pieces between which others store. What they refer to meanwhile is
 * told to store_sweep_keep(), so that a node is kept that came back behind its back.
 *
 * INVARIANT: of a node behind which the climb is, and that is kept, the parent is kept; no node
 * goes before its children. */
#ifndef PROTOND_STORE_SWEEP_H
#define PROTOND_STORE_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"

struct store_db;

struct sweep {
	uint32_t phase;       /* 0: none runs */
	uint64_t *bits[2];    /* by id: nodes, processes that are kept */
	uint64_t n[2];        /* ids below it are covered; what is newer stays */
	int64_t at[4];        /* how far the phase is */
	int64_t anchors_from; /* realtime ns: older ones go */
	bool late;            /* rows have left since it began: another one is due */
};

/* 1: there is more; 0: it is over; -errno, and it begins anew. */
int store_sweep_piece(struct store_db *d, struct err *e);
/* Somebody refers to it. */
void store_sweep_keep_node(struct store_db *d, int64_t id);
void store_sweep_keep_process(struct store_db *d, int64_t id);
void store_sweep_stop(struct store_db *d); /* frees; none runs is fine */

#endif
