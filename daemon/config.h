/* SPDX-License-Identifier: MIT. config.h: what can be set, and how it is read. For the loop; query
 * and control see a word of it. Any thread. */
#ifndef PROTOND_DAEMON_CONFIG_H
#define PROTOND_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum auto_mode { AUTO_OFF, AUTO_SCOPES, AUTO_FULL };

/* clang-format off */
/* One table: protond.conf keys, PROTOND_* variables (upper case), --help, protond(8). */
#define CONFIG(X) /* key            type  default            what */                                                \
        X(runtime_dir,     STR, "",       "directory of sockets, rings and journal; empty: the usual place")         \
        X(db,              STR, "",       "database file, an absolute path (PROTOND_DB may be relative); empty: the usual place") \
        X(auto_session,    STR, "scopes", "automatic session of each job: off, scopes, full")                        \
        X(auto_nvtx_domains, STR, "",     "domains of NVTX in automatic sessions, with commas; -NAME: all but that; empty: all") \
        X(retention_days,  U64, "30",     "finalized sessions older than this are deleted; 0: never")                \
        X(retention_mb,    U64, "2048",   "when the database is larger, the oldest sessions of the user who has most are deleted; 0: never") \
        X(retention_mb_per_uid, U64, "0", "when one user's sessions are larger, the oldest of them are deleted; 0: a quarter of retention_mb, all of it in a private daemon") \
        X(commit_ms,       U64, "1000",   "longest time between two transactions, ms")                               \
        X(journal_mb,      U64, "64",     "size of the journal that forces a transaction, MiB")                 \
        X(flight_s,        U64, "0",      "keep at least this many seconds of journal; 0: only what is needed")      \
        X(lanes,           U64, "0",      "lanes of a ring, 64 MiB of them at most; 0: the library's default")       \
        X(lane_kb,         U64, "0",      "size of a lane, KiB, a power of two; 0: the library's default")           \
        X(trace_mb,        U64, "512",    "when a session's timeline is larger, MiB, its oldest events leave it")                \
        X(trace_s,         U64, "0",      "events of a timeline that are older leave it; 0: never")              \
        X(idle_exit_s,     U64, "60",     "a private daemon ends after this long without job and client; 0: never")  \
        X(memory_mb,       U64, "24",     "memory for the trees of all jobs, MiB, and as much for launches in flight; what needs more is counted in (other)")         \
        X(cpu_percent,     U64, "25",     "share of a core; while the daemon takes more, jobs sum up the scopes of sessions without a timeline") \
        X(jobs_per_uid,    U64, "256",    "attached jobs of one user")                                               \
        X(device_hz,       U64, "1",      "readings of GPUs and their host, by protond-device, a second, 1 to 10; 0: none") \
        X(sessions_per_uid, U64, "0",    "sessions of one user that are not finalized; 0: a quarter of all 1024, all of them in a private daemon")
/* clang-format on */

struct daemon_config {
#define CONFIG_STR              char *
#define CONFIG_U64              uint64_t
#define X(key, type, def, help) CONFIG_##type key;
	CONFIG(X)
#undef X
	enum auto_mode mode; /* what auto_session says: config_auto() */
};

/* Defaults, then file (NULL: the usual one, which may be missing), then PROTOND_* variables.
 * -ENOENT, -EINVAL with file, line and remedy. */
int config_load(struct daemon_config *c, const char *file, bool private, struct err *e);
int config_parse(
	struct daemon_config *c, const char *text, size_t bytes, const char *name, struct err *e);
void config_free(struct daemon_config *c);
int config_auto(const struct daemon_config *c, enum auto_mode *ret, struct err *e);

#endif
