/* SPDX-License-Identifier: MIT. state.h: what the fold is made of and who owns it.
 *
 *   fold ─┬─ process ── tables, nodes, lanes, launches in flight
 *         └─ session ── part, one per process that is in it: windows and a tree
 *
 * A process refers to the parts that take its events (at most PARTS_MAX, each with a slot: a bit in
 * a launch's set). A part refers to its process, whose nodes its cells stand on: the process goes
 * last. No lock: all on one thread.
 */
#ifndef PROTOND_STATE_H
#define PROTOND_STATE_H

#include "arena.h"
#include "clockmap.h"
#include "correlate.h"
#include "fold.h"
#include "record.h"
#include "table.h"
#include "timeline.h"
#include "tree.h"
#include "window.h"

#define PARTS_MAX     64u
#define REFUSED_KEPT  8u             /* sessions that a job was refused: it asks at once */
#define BOOT_NS       60000000000ull /* CLOCK_MONOTONIC goes back so far at a boot alone */
#define ANCHORS_KEPT  256u
#define OWN_ANCHORS   16u
#define NOTES_MAX     256u
#define SPANS_MAX     65536u /* activations and phases of a session */
#define SPANS_LEAST   4096u  /* of all sessions that weigh on a job, whatever its room */
#define NOTES_COUNTED 1000u  /* numbers of notes that are counters start here */
#define NODE_NONE     UINT32_MAX
#define PROCESS_SHARE 192u  /* a part of so many that each has, whatever the others take */
#define TABLE_LEAST   4096u /* and entries of its tables, though without a text */
#define NODE_ROOT_AT  0u
#define NOW_MAX       65536u

/* clang-format off */
#define NOTES(X) /* name  words behind the count: kept per session and process */                     \
        X(NO_LAUNCH, "GPU records came without their launch: under (no launch)")                      \
        X(WIDENED,   "metric values mixed integers and floats: summed as floats")                     \
        X(TEXT,      "text values of a summed metric were left out: text is for (pty)")               \
        X(FORGOTTEN, "of the oldest activations forgotten: scopes across them miss that time")        \
        X(HIST,      "paths have no quantiles: the daemon's memory_mb is used up")
/* clang-format on */
enum note_kind {
#define X(name, words) NOTE_##name,
	NOTES(X)
#undef X
		NOTE_MAX
};

/* Names that no ring has; ids beside the ring's own. */
/* clang-format off */
#define WORDS(X)                                                                                      \
        X(ROOT, "ROOT") X(OTHER, "(other)") X(NO_LAUNCH, "(no launch)") X(CAPTURED, NODE_CAPTURED_NAME)
/* clang-format on */
#define WORD_FIRST 0x40000000
enum word {
	WORD_BEFORE = WORD_FIRST - 1,
#define X(name, text) WORD_##name,
	WORDS(X)
#undef X
		WORD_CLASS, /* + enum cell_class: the leaf of its work */
	WORD_END = WORD_CLASS + CLASS_MAX,
};

struct name {
	const char *text; /* clean, in the arena */
	uint32_t bytes;
	uint32_t metric;     /* place + 1 in metric_name; 0: not read yet */
	uint8_t metric_kind; /* enum metric_kind */
	uint8_t class;       /* as a kernel: enum cell_class; 0: not looked at yet */
};

struct path {
	uint32_t parent, name;
	uint32_t node; /* place + 1; 0: not needed yet */
	uint16_t depth;
	uint8_t kind;
	bool bad : 1;     /* broke a law: stands for ROOT/(other) */
	bool surplus : 1; /* there was no room for it: stands for ROOT/(other) */
};

struct node {
	uint8_t hash[16];
	const char *name; /* in the arena */
	uint32_t bytes, parent;
	uint32_t round; /* the collect that last wrote it */
	uint32_t other; /* place + 1 of its (other) */
	uint8_t kind;
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
};

struct lane {
	uint64_t head;
	struct told full, nested;
	uint32_t tid, generation, name; /* of its thread */
	uint32_t now_first, now_n;      /* its frames in process.now */
	bool dirty;
};

struct process {
	struct fold *fold;
	struct row_process row; /* command, exe, cwd owned; counters filled in at collect */
	bool dirty;

	struct arena *arena;
	struct name *name;
	struct path *path;
	struct ring_config *config;
	struct ring_device *device;
	uint32_t n_names, cap_names, n_paths, cap_paths, n_configs, cap_configs, n_devices;
	uint32_t told_paths, told_names; /* that its tables had: the surplus is (other) */
	uint64_t name_bytes;
	bool devices_dirty;
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
	uint32_t n_now;
	struct anchor own_anchor[OWN_ANCHORS];
	struct anchors own;
	struct clockmap clock;

