/* SPDX-License-Identifier: MIT. sorted.h: a session's timeline in order of time, for formats that must
 * know what was open when something began: scopes with what they stand in, and GPU work at its
 * launch. The events wait in a temporary database, which is as large as the session is long; in
 * memory is what is open. */
#ifndef PROTOND_EXPORT_SORTED_H
#define PROTOND_EXPORT_SORTED_H

#include "table.h"
#include "timeline.h"

#define SORTED_NONE UINT32_MAX

struct sorted_process {
	int64_t pid, rank;
	int64_t steps; /* the number of its last one, so far */
	const char *command;
	bool ranked;
};

struct sorted_thread {
	uint32_t process, tid, lanes; /* lanes: filled as its scopes come */
	const char *name;
};

struct sorted_gpu {
	uint32_t process, ordinal, pid; /* pid: as gpu_seen has it */
	const char *name, *streams;     /* likewise */
};

struct sorted_lane { /* of a stream */
	uint32_t gpu, stream, lane;
};

struct sorted_scope {
	uint64_t begin_ns, end_ns;
	uint32_t node, thread; /* thread: place in the list */
	uint32_t lane; /* of its thread: 0, unless it overlaps another in part, or is a task */
	uint8_t flags; /* TRACE_… */
	struct trace_call call; /* of TRACE_CALL */
	const char *values;     /* of JSON, "name":value,…; NULL: none */
	void *mine;             /* the form's, until its end */
};

struct sorted_op {
	uint64_t start_ns, end_ns, launch_ns, bytes;
	uint32_t node, thread,
		lane; /* thread SORTED_NONE: its launch is not known; lane: in the list */
	uint32_t correlation, context;
	uint8_t class, flags; /* enum cell_class; TRACE_… */
	bool configured;
	struct trace_config config;
};

struct sorted_burst { /* n events of a thread that were summed: timeline_burst */
	uint64_t begin_ns, end_ns, n;
	uint32_t thread;
};

struct sorted;

/* NULL: nothing. All of it goes to s->w->out, which is flushed in between. */
struct sorted_form {
	bool by_thread; /* one thread after the other, not all of a process side by side */
	bool lanes;     /* `lane_op` is wanted */
	void (*open)(struct sorted *s); /* all lists are complete */
	void (*scope)(struct sorted *s, struct sorted_scope *x);
	void (*scope_end)(struct sorted *s, struct sorted_scope *x);
	/* At its launch; one whose launch is not known, at its start. */
	void (*op)(struct sorted *s, const struct sorted_op *o);
	void (*burst)(struct sorted *s, const struct sorted_burst *b); /* when it begins */
	void (*thread_end)(struct sorted *s, uint32_t thread);
	void (*lane_op)(
		struct sorted *s, const struct sorted_op *o); /* lane by lane, by its start */
	void (*close)(struct sorted *s);
};

struct sorted_stack { /* what is open in one lane of a thread */
	struct sorted_scope *v;
	uint32_t n, cap;
};

struct sorted {
	const struct sorted_form *form;
	void *mine; /* the form's */
	struct timeline *w;
	struct sqlite3 *db;
	struct sqlite3_stmt *add;
	struct sorted_process *process;
	struct sorted_thread *thread;
	struct sorted_gpu *gpu;
	struct sorted_lane *lane;
	struct timeline_device *device;
	uint32_t n_processes, n_threads, n_gpus, n_lanes, n_devices;
	uint32_t cap_processes, cap_threads, cap_gpus, cap_lanes, cap_devices;
	uint32_t of_gpus; /* where those of the process at hand begin */
	struct table threads, lanes;
	struct text values;
	uint64_t rows;              /* handed over */
	uint64_t loose;             /* metrics of no scope, which have no place in these formats */
	struct sorted_stack **open; /* [n_threads]: [lanes] of each */
	int r;
};

/* A scope's number as a step, its own or the next one; -1: it is none, or one within a step. To be
 * asked once, when it begins. */
int64_t sorted_step(struct sorted *s, const struct sorted_scope *x);

int sorted_write(const struct sorted_form *form, void *mine, struct sqlite3 *db, int64_t id,
	const struct profile_select *s, FILE *to, struct export_left *ret_left, struct err *e);

#endif
