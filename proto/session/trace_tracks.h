/* SPDX-License-Identifier: MIT. trace_tracks.h: a chunk's scopes and operations in tracks: of one thread and
 * depth, or of one row of a stream, by when they begin, so that a track's hardly ever overlap.
 * Summaries are made from them, and windows read from them. Pure. */
#ifndef PROTOND_SESSION_TRACE_TRACKS_H
#define PROTOND_SESSION_TRACE_TRACKS_H

#include "trace.h"

enum trace_track_kind {
	TRACK_THREAD, /* scopes; row: depth */
	TRACK_TASKS,  /* a thread's scopes that may overlap; row: side by side */
	TRACK_STREAM, /* operations; row: side by side */
	TRACK_SYNCS,  /* a thread's calls that wait (gpu_class_is_sync()); likewise */
	TRACK_KINDS
};

struct trace_track {
	uint8_t kind;
	uint16_t row;
	uint32_t place; /* in the chunk's threads or streams: the first with this tid or stream */
	uint32_t first, n; /* items [first, first + n) are its */
};

struct trace_item {          /* an event, or several of a track that are near each other */
	uint64_t start, end; /* by the clock of their kind */
	uint64_t busy;       /* what the lengths of all in it add up to */
	uint64_t launched;   /* ring clock; the first's that is known */
	uint32_t count;
	uint32_t node;    /* its own; the most frequent one's */
	uint32_t longest; /* node of the longest in it */
	uint32_t event;   /* among the chunk's events, scopes first; several: TRACE_NONE */
	uint32_t thread;  /* that launched it; TRACE_NONE: not known */
	uint32_t track;
};

struct trace_tracks { /* trace_tracks_fini() */
	struct trace_track *track;
	struct trace_item *item;
	uint32_t n_tracks, n_items;
};

/* depth: of each of the chunk's nodes. -ENOMEM; -EBADMSG: its keys were chosen against us. *ret has no tracks then. */
int trace_tracks_make(const struct trace_chunk *c, const uint16_t *depth, struct trace_tracks *ret);
void trace_tracks_fini(struct trace_tracks *t);

#endif
