/* SPDX-License-Identifier: MIT. schema.h: the tables of a store, of a portable session file, and of
 * what the daemon answers with; docs/store.md explains the keys.
 *
 * Times: *_ns is CLOCK_REALTIME in session and process, CLOCK_MONOTONIC of the boot elsewhere.
 * A portable file holds one session, the rows it refers to, and the same user_version. */
#ifndef PROTOND_SESSION_SCHEMA_H
#define PROTOND_SESSION_SCHEMA_H

#define SCHEMA_APPLICATION_ID 0x50524f54 /* "PROT" */
#define SCHEMA_VERSION        2          /* user_version: number of migrations applied */

/* clang-format off */
#define SCHEMA_V1 \
"CREATE TABLE meta(key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;" \
"CREATE TABLE process(" \
"  id INTEGER PRIMARY KEY," \
"  ring BLOB NOT NULL UNIQUE,"              /* ring uuid, 16 bytes */ \
"  host TEXT NOT NULL, boot_id BLOB NOT NULL, pid INTEGER NOT NULL, pid_start INTEGER NOT NULL," \
"  ns_pid INTEGER NOT NULL, uid INTEGER NOT NULL, parent BLOB, token BLOB," \
"  command TEXT NOT NULL, exe TEXT NOT NULL, cwd TEXT NOT NULL, job_id TEXT," \
"  rank INTEGER, local_rank INTEGER, world_size INTEGER," \
"  started_ns INTEGER NOT NULL, ended_ns INTEGER," \
"  end_reason TEXT,"                        /* NULL running; 'exited', 'killed', 'lost' */ \
"  source TEXT NOT NULL,"                   /* 'live', 'replay' */ \
"  version TEXT NOT NULL," \
"  gpu_state INTEGER NOT NULL, gpu_code INTEGER NOT NULL, gpu_text TEXT NOT NULL," \
"  cupti_version INTEGER NOT NULL, driver_version INTEGER NOT NULL, cupti_path TEXT NOT NULL," \
"  agent_ns INTEGER NOT NULL,"              /* CPU time of the agent's own thread */ \
"  flags INTEGER NOT NULL, clock INTEGER NOT NULL, tsc_khz INTEGER NOT NULL," \
"  n_lanes INTEGER NOT NULL, lane_bytes INTEGER NOT NULL, created_clock INTEGER NOT NULL," \
"  created_monotonic_ns INTEGER NOT NULL, created_realtime_ns INTEGER NOT NULL," \
"  counters BLOB NOT NULL"                  /* the fold's own, 8 × u64 */ \
") STRICT;" \
"CREATE TABLE session(" \
"  id INTEGER PRIMARY KEY," \
"  uuid BLOB NOT NULL UNIQUE, name TEXT NOT NULL, uid INTEGER NOT NULL," \
"  source TEXT NOT NULL,"                   /* 'job', 'control', 'run', 'auto' */ \
"  backend TEXT NOT NULL, mode TEXT NOT NULL, hook TEXT NOT NULL," \
"  data TEXT NOT NULL, context TEXT NOT NULL, cpu TEXT NOT NULL," \
"  state TEXT NOT NULL,"                    /* 'active', 'inactive', 'finalizing', 'finalized' */ \
"  match TEXT NOT NULL,"                    /* 'pid:N', 'token', 'all', 'command:GLOB', 'ring' */ \
"  token BLOB, owner BLOB, job_number INTEGER,"  /* owner: ring of the job that asked */ \
"  pid INTEGER NOT NULL, command TEXT NOT NULL, gpu TEXT NOT NULL," /* gpu: 'on', 'armed', 'none' */ \
"  created_ns INTEGER NOT NULL, finalized_ns INTEGER," \
"  active_ns INTEGER NOT NULL,"             /* sum of the closed active intervals */ \
"  launches INTEGER NOT NULL, matched INTEGER NOT NULL," \
"  daemon_ns INTEGER NOT NULL"              /* the daemon's CPU time for this session, its share */ \
") STRICT;" \
"CREATE TABLE member(session INTEGER NOT NULL, process INTEGER NOT NULL," \
"  PRIMARY KEY(session, process)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE active(session INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER," \
"  PRIMARY KEY(session, begin_ns)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE segment(session INTEGER NOT NULL, segment INTEGER NOT NULL," \
"  begin_ns INTEGER NOT NULL, end_ns INTEGER," \
"  PRIMARY KEY(session, segment)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE node(" \
"  id INTEGER PRIMARY KEY," \
"  hash BLOB NOT NULL UNIQUE,"              /* 128-bit hash of (parent, kind, name) */ \
"  parent INTEGER NOT NULL,"                /* node.id; 0 for ROOT */ \
"  kind INTEGER NOT NULL, name TEXT NOT NULL) STRICT;" \
"CREATE TABLE cell(" \
"  session INTEGER NOT NULL, process INTEGER NOT NULL, segment INTEGER NOT NULL," \
"  node INTEGER NOT NULL, device INTEGER NOT NULL, class INTEGER NOT NULL," \
"  count INTEGER NOT NULL, sum_ns INTEGER NOT NULL, min_ns INTEGER NOT NULL, max_ns INTEGER NOT NULL," \
"  bytes INTEGER NOT NULL, untimed INTEGER NOT NULL," /* untimed: counted without a time */ \
"  open INTEGER NOT NULL,"                  /* scopes open at finalize, in sum_ns, not in count */ \
"  hist BLOB,"                              /* HIST_BUCKETS × u32 little-endian, trailing zeros cut */ \
"  PRIMARY KEY(session, process, segment, node, device, class)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE metric(" \
"  session INTEGER NOT NULL, process INTEGER NOT NULL, segment INTEGER NOT NULL," \
"  node INTEGER NOT NULL, name TEXT NOT NULL," /* without (inc), (exc), (pty) */ \
"  kind INTEGER NOT NULL, value ANY NOT NULL, count INTEGER NOT NULL," \
"  PRIMARY KEY(session, process, segment, node, name)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE config(" \
"  session INTEGER NOT NULL, process INTEGER NOT NULL, node INTEGER NOT NULL, config INTEGER NOT NULL," \
"  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER," \
"  registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, count INTEGER NOT NULL," \
"  PRIMARY KEY(session, process, node, config)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE device(" \
"  process INTEGER NOT NULL, device INTEGER NOT NULL, uuid BLOB NOT NULL, ordinal INTEGER NOT NULL," \
"  type TEXT NOT NULL, name TEXT NOT NULL, pci TEXT NOT NULL, arch INTEGER NOT NULL," \
"  num_sms INTEGER NOT NULL, clock_khz INTEGER NOT NULL, memory_clock_khz INTEGER NOT NULL," \
"  bus_width INTEGER NOT NULL, memory_bytes INTEGER NOT NULL," \
"  PRIMARY KEY(process, device)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE busy(session INTEGER NOT NULL, process INTEGER NOT NULL, device INTEGER NOT NULL," \
"  busy_ns INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL," \
"  PRIMARY KEY(session, process, device)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE loss(session INTEGER NOT NULL, process INTEGER NOT NULL, cause INTEGER NOT NULL," \
"  count INTEGER NOT NULL, PRIMARY KEY(session, process, cause)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE note(session INTEGER NOT NULL, process INTEGER NOT NULL, number INTEGER NOT NULL," \
"  ns INTEGER NOT NULL, text TEXT NOT NULL," \
"  PRIMARY KEY(session, process, number)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE lane(process INTEGER NOT NULL, lane INTEGER NOT NULL, head INTEGER NOT NULL," \
"  PRIMARY KEY(process, lane)) STRICT, WITHOUT ROWID;" \
"CREATE TABLE pending(process INTEGER PRIMARY KEY, launches BLOB NOT NULL) STRICT;" \
"CREATE TABLE anchor(ring_clock INTEGER NOT NULL, clock INTEGER NOT NULL, monotonic_ns INTEGER NOT NULL," \
"  realtime_ns INTEGER NOT NULL, error_ns INTEGER NOT NULL," \
"  PRIMARY KEY(ring_clock, clock)) STRICT, WITHOUT ROWID;"

/* A session's timeline, in chunks (trace.h); in the order they came. */
#define SCHEMA_V2 \
"CREATE TABLE trace(session INTEGER NOT NULL, process INTEGER NOT NULL," \
"  number INTEGER NOT NULL,"                /* of the chunk, from 0 */ \
"  first INTEGER NOT NULL,"                 /* events of this session and process before it */ \
"  events INTEGER NOT NULL, end_ns INTEGER NOT NULL," /* end_ns: when it last grew */ \
"  bytes BLOB,"                             /* NULL: over a ceiling, gone */ \
"  PRIMARY KEY(session, process, number)) STRICT;"

#define SCHEMA SCHEMA_V1 SCHEMA_V2

/* What a session s recorded: its first process's command; before there is one, what is waited for. */
#define SCHEMA_SESSION_COMMAND \
"coalesce(nullif((SELECT p.command FROM member m JOIN process p ON p.id = m.process" \
" WHERE m.session = s.id ORDER BY m.process LIMIT 1), ''), s.command)"
/* clang-format on */

#endif
