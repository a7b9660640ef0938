/* SPDX-License-Identifier: MIT. status.h: how the daemon is, and what its jobs' GPU libraries are.
 * Answered at once. */
#ifndef PROTOND_QUERY_STATUS_H
#define PROTOND_QUERY_STATUS_H

#include "ask.h"
#include "session_terms.h"

/* Who this daemon is. Texts are the daemon's own. */
struct daemon_identity {
	const char *version, *db;
	uint32_t pid, uid;
	uint8_t store[16]; /* uuid of its database */
	bool private;      /* of one user; ends by itself when idle */
};
void query_identity(const struct daemon *d, struct daemon_identity *ret);

#define STATUS_WARNINGS 14u
struct daemon_status {
	double uptime_s, cpu_s, agents_cpu_s;
	uint32_t jobs, sessions; /* attached; not finalized */
	uint64_t events, kernels, drops;
	uint64_t journal_bytes, rss_bytes, db_bytes;
	uint64_t idle_exit_s; /* ends after so long without job and client; 0: does not */
	bool unstored;        /* sessions wait for a database that fails: until then it does not */
	const char *runtime_dir, *auto_session; /* the daemon's own */
	uint32_t gpu[GPU_RESIDUAL + 1];         /* jobs by enum gpu_state */
	uint32_t n_warnings;
	char warning[STATUS_WARNINGS][512];
};
void query_status(const struct daemon *d, const struct asker *a, struct daemon_status *ret);

struct backend_state {
	const char *name, *state; /* state: works, failed, unknown */
	char text[640];
};
#define BACKENDS_MAX 2u
/* What its jobs found: the daemon itself loads no vendor library. Returns how many. */
uint32_t query_backends(
	const struct daemon *d, const struct asker *a, struct backend_state ret[BACKENDS_MAX]);

#endif
