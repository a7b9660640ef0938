/* SPDX-License-Identifier: MIT. window.h: a session's timeline, asked by window: which lanes there are, what
 * is in [t0, t1) at so many pixels, the details of an event, arrows, sums of a box, the next of a name.
 *
 * What is asked for costs what is shown: chunks whose events are wider than a pixel are read, of the
 * others their summaries (summary.h). Times are nanoseconds since the session's zero, which is that of
 * its exported timelines. docs/trace.md says what a lane is.
 *
 * Single-threaded; the connection must stay open, and is only read. A reader believes no byte. */
#ifndef PROTOND_SESSION_WINDOW_H
#define PROTOND_SESSION_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct sqlite3;
struct window; /* opaque: only window*.c look inside */

#define WINDOW_PX_MAX     16384u
#define WINDOW_SLICES_MAX 8192u /* of one answer */
#define WINDOW_ARROWS_MAX 4000u
#define WINDOW_SUMS_MAX   200u
#define WINDOW_LANES_MAX  16384u /* further threads and streams share the last lane */
#define WINDOW_NONE       UINT32_MAX

/* -ENODATA: no timeline (words say how to record one). -ENOENT, -ENOMEM, -EBADMSG. `process`: of
 * struct profile_select; NULL: all. */
int window_open(struct sqlite3 *db, int64_t session, const char *process, struct window **ret,
	struct err *e);
void window_free(struct window *w); /* NULL is fine */
/* What a live session has got since. Lanes keep their numbers; the ids of events hold until then
 * only where *ret_changed is false. */
int window_refresh(struct window *w, bool *ret_changed, struct err *e);

/* --- lanes */

enum window_kind {
	WINDOW_THREAD,    /* scopes by depth */
	WINDOW_TASKS,     /* a thread's scopes that may overlap, side by side */
	WINDOW_STREAM,    /* GPU work; what overlaps, side by side */
	WINDOW_PROJECTED, /* scopes by the GPU work that was launched in them; parent: the stream */
	WINDOW_COUNTER,   /* a metric's values over time; name: the metric's */
};

struct window_lane {     /* in the order in which they are to be shown */
	uint32_t id;     /* its place */
	uint32_t parent; /* WINDOW_NONE */
	uint8_t kind;    /* enum window_kind */
	uint16_t rows;   /* depths [0, rows) */
	const char *name;
	uint32_t process; /* place in window_processes() */
	uint32_t device;  /* STREAM, PROJECTED: ordinal; else WINDOW_NONE */
	uint32_t number;  /* tid or stream */
	uint64_t events;  /* 0: not counted (PROJECTED) */
};
struct window_process {
	int64_t id, pid, rank; /* rank -1: none */
	const char *command;
};

const struct window_lane *window_lanes(const struct window *w, uint32_t *ret_n);
const struct window_process *window_processes(const struct window *w, uint32_t *ret_n);
void window_range(const struct window *w, uint64_t *ret_t0, uint64_t *ret_t1);
struct window_state {
	uint64_t events, gone;       /* that are there; that left the timeline before */
	uint64_t memory;             /* bytes held */
	uint32_t chunks, summarised; /* summarised: had none, and were read for it */
};
void window_state(const struct window *w, struct window_state *ret);
/* Of slices, sums and events. Clean UTF-8; "" for WINDOW_NONE. */
const char *window_name(const struct window *w, uint32_t name);

/* --- slices */

struct window_ask {
	uint64_t t0, t1;      /* t0 < t1 */
	uint32_t px;          /* 1 to WINDOW_PX_MAX */
	uint32_t most;        /* slices; 0: WINDOW_SLICES_MAX */
	const uint32_t *lane; /* ids; NULL: all */
	uint32_t n_lanes;
};

struct window_slice {
	uint64_t start_ns, end_ns; /* it may reach out of the window */
	uint64_t busy_ns;          /* of those merged, together */
	uint32_t count;            /* events in it; 1: itself */
	uint32_t name;             /* its own; of several the most frequent one's */
	uint32_t longest;          /* name of the longest in it */
	uint32_t event; /* its id; 0 where several were merged, and where it is projected */
	uint32_t lane;
	uint16_t depth;
	double value, low, high; /* COUNTER: the last in it, the least, the greatest; else 0 */
};

struct window_tile {
	struct window_slice *slice; /* by lane, depth, start */
	uint32_t n;
	uint64_t
		merge_ns; /* what is shorter was merged: a pixel, or more where too much was there */
	bool coarse;      /* more than a pixel */
};

/* -EINVAL: a question that is none (words). */
int window_slices(
	struct window *w, const struct window_ask *ask, struct window_tile *ret, struct err *e);
void window_tile_fini(struct window_tile *t);

/* --- arrows */

struct window_arrow {
	uint64_t from_ns, to_ns;
	uint32_t from_lane, to_lane;
	uint16_t from_depth, to_depth;
	uint32_t event; /* the operation */
};
struct window_arrows { /* at most WINDOW_ARROWS_MAX, the ones apart from each other first */
	struct window_arrow *arrow;
	uint32_t n;
	uint64_t left_out;
};
/* From each launch to its first operation, where either lies in the window and both in its lanes. */
int window_arrows(
	struct window *w, const struct window_ask *ask, struct window_arrows *ret, struct err *e);
void window_arrows_fini(struct window_arrows *a);

/* --- one event */

struct window_event {
	uint32_t lane, name, segment;
	uint16_t depth;
	uint64_t start_ns, end_ns;
	uint32_t n_path;      /* names from the root to its own: window_name() */
	const uint32_t *path; /* valid until the next question */
	bool is_op, launched;
	uint8_t class, flags; /* is_op: enum cell_class; flags: TRACE_… of its kind */
	/* is_op */
	uint32_t device, context, stream, correlation, thread_lane; /* thread_lane: launched */
	uint64_t bytes, launch_ns;
	bool configured;
	uint32_t grid[3], block[3], registers, static_shared, dynamic_shared;
};
int window_event(
	struct window *w, uint32_t event, struct window_event *ret, struct err *e); /* -ENOENT */

/* --- what is in a box */

struct window_sum {
	uint32_t name, count;
	uint64_t total_ns, min_ns, max_ns; /* of whole events that touch the window */
};
struct window_sums { /* by total, longest first */
	struct window_sum *sum;
	uint32_t n;
	struct window_sum rest; /* of the names left out; count 0: none */
	uint32_t rest_names;
	bool approximate; /* too many to read each: min and max are of what was looked at */
};
int window_sums(
	struct window *w, const struct window_ask *ask, struct window_sums *ret, struct err *e);
void window_sums_fini(struct window_sums *s);

/* --- search */

/* The first event that begins after `from_ns` (or the last before it) whose name has `part` in it,
 * upper or lower case alike; its lane among ask's. -ENOENT. */
struct window_find {
	const char *part;
	uint64_t from_ns;
	bool back;
	const uint32_t *lane; /* NULL: all */
	uint32_t n_lanes;
};
int window_find(
	struct window *w, const struct window_find *f, struct window_slice *ret, struct err *e);

#endif
