/* SPDX-License-Identifier: MIT. trace.h: a session's timeline, in chunks of columns: each field of
 * all events of a kind stands together, as small differences, compressed (zstd). One chunk is one
 * row of the table `trace`; docs/trace.md has the layout.
 *
 * A chunk names its nodes by hash and carries its own lists of threads, streams, launch
 * configurations and texts, so that it is read without any other chunk.
 * Single-threaded. A reader believes no byte. */
#ifndef PROTOND_SESSION_TRACE_H
#define PROTOND_SESSION_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "profile.h"

#define TRACE_EVENTS_MAX  16384u     /* of all kinds: then a chunk is full */
#define TRACE_RAW_MAX     (2u << 20) /* bytes before compression: likewise */
#define TRACE_COUNT_LIMIT 65536u     /* no list and no kind has more in a chunk that is read */
#define TRACE_TEXT_MAX    65535u     /* bytes of a text */
#define TRACE_BURSTS_MAX  1024u      /* of a chunk that is written: then it is full */
#define TRACE_NONE        UINT32_MAX

/* flags of trace_scope; the first three are those of the ring's SCOPE records */
#define TRACE_BEGAN_BEFORE 1u /* `begin` is when recording began */
#define TRACE_UNWOUND      2u /* closed by unwind, thread end or exit, not by its own exit */
#define TRACE_SPAN         4u /* of a task: it may overlap others of its thread */
#define TRACE_OPEN         8u /* still open at `end`, where its session or its process ended */

#define TRACE_CALL 16u /* no scope, but a call of the vendor's library below one */

struct trace_call {
	uint64_t event;               /* 0: none; a handle, which may be another event's later */
	uint32_t correlation, stream; /* stream: UINT32_MAX: none */
	uint8_t class;                /* enum cell_class */
};

struct trace_scope {
	uint64_t begin, end; /* ring clock */
	uint32_t thread, node, segment;
	uint8_t flags;
	struct trace_call call; /* of TRACE_CALL; of a sample `correlation` is how many looks */
};

/* flags of trace_op */
#define TRACE_UNLAUNCHED 1u /* its launch is not known: no clock, thread or correlation */
#define TRACE_GRAPH      2u /* launched as a part of a graph */
#define TRACE_MORE       4u /* not the first record of its launch */

static inline bool trace_is_sync(const struct trace_scope *s)
{
	return (s->flags & TRACE_CALL) != 0 && gpu_class_is_sync(s->call.class);
}

struct trace_op {             /* a kernel, copy or set, with its launch */
	uint64_t launched;    /* ring clock */
	uint64_t start, end;  /* CLOCK_REALTIME ns, as the vendor's library gives them */
	uint64_t bytes;       /* copies and sets */
	uint32_t correlation; /* the vendor's; the kernels of one graph launch share it */
	uint32_t thread, node, segment, stream;
	uint32_t config; /* kernels; TRACE_NONE: not known */
	uint8_t class;   /* enum cell_class */
	uint8_t flags;
};

struct trace_metric {
	uint64_t clock; /* ring clock */
	uint64_t bits;  /* of the value; STR: a text */
	uint32_t thread, node, segment;
	uint32_t name; /* text, without (inc), (exc), (pty) */
	uint8_t type;  /* enum value_type, I64 to STR */
};

/* Events of a thread that came too fast to be kept one by one: they were summed, and are in the tree
 * alone (docs/ring.md). They stand for no event of the chunk, and events may lie within them. */
struct trace_burst {
	uint64_t begin, end; /* ring clock: of the first and of the last that is known */
	uint64_t n;          /* scopes and metrics */
	uint32_t thread, segment;
};

struct trace_thread {
	uint32_t tid;
	uint32_t name; /* text, TRACE_NONE: not known */
};
struct trace_stream {
	uint32_t device, context, stream;
};
struct trace_config {
	uint32_t grid[3], block[3], registers, static_shared, dynamic_shared;
};

/* --- writing: events as they come, fields named by place in the chunk's lists */

struct trace_column {
	uint8_t *p;
	uint32_t n, cap;
};
/* clang-format off */
#define TRACE_COLUMNS(X)                                                                         \
        X(NODES) X(THREADS) X(STREAMS) X(CONFIGS) X(TEXTS)                                       \
        X(SCOPE_THREAD) X(SCOPE_NODE) X(SCOPE_SEGMENT) X(SCOPE_FLAGS) X(SCOPE_END)               \
        X(SCOPE_LENGTH)                                                                          \
        X(OP_THREAD) X(OP_NODE) X(OP_SEGMENT) X(OP_STREAM) X(OP_CLASS) X(OP_FLAGS) X(OP_CONFIG)  \
        X(OP_BYTES) X(OP_CORRELATION) X(OP_LAUNCHED) X(OP_START) X(OP_LENGTH)                    \
        X(METRIC_THREAD) X(METRIC_NODE) X(METRIC_SEGMENT) X(METRIC_NAME) X(METRIC_TYPE)          \
        X(METRIC_CLOCK) X(METRIC_BITS)                                                           \
        X(CALLS) X(BURSTS) /* not in a chunk without */