	struct part *part[PARTS_MAX]; /* dense: those that take events */
	struct part *slot[PARTS_MAX]; /* by slot */
	uint32_t n_parts, n_numbers;  /* n_numbers: the job's own sessions so far */
	struct refused_start {
		uint32_t number;
		int code;
	} refused_start[REFUSED_KEPT]; /* the last ones of these; not kept */
	uint32_t n_refused_starts;
	struct correlate correlate;

	struct told cause[LOST_CAUSE_MAX]; /* of the whole ring */
	uint64_t events, launches, kernels, drops, bad, skipped, delivered_ns;
	uint64_t refused;    /* nodes that could not be made; not kept */
	uint64_t tree_bytes; /* of its parts' trees; not kept */
	uint64_t held;       /* what it takes in memory, when it was last weighed; not kept */
};

struct note {
	int64_t process;
	uint64_t ns;
	char text[256];
};

struct span_row {
	struct span span; /* monotonic ns; end 0: open */
	bool dirty;
};

struct spans {
	struct span_row *v;
	uint32_t n, cap, dirty; /* dirty: how many are, near the end */
};

struct session {
	struct fold *fold;
	struct row_session row;
	bool dirty, gpu_seen, forget; /* forget: finalized, and all of it stored */
	struct spans active, segment;
	struct part **part;
	uint32_t n_parts, cap_parts;
	uint32_t n_processes; /* members ever */
	struct note *note;
	uint32_t n_notes, cap_notes, notes_stored;
	uint64_t opened_ns, closed_ns; /* monotonic: active since (0: not); last end */
	struct chunks chunks;
};

struct part {
	struct session *session;
	struct process *process;
	bool cpu, gpu, python; /* what it takes of events */
	bool attached, stored; /* stored: the member row is */
	uint8_t slot;
	uint32_t n_open; /* launches in flight */
	struct window window;
	struct tree tree;
	struct timeline *timeline; /* NULL: none is kept */
	uint64_t loss[LOST_CAUSE_MAX], counted[NOTE_MAX], counted_ns[NOTE_MAX];
	uint32_t loss_dirty, counted_dirty; /* bits */
};

struct fold {
	struct fold_limits limit;
	struct process **process; /* by age */
	struct session **session;
	uint32_t n_processes, cap_processes, n_sessions, cap_sessions;
	struct anchor tsc_anchor[ANCHORS_KEPT], mono_anchor[ANCHORS_KEPT];
	struct anchors tsc, mono;
	struct row_anchor *new_anchor;
	uint32_t n_new_anchors, cap_new_anchors;
	int64_t next_process, next_session, offset_ns;
	struct fold_refused refused; /* not kept */
	int64_t *deleted;
	uint32_t n_deleted, cap_deleted, round;
	uint64_t now_ns;
	uint64_t cost_ns;
	uint32_t fresh;               /* bytes of rows since the last collect */
	uint64_t held;                /* bytes of all processes, as last weighed */
	uint64_t waiting;             /* bytes of rows on their way to the store */
	uint64_t sealed_bytes;        /* of chunks that wait for the next collect */
	bool cost_known, dirty, news; /* news: see fold_has_news() */
	bool restoring;               /* what was stored is taken back whatever it takes */
	bool no_memory;               /* for good: the journal has what this fold lacks */
	bool no_space;                /* during one fold_apply() */
};

/* --- process.c */
struct process *process_find(
	const struct fold *f, const uint8_t ring[16]); /* ended ones too; NULL */
struct process *process_by_id(const struct fold *f, int64_t id);
int process_adopt(
	struct fold *f, const struct journal_entry *e, const struct j_process *j, uint32_t bytes);
struct process *process_new(struct fold *f, const struct row_process *row); /* takes its strings */
void process_free(struct process *p);
void process_evict(struct fold *f, uint32_t keep); /* ended, stored ones, the oldest first */
uint64_t process_weigh(struct process *p);         /* bytes that it takes, about */
bool process_lanes(
	struct process *p, uint32_t n); /* it has those below n <= row.n_lanes; false: no memory */
bool process_has_room(struct process *p); /* to grow */
bool process_has_room_in_flight(struct process *p);
void process_use_clock(struct process *p); /* after anchors may have changed */
void process_state(struct process *p, const struct j_state *s);
void process_end(struct process *p, const struct j_end *e, uint64_t mono_ns);
void process_now(struct process *p, const struct j_now *now, uint32_t n);
void process_now_set(struct process *p, struct j_now *take, uint32_t n); /* lanes are in range */
void process_now_left(struct process *p, uint32_t lane, uint32_t path, uint64_t begin);
void process_table(struct process *p, const struct j_table *t, const uint8_t *bytes, uint32_t n);
uint32_t table_surplus(struct process *p, enum lost_cause cause, uint32_t id, uint32_t told);

/* The id, (other) for what there was no room for, counted, or TABLE_NONE: the tables never had it.
 */
