/* SPDX-License-Identifier: MIT. profile.h: one session as a tree of named nodes with metrics: what
 * the viewer shows and the exporters write, whatever it came from.
 *
 * Sources: a session in a store (SQLite), a portable session file (the same schema, one session),
 * or a .hatchet file. All strings are valid UTF-8 and owned by the profile. Single-threaded. */
#ifndef PROTOND_SESSION_PROFILE_H
#define PROTOND_SESSION_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "err.h"
#include "gpu_terms.h"
#include "part_terms.h"
#include "step_rates.h"
#include "tables.h"

struct sqlite3;

#define PROFILE_NODES_MAX   (4u << 20)
#define PROFILE_METRICS_MAX 1024u
#define USER_METRICS_MAX    960u  /* of a session, beside our own */
#define PROFILE_DEPTH_MAX   1000u /* two levels of JSON each, of the 2 048 that jansson reads */
#define PROFILE_NONE        UINT32_MAX

enum value_type { VALUE_NONE = 0, VALUE_I64, VALUE_U64, VALUE_F64, VALUE_STR, VALUE_VECTOR };

struct value {
	uint8_t type; /* enum value_type */
	uint32_t n;   /* VECTOR: elements */
	union {
		int64_t i;
		uint64_t u;
		double f;
		const char *s;   /* owned by the profile */
		const double *v; /* likewise */
	};
};

/* How a metric adds up. INCLUSIVE: parents show the sum of their subtree. */
enum metric_kind { KIND_INCLUSIVE = 0, KIND_EXCLUSIVE = 1, KIND_PROPERTY = 2 };

struct profile_metric {
	const char
		*name; /* "time (ns)", "count", "cpu_time (ns)", "calls", "flops8", "device_id" */
	uint8_t kind;  /* enum metric_kind */
};

struct profile_node {
	const char *name;
	uint32_t parent, first_child,
		next_sibling; /* PROFILE_NONE; children in order of first sight */
	uint32_t depth;       /* ROOT 0 */
	uint8_t kind;         /* enum node_kind */
	uint8_t class;        /* enum cell_class of a GPU leaf, else 0 */
};

struct profile_device {
	const char *type; /* "CUDA", "HIP" */
	const char *id;   /* the number that device_id values name, as text: "0" */
	const char *name;
	uint8_t uuid[16];
	uint32_t arch;         /* 90; 0 unknown */
	const char *arch_text; /* "90", "gfx942" */
	uint64_t num_sms, clock_khz, memory_clock_khz, bus_width;
	uint64_t busy_ns; /* some kernel or copy was running, within the active intervals */
	/* What the session's active time is made of, and whether that is known: it is not of a part of a
	 * session, nor of a device on which several of its processes worked. */
	uint64_t part_ns[PART_MAX];
	bool has_parts;
};

struct profile_loss {
	uint32_t cause; /* enum lost_cause */
	uint64_t count;
	bool about; /* some of it may be another session's of the same time, or some of that its own */
};

/* What the tree is worth. Zero or NULL where the source does not say (a .hatchet file says
 * nothing). */
#define PROFILE_NO_KERNEL \
	"the program launched no kernel while it was recorded; `-b none` records CPU scopes alone"

struct profile_head {
	struct row_session row;          /* as stored; zeroes of a .hatchet file */
	const char *name, *uuid, *state; /* state: "active", "inactive", "finalized" */
	const char *source;              /* of PROCESS_SOURCES, in session_terms.h */
	const char *command;             /* of the first process */
	const char *tags, *note;         /* what people wrote to it; "": nothing */
	uint64_t id;
	uint32_t files; /* enum session_mode; MODE_NONE also where it is not loaded for a file */
	int64_t created_ns;   /* CLOCK_REALTIME */
	uint64_t duration_ns; /* of the active intervals, together */
	uint32_t n_processes;
	uint32_t ranked;            /* processes that have a rank, */
	int64_t rank_min, rank_max; /* which are these */
	int64_t world;              /* ranks that there are, as a process was told; 0: none was */
	uint64_t launches, matched, unmatched; /* launches with and without a GPU record */
	double overhead; /* share of one core that the agents and the daemon took; NAN unknown */
	double recording_cost; /* what a sampled step takes longer when its GPU work is recorded, as
				  a share: measured in the job; NAN unknown */
	struct step_rates
		rates; /* of its stored steps; steps 0: it has none, or is a part of a session */
	bool lost_work; /* so much of the GPU's work has no record that what looks idle may have been work */
	const char *gpu_why; /* why there is no GPU data and what to do; NULL when there is or none
				wanted */
	uint32_t n_losses;
	struct profile_loss *losses;
	uint32_t n_notes;
	const char **notes; /* further words: gaps, killed processes, open scopes */
};

/* Whether nothing more comes: until then a launch without a record is in flight. */
static inline bool profile_is_over(const struct profile_head *h)
{
	return h->state == NULL || strcmp(h->state, "finalized") == 0 ||
	       strcmp(h->state, "interrupted") == 0;
}

