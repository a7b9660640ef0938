/* SPDX-License-Identifier: MIT. zoom_int.h: what zoom*.c share: the index of a session's chunks, and
 * their items in nanoseconds. */
#ifndef PROTOND_SESSION_ZOOM_INT_H
#define PROTOND_SESSION_ZOOM_INT_H

#include "gpu_label.h"
#include "summary.h"
#include "table.h"
#include "trace_names.h"
#include "trace_time.h"
#include "zoom.h"

#define ZOOM_EVENTS UINT8_MAX /* as a level: the events themselves */
#define ZOOM_NEVER  UINT64_MAX

struct zoomed_gpu {
	uint32_t device, ordinal;
	const char *label, *streams; /* the program's names: gpu_label.h */
};

struct zoomed_process {
	struct trace_process p;
	struct zoomed_gpu *gpu;
	uint32_t n_gpus, cap_gpus;
	uint16_t deepest; /* scopes above any GPU work */
};

struct zoomed_lane {
	uint32_t process, device, number; /* its key, with kind */
	uint8_t kind;
	uint16_t low, high; /* depths that it has; low > high: none so far */
	const char *own;    /* a thread's own name; NULL: not known */
	uint64_t events;
	uint16_t deepest; /* STREAM: scopes above its operations, at most */
	uint32_t of;      /* PROJECTED: its stream's place in `lane`; SUMMED, SYNCS: its thread's */
	uint64_t until;   /* SUMMED: where its last burst ends */
	uint64_t *free_at; /* TASKS, SYNCS, STREAM: [n_free_at]: from when on each row is free */
	uint16_t n_free_at;
	uint32_t shown;     /* its place in `show` */
	uint32_t first_row; /* of all lanes', in the order in which they are shown */
	uint16_t rows;
};

struct zoomed_points { /* by time */
	struct zoom_point *v;
	uint32_t n, cap;
};

struct zoomed_counter {
	const char *name;
	char *text; /* as it was told */
	uint32_t process;
	struct zoomed_points p;
};

struct zoomed_burst {
	uint64_t start, end, n;
	uint32_t lane; /* place in `lane` */
};

struct zoomed_track {
	uint32_t lane; /* place in `lane` */
	uint16_t depth;
};

struct zoomed_row { /* what of a row begins before `until` stands in another: zoom_rows.c */
	uint32_t lane;
	uint16_t of, row;
	uint64_t until;
};

/* Items of a chunk at one level; times in nanoseconds since the zero, nodes as places in names.v,
 * threads as lanes. launched: ZOOM_NEVER where it is not known. */
struct zoomed_part {
	struct trace_item *item; /* by track, then by start */
	const struct zoomed_track *track;
	uint32_t n;
};

struct zoomed_chunk {
	uint32_t process, number; /* its row's key, with the session */
	uint32_t events, first_event;
	uint32_t bytes;                    /* likewise */
	uint32_t n[TRACE_COUNT_MAX];       /* as it has them */
	uint32_t counted;                  /* metrics that an older reading of it had */
	bool bursts;                       /* it has some */
	uint64_t t0, t1, launch0, launch1; /* launch0 > launch1: none */
	uint64_t told0, told1;             /* of its metrics; likewise */
	uint32_t ns, n_levels;             /* the lowest's width is 2^ns; 0: it is always read */
	bool exact;                        /* it is small: level 0 is its events */
	/* Of level 0 only how many, unless it is the only one. All have one array of tracks. */
	struct zoomed_part *level;  /* [n_levels], at least one */
	struct zoomed_track *track; /* [2 * n_tracks] */
	uint32_t n_tracks;
	struct zoomed_row *row; /* [n_rows] */
	uint32_t n_rows;
	uint32_t *node;   /* its nodes, as places in names.v */
	uint32_t *thread; /* its threads' lanes */
	void *blob;       /* its summary where none is stored; NULL: it is */
	uint32_t n_blob;
	uint32_t cached
		[2]; /* place in zoom.cached, and one, of its lowest level and of its events; 0: none */
};

