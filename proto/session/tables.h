/* SPDX-License-Identifier: MIT. tables.h: the columns of every table, one list each. The row's
 * struct, the schema (schema.c), and what binds and reads a row (rows.c) come from it;
 * docs/store.md explains the keys and how a column is added.
 *
 * Times: *_ns is CLOCK_REALTIME in session and process, CLOCK_MONOTONIC of the boot elsewhere.
 * What a row points to, owned or not, is batch.h's to say.
 */
#ifndef PROTOND_SESSION_TABLES_H
#define PROTOND_SESSION_TABLES_H

#include <stdint.h>

/* clang-format off */
/* Kinds of columns: what the row has, and what stands in the database for it. Each has a PUT_ and a
 * GET_ in rows.c; the last block is of kinds that one column alone has. */
#define MEMBER_I64(c, a)         int64_t c;
#define MEMBER_U64(c, a)         uint64_t c;      /* the same bits, signed */
#define MEMBER_I32(c, a)         int32_t c;
#define MEMBER_U32(c, a)         uint32_t c;
#define MEMBER_U8(c, a)          uint8_t c;
#define MEMBER_I32_MAYBE(c, a)   int32_t c;       /* -1: NULL */
#define MEMBER_U32_MAYBE(c, a)   uint32_t c;      /* UINT32_MAX: NULL */
#define MEMBER_I64_MAYBE(c, a)   int64_t c;       /* 0: NULL */
#define MEMBER_U64_MAYBE(c, a)   uint64_t c;      /* 0: NULL */
#define MEMBER_UUID(c, a)        uint8_t c[16];
#define MEMBER_UUID_MAYBE(c, a)  uint8_t c[16];   /* zeroes: NULL */
#define MEMBER_TEXT(c, n)        char c[n];
#define MEMBER_TEXT_MAYBE(c, n)  char c[n];       /* "": NULL */
#define MEMBER_STRING(c, a)      char *c;         /* owned by the batch; NULL: "" */
#define MEMBER_NAME(c, a)        const char *c;   /* held by the batch */
#define MEMBER_WORD(c, list)     uint32_t c;      /* its word, of a list in session_terms.h */
#define MEMBER_WORD_MAYBE(c, l)  uint32_t c;      /* 0: NULL */
#define MEMBER_NODE(c, a)        uint8_t c[16];   /* node.hash; node.id there */

#define MEMBER_ROWID(c, a)                        /* node.id: given by the database, in no row */
#define MEMBER_ABOVE(c, a)       uint8_t c[16];   /* node.parent: as NODE; zeroes: 0, of ROOT */
#define MEMBER_COUNTERS(c, a)    uint64_t c[8];   /* process.counters: little-endian */
#define MEMBER_MATCH(c, a)       uint32_t c;      /* session.match: a word, with what is matched */
#define MEMBER_DEVICE(c, a)      uint32_t c;      /* cell.device: UINT32_MAX, none, is -1 */
#define MEMBER_HIST(c, a)                         /* cell.hist: read into cell.buckets, never written */
#define MEMBER_BUCKETS(c, a)     uint32_t c, c##_n; /* cell.buckets: n bytes at batch.buckets[c]: hist.h; n 0: not known */
/* metric.value: INTEGER, REAL or TEXT; type as in metric_terms.h; STR: text, held by the batch, and no bits */
#define MEMBER_VALUE(c, a)       uint8_t type; uint64_t bits; const char *text;
#define MEMBER_PCI(c, a)         uint32_t pci_domain, pci_bus, pci_device; /* device.pci: "0000:00:00" */
/* trace.bytes: owned; NULL, n 0: gone. Read as n without bytes. */
#define MEMBER_CHUNK(c, a)       void *c; uint32_t n;
#define MEMBER_SUMMARY(c, a)     const void *c; uint32_t c##_n; /* trace.summary: the store's to make; never read */
#define MEMBER_LAUNCHES(c, a)    void *bytes; uint32_t n; /* pending.launches, memory.bytes: owned */

/* A column: C(name, kind, the kind's argument, declaration). A new one goes to the end of its list and
 * may be NULL or has a DEFAULT: databases that lack it get it (schema.h). */