/* clang-format on */
enum trace_column_id {
#define X(name) TRACE_##name,
	TRACE_COLUMNS(X)
#undef X
		TRACE_COLUMN_MAX
};
enum trace_count {
	TRACE_N_NODES,
	TRACE_N_THREADS,
	TRACE_N_STREAMS,
	TRACE_N_CONFIGS,
	TRACE_N_TEXTS,
	TRACE_N_SCOPES,
	TRACE_N_OPS,
	TRACE_N_METRICS,
	TRACE_COUNT_MAX
};

struct trace_last; /* what the next event of a thread or stream is a difference to */

struct trace_pack { /* zero-initialise; trace_pack_fini() */
	struct trace_column column[TRACE_COLUMN_MAX];
	uint32_t n[TRACE_COUNT_MAX];
	uint32_t raw; /* bytes in all columns */
	struct trace_burst
		*burst; /* [n_bursts]; those that are there may grow. No column until then */
	uint32_t n_bursts, cap_bursts;
	struct trace_last *last_thread, *last_stream;
	uint32_t cap_threads, cap_streams;
};

void trace_pack_fini(struct trace_pack *k);
void trace_pack_clear(struct trace_pack *k); /* the next chunk; keeps the memory */

static inline uint32_t trace_pack_events(const struct trace_pack *k)
{
	return k->n[TRACE_N_SCOPES] + k->n[TRACE_N_OPS] + k->n[TRACE_N_METRICS];
}
static inline bool trace_pack_is_empty(const struct trace_pack *k)
{
	return trace_pack_events(k) == 0 && k->n_bursts == 0;
}
/* No further event, so that the next one begins a chunk. */
bool trace_pack_is_full(const struct trace_pack *k);

/* Each adds at the end of its list; the place is the count before. false: out of memory, and the
 * pack is as it was. */
bool trace_pack_node(struct trace_pack *k, const uint8_t hash[16]);
bool trace_pack_thread(struct trace_pack *k, const struct trace_thread *t);
bool trace_pack_stream(struct trace_pack *k, const struct trace_stream *s);
bool trace_pack_config(struct trace_pack *k, const struct trace_config *c);
bool trace_pack_text(struct trace_pack *k, const char *text, uint32_t bytes); /* to a NUL or MAX */
bool trace_pack_scope(struct trace_pack *k, const struct trace_scope *s);
bool trace_pack_op(struct trace_pack *k, const struct trace_op *o);
bool trace_pack_metric(struct trace_pack *k, const struct trace_metric *m);
bool trace_pack_burst(struct trace_pack *k, const struct trace_burst *b);

/* The chunk as it stands, malloc()ed; the pack goes on. -ENOMEM. */
int trace_pack_seal(const struct trace_pack *k, void **ret_bytes, uint32_t *ret_n);

/* --- reading */

struct trace_chunk {
	uint32_t n[TRACE_COUNT_MAX];
	uint8_t (*node)[16];
	struct trace_thread *thread;
	struct trace_stream *stream;
	struct trace_config *config;
	const char **text; /* NUL-terminated; may be any bytes */
	struct trace_scope *scope;
	struct trace_op *op;
	struct trace_metric *metric;
	struct trace_burst *burst; /* [n_bursts] */
	uint32_t n_bursts;
	void *memory;
	bool calls; /* there are scopes with TRACE_CALL */
};

/* Every place in it is in range. -EBADMSG with words, -ENOMEM. */
int trace_chunk_read(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
/* Each of these reads the lists and the bursts. No metrics, and of an operation its node, stream, start and end alone: what is not read is not
 * set. */
int trace_chunk_read_times(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
/* Likewise, but each operation starts at 0. */
int trace_chunk_read_lengths(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
/* The scopes and the metrics: op is NULL. */
int trace_chunk_read_scopes(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
/* Of operations what _times() reads: scope and metric are NULL. */
int trace_chunk_read_works(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
/* And the metrics: scope and op are NULL. */
int trace_chunk_read_metrics(const void *bytes, size_t n, struct trace_chunk *ret, struct err *e);
void trace_chunk_fini(struct trace_chunk *c);

#endif
