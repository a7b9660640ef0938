/* SPDX-License-Identifier: MIT. drain.h: from a ring's lanes and tables into the journal and the
 * fold. For the loop. Loop thread. */
#ifndef PROTOND_DAEMON_DRAIN_H
#define PROTOND_DAEMON_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct ring;
struct rings;

#define DRAIN_BYTES     (2u << 20) /* per ring and tick */
#define DRAIN_NS        2000000u   /* likewise */
#define BEHIND_BYTES_S  (2u << 20) /* per ring and second, while the store is behind */
#define FLUSH_BYTES     (1u << 20) /* staged, at most, between two flushes */
#define NOW_SCOPES      8192u      /* in one NOW: the innermost of each thread */
#define NOW_SCOPES_USER 131072u /* of all rings of a user: what a session's end counts in one go */

struct drain {
	uint8_t *arena; /* DRAIN_BYTES + READER_PIECE: one window's, between scanning and staging */
	uint32_t arena_used;
	uint64_t ns;        /* for one ring in one tick: DRAIN_NS; tests take their time */
	bool behind;        /* the store does not keep up: see drain_ring() */
	uint32_t noted_uid; /* whose ring drain_notes() took last */
};

/* Takes what the ring has into the journal and the fold, one window at a time, for DRAIN_BYTES or
 * DRAIN_NS; while the store is behind, no more than BEHIND_BYTES_S since the last call: whoever
 * writes more drops its own, and is told. Returns bytes taken; *ret_more: that ended before the
 * window. -EIO: its file is unusable. -ENOSPC, -ENOMEM. */
int64_t drain_ring(struct ring *r, bool *ret_more);
/* Something may come of it yet. Of the dead, too: a session may be finalized before the tick that
 * writes END. */
bool drain_goes_on(const struct ring *r);
/* All that was published before that instant is in the fold, or never will be; else it is asked for.
 */
bool drain_is_past(struct ring *r, uint64_t ns);
/* Takes no more of it: each lane that has something lost it. -ENOSPC, -ENOMEM: not now. */
int drain_give_up(struct ring *r);
/* At most so much of a lane is applied in one go: less, the more sessions it counts in. */
uint32_t drain_entry_bytes(const struct ring *r);
/* The whole of every table into the fold. */
int drain_tables(struct ring *r, bool *ret_more, uint64_t deadline_ns);
/* Likewise, and not into the journal: the ring has them as long as the journal would. */
int drain_tables_again(struct ring *r, bool *ret_more);
int drain_now_block(struct ring *r); /* NOW, if it changed. -EAGAIN: tables come first */
int drain_counts(struct ring *r);    /* COUNTS, if they changed */
/* NOW and COUNTS of a later instant are in the fold, or never will be; else they are asked for. */
bool drain_is_noted(struct ring *r, uint64_t ns);
/* Both, and both are asked for. */
static inline bool drain_is_there(struct ring *r, uint64_t ns)
{
	const bool past = drain_is_past(r, ns);

	return drain_is_noted(r, ns) && past;
}
/* Takes those that were asked for, with an anchor, for as long as one ring's drain may last; each
 * user's in turn, and where one's took as long, one of another. False: there are more. */
bool drain_notes(struct rings *all);

#endif