#define COLUMNS_process(C)                                                                          \
        C(id,                   I64,         -,   "INTEGER PRIMARY KEY")                            \
        C(ring,                 UUID,        -,   "BLOB NOT NULL UNIQUE") /* the ring's uuid */     \
        C(host,                 TEXT,        64,  "TEXT NOT NULL")                                  \
        C(boot_id,              UUID,        -,   "BLOB NOT NULL")                                  \
        C(pid,                  U32,         -,   "INTEGER NOT NULL")                               \
        C(pid_start,            U64,         -,   "INTEGER NOT NULL")                               \
        C(ns_pid,               U32,         -,   "INTEGER NOT NULL")                               \
        C(uid,                  U32,         -,   "INTEGER NOT NULL")                               \
        C(parent,               UUID_MAYBE,  -,   "BLOB")                                           \
        C(token,                UUID_MAYBE,  -,   "BLOB")                                           \
        C(command,              STRING,      -,   "TEXT NOT NULL")                                  \
        C(exe,                  STRING,      -,   "TEXT NOT NULL")                                  \
        C(cwd,                  STRING,      -,   "TEXT NOT NULL")                                  \
        C(job_id,               TEXT_MAYBE,  64,  "TEXT")                                           \
        C(rank,                 I32_MAYBE,   -,   "INTEGER")                                        \
        C(local_rank,           I32_MAYBE,   -,   "INTEGER")                                        \
        C(world_size,           I32_MAYBE,   -,   "INTEGER")                                        \
        C(started_ns,           I64,         -,   "INTEGER NOT NULL")                               \
        C(ended_ns,             I64_MAYBE,   -,   "INTEGER") /* NULL: running */                    \
        C(end_reason,           WORD_MAYBE,  term_end_reasons, "TEXT")                              \
        C(source,               WORD,        term_process_sources, "TEXT NOT NULL")                                  \
        C(version,              TEXT,        32,  "TEXT NOT NULL")                                  \
        C(gpu_state,            U32,         -,   "INTEGER NOT NULL")                               \
        C(gpu_code,             I32,         -,   "INTEGER NOT NULL")                               \
        C(gpu_text,             TEXT,        256, "TEXT NOT NULL")                                  \
        C(cupti_version,        U32,         -,   "INTEGER NOT NULL")                               \
        C(driver_version,       U32,         -,   "INTEGER NOT NULL")                               \
        C(cupti_path,           TEXT,        256, "TEXT NOT NULL")                                  \
        C(agent_ns,             U64,         -,   "INTEGER NOT NULL") /* CPU time of the agent's own thread */ \
        C(flags,                U32,         -,   "INTEGER NOT NULL")                               \
        C(clock,                U32,         -,   "INTEGER NOT NULL")                               \
        C(tsc_khz,              U32,         -,   "INTEGER NOT NULL")                               \
        C(n_lanes,              U32,         -,   "INTEGER NOT NULL")                               \
        C(lane_bytes,           U32,         -,   "INTEGER NOT NULL")                               \
        C(created_clock,        U64,         -,   "INTEGER NOT NULL")                               \
        C(created_monotonic_ns, U64,         -,   "INTEGER NOT NULL")                               \
        C(created_realtime_ns,  U64,         -,   "INTEGER NOT NULL")                               \
        C(counters,             COUNTERS,    -,   "BLOB NOT NULL") /* the fold's own */
