/* SPDX-License-Identifier: MIT. timeline.h: a session's timeline, walked once, for the formats that
 * write it: process by process and chunk by chunk, with times as nanoseconds since the file's base,
 * nodes by name, operations in lanes that do not overlap, and the metrics of a scope beside it.
 * timeline.c reads a session and its processes, timeline_chunk.c what a chunk has; a format is a
 * struct timeline_form. In memory is one chunk, and what is named: never the events before. */
#ifndef PROTOND_EXPORT_TIMELINE_H
#define PROTOND_EXPORT_TIMELINE_H

#include <stdlib.h>

#include "export_format.h"
#include "gpu_label.h"
#include "profile_rows.h"
#include "reading_rows.h"
#include "step_name.h"
#include "text.h"
#include "trace.h"
#include "trace_names.h"
#include "trace_rows.h"
#include "trace_time.h"

struct named { /* a thread that had an event */
	uint32_t tid;
	bool summed;           /* it had a burst */
	bool synced;           /* it had a call that waits */
	uint64_t summed_until; /* where its last one ends */
	const char *name;      /* NULL: not known */
};

struct held { /* a metric whose scope has not been seen */
	uint64_t clock;
	uint32_t tid, node; /* node: place in known */
	uint8_t type;
	uint32_t free; /* its own place; once a scope has taken it, a later one */
	const char *name, *text;
	uint64_t bits;
};

struct gpu_seen {
	int64_t device;
	uint32_t ordinal,
		pid;         /* pid: of a process of its own, above all of Linux; 0: idle so far */
	const char *name;    /* with the program's, where it gave one */
	const char *streams; /* gpu_label.h; NULL: none */
	uint8_t uuid[16];    /* zeroes: not known */
};

struct timeline_scope {
	uint64_t begin_ns, end_ns;
	uint32_t tid, node,
		n_metrics;      /* its metrics: held[taken[i]], by name, then as they were set */
	uint8_t flags;          /* TRACE_... */
	struct trace_call call; /* of TRACE_CALL */
};

static inline bool timeline_is_sync(const struct timeline_scope *s)
{
	return (s->flags & TRACE_CALL) != 0 && gpu_class_is_sync(s->call.class);
}

struct timeline_op {
	const struct trace_op *op;
	const struct trace_stream *stream;
	const struct trace_config *config; /* NULL: not known */
	const struct gpu_seen *gpu;
	uint64_t start_ns, end_ns;
	uint32_t node, lane;
	bool launch;  /* it is the first of its launch */
	uint32_t tid; /* of the launch, where that is known: not TRACE_UNLAUNCHED */
	uint64_t launch_ns;
};

struct timeline_burst { /* of a thread: n events that are in the tree alone (trace.h) */
	uint64_t begin_ns, end_ns, n; /* none of them overlaps another of its thread */
	uint32_t tid;
	bool first; /* of its thread */
};

struct timeline_device {
	const char *name;
	uint64_t ordinal, arch, num_sms, memory_bytes;
};

struct timeline_reading { /* of a GPU or the host, which holds from its begin to its end */
	const struct reading_value *value;
	const char *name; /* "GPU 0 power (W)" */
	uint64_t begin_ns, end_ns;
	uint32_t track; /* from 0, a number for each name */
	bool first;     /* of its track */
};

struct timeline;

/* What a format writes, each to w->out, which is flushed in between. NULL: nothing. */
struct timeline_form {
	void (*open)(struct timeline *w);
	void (*device)(struct timeline *w, const struct timeline_device *d);
	void (*opened)(struct timeline *w);
	void (*process)(struct timeline *w);
	void (*scope)(struct timeline *w, const struct timeline_scope *s);
	void (*op)(struct timeline *w, const struct timeline_op *o);
	void (*metric)(struct timeline *w, const struct held *h, uint64_t ns); /* of no scope */
	void (*burst)(struct timeline *w, const struct timeline_burst *b);
	void (*chunk_end)(struct timeline *w);
	void (*process_end)(struct timeline *w); /* threads, GPUs and lanes are known */
	void (*reading)(
		struct timeline *w, const struct timeline_reading *r); /* after all processes */
	void (*close)(struct timeline *w);
};

struct timeline {
	const struct timeline_form *form;
	void *mine; /* the form's */
	struct load l;
	struct text out;
	FILE *to;
	struct export_left left; /* so far */
	uint64_t done, all;      /* events walked over, of so many: for whoever waits */
	struct trace_time time;
	int64_t zero_ns; /* CLOCK_REALTIME where the file's times begin */
	struct trace_names names;
	struct known *known; /* names.v */
	uint32_t gpu_pid;
	/* of the process at hand */
	uint64_t events, kept; /* in all its chunks; in those that are there */
	struct trace_process at;
	struct lane_set *lane;
	uint32_t n_lanes, cap_lanes;
	struct named *thread;
	uint32_t n_threads, cap_threads;
	struct profile *texts; /* what the held ones are called */
	struct held *held;
	uint32_t n_held, cap_held;
	uint32_t *taken; /* those that the scope at hand took: places in held */
	uint32_t cap_taken;
	struct gpu_seen *gpu;
	uint32_t n_gpus, cap_gpus;
	/* of the chunk at hand */
	uint32_t *node; /* its places → known */
	uint32_t cap_node;
	uint8_t *step; /* of a known node: 0 not looked at, 1 no, 2 yes */
	uint32_t cap_step;
};

int timeline_no_memory(struct timeline *w);
/* Tells how far it is. -ECANCELED: it shall stop. */
int timeline_progress(struct timeline *w, uint64_t more);
/* Makes room for one more of `bytes` each in *v. */
int timeline_room(struct timeline *w, void **v, uint32_t *cap, uint32_t n, size_t bytes);
#define ROOM(w, v, cap, n) timeline_room((w), (void **)&(v), &(cap), (n), sizeof(*(v)))

/* Writes the timeline of a session in a format: as export_timeline_fn. mine: the form's state. */
int timeline_write(const struct timeline_form *form, void *mine, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, FILE *to, struct export_left *ret_left, struct err *e);

#define BURST_WORDS "%" PRIu64 " events summed" /* what a burst is called, where it is shown */

/* Whether scopes of a node count as steps: by their name, or as select->scope says. */
bool timeline_step(struct timeline *w, uint32_t node);

/* timeline_chunk.c, for timeline.c */
int timeline_flush(struct timeline *w);
int timeline_chunk(struct timeline *w, const void *bytes, size_t n);
void timeline_metrics_left(struct timeline *w, bool all); /* those whose scope was not seen */
struct gpu_seen *timeline_gpu(struct timeline *w, uint32_t device); /* NULL: out of memory */

#endif
