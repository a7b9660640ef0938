/* SPDX-License-Identifier: MIT. summary.h: what a chunk of the timeline looks like from afar: the column
 * trace.summary. docs/trace.md has the layout.
 *
 * A summary has levels, each sixteen times as wide as the one below. Of each track (trace_tracks.h)
 * a level has the events that are at least as long as its width one by one, and the shorter ones of
 * each stretch of that width together, so that at a scale where a pixel is that wide nothing that
 * could be seen is missing. Items of a track follow each other as its events do.
 * Single-threaded. A reader believes no byte. */
#ifndef PROTOND_SESSION_SUMMARY_H
#define PROTOND_SESSION_SUMMARY_H

#include "trace_tracks.h"

#define SUMMARY_LEVELS_MAX 10u
#define SUMMARY_FACTOR     4u    /* 2^4: from a level to the next */
#define SUMMARY_EVENTS_MIN 64u   /* a chunk with fewer has none: it is as soon read itself */
#define SUMMARY_PART       10u   /* it takes at most this part of its chunk's bytes, */
#define SUMMARY_SMALL      1024u /* of a chunk with fewer events */
#define SUMMARY_SMALL_PART 4u    /* this part: there are many where a session has such */

struct summary_level {
	struct trace_item *item; /* by track */
	uint32_t n;
};

struct summary {                   /* summary_fini() */
	struct trace_track *track; /* first, n: of no use */
	uint32_t n_tracks, n_levels;
	/* Widths of the lowest level: 2^ns for what the GPU did, 2^ticks of the ring's clock for
	 * scopes, which is about as long. */
	uint32_t ns, ticks;
	uint32_t n_nodes, n_threads; /* of the chunk: places are below */
	bool calls;                  /* of the chunk: trace_chunk.calls */
	/* Of each of the chunk's streams, how many scopes stand above what it did, at most. NULL:
	 * not known. */
	uint16_t *deepest;
	uint32_t n_streams;
	struct summary_level level[SUMMARY_LEVELS_MAX];
};

/* Of a chunk's tracks; ticks: of the ring's clock in a nanosecond; finest: 2^finest ns is the lowest
 * level's width at least. It has at most a sixteenth as many items in all tracks as there are events,
 * or as many as there are tracks. -ENOMEM. */
int summary_make(const struct trace_chunk *c, const struct trace_tracks *t, double ticks,
	uint32_t finest, struct summary *ret);
void summary_fini(struct summary *s);

/* malloc()ed. -ENOMEM. */
int summary_seal(const struct summary *s, void **ret_bytes, uint32_t *ret_n);
/* What is to stand beside a chunk of so many bytes: *ret_bytes NULL where nothing is worth it. */
int summary_of(const struct trace_chunk *c, const uint16_t *depth, double ticks, size_t chunk_bytes,
	void **ret_bytes, uint32_t *ret_n);

/* As `deepest` of a summary has it; NULL: out of memory. */
uint16_t *summary_deepest(const struct trace_chunk *c, const uint16_t *depth);

/* *ret has the levels from `lowest` on; below, n alone. Every place in it is in range of a chunk with
 * so many nodes, threads and streams. -EBADMSG, -ENOMEM. One of before calls that wait had tracks of
 * their own, of a chunk with calls, is -EBADMSG, too. */
int summary_read(const void *bytes, size_t n, const struct trace_chunk *lists, uint32_t lowest,
	struct summary *ret);

#endif
