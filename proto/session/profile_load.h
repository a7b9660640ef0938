/* SPDX-License-Identifier: MIT. profile_load.h: what the three files that read a store share.
 * profile_head.c reads what a session is, profile_load.c what it measured, profile_put.c makes that
 * values. */
#ifndef PROTOND_SESSION_PROFILE_LOAD_H
#define PROTOND_SESSION_PROFILE_LOAD_H

#include <sqlite3.h>

#include "profile.h"

struct load_process {
	int64_t id, agent_ns, lived_ns;
	char why[512]; /* gpu_text */
	uint8_t boot_id[16];
	bool refused; /* no GPU data to be had, for the reason in `why` */
};

/* A device as one process sees it. */
struct load_device {
	int64_t process, device;
	struct profile_device d;
	uint64_t busy_ns;
	bool used;
	uint32_t merged; /* index in profile.device */
};

struct load {
	sqlite3 *db;
	int64_t session;
	const struct profile_select *select;
	struct profile *p;
	struct err *e;
	struct load_process *process; /* those selected */
	uint32_t n_processes;
	struct load_device *device; /* ordered by (process, device) */
	uint32_t n_devices;
	int64_t daemon_ns, active_ns;
	double cost; /* sum of n_costs */
	uint32_t n_costs;
	uint64_t last_busy_ns; /* monotonic: the newest sign of life */
	bool gpu_wanted, has_phase;
	uint64_t open_scopes, skipped_values;
};

int load_head(struct load *l);     /* session, processes, devices, losses, notes */
int load_head_end(struct load *l); /* what needs the cells: device list, why no GPU */

/* profile_add_node() with a name that the profile already owns. */
uint32_t profile_adopt_node(struct profile *p, uint32_t parent, const char *owned, uint8_t kind);

/* The rows of one statement. Parameters: ?1 session, ?2 process where it has one. */
int load_prepare(struct load *l, const char *sql, sqlite3_stmt **ret);
int load_step(struct load *l, sqlite3_stmt *st); /* 1 a row, 0 the end, -errno */
uint64_t load_u64(sqlite3_stmt *st, int column); /* negative: 0 */
const char *load_text(
	struct load *l, sqlite3_stmt *st, int column); /* in the profile; NULL: -ENOMEM */
uint64_t load_sum(uint64_t a, uint64_t b);             /* saturating */

/* The columns that are ours; the flags say which of them this session has. */
#define COLUMNS(X)                                     \
	X(TIME, "time (ns)", KIND_INCLUSIVE)           \
	X(COUNT, "count", KIND_INCLUSIVE)              \
	X(DEVICE_ID, "device_id", KIND_PROPERTY)       \
	X(DEVICE_TYPE, "device_type", KIND_PROPERTY)   \
	X(UNTIMED, "untimed", KIND_INCLUSIVE)          \
	X(COPY_TIME, "copy_time (ns)", KIND_INCLUSIVE) \
	X(COPIES, "copies", KIND_INCLUSIVE)            \
	X(COPY_BYTES, "copy_bytes", KIND_INCLUSIVE)    \
	X(CPU_TIME, "cpu_time (ns)", KIND_EXCLUSIVE)   \
	X(CALLS, "calls", KIND_EXCLUSIVE)

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

/* What few nodes have. */
struct rare {
	uint64_t untimed, copy_time, copies, bytes;
	bool has_copy;
};

/* What a lean load leaves out. */
struct durations {
	struct profile_span span;
	uint32_t hist[HIST_BUCKETS];
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

struct tree;
typedef int take_fn(struct tree *t, sqlite3_value **v);

struct tree {
	struct load *l;
	take_fn *row; /* what takes the rows that are being read, and what it said */
	int r;
	struct slot *slot;
	uint32_t n, cap;
	uint32_t *map; /* open addressing: slot + 1, 0 empty; map_cap a power of two */
	uint32_t map_cap;
	uint32_t column[COL_MAX]; /* metric, PROFILE_NONE: not in this session */
	struct user_value *user;
	uint32_t n_user, cap_user;
};

/* --- profile_put.c
 * ------------------------------------------------------------------------------------ */

int load_columns(struct tree *t); /* our metrics, those that the session has */
int load_values(struct tree *t);  /* of every node */

/* Whether only what the default columns need is read: the rows of cells then end with process. */
static inline bool load_is_brief(const struct profile_select *s)
{
	return s->brief && s->lean && !s->one_phase;
}

static inline int load_no_memory(struct tree *t)
{
	return err_set(t->l->e, -ENOMEM, "out of memory");
}

#endif
