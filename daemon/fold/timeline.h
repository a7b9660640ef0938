/* SPDX-License-Identifier: MIT. timeline.h: what one session keeps of one process beside the tree:
 * its events one by one, in chunks (trace.h). A chunk that is full is sealed and goes to the store
 * with the next collect; one that grows is stored as it stands, again and again under its number.
 *
 * A session's chunks have a ceiling of bytes and of age (fold_limits): beyond it the oldest leave.
 * A chunk says how many events came before it, so that what left is known to the event.
 */
#ifndef PROTOND_TIMELINE_H
#define PROTOND_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"
#include "trace.h"

struct cell;
struct gpu;
struct lane;
struct launch;
struct metric;
struct part;
struct rec_metric;
struct rec_scope;
struct session;

struct timeline_key {
	uint32_t a, b, c;
};

struct timeline_index { /* what a chunk's list has, in its order */
	struct table by_key;
	struct timeline_key *key;
	uint32_t n, cap;
};

struct chunk {
	int64_t process;
	uint64_t first, end_ns; /* events of the process before it; monotonic: when it last grew */
	uint32_t number, events, n;
	void *bytes; /* [n], owned until it is collected; then NULL */
};

struct timeline {
	struct trace_pack pack;
	struct timeline_index node, thread, stream, config, text;
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

void timeline_free(struct part *part); /* none: nothing */
void chunks_fini(struct chunks *c);

/* The part has a timeline. Each event after the tree took it, with the cell that it counts in. */
void timeline_scope(struct part *part, const struct lane *lane, const struct cell *cell,
	uint64_t begin, uint64_t end, uint8_t flags);
void timeline_op(
	struct part *part, const struct launch *l, const struct gpu *g, const struct cell *cell);
void timeline_metric(struct part *part, const struct lane *lane, const struct metric *m,
	const struct rec_metric *r);

void timeline_seal(struct part *part); /* no more events: the chunk that grows is closed */
/* The chunk that grows, sealed as it stands: bytes malloc()ed. -ENOMEM. */
int timeline_open_chunk(const struct part *part, struct chunk *ret);
void timeline_clean(struct part *part); /* all of it was collected */

/* For restore: a stored chunk; n 0: its bytes are gone. */
void timeline_put(struct session *s, const struct chunk *c);

#endif
