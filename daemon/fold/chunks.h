/* SPDX-License-Identifier: MIT. chunks.h: a timeline as data: the chunk that grows and those that
 * wait for the store, of one session and process; and which chunks a session has. */
#ifndef PROTOND_CHUNKS_H
#define PROTOND_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"
#include "trace.h"

struct lane;

struct timeline_key {
	uint32_t a, b, c;
};

struct timeline_index { /* what a chunk's list has, in its order */
	struct table by_key;
	struct timeline_key *key;
	uint32_t n, cap;
};

struct burst_part { /* events that were summed: when they were, and in which lane */
	uint64_t from, to;
	const struct lane *lane;
	uint32_t lane_index;
};

struct chunk {
	int64_t process;
	uint64_t first, end_ns; /* events of the process before it; monotonic: when it last grew */
	uint32_t number, events, n;
	void *bytes; /* [n], owned until it is collected; then NULL */
};

struct timeline {
	struct trace_pack pack;
	struct timeline_index node, thread, stream, config, text, burst;
	struct chunk *sealed; /* not yet collected */
	uint32_t n_sealed, cap_sealed;
	uint32_t number; /* of the chunk that grows */
	uint64_t first;
	bool dirty;
};

/* The chunks of a session that are kept, oldest first, and those that left since the last collect.
 */
struct chunks {
	struct chunk *v, *gone;
	uint32_t from, n, cap, n_gone, cap_gone; /* kept: v[from] to v[n - 1] */
	uint64_t bytes;
};

#endif
