/* SPDX-License-Identifier: MIT. stage.h: what a reader found, before it is a session: events in any
 * order, in a database of its own that spills to disk; names, threads, nodes and launch
 * configurations in memory, under ceilings. For the readers, and for place.c. */
#ifndef PROTOND_IMPORT_STAGE_H
#define PROTOND_IMPORT_STAGE_H

#include <sqlite3.h>
#include <stdbool.h>

#include "import.h"
#include "session_terms.h"
#include "table.h"
#include "trace.h"

#define STAGE_NAMES_MAX   (1u << 20)
#define STAGE_NAMES_BYTES (64u << 20)
#define STAGE_NODES_MAX   (1u << 20)
#define STAGE_DEPTH_MAX   1000u /* of the tree: PROFILE_DEPTH_MAX */
#define STAGE_THREADS_MAX 65536u
#define STAGE_CONFIGS_MAX 65536u
#define STAGE_APART_MAX   (366ll * 86400 * 1000000000) /* of files' bases, in ns */
#define STAGE_TIME_MAX   \
	(INT64_MAX / 4 - \
		STAGE_APART_MAX) /* of a time, in ns: two of them are within CLOCK_NS_MAX */
#define STAGE_NONE UINT32_MAX

enum slice_kind {
	SLICE_SCOPE,
	SLICE_FRAME,  /* of Python */
	SLICE_API,    /* a call of the vendor's library: it may be a launch */
	SLICE_LAUNCH, /* a launch that is no scope */
	SLICE_ARROW,  /* likewise, where an arrow begins that may be one */
	SLICE_VALUE,  /* values that were set at its begin */
	SLICE_MEMORY, /* what torch's allocator gave or got back at its begin: [memory]'s args */
};

struct stage_slice {
	uint32_t thread, name;
	uint32_t node; /* where it stands; STAGE_NONE: in what is open on its thread */
	int64_t begin, end;
	int64_t correlation; /* -1: none */
	uint8_t kind;        /* enum slice_kind */
	uint8_t flags;       /* TRACE_… of a scope */
	const char *values;  /* an object of JSON, of n_values bytes; NULL: none */
	size_t n_values;
};

/* What a record of waiting says of a call that has a row of its own, by their correlation. */
struct stage_sync {
	uint32_t process;    /* a place in stage.process, which may be of a GPU alone */
	uint32_t stream;     /* UINT32_MAX: none */
	uint64_t event;      /* 0: none */
	int64_t correlation; /* of one process */
	int64_t begin, end;
	uint8_t class; /* of gpu_class_is_sync() */
	bool hearsay;  /* no record of the file: another one says it */
};

struct stage_op {
	uint32_t process; /* whose GPU: a place in stage.process, which may be of a GPU alone */
	uint32_t thread;  /* where the file has it; STAGE_NONE: nowhere */
	uint32_t name, node, config; /* node, config: STAGE_NONE: not known */
	uint32_t device, context, stream;
	int64_t start, end, correlation;
	uint64_t bytes;
	uint8_t class, flags; /* enum cell_class; TRACE_GRAPH */
};

struct stage_file {
	const char *name;
	int64_t base_ns;        /* its times are since then */
	int64_t rank, world;    /* of its processes that have none of their own; -1: none */
	uint32_t first_process; /* up to the next file's */
};

struct stage_process {
	uint32_t file;
	uint32_t key;   /* name: how the file calls it */
	uint32_t pid;   /* a number of its own */
	uint32_t title; /* name, STAGE_NONE */
	uint32_t owner; /* of a GPU: whose it is; STAGE_NONE: not known */
	uint32_t id;    /* in the session; 0: it has no event */
	int64_t rank;   /* -1: none */
	bool has_slices;
};
struct stage_thread {
	uint32_t process, key, tid, title;
	bool has_slices;
};
struct stage_name {
	const char *s;
	uint32_t n;
};
struct stage_node {
	uint8_t hash[16];
	uint32_t parent, name;
	uint16_t depth;
	uint8_t kind;
};
struct stage_device {
	uint32_t ordinal, type, arch, num_sms, clock_khz, memory_clock_khz,
		bus_width; /* type: of DEVICE_TYPES; 0: CUDA */
	uint64_t memory_bytes;
	char name[64];
};