struct zoomed_cached {
	struct zoomed_part part;
	struct zoomed_track *track; /* of events; NULL: the chunk's */
	uint32_t chunk, n_tracks;
	uint8_t level;  /* 0 or ZOOM_EVENTS */
	uint64_t asked; /* the question that used it last */
	size_t bytes;
};

#define ZOOM_CACHE_BYTES  (12u << 20)
#define ZOOM_EXACT_BYTES  (8u << 20)  /* small chunks that stay in memory as they are */
#define ZOOM_KEPT_BYTES   (32u << 20) /* summaries of chunks that have none stored */
#define ZOOM_COARSE_BYTES (40u << 20) /* levels that stay in memory, and those small chunks */

struct zoom {
	struct load l;
	struct profile_select select;
	struct trace_time time;
	struct trace_names names;
	struct zoomed_process *process; /* [l.n_processes] */
	struct zoomed_chunk *chunk;     /* by process, then as they came */
	uint32_t n_chunks, cap_chunks;
	struct zoomed_lane *lane;
	uint32_t n_lanes, cap_lanes;
	struct table by_key;
	struct zoom_lane *show; /* in order; [n_lanes] */
	uint32_t n_rows;
	struct zoom_process *shown_process;
	uint64_t t0, t1, events, gone;
	int64_t newest[4];                        /* what it was opened at */
	uint32_t refreshed;                       /* so often since */
	struct sqlite3_stmt *read, *read_summary; /* of a chunk, by its key */
	struct zoomed_cached *cached;
	uint32_t n_cached, cap_cached;
	size_t cached_bytes, kept_bytes, coarse_bytes, exact_bytes;
	uint64_t asked;
	struct zoomed_counter *counter;
	struct zoom_counter *shown_counter; /* [n_counters] */
	uint32_t n_counters, cap_counters;
	struct zoomed_burst *burst; /* of a lane: by time, and none overlaps another */
	uint32_t n_bursts, cap_bursts;
	uint64_t summed;
	uint64_t counter_ns, untold; /* stretches of so much are one point; of no counter */
	uint32_t summarised;
	uint32_t *path; /* of zoom_event() */
};

int zoom_no_memory(struct err *e);
/* The nanoseconds that a level's items are merged over. */
static inline uint64_t zoom_width(const struct zoomed_chunk *c, uint8_t level)
{
	return level == ZOOM_EVENTS || c->exact ? 0 : 1ull << (c->ns + SUMMARY_FACTOR * level);
}

/* zoom_chunk.c */
/* A chunk's row into the index: first, events, bytes, summary are columns of st. before: an older
 * reading of it, whose metrics are known; NULL: none. */
int zoom_add_chunk(struct zoom *w, uint32_t process, struct sqlite3_stmt *st,
	const struct zoomed_chunk *before, struct err *e);
/* One of before, which is as it was, to the end of the index. *take is the index's. */
int zoom_keep_chunk(struct zoom *w, struct zoomed_chunk *take, struct err *e);
/* What it holds is no longer counted; then fini. */
void zoom_drop_chunk(struct zoom *w, struct zoomed_chunk *c);
void zoom_chunk_fini(struct zoomed_chunk *c);
/* The items of a chunk at a level; they stay until the next question. */
int zoom_part(
	struct zoom *w, uint32_t chunk, uint8_t level, struct zoomed_part *ret, struct err *e);
/* Where and when an event is: as in the answer it was shown in. at: among its chunk's. -ENOENT. */
int zoom_place_of(
	struct zoom *w, uint32_t chunk, uint32_t at, struct zoom_place *ret, struct err *e);