#define COLUMNS_session(C)                                                                          \
        C(id,                   I64,         -,   "INTEGER PRIMARY KEY")                            \
        C(uuid,                 UUID,        -,   "BLOB NOT NULL UNIQUE")                           \
        C(name,                 TEXT,        128, "TEXT NOT NULL")                                  \
        C(uid,                  U32,         -,   "INTEGER NOT NULL")                               \
        C(source,               WORD,        term_session_sources,  "TEXT NOT NULL")                \
        C(backend,              TEXT,        32,  "TEXT NOT NULL")                                  \
        C(mode,                 TEXT,        64,  "TEXT NOT NULL")                                  \
        C(hook,                 TEXT,        32,  "TEXT NOT NULL")                                  \
        C(data,                 WORD,        term_session_datas,    "TEXT NOT NULL")                \
        C(context,              WORD,        term_session_contexts, "TEXT NOT NULL")                \
        C(cpu,                  WORD,        term_session_cpus,     "TEXT NOT NULL")                \
        C(state,                WORD,        term_session_states,   "TEXT NOT NULL")                \
        C(match,                MATCH,       -,   "TEXT NOT NULL")                                  \
        C(token,                UUID_MAYBE,  -,   "BLOB")                                           \
        C(owner,                UUID_MAYBE,  -,   "BLOB") /* ring of the job that asked */          \
        C(job_number,           U32_MAYBE,   -,   "INTEGER")                                        \
        C(pid,                  U32,         -,   "INTEGER NOT NULL")                               \
        C(command,              TEXT,        128, "TEXT NOT NULL")                                  \
        C(gpu,                  WORD,        term_session_gpus,     "TEXT NOT NULL")                \
        C(created_ns,           I64,         -,   "INTEGER NOT NULL")                               \
        C(finalized_ns,         I64_MAYBE,   -,   "INTEGER")                                        \
        C(active_ns,            U64,         -,   "INTEGER NOT NULL") /* sum of the closed active intervals */ \
        C(launches,             U64,         -,   "INTEGER NOT NULL")                               \
        C(matched,              U64,         -,   "INTEGER NOT NULL")                               \
        C(daemon_ns,            U64,         -,   "INTEGER NOT NULL") /* its share of the daemon's CPU time */ \
        C(recovered,            I64_MAYBE,   -,   "INTEGER") /* from a damaged database: 1 whole, 2 in part */ \
        C(stored_bytes,         U64_MAYBE,   -,   "INTEGER") /* about: what its rows take of the file */ \
        C(tags,                 TEXT_MAYBE,  256, "TEXT") /* label.h */                             \
        C(note,                 TEXT_MAYBE,  128, "TEXT")                                           \
        C(switches,             U8,          -,   "INTEGER NOT NULL DEFAULT 0") /* enum session_switch bits */ \
        C(nvtx_domains,         TEXT,        128, "TEXT NOT NULL DEFAULT ''") /* a list: range_name.h */
#define COLUMNS_member(C)                                                                           \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")
#define COLUMNS_active(C)                                                                           \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(begin_ns,             U64,         -,   "INTEGER NOT NULL")                               \
        C(end_ns,               U64_MAYBE,   -,   "INTEGER") /* NULL: open */
#define COLUMNS_segment(C)                                                                          \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(segment,              U32,         -,   "INTEGER NOT NULL")                               \
        C(begin_ns,             U64,         -,   "INTEGER NOT NULL")                               \
        C(end_ns,               U64_MAYBE,   -,   "INTEGER")
#define COLUMNS_node(C) /* a batch has parents before their children */                             \
        C(id,                   ROWID,       -,   "INTEGER PRIMARY KEY")                            \
        C(hash,                 UUID,        -,   "BLOB NOT NULL UNIQUE") /* 128-bit hash of (parent, kind, name) */ \
        C(parent,               ABOVE,       -,   "INTEGER NOT NULL")                               \
        C(kind,                 U8,          -,   "INTEGER NOT NULL")                               \
        C(name,                 NAME,        -,   "TEXT NOT NULL")
#define COLUMNS_cell(C)                                                                             \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(segment,              U32,         -,   "INTEGER NOT NULL")                               \
        C(node,                 NODE,        -,   "INTEGER NOT NULL")                               \
        C(device,               DEVICE,      -,   "INTEGER NOT NULL")                               \
        C(class,                U8,          -,   "INTEGER NOT NULL")                               \
        C(count,                U64,         -,   "INTEGER NOT NULL")                               \
        C(sum_ns,               U64,         -,   "INTEGER NOT NULL")                               \
        C(min_ns,               U64,         -,   "INTEGER NOT NULL")                               \
        C(max_ns,               U64,         -,   "INTEGER NOT NULL")                               \
        C(bytes,                U64,         -,   "INTEGER NOT NULL")                               \
        C(untimed,              U64,         -,   "INTEGER NOT NULL") /* counted without a time */  \
        C(open,                 U64,         -,   "INTEGER NOT NULL") /* scopes open at finalize: in sum_ns, not in count */ \
        C(hist,                 HIST,        -,   "BLOB") /* before buckets: 64 u32, two an octave */ \
        C(buckets,              BUCKETS,     -,   "BLOB") /* of the durations: hist.h */
#define COLUMNS_metric(C)                                                                           \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(segment,              U32,         -,   "INTEGER NOT NULL")                               \
        C(node,                 NODE,        -,   "INTEGER NOT NULL")                               \
        C(name,                 NAME,        -,   "TEXT NOT NULL") /* without (inc), (exc), (pty) */ \
        C(kind,                 U8,          -,   "INTEGER NOT NULL") /* enum metric_kind */        \
        C(value,                VALUE,       -,   "ANY NOT NULL")                                   \
        C(count,                U64,         -,   "INTEGER NOT NULL")