/* What was lost, each event once. work: of what may have been work of the GPU. */
uint64_t profile_lost(const struct profile_head *h, bool work);
/* Whether so much of its GPUs' work was lost, of which this is what there is. */
bool profile_lost_work(const struct profile_head *h, double pieces);

/* Durations of a node's kernels, copies or sets, else of its scopes. */
struct profile_durations {
	uint64_t n;              /* how many */
	uint64_t min_ns, max_ns; /* the shortest and the longest; max < min: none */
	/* Buckets [first, first + n_buckets) of a histogram (hist.h), which may know fewer than n. */
	const uint64_t *count;
	uint16_t first, n_buckets;
	bool coarse;
};

/* How a kernel was launched, `count` times. */
struct profile_config {
	uint32_t node;
	uint32_t grid[3], block[3];
	uint32_t registers, static_shared, dynamic_shared;
	uint64_t count;
};

struct profile {
	struct profile_head head;
	uint32_t n_nodes, n_metrics, n_devices;
	struct profile_node *node; /* node[0] is ROOT; a parent comes before its children */
	struct profile_metric *metric;
	struct value *value; /* [n_nodes * n_metrics], row per node: the node's own values */
	struct profile_device *device;
	struct profile_durations *durations; /* [n_nodes], or NULL */
	uint32_t n_configs;
	struct profile_config
		*config; /* launch configurations, by node; none where they are left out */
	struct arena *arena;
};

static inline const struct value *profile_value(
	const struct profile *p, uint32_t node, uint32_t metric)
{
	return &p->value[(size_t)node * p->n_metrics + metric];
}

/* Which part of a session. Zero-initialised: all of it. */
struct profile_select {
	const char *process; /* NULL: all, merged; or a rank ("3") or "pid:1234" */
	int64_t id; /* of the one process, as the store numbers it, without its steps' rates; 0: by
		       `process` */
	bool one_phase; /* false: all segments */
	uint32_t phase; /* the segment, when one_phase */
	bool lean;      /* leave out durations and config, which a tree does not show, */
	bool configs;   /* but not the latter */
	bool brief;     /* of our metrics only times, counts, calls and copies */
	bool file;      /* to be written as a file that Proton has: see session_mode */
	uint64_t
		every_ns; /* windows of so long, from the timeline's zero, are the steps; 0: scopes are */
	/* Of a timeline: what is not wholly outside of [from_ns, to_ns], since its zero, or of these
	 * steps, from 1; to_ns and last_step 0: all of it. */
	uint64_t from_ns, to_ns;
	uint32_t first_step, last_step;
	bool open_steps; /* of those the ones alone that did not end */
	const char *
		scope; /* scopes whose path ends so count as steps; NULL: those that are named so */
	/* How a timeline names a node; NULL: as it was recorded. Valid until the next call. */
	const char *(*show)(void *arg, const char *name);
	void *show_arg;
	/* Of a timeline: how far it is, of `all`. false: stop, with -ECANCELED. NULL: nobody asks. */
	bool (*progress)(void *arg, uint64_t done, uint64_t all);
	void *progress_arg;
};

static inline bool select_is_one(const struct profile_select *s)
{
	return s->process != NULL || s->id != 0;
}

/* Where the window after so many begins. */
static inline uint64_t select_every(const struct profile_select *s, uint32_t n)
{
	return s->every_ns > UINT64_MAX / ((uint64_t)n + 1) ? UINT64_MAX : s->every_ns * n;
}

/* Loads session `id` from an open store. -ENOENT, -ENOMEM, -EBADMSG (words in e). */
int profile_load(struct sqlite3 *db, int64_t id, const struct profile_select *s,
	struct profile **ret_profile, struct err *e);
void profile_free(struct profile *p); /* NULL is fine */
/* CLOCK_MONOTONIC; 0 of another boot, whose clock nobody can read any more. */
uint64_t profile_now(const uint8_t boot_id[16]);

/* Building one (the loaders use these; the viewer to make diffs). Strings are copied. */
struct profile *profile_new(void); /* with ROOT; NULL: out of memory */
int profile_reserve(
	struct profile *p, uint32_t nodes); /* room for so many, for speed alone; -ENOMEM */
uint32_t profile_add_node(struct profile *p, uint32_t parent, const char *name,
	uint8_t kind); /* PROFILE_NONE: full */
/* The same with a name that the profile owns already. */
uint32_t profile_adopt_node(struct profile *p, uint32_t parent, const char *owned, uint8_t kind);
uint32_t profile_add_metric(
	struct profile *p, const char *name, uint8_t kind); /* finds or adds; PROFILE_NONE: full */
int profile_set(struct profile *p, uint32_t node, uint32_t metric, struct value v); /* -ENOMEM */
uint32_t profile_find_metric(const struct profile *p, const char *name); /* exact; PROFILE_NONE */
/* Copied as clean UTF-8; what is longer than any text of ours, of a foreign file, ends in "…"
 * there. NULL: -ENOMEM. */
#define PROFILE_TEXT_MAX 16384u
const char *profile_text(struct profile *p, const char *text, size_t bytes);

#endif