bool zoom_is_at_hand(const struct zoom *w, uint32_t chunk, uint8_t level);
void zoom_cache_clear(struct zoom *w);
/* The chunk itself, or what `read` (trace.h) reads of it; the caller's to give back. */
typedef int zoom_read_fn(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
int zoom_read_chunk(
	struct zoom *w, uint32_t chunk, zoom_read_fn *read, struct trace_chunk *ret, struct err *e);

/* zoom_rows.c: rows of what overlaps, over the seams of chunks. */
/* Which row what is in a chunk has: p is all of it. */
int zoom_place_rows(
	struct zoom *w, struct zoomed_chunk *k, const struct zoomed_part *p, struct err *e);
/* Then each part of it: those that stand in another row get the track behind n_tracks more. */
void zoom_settle(const struct zoomed_chunk *k, struct zoomed_part *p, struct zoomed_track *track,
	uint32_t n_tracks);

/* zoom.c */
#define ZOOM_CHUNKS \
	"SELECT first, events, bytes, summary, number FROM trace WHERE session=?1 AND process=?2"
int zoom_load_process(struct zoom *w, uint32_t at, struct err *e); /* all but its chunks */
int zoom_newest(struct zoom *w, int64_t ret[4]);
int zoom_order_lanes(struct zoom *w, struct err *e);
uint32_t zoom_lane_of(struct zoom *w, struct zoomed_lane want); /* ZOOM_NONE: out of memory */

/* zoom_gather.c */
struct zoomed_gathered {
	struct gathered_part {
		struct zoomed_part part;
		uint32_t chunk;
	} * v;
	uint32_t n, cap;
	uint64_t merge_ns;
	bool coarse;
};
/* The parts that show [t0, t1) at merge_ns or what is above it that can be read in time; events: as
 * they are, whatever it takes. launches: also the scopes that the window's GPU work was launched
 * in. */
struct gather_ask {
	uint64_t t0, t1, merge_ns;
	bool events, launches;
};
int zoom_gather(
	struct zoom *w, const struct gather_ask *a, struct zoomed_gathered *ret, struct err *e);
void zoom_gathered_fini(struct zoomed_gathered *g);

/* The row of a lane that shows this depth; and how deep it is there. */
static inline uint16_t zoom_depth(const struct zoomed_lane *l, uint32_t depth)
{
	const uint32_t at = depth > l->low ? depth - l->low : 0;

	return (uint16_t)(at < l->rows ? at : l->rows - 1u);
}

/* zoom_scopes.c: which scope instance was open when */
struct zoomed_scopes {
	struct zoomed_stretch {
		uint32_t lane, depth, n;
		const struct trace_item *item;
	} * v;
	uint32_t n, cap;
};
enum zoomed_open { OPEN_NONE, OPEN_ONE, OPEN_SHORT }; /* SHORT: of several that were merged */
struct zoomed_opened {
	enum zoomed_open what;
	uint64_t from, to; /* this holds there */
	uint32_t node;
};
int zoom_scopes(const struct zoom *w, const struct zoomed_gathered *g, struct zoomed_scopes *ret,
	struct err *e);
void zoom_scopes_fini(struct zoomed_scopes *s);
struct zoomed_opened zoom_opened(
	const struct zoomed_scopes *s, uint32_t lane, uint32_t depth, uint64_t at);

/* zoom_counters.c */
/* A chunk's metrics, as it is opened; when all are. */
int zoom_add_counters(
	struct zoom *w, struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e);
int zoom_order_counters(struct zoom *w, struct err *e);
void zoom_counters_fini(struct zoom *w);

/* zoom_bursts.c: a chunk's bursts, as it is opened. */
int zoom_add_bursts(
	struct zoom *w, const struct zoomed_chunk *k, const struct trace_chunk *c, struct err *e);
uint32_t zoom_add32(uint32_t a, uint64_t b); /* at most UINT32_MAX */

/* zoom_syncs.c: the record and the work of a call that waits (zoom_event.start_ns to end_ns are set). */
int zoom_sync(struct zoom *w, uint32_t chunk, const struct trace_scope *s, struct zoom_event *ret,
	struct err *e);

/* Which lanes were asked for: an array of n_lanes, by place in `lane`. NULL: out of memory. */
bool *zoom_wanted(const struct zoom *w, const uint32_t *lane, uint32_t n);
int zoom_check(const struct zoom_ask *a, struct err *e);

#endif
