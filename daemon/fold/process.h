/* SPDX-License-Identifier: MIT. process.h: a process whose ring was adopted: its tables, nodes,
 * lanes, and what of it is in flight. process.c has what the rooms above it ask of its state:
 * who it is, how much room it has, what its clock says. life.c makes and ends it. */
#ifndef PROTOND_PROCESS_H
#define PROTOND_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "ceilings.h"
#include "clockmap.h"
#include "flight.h"
#include "loss_terms.h"
#include "must.h"
#include "record.h"
#include "ring.h"
#include "table.h"
#include "tables.h"

struct arena;
struct fold;
struct part;

#define PROCESS_MAGIC 0x434f5250u /* "PROC" */
#define PARTS_MAX     64u
#define REFUSED_KEPT  8u /* sessions that a job was refused: it asks at once */
#define OWN_ANCHORS   16u

#define UNCOUNTED_KEPT 8u /* different ones */

struct name {
	const char *text; /* clean, in the arena */
	uint32_t bytes;
	uint32_t metric;     /* place + 1 in metric_name; 0: not read yet */
	uint8_t metric_kind; /* enum metric_kind */
	uint8_t class;       /* as a kernel: enum cell_class; 0: not looked at yet */
};

struct path { /* 16 bytes, for the fold looks at one with each event */
	uint32_t parent, name;
	uint32_t node;        /* place + 1; 0: not needed yet */
	uint32_t domain : 16; /* name of the NVTX domain that it is of; NAME_NONE: of none */
	uint32_t depth : 9;
	uint32_t kind : 3;
	uint32_t bad : 1;     /* broke a law: stands for ROOT/(other) */
	uint32_t step : 1;    /* its node is one: what the fold looks at for each scope */
	uint32_t surplus : 1; /* there was no room for it: stands for ROOT/(other) */
	uint32_t domains : 1; /* it, or one above it, is of a domain */
};
#define PATH_DOMAIN_END (1u << 16) /* later names are no domain's */
_Static_assert(PATH_KIND_MAX <= 8 && PATH_DEPTH_MAX < 512, "bits of a path");

struct node {
	uint8_t hash[16];
	const char *name; /* in the arena */
	uint32_t bytes, parent;
	uint32_t round; /* the collect that last wrote it */
	uint32_t other; /* place + 1 of its (other) */
	uint8_t kind;
	uint8_t step; /* enum node_step */
};

struct child { /* (parent, kind, name id) → node, so that no event hashes text */
	uint32_t parent, name, node;
	uint8_t kind;
};

struct last_child {          /* of a node: the kernel found last below it */
	uint32_t name, node; /* node: place + 1 */
};

struct metric_name {
	const char *text;
	uint32_t bytes;
};

/* A loss that is told both in-band and by an absolute counter: the larger one holds. */
struct told {
	uint64_t told, charged; /* charged: to the sessions so far */
	uint64_t seen;          /* by its counter, where that waits: loss_rest() */
};

struct lane {
	uint64_t head;
	uint64_t taken_ns; /* CLOCK_MONOTONIC of its last entry; 0: none in this life */
	struct told full, nested;
	uint32_t tid, generation, name; /* of its thread */
	uint32_t now_first, now_n;      /* its frames in process.now */
	uint32_t left_path;             /* of its last SCOPE; PATH_ROOT: none came in this life */
	uint64_t left_begin;            /* 0: before the recording */
	bool dirty;
	bool sums;    /* of its thread, which is in another */
	bool skipped; /* its last entry was left out, and said so */
};

struct open_sum;

struct user {
	uint32_t uid, n;           /* n: of his processes, ended ones too */
	uint64_t held[WEIGHT_MAX]; /* bytes of theirs in memory */
	uint64_t sealed;           /* of their chunks that wait to be collected */
};

