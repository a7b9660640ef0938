/* SPDX-License-Identifier: MIT. zoom.h: a session's timeline, asked by window: which lanes there are, what
 * is in [t0, t1) at so many pixels, the details of an event, arrows, sums of a box, the next of a name.
 *
 * What is asked for costs what is shown: chunks whose events are wider than a pixel are read, of the
 * others their summaries (summary.h). Times are nanoseconds since the session's zero, which is that of
 * its exported timelines. docs/trace.md says what a lane is.
 *
 * Single-threaded; the connection must stay open, and is only read. A reader believes no byte. */
#ifndef PROTOND_SESSION_ZOOM_H
#define PROTOND_SESSION_ZOOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct sqlite3;
struct zoom; /* opaque: only zoom*.c look inside */

#define ZOOM_PX_MAX     16384u
#define ZOOM_SLICES_MAX 8192u /* of one answer */
#define ZOOM_ARROWS_MAX 4000u
#define ZOOM_SUMS_MAX   200u
#define ZOOM_LANES_MAX  16384u /* further threads and streams share the last lane */
#define ZOOM_NONE       UINT32_MAX

/* -ENODATA: no timeline (words say how to record one). -ENOENT, -ENOMEM, -EBADMSG. `process`: of
 * struct profile_select; NULL: all. */
int zoom_open(
	struct sqlite3 *db, int64_t session, const char *process, struct zoom **ret, struct err *e);
void zoom_free(struct zoom *w); /* NULL is fine */
/* What a live session has got since. Where *ret_changed, lanes, names and events have other numbers
 * than before. Questions fail with -ESTALE where a chunk that they need has changed or left: then
 * this is due. */
int zoom_refresh(struct zoom **w, bool *ret_changed, struct err *e);

/* --- lanes */

enum zoom_kind {
	ZOOM_THREAD,    /* scopes by depth */
	ZOOM_TASKS,     /* a thread's scopes that may overlap, side by side */
	ZOOM_STREAM,    /* GPU work; what overlaps, side by side */
	ZOOM_PROJECTED, /* scopes by the GPU work that was launched in them; parent: the stream */
	ZOOM_SUMMED,    /* bursts: events that the tree alone has; parent: the thread */
	ZOOM_SYNCS,     /* a thread's calls that wait (gpu_class_is_sync()); parent: the thread */
};

struct zoom_lane {       /* in the order in which they are to be shown */
	uint32_t id;     /* its place */
	uint32_t parent; /* ZOOM_NONE */
	uint8_t kind;    /* enum zoom_kind */
	uint16_t rows;   /* depths [0, rows) */
	const char *name;
	uint32_t process; /* place in zoom_processes() */
	uint32_t device;  /* STREAM, PROJECTED: ordinal; else ZOOM_NONE */
	uint32_t number;  /* tid or stream */
	uint64_t events;  /* 0: not counted (PROJECTED); SUMMED: those of its bursts */
};
struct zoom_process {
	int64_t id, pid, rank; /* rank -1: none */
	const char *command;
};

const struct zoom_lane *zoom_lanes(const struct zoom *w, uint32_t *ret_n);
const struct zoom_process *zoom_processes(const struct zoom *w, uint32_t *ret_n);
void zoom_range(const struct zoom *w, uint64_t *ret_t0, uint64_t *ret_t1);
struct zoom_state {
	uint64_t events, gone;       /* that are there; that left the timeline before */
	uint64_t summed;             /* that never were there: those of bursts */
	uint64_t memory;             /* bytes held */
	uint32_t chunks, summarised; /* summarised: had none, and were read for it */
};
void zoom_state(const struct zoom *w, struct zoom_state *ret);
/* Of slices, sums and events. Clean UTF-8; "" for ZOOM_NONE. */
const char *zoom_name(const struct zoom *w, uint32_t name);

/* Colours that the program gave to scopes, by their recorded names (trace_names.h). */
struct named_color;
const struct named_color *zoom_colors(const struct zoom *w, uint32_t *ret_n);

/* --- slices */

struct zoom_ask {
	uint64_t t0, t1;      /* t0 < t1 */
	uint32_t px;          /* 1 to ZOOM_PX_MAX */
	uint32_t most;        /* slices; 0: ZOOM_SLICES_MAX */
	const uint32_t *lane; /* ids; NULL: all */
	uint32_t n_lanes;
};

struct zoom_slice {
	uint64_t start_ns, end_ns; /* it may reach out of the window */
	uint64_t busy_ns;          /* of those merged, together */
	uint32_t count;            /* events in it; 1: itself; at most UINT32_MAX */
	uint32_t name;    /* its own; of several the most frequent one's; SUMMED: ZOOM_NONE */
	uint32_t longest; /* name of the longest in it; likewise */
	uint32_t
		event; /* its id; 0 where several were merged, of what is projected, and of bursts */
	uint32_t lane;
	uint16_t depth;
};

