/* SPDX-License-Identifier: MIT. profile_put.h: what a stored session measured, as profile_load.c
 * reads it, and what makes it the values of a profile. */
#ifndef PROTOND_SESSION_PROFILE_PUT_H
#define PROTOND_SESSION_PROFILE_PUT_H

#include "profile_rows.h"

/* The columns that are ours; the flags say which of them this session has. */
#define COLUMNS(X)                                               \
	X(TIME, "time (ns)", KIND_INCLUSIVE)                     \
	X(COUNT, "count", KIND_INCLUSIVE)                        \
	X(DEVICE_ID, "device_id", KIND_PROPERTY)                 \
	X(DEVICE_TYPE, "device_type", KIND_PROPERTY)             \
	X(UNTIMED, "untimed", KIND_INCLUSIVE)                    \
	X(COPY_TIME, "copy_time (ns)", KIND_INCLUSIVE)           \
	X(COPIES, "copies", KIND_INCLUSIVE)                      \
	X(COPY_BYTES, "copy_bytes", KIND_INCLUSIVE)              \
	X(CPU_TIME, "cpu_time (ns)", KIND_EXCLUSIVE)             \
	X(CALLS, "calls", KIND_EXCLUSIVE)                        \
	X(SYNC_TIME, "sync_time (ns)", KIND_INCLUSIVE)           \
	X(SYNCS, "syncs", KIND_INCLUSIVE)                        \
	X(OVERHEAD_TIME, "overhead_time (ns)", KIND_INCLUSIVE)   \
	X(OVERHEADS, "overheads", KIND_INCLUSIVE)                \
	X(LAUNCH_TIME, "launch_time (ns)", KIND_INCLUSIVE)       \
	X(LAUNCHES, "launches", KIND_INCLUSIVE)                  \
	X(LAUNCH_DELAY, "launch_delay (ns)", KIND_INCLUSIVE)     \
	X(LAUNCH_DELAYS, "launch_delays", KIND_INCLUSIVE)        \
	X(SAMPLE_TIME, "sample_time (ns)", KIND_INCLUSIVE)       \
	X(SAMPLES, "cpu_samples", KIND_INCLUSIVE)                \
	X(OFF_CPU_TIME, "off_cpu_time (ns)", KIND_INCLUSIVE)     \
	X(OFF_CPU_SAMPLES, "off_cpu_samples", KIND_INCLUSIVE)    \
	X(READY_TIME, "run_queue_time (ns)", KIND_INCLUSIVE)     \
	X(READY_SAMPLES, "run_queue_samples", KIND_INCLUSIVE)    \
	X(API_TIME, "api_time (ns)", KIND_INCLUSIVE)             \
	X(API_CALLS, "api_calls", KIND_INCLUSIVE)                \
	X(API_ERROR_TIME, "api_error_time (ns)", KIND_INCLUSIVE) \
	X(API_ERRORS, "api_errors", KIND_INCLUSIVE)

enum column {
#define X(id, name, kind) COL_##id,
	COLUMNS(X)
#undef X
		COL_MAX
};

/* How much of a node's GPU time each device has. */
struct share {
	struct share *next;
	uint32_t device; /* index in load.device */
	uint64_t ns;
};

#define CALLS_MAX (COUNTS_MAX - COUNTS_SYNC)
_Static_assert(
	COL_MAX == COL_SYNC_TIME + 2 * CALLS_MAX, "what counts as calls has the last columns");

/* What few nodes have. */
struct rare {
	uint64_t untimed, copy_time, copies, bytes;
	struct {
		uint64_t ns, n;
		bool has;
	} calls[CALLS_MAX]; /* from COUNTS_SYNC on: two columns each, from COL_SYNC_TIME on */
	bool has_copy;
};

/* What a lean load leaves out. */
struct durations {
	struct profile_durations sum;
	uint64_t *count; /* buckets [base, base + cap), sum's among them */
	uint32_t base, cap;
};

/* One node of the session as it is read: small, for there are many. */
struct slot {
	int64_t id;
	const char *name; /* NULL until its row was read */
	uint32_t up;      /* then the parent's slot */
	uint32_t local;   /* index in profile.node, PROFILE_NONE until added */
	uint8_t kind, class;
	bool has_gpu, has_cpu;
	uint64_t time, count, cpu, calls;
	struct rare *rare;           /* NULL: none */
	struct durations *durations; /* likewise */
	struct share *share;
};

struct user_value {
	uint32_t slot, metric;
	struct value v;
};

struct scan;

struct tree_load {
	struct load *l;
	struct scan *scan;
	struct slot *slot;
	uint32_t n, cap, named;
	int64_t least, most; /* ids of those that came since fetch() began */
	bool unsorted;       /* not by id */
	uint32_t *
		map; /* open addressing: slot + 1, 0 empty; map_cap a power of two; NULL until it is needed */
	uint32_t map_cap;
	bool has[COL_MAX];        /* some node has it */
	uint32_t column[COL_MAX]; /* metric, PROFILE_NONE: not in this session */
	struct user_value *user;
	uint32_t n_user, cap_user;
};

/* --- profile_put.c
 * ------------------------------------------------------------------------------------ */

int load_columns(struct tree_load *t); /* our metrics, those that the session has */
int load_values(struct tree_load *t);  /* of every node */

/* Whether only what the default columns need is read: the rows of cells then end with process. */
static inline bool load_is_brief(const struct profile_select *s)
{
	return s->brief && s->lean && !s->one_phase;
}

static inline int load_no_memory(struct tree_load *t)
{
	return err_set(t->l->e, -ENOMEM, "out of memory");
}

#endif
