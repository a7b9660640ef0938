/* SPDX-License-Identifier: MIT. profile_load.h: what the two files that read a store share.
 * profile_head.c reads what a session is, profile_load.c what it measured. */
#ifndef PROTOND_WIRE_PROFILE_LOAD_H
#define PROTOND_WIRE_PROFILE_LOAD_H

#include <sqlite3.h>

#include "profile.h"

struct load_process {
	int64_t id, agent_ns;
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
	uint64_t last_busy_ns; /* monotonic: the newest sign of life */
	bool gpu_wanted;
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

#endif