static inline uint32_t table_path(struct process *p, uint32_t path)
{
	if (__builtin_expect(path < p->n_paths && !p->path[path].surplus, 1))
		return path;
	return table_surplus(p, LOST_PATHS, path, p->told_paths);
}

static inline uint32_t table_name(struct process *p, uint32_t name)
{
	if (__builtin_expect(name < p->n_names, 1))
		return name;
	return table_surplus(p, LOST_NAMES, name, p->told_names);
}
uint64_t real_to_mono(const struct process *p, uint64_t real_ns);
uint64_t mono_to_real(const struct fold *f, uint64_t mono_ns);

/* --- loss.c: nothing is lost silently */
void loss_bad(struct process *p, uint64_t n);
void loss_now(struct process *p, enum lost_cause cause, uint64_t n);
void loss_part(struct part *part, enum lost_cause cause, uint64_t n);
void loss_told(struct process *p, uint32_t lane, const struct rec_lost *r);
void loss_counts(
	struct process *p, const struct ring_counts *c, const struct j_drop *d, uint32_t n);
void note_count(struct part *part, enum note_kind kind, uint64_t n);
void note_add(struct session *s, int64_t process, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
const char *note_words(enum note_kind kind);

/* --- node.c */
bool node_init(struct process *p);
void node_fini(struct process *p);
const char *name_text(const struct process *p, uint32_t name, uint32_t *ret_bytes);
uint32_t node_add(
	struct process *p, uint32_t parent, uint8_t kind, const char *name, uint32_t bytes);
uint32_t node_by_hash(const struct process *p, const uint8_t hash[16]); /* NODE_NONE */
uint32_t node_of_path(struct process *p, uint32_t path); /* path < n_paths; NODE_NONE: no memory */
uint32_t node_child(struct process *p, uint32_t parent, uint8_t kind, uint32_t name);
uint32_t node_kernel(struct process *p, uint32_t parent, uint32_t name);
uint32_t node_captured(struct process *p, uint32_t below, uint32_t path);
uint32_t node_other(struct process *p, uint32_t parent);
uint8_t name_class(struct process *p, uint32_t name); /* of the kernel */
uint32_t metric_name_of(struct process *p, uint32_t name, uint8_t *ret_kind);
uint32_t metric_name_add(struct process *p, const char *text, uint32_t bytes);

/* --- part.c */
struct part *part_new(struct session *s, struct process *p); /* a member; no events yet */
void part_free(struct part *part);
bool part_attach(struct part *part); /* false: the process has PARTS_MAX */
void part_attach_at(struct part *part, uint8_t slot);
void part_detach(struct part *part, uint64_t clock); /* open scopes up to clock, launches lost */
void part_set_active(struct part *part, bool active, uint64_t clock);
void part_set_segment(struct part *part, uint64_t clock); /* the next one begins */
bool part_is_clean(const struct part *part);

/* --- session.c */
struct session *session_find(const struct fold *f, const uint8_t uuid[16]);
struct session *session_by_id(const struct fold *f, int64_t id);
struct session *session_new(struct fold *f, const struct row_session *row);
void session_free(struct session *s);
int session_verb(struct fold *f, const struct j_verb *v);
void session_record(struct process *p, const struct rec_session *r);
void session_drop_process(struct session *s, struct process *p); /* its part, clean, is forgotten */
/* The machine booted: it goes on at `ns` of the new clock. */
void session_boot(struct session *s, uint64_t ns);
void session_match_process(
	struct process *p, uint64_t mono_ns); /* a new one: which sessions is it in? */
void session_process_ended(struct process *p, const struct j_end *e, uint64_t mono_ns);
void session_number_uuid(const uint8_t ring[16], uint32_t number, uint8_t ret[16]);
bool session_is_current(const struct session *s); /* not finalized */
struct part *session_part(const struct session *s, const struct process *p);

/* --- pipeline.c */
void pipeline_lane(struct process *p, const struct j_lane *l, const uint8_t *bytes);

/* --- pending.c: the fold's own encoding of what is in flight */
int pending_pack(const struct process *p, void **ret_bytes, uint32_t *ret_n);
int pending_unpack(struct process *p, const void *bytes, uint32_t n); /* -EBADMSG, -ENOMEM */
int pending_pack_fold(const struct fold *f, void **ret_bytes, uint32_t *ret_n);
int pending_unpack_fold(struct fold *f, const void *bytes, uint32_t n);

static inline void hash_copy(uint8_t to[16], const uint8_t from[16])
{
	__builtin_memcpy(to, from, 16);
}
static inline bool hash_same(const uint8_t a[16], const uint8_t b[16])
{
	return __builtin_memcmp(a, b, 16) == 0;
}
static inline bool hash_is_zero(const uint8_t a[16])
{
	static const uint8_t zero[16];

	return hash_same(a, zero);
}

#endif