#define COLUMNS_config(C) /* local_per_thread is not stored */                                      \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(node,                 NODE,        -,   "INTEGER NOT NULL")                               \
        C(config,               U32,         -,   "INTEGER NOT NULL")                               \
        C(grid_x,               U32,         -,   "INTEGER")                                        \
        C(grid_y,               U32,         -,   "INTEGER")                                        \
        C(grid_z,               U32,         -,   "INTEGER")                                        \
        C(block_x,              U32,         -,   "INTEGER")                                        \
        C(block_y,              U32,         -,   "INTEGER")                                        \
        C(block_z,              U32,         -,   "INTEGER")                                        \
        C(registers,            U32,         -,   "INTEGER")                                        \
        C(static_shared,        U32,         -,   "INTEGER")                                        \
        C(dynamic_shared,       U32,         -,   "INTEGER")                                        \
        C(count,                U64,         -,   "INTEGER NOT NULL")
#define COLUMNS_device(C)                                                                           \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(device,               U32,         -,   "INTEGER NOT NULL")                               \
        C(uuid,                 UUID,        -,   "BLOB NOT NULL")                                  \
        C(ordinal,              U32,         -,   "INTEGER NOT NULL")                               \
        C(type,                 WORD,        term_device_types, "TEXT NOT NULL")                    \
        C(name,                 TEXT,        64,  "TEXT NOT NULL")                                  \
        C(pci,                  PCI,         -,   "TEXT NOT NULL")                                  \
        C(arch,                 U32,         -,   "INTEGER NOT NULL")                               \
        C(num_sms,              U32,         -,   "INTEGER NOT NULL")                               \
        C(clock_khz,            U32,         -,   "INTEGER NOT NULL")                               \
        C(memory_clock_khz,     U32,         -,   "INTEGER NOT NULL")                               \
        C(bus_width,            U32,         -,   "INTEGER NOT NULL")                               \
        C(memory_bytes,         U64,         -,   "INTEGER NOT NULL")                               \
        C(label,                TEXT_MAYBE,  64,  "TEXT") /* the program's name for it; likewise: */ \
        C(streams,              TEXT_MAYBE,  4096, "TEXT") /* of its streams (gpu_label.h) */
#define COLUMNS_busy(C)                                                                             \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(device,               U32,         -,   "INTEGER NOT NULL")                               \
        C(busy_ns,              U64,         -,   "INTEGER NOT NULL")                               \
        C(first_ns,             U64,         -,   "INTEGER NOT NULL")                               \
        C(last_ns,              U64,         -,   "INTEGER NOT NULL")                               \
        C(compute_ns,           U64,         -,   "INTEGER NOT NULL DEFAULT 0")                     \
        C(comm_ns,              U64,         -,   "INTEGER NOT NULL DEFAULT 0")                     \
        C(copy_ns,              U64,         -,   "INTEGER NOT NULL DEFAULT 0")                     \
        C(idle_launch_ns,       U64,         -,   "INTEGER NOT NULL DEFAULT 0")                     \
        C(idle_gap_ns,          U64,         -,   "INTEGER NOT NULL DEFAULT 0")                     \
        C(idle_queued_ns,       U64,         -,   "INTEGER NOT NULL DEFAULT 0")                     \
        C(idle_unknown_ns,      U64,         -,   "INTEGER NOT NULL DEFAULT 0")
#define COLUMNS_loss(C)                                                                             \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(cause,                U32,         -,   "INTEGER NOT NULL")                               \
        C(count,                U64,         -,   "INTEGER NOT NULL")
#define COLUMNS_note(C)                                                                             \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(number,               U32,         -,   "INTEGER NOT NULL")                               \
        C(ns,                   I64,         -,   "INTEGER NOT NULL")                               \
        C(text,                 TEXT,        256, "TEXT NOT NULL")
#define COLUMNS_lane(C)                                                                             \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(lane,                 U32,         -,   "INTEGER NOT NULL")                               \
        C(head,                 U64,         -,   "INTEGER NOT NULL")
#define COLUMNS_pending(C) /* the fold's own encoding; a row without bytes: nothing is pending */   \
        C(process,              I64,         -,   "INTEGER PRIMARY KEY")                            \
        C(launches,             LAUNCHES,    -,   "BLOB NOT NULL")
#define COLUMNS_anchor(C)                                                                           \
        C(ring_clock,           U32,         -,   "INTEGER NOT NULL")                               \
        C(clock,                U64,         -,   "INTEGER NOT NULL")                               \
        C(monotonic_ns,         U64,         -,   "INTEGER NOT NULL")                               \
        C(realtime_ns,          U64,         -,   "INTEGER NOT NULL")                               \
        C(error_ns,             U64,         -,   "INTEGER NOT NULL")