struct zoom_tile {
	struct zoom_slice *slice; /* by lane, depth, start */
	uint32_t n;
	uint64_t
		merge_ns; /* what is shorter was merged: a pixel, or more where too much was there */
	bool coarse;      /* more than a pixel */
};

/* -EINVAL: a question that is none (words). */
int zoom_slices(struct zoom *w, const struct zoom_ask *ask, struct zoom_tile *ret, struct err *e);
void zoom_tile_fini(struct zoom_tile *t);

/* --- arrows */

struct zoom_arrow {
	uint64_t from_ns, to_ns;
	uint32_t from_lane, to_lane;
	uint16_t from_depth, to_depth;
	uint32_t event; /* the operation */
};
struct zoom_arrows { /* at most ZOOM_ARROWS_MAX, the ones apart from each other first */
	struct zoom_arrow *arrow;
	uint32_t n;
	uint64_t left_out;
};
/* From each launch to its first operation, where either lies in the window and both in its lanes. */
int zoom_arrows(struct zoom *w, const struct zoom_ask *ask, struct zoom_arrows *ret, struct err *e);
void zoom_arrows_fini(struct zoom_arrows *a);

/* --- one event */

struct zoom_event {
	uint32_t lane, name, segment;
	uint16_t depth;
	uint64_t start_ns, end_ns;
	uint32_t n_path;      /* names from the root to its own: zoom_name() */
	const uint32_t *path; /* valid until the next question */
	bool is_op, is_sync, launched;
	uint8_t class, flags; /* is_op, is_sync: enum cell_class; flags: TRACE_… of its kind */
	/* is_op; is_sync: correlation, stream (ZOOM_NONE: none) */
	uint32_t device, context, stream, correlation, thread_lane; /* thread_lane: launched */
	uint64_t bytes, launch_ns;
	/* What the program calls its context; is_sync: its event; "": nothing. */
	char object_name[64];
	bool configured;
	uint32_t grid[3], block[3], registers, static_shared, dynamic_shared;
	/* is_sync */
	uint64_t cuda_event; /* the vendor's handle of what was recorded or waited for; 0: none */
	struct zoom_place {
		uint32_t event; /* 0: none, or not known */
		uint32_t lane, name, stream;
		uint16_t depth;
		uint64_t start_ns, end_ns;
	} record,         /* the call that recorded what this one waits for */
		ended_by; /* the work whose end it waited for, of that which was not over before */
};
int zoom_event(struct zoom *w, uint32_t event, struct zoom_event *ret, struct err *e); /* -ENOENT */

/* --- what is in a box */

struct zoom_sum {
	uint32_t name, count;
	uint64_t total_ns, min_ns, max_ns; /* of whole events that touch the window */
};
struct zoom_sums { /* by total, longest first */
	struct zoom_sum *sum;
	uint32_t n;
	struct zoom_sum rest; /* of the names left out; count 0: none */
	uint32_t rest_names;
};
int zoom_sums(struct zoom *w, const struct zoom_ask *ask, struct zoom_sums *ret, struct err *e);
void zoom_sums_fini(struct zoom_sums *s);

/* --- counters: the numbers that a job told, each name of each process */

#define ZOOM_COUNTERS_MAX 256u
#define ZOOM_COUNTS_MAX   4096u /* of one answer */

struct zoom_counter { /* its place is its id */
	const char *name;
	uint32_t process; /* place in zoom_processes() */
	uint64_t told;
	double min, max;
};
/* left_out: numbers of names beyond the ceiling. */
const struct zoom_counter *zoom_counters(
	const struct zoom *w, uint32_t *ret_n, uint64_t *ret_left_out);

struct zoom_point {  /* one number, or several that are near each other */
	uint64_t ns; /* the first's */
	double min, max, last;
	uint32_t count;
};
struct zoom_count {
	uint32_t counter, px;
	struct zoom_point all; /* of that pixel */
};
struct zoom_counts {
	struct zoom_count *v; /* by counter, then by px; none where nothing was told */
	uint32_t n;
	uint32_t px;    /* as asked, or fewer where too much was there */
	double *before; /* of each counter, the last before the window; NaN: none */
	bool coarse;    /* what is near each other stands further apart than a pixel */
};
/* The numbers that were told in the window; `lane` names counters. */
int zoom_count(struct zoom *w, const struct zoom_ask *ask, struct zoom_counts *ret, struct err *e);
void zoom_counts_fini(struct zoom_counts *c);

/* --- search */

/* The first event that begins after `from_ns` (or the last before it) whose name has `part` in it,
 * upper or lower case alike, or is it; its lane among ask's. Of those that begin at one time one
 * comes after the other by its id: so from event to event none is left out. -ENOENT. */
struct zoom_find {
	const char *part;
	uint64_t from_ns;
	uint32_t event;       /* that begins at from_ns; 0: none */
	bool back, whole;     /* whole: the name is `part` */
	const uint32_t *lane; /* NULL: all */
	uint32_t n_lanes;
};
int zoom_find(struct zoom *w, const struct zoom_find *f, struct zoom_slice *ret, struct err *e);

#endif