struct stage {
	sqlite3 *db; /* main: the session; scratch: events */
	sqlite3_stmt *add_slice, *add_edge, *add_op, *add_arrow, *add_sync;
	struct arena *arena;
	struct stage_file *file;
	struct stage_name *name;
	struct stage_process *process;
	struct stage_thread *thread;
	struct stage_node *node; /* 0 is ROOT */
	struct trace_config *config;
	struct stage_device *device;
	uint32_t n_files, n_names, n_processes, n_threads, n_nodes, n_configs, n_devices;
	uint32_t cap_files, cap_names, cap_processes, cap_threads, cap_nodes, cap_configs,
		cap_devices;
	struct table names, threads, nodes, configs;
	size_t name_bytes;
	bool whole_micros; /* no time had a fraction: neighbours may overlap by rounding */
	enum process_source source;
	const struct import_options *options;
	uint64_t staged, placed; /* events; rows walked over since, which is twice as many */
	struct import_taken taken;
	struct err *e;
};

int stage_open(struct stage *s, sqlite3 *to, const struct import_options *o, struct err *e);
void stage_close(struct stage *s);

/* What is found from now on is of this file. */
bool stage_file(struct stage *s, const char *name);
struct stage_file *stage_reading(const struct stage *s);            /* the last one */
uint32_t stage_processes_end(const struct stage *s, uint32_t file); /* behind its last process */

/* Each finds or adds; at a ceiling it is the last one's, or what is said. -ENOMEM: false. */
bool stage_name(struct stage *s, const char *text, size_t bytes, uint32_t *ret);
bool stage_process(struct stage *s, uint32_t key, uint32_t *ret);
bool stage_thread(struct stage *s, uint32_t process, uint32_t key, uint32_t *ret);
bool stage_child(struct stage *s, uint32_t parent, uint8_t kind, uint32_t name, uint32_t *ret);
bool stage_config(
	struct stage *s, const struct trace_config *c, uint32_t *ret); /* STAGE_NONE: full */
struct stage_device *stage_device(struct stage *s, uint32_t ordinal); /* NULL: no memory, or full */

/* For whoever waits: how much of its file a reader has read; then, a row more of what is staged. */
void stage_read_part(struct stage *s, double part);
void stage_placed(struct stage *s);

/* A number of a stream, or of an event; UINT32_MAX: CUPTI's words for none. */
static inline uint32_t stage_stream(int64_t v)
{
	return v >= 0 && v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* Events. Times that cannot be are counted and left out. -ENOSPC, -ENOMEM with words. */
int stage_slice(struct stage *s, const struct stage_slice *x);
int stage_op(struct stage *s, const struct stage_op *x);
int stage_sync(struct stage *s, const struct stage_sync *x);
/* The call of that correlation, whenever it was, recorded x->event on x->stream. */
int stage_recorded(struct stage *s, const struct stage_sync *x);
/* The end of an arrow; its beginning is a SLICE_ARROW whose correlation is the same number. */
int stage_arrow(struct stage *s, uint32_t thread, int64_t at, int64_t key);
/* A beginning or an end, which are paired when all are there; x->begin is when. */
int stage_edge(struct stage *s, bool begins, const struct stage_slice *x);

int stage_wrong(struct stage *s);     /* -ENOSPC, -EIO: what SQLite says */
int stage_no_memory(struct stage *s); /* -ENOMEM */
int stage_run(struct stage *s, const char *sql);
int stage_prepare(struct stage *s, const char *sql, sqlite3_stmt **ret);
/* One row, of n numbers. */
int stage_put(struct stage *s, sqlite3_stmt *q, const int64_t *v, int n);

/* place.c: the session out of what is staged. */
int stage_place(struct stage *s, const struct import_options *o);

#endif