#define COLUMNS_trace(C) /* a session's timeline, in chunks (trace.h); in the order they came */    \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(number,               U32,         -,   "INTEGER NOT NULL") /* of the chunk, from 0 */    \
        C(first,                U64,         -,   "INTEGER NOT NULL") /* events of this session and process before it */ \
        C(events,               U32,         -,   "INTEGER NOT NULL")                               \
        C(end_ns,               U64,         -,   "INTEGER NOT NULL") /* when it last grew */       \
        C(bytes,                CHUNK,       -,   "BLOB")                                           \
        C(summary,              SUMMARY,     -,   "BLOB") /* of the chunk: summary.h; NULL: it has none */

#define COLUMNS_reading(C) /* what a GPU and its host did meanwhile (reading.h) */                  \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(gpu,                  U32,         -,   "INTEGER NOT NULL") /* 4294967295: the host */    \
        C(number,               U32,         -,   "INTEGER NOT NULL") /* of the row, from 0 */      \
        C(begin_ns,             U64,         -,   "INTEGER NOT NULL")                               \
        C(end_ns,               U64,         -,   "INTEGER NOT NULL")                               \
        C(bytes,                CHUNK,       -,   "BLOB")

#define COLUMNS_step(C) /* how long steps took, and what they were told (step_row.h) */             \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(number,               U32,         -,   "INTEGER NOT NULL") /* of the row, from 0 */      \
        C(steps,                U64,         -,   "INTEGER NOT NULL") /* of the process so far */ \
        C(begin_ns,             U64,         -,   "INTEGER NOT NULL")                               \
        C(end_ns,               U64,         -,   "INTEGER NOT NULL")                               \
        C(bytes,                CHUNK,       -,   "BLOB")

#define COLUMNS_memory(C) /* who holds memory (holders.h) */                                           \
        C(session,              I64,         -,   "INTEGER NOT NULL")                               \
        C(process,              I64,         -,   "INTEGER NOT NULL")                               \
        C(bytes,                LAUNCHES,    -,   "BLOB NOT NULL")

/* The tables of rows, in the order in which they are made and stored: X(name, key of several columns,
 * options). */
#define TABLES(X)                                                                                   \
        X(process, "",                                             "STRICT")                        \
        X(session, "",                                             "STRICT")                        \
        X(member,  "session, process",                             "STRICT, WITHOUT ROWID")         \
        X(active,  "session, begin_ns",                            "STRICT, WITHOUT ROWID")         \
        X(segment, "session, segment",                             "STRICT, WITHOUT ROWID")         \
        X(node,    "",                                             "STRICT")                        \
        X(cell,    "session, process, segment, node, device, class", "STRICT, WITHOUT ROWID")       \
        X(metric,  "session, process, segment, node, name",        "STRICT, WITHOUT ROWID")         \
        X(config,  "session, process, node, config",               "STRICT, WITHOUT ROWID")         \
        X(device,  "process, device",                              "STRICT, WITHOUT ROWID")         \
        X(busy,    "session, process, device",                     "STRICT, WITHOUT ROWID")         \
        X(loss,    "session, process, cause",                      "STRICT, WITHOUT ROWID")         \
        X(note,    "session, process, number",                     "STRICT, WITHOUT ROWID")         \
        X(lane,    "process, lane",                                "STRICT, WITHOUT ROWID")         \
        X(pending, "",                                             "STRICT")                        \
        X(anchor,  "ring_clock, clock",                            "STRICT, WITHOUT ROWID")         \
        X(trace,   "session, process, number",                     "STRICT")                        \
        X(reading, "session, gpu, number",                         "STRICT, WITHOUT ROWID")         \
        X(step,    "session, process, number",                     "STRICT, WITHOUT ROWID")         \
        X(memory,  "session, process",                             "STRICT, WITHOUT ROWID")
/* clang-format on */

#define MEMBER(c, kind, a, sql) MEMBER_##kind(c, a)
#define X(t, key, options)          \
	struct row_##t {            \
		COLUMNS_##t(MEMBER) \
	};
TABLES(X)
#undef X
#undef MEMBER

enum table_id {
#define X(t, key, options) TABLE_##t,
	TABLES(X)
#undef X
		TABLE_MAX
};

#endif
