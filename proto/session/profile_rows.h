/* SPDX-License-Identifier: MIT. profile_rows.h: a session of a store being read, row by row: what
 * the loaders of a profile and the writers of a timeline share. */
#ifndef PROTOND_SESSION_PROFILE_ROWS_H
#define PROTOND_SESSION_PROFILE_ROWS_H

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
	bool used;
	uint32_t merged; /* index in profile.device */
};

/* What a database may hold and no session has: it counts as 0, and a note says of which. */
#define PLAUSIBLE_MAX ((int64_t)1 << 60) /* 36 years in ns */
/* clang-format off */
#define DAMAGES(X)                         \
	X(SUMS, "sums of nodes")               \
	X(BUSY, "times of GPUs")               \
	X(ACTIVE, "how long it was active")    \
	X(LAUNCHES, "numbers of launches")     \
	X(OVERHEAD, "protond's own time")      \
	X(COST, "the cost of recording")       \
	X(LOSSES, "numbers of losses")         \
	X(RANKS, "ranks")
/* clang-format on */
enum damage {
#define X(id, words) DAMAGED_##id,
	DAMAGES(X)
#undef X
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
	uint64_t unmatched; /* launches without a record, of all of the session */
	uint64_t open_scopes, skipped_values, surplus_values;
	uint32_t damaged;   /* bits by enum damage */
	uint64_t only_open; /* scopes that were never left, of a session that goes on */
};

/* The rows of one statement. Parameters: ?1 session, ?2 process where it has one. */
int load_prepare(struct load *l, const char *sql, sqlite3_stmt **ret);
int load_step(struct load *l, sqlite3_stmt *st); /* 1 a row, 0 the end, -errno */
int load_db_error(struct load *l); /* why the store cannot be read: -errno with words */
uint64_t load_u64(sqlite3_stmt *st, int column);                    /* negative: 0 */
uint64_t load_plausible(struct load *l, int64_t v, enum damage of); /* else 0, which is noted */
const char *load_text(
	struct load *l, sqlite3_stmt *st, int column); /* in the profile; NULL: -ENOMEM */
/* A line for each GPU and cause that held its clocks for long, and one for what all of them read on the whole;
 * fn's error, or 0. */
typedef int held_fn(struct load *l, const char *text);
int load_held(struct load *l, held_fn *fn);
/* NULL: it has no row. */
struct load_device *load_device(const struct load *l, int64_t process, int64_t device);
uint64_t load_sum(uint64_t a, uint64_t b); /* saturating */

#endif
