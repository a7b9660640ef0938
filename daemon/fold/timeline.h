/* SPDX-License-Identifier: MIT. timeline.h: what one session keeps of one process beside the tree:
 * its events one by one, in chunks (trace.h). A chunk that is full is sealed and goes to the store
 * with the next collect; one that grows is stored as it stands, again and again under its number.
 *
 * A session's chunks have a ceiling of bytes and of age (fold_limits): beyond it the oldest leave.
 * Each chunk says how many events came before it, so what has left is known exactly.
 */
#ifndef PROTOND_TIMELINE_H
#define PROTOND_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"
#include "trace.h"

struct burst_part;
struct cell;
struct chunk;
struct chunks;
struct gpu;
struct lane;
struct launch;
struct metric;
struct part;
struct rec_call;
struct rec_metric;
struct rec_sample;
struct rec_scope;
struct session;

void timeline_free(struct part *part); /* without one: nothing */
void chunks_fini(struct chunks *c);

/* For parts that have a timeline. Called after the tree took the event, with the cell it counts
 * in. */
void timeline_scope(struct part *part, const struct lane *lane, const struct cell *cell,
	uint64_t begin, uint64_t end, uint8_t flags);
void timeline_call(struct part *part, const struct lane *lane, const struct cell *cell,
	const struct rec_call *r);
void timeline_sample(struct part *part, const struct cell *cell, const struct rec_sample *r);
void timeline_op(
	struct part *part, const struct launch *l, const struct gpu *g, const struct cell *cell);
void timeline_metric(struct part *part, const struct lane *lane, const struct metric *m,
	const struct rec_metric *r);
/* n events more of a lane's that are in the tree and not here: one burst for all from the THREAD record
 * that made it a lane of sums to the next, in each chunk and segment. Counted as a note, too. */
void timeline_burst(struct part *part, const struct burst_part *b, uint32_t segment, uint64_t n);

void timeline_seal(struct part *part); /* closes the chunk that grows */
/* A copy of the chunk that grows, sealed as it stands; its bytes are malloc()ed. -ENOMEM. */
int timeline_open_chunk(const struct part *part, struct chunk *ret);
void timeline_clean(struct part *part); /* all of it was collected */

/* For restore: a stored chunk; n 0: its bytes are gone. */
void timeline_put(struct session *s, const struct chunk *c);

#endif