struct process {
	struct fold *fold;
	struct user *user;
	struct row_process row; /* command, exe, cwd owned; counters filled in at collect */
	bool dirty;
	uint32_t collected; /* the round of the last collect that had its row; 0: stored before */
	uint32_t magic;

	struct arena *arena;
	struct name *name;
	struct path *path;
	struct ring_config *config;
	struct ring_device *device;
	uint32_t n_names, cap_names, n_paths, cap_paths, n_configs, cap_configs, n_devices;
	uint32_t told_paths, told_names; /* that its tables had: the surplus is (other) */
	uint64_t name_bytes;
	bool devices_dirty;
	struct gpu_names **gpu_names; /* [RING_DEVICES_MAX] of the arena; NULL: none */
	uint32_t n_gpu_names;
	bool bare; /* until fold_replayed(): its ring's paths have not come again; not kept */

	struct node *node;
	struct last_child *last_child; /* [cap_nodes] */
	struct child *child;
	struct metric_name *metric_name;
	uint32_t n_nodes, cap_nodes, n_children, cap_children, n_metric_names, cap_metric_names;
	struct table node_by_hash, child_by_key, metric_by_text;

	struct lane *lane;
	uint32_t cap_lanes; /* nothing came from those behind */
	struct j_now *now;
	uint32_t n_now, now_seen; /* now_seen: the first ones have cells */
	struct anchor own_anchor[OWN_ANCHORS];
	struct anchors own;
	struct clockmap clock;

	struct part *part[PARTS_MAX]; /* dense: those that take events */
	struct part *slot[PARTS_MAX]; /* by slot */
	struct part *member;         /* all of its parts, as it joined: also those that take none */
	bool operators;              /* it has paths of OP_DOMAIN; not kept */
	uint32_t n_parts, n_numbers; /* n_numbers: the job's own sessions so far */
	struct refused_start {
		uint32_t number;
		int code;
	} refused_start[REFUSED_KEPT]; /* the last ones of these; not kept */
	uint32_t n_refused_starts;
	struct rec_counters uncounted[UNCOUNTED_KEPT]; /* what it cannot count; not kept */
	uint32_t n_uncounted;
	struct flight flight;

	struct open_sum *sum; /* those that are counted as far as they went: sums.h */
	uint32_t n_sums, cap_sums;
	struct table sum_by_place;

	struct told cause[LOST_CAUSE_MAX]; /* of the whole ring */
	/* While a SESSION record is applied: what was charged that was lost after it. */
	uint64_t ahead[CUT_CAUSES + 1];
	uint64_t events, launches, kernels, drops, bad, skipped, delivered_ns;
	uint64_t refused;          /* nodes that could not be made; not kept */
	uint64_t tree_bytes;       /* of its parts' trees; not kept */
	uint64_t held[WEIGHT_MAX]; /* bytes, when it was last weighed; not kept */
};

#define MUST_PROCESS(p) MUST((p) != NULL && (p)->magic == PROCESS_MAGIC)

/* The newest of this ring, ended ones too; NULL. */
struct process *process_find(const struct fold *f, const uint8_t ring[16]);
struct process *process_by_id(const struct fold *f, int64_t id);
void process_weigh(struct process *p); /* held: bytes that it takes, about */
bool user_join(struct process *p);     /* its row is there; false: out of memory */
void user_leave(struct process *p);
uint64_t user_even(const struct fold *f, uint64_t bytes); /* what each has, whatever others take */
/* It has those below n <= row.n_lanes; false: out of memory. */
bool process_lanes(struct process *p, uint32_t n);
bool process_has_room(struct process *p); /* to grow */
/* For what is in flight. A tree that takes all there is costs no launch its kernel, nor the other way
 * round. */
bool process_has_room_in_flight(struct process *p);

void process_use_clock(struct process *p); /* after anchors may have changed */
uint64_t real_to_mono(const struct process *p, uint64_t real_ns);
uint64_t mono_to_real(const struct fold *f, uint64_t mono_ns);

#endif
