/* SPDX-License-Identifier: MIT. tree.c: what one session holds of one process. The end of the
 * pipeline: an event comes in as (node, how long) and goes into a cell. */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "domains.h"
#include "durations.h"
#include "flight.h"
#include "loss.h"
#include "node.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "step_series.h"
#include "timeline.h"

#define OTHER_CELLS   4096u /* of ROOT/(other): by segment, device and class */
#define BUSY_SLACK_NS 50000000u
#define LOOK_SPANS    16u /* the latest ones of a session, in which a kernel is looked up */

void tree_fini(struct tree *t)
{
	uint32_t i;

	for (i = 0; i < t->n_busy; i++) {
		busy_fini(t->busy[i]);
		free(t->busy[i]);
	}
	arena_free(t->arena);
	free(t->chunk);
	free(t->busy);
	free(t->hint);
	free(t->metric);
	free(t->config);
	free(t->dirty_cells.at);
	free(t->dirty_metrics.at);
	free(t->dirty_configs.at);
	table_fini(&t->by_key);
	table_fini(&t->metric_by_key);
	*t = (struct tree){0};
}

/* --- cells --- */

static bool same_key(const struct cell *a, const struct cell *b)
{
	return a->node == b->node && a->segment == b->segment && a->device == b->device &&
	       a->class == b->class;
}

struct cell_key {
	const struct tree *tree;
	const struct cell *key;
};

static bool cell_same(const void *arg, uint32_t at)
{
	const struct cell_key *k = arg;

	return same_key(tree_at(k->tree, at), k->key);
}

static uint32_t cell_hash(const struct cell *k)
{
	return table_mix((uint64_t)k->segment << 32 | k->node, (uint32_t)k->device << 8 | k->class);
}

static uint32_t no_memory(const struct part *part)
{
	part->process->fold->no_memory = true;
	return TABLE_NONE;
}

/* Makes hints for all nodes that exist now. */
static bool hints_reach(struct part *part, uint32_t node)
{
	struct tree *t = &part->tree;
	uint32_t want = part->process->cap_nodes;
	struct hint *grown;

	if (node < t->n_hints)
		return true;
	MUST(node < part->process->n_nodes);
	grown = reallocarray(t->hint, want, sizeof(*grown));
	if (grown == NULL) {
		no_memory(part);
		return false;
	}
	memset(grown + t->n_hints, 0, (want - t->n_hints) * sizeof(*grown));
	part_grew(part, (want - t->n_hints) * sizeof(*grown));
	t->hint = grown;
	t->n_hints = want;
	return true;
}

void *tree_take(struct tree *t, size_t bytes)
{
	if (t->arena == NULL)
		t->arena = arena_new();
	return t->arena == NULL ? NULL : arena_take(t->arena, bytes);
}

static struct cell_chunk *chunk_new(struct part *part)
{
	const size_t align = _Alignof(struct cell_chunk);
	uint8_t *at = tree_take(&part->tree, sizeof(struct cell_chunk) + align - 1);

	return at == NULL ? NULL : (void *)(at + (align - (uintptr_t)at % align) % align);
}

static uint32_t cell_new(struct part *part, const struct cell *key)
{
	struct tree *t = &part->tree;
	uint32_t at = t->n_cells, chunk = at / CELL_CHUNK;
	int r;

	if (!ROOM_FOR(t->dirty_cells.at, t->dirty_cells.cap, at))
		return no_memory(part);
	if (chunk == t->n_chunks) {
		if (!ROOM_FOR(t->chunk, t->cap_chunks, chunk))
			return no_memory(part);
		t->chunk[chunk] = chunk_new(part);
		if (t->chunk[chunk] == NULL)
			return no_memory(part);
		t->n_chunks++;
	}
	r = table_add(&t->by_key, cell_hash(key), at);
	if (r < 0)
		return r == -ENOMEM ? no_memory(part) : TABLE_NONE;
	*tree_at(t, at) = (struct cell){.node = key->node,
		.segment = key->segment,
		.device = key->device,
		.class = key->class,
		.min_ns = UINT64_MAX};
	t->n_cells++;
	part_grew(part, CELL_BYTES);
	part->process->fold->fresh += sizeof(struct row_cell);
	return at;
}

static uint32_t cell_find_or_new(struct part *part, const struct cell *key, uint64_t ceiling)
{
	struct cell_key k = {&part->tree, key};
	uint32_t at = table_find(&part->tree.by_key, cell_hash(key), cell_same, &k);

	if (at != TABLE_NONE || part->tree.n_cells >= ceiling)
		return at;
	return cell_new(part, key);
}

uint32_t tree_cell_put(struct part *part, const struct cell *key)
{
	return hints_reach(part, key->node) ? cell_find_or_new(part, key, UINT64_MAX) : TABLE_NONE;
}

/* Of ROOT/(other), which has a ceiling of its own: what finds no room elsewhere is counted there,
 * however many cells the others have. */
static uint32_t cell_of_other(struct part *part, const struct cell *key)
{
	struct tree *t = &part->tree;
	uint32_t at = cell_find_or_new(part, key, 0);

	if (at == TABLE_NONE && t->n_other < OTHER_CELLS) {
		at = cell_new(part, key);
		t->n_other += at != TABLE_NONE;
	}
	return at;
}

static uint32_t cell_slow(struct part *part, const struct cell *key)
{
	struct process *p = part->process;
	uint64_t limit = p->fold->limit.nodes;
	struct cell k = *key;
	uint32_t at;

	if (!hints_reach(part, k.node))
		return TABLE_NONE;
	if (k.node == node_other(p, NODE_ROOT_AT)) { /* which was counted already */
		at = cell_of_other(part, &k);
	} else {
		limit = process_has_room(p) ? limit : 0;
		at = cell_find_or_new(part, &k, limit);
	}
	if (at != TABLE_NONE) {
		part->tree.hint[k.node].cell = at + 1;
		return at;
	}
	loss_part(part, LOST_NODES, 1);
	k.node = node_other(p, p->node[k.node].parent);
	at = cell_find_or_new(part, &k, limit + limit / 16 + 64);
	if (at != TABLE_NONE)
		return at;
	k.node = node_other(p, NODE_ROOT_AT);
	return cell_of_other(part, &k);
}

/* Finds or makes a cell. Over the session's ceiling the parent's (other) takes its place, then
 * ROOT's, and that is counted. TABLE_NONE: out of memory, or even (other) is full. */
static uint32_t tree_cell(struct part *part, const struct cell *key)
{
	const struct tree *t = &part->tree;
	uint32_t at = key->node < t->n_hints ? t->hint[key->node].cell : 0;

	if (at != 0 && same_key(tree_at(t, at - 1), key))
		return at - 1;
	return cell_slow(part, key);
}

/* At most INT64_MAX, as a and b are: the store's columns are signed. */
static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b > INT64_MAX ? INT64_MAX : a + b;
}

static void cell_touch(struct tree *t, struct cell *c, uint32_t at)
{
	if (!c->dirty) {
		c->dirty = true;
		t->dirty_cells.at[t->dirty_cells.n++] = at;
	}
}

/* Fewer than SPANS_MAX. */
static uint16_t segment_at(const struct part *part, uint64_t clock)
{
	return (uint16_t)window_segment(&part->window, clock);
}

/* --- scopes --- */

/* Twice: most sessions leave nothing out, and pay nothing for those that do. */
static inline __attribute__((always_inline)) void scope_in(struct part *part,
	const struct lane *lane, const struct rec_scope *r, uint64_t own_ns, bool plain)
{
	const uint64_t begin = r->begin, end = r->end;
	const uint32_t path = REC_ID(r->hdr);
	struct process *p = part->process;
	struct tree *t = &part->tree;
	struct cell key = {.device = DEVICE_NONE, .class = CLASS_CPU}, *c;
	uint64_t ns = own_ns, refused = p->refused;
	bool counts = true;
	uint32_t at;

	if (!window_has(&part->window, begin) || !window_has(&part->window, end) ||
		begin < part->window.active[part->window.n_active - 1].begin) {
		counts = window_has(&part->window, end);
		ns = window_overlap(&part->window, &p->clock, begin, end);
		if (!counts && ns == 0)
			return;
	}
	key.node = plain && p->path[path].node != 0 ? p->path[path].node - 1
						    : node_in_part(part, path);
	key.segment = segment_at(part, end);
	at = tree_cell(part, &key);
	if (at == TABLE_NONE)
		return;
	if (refused != p->refused)
		loss_part(part, LOST_NODES, 1);
	c = tree_at(t, at);
	cell_touch(t, c, at);
	c->sum_ns = sum(c->sum_ns, ns);
	if (counts) {
		c->count++;
		durations_add(part, c, ns);
		if (p->path[path].step)
			step_series_end(part, &(struct step_ended){.begin = begin,
						      .begin_ns = clockmap_ns(&p->clock, begin),
						      .end_ns = clockmap_ns(&p->clock, end),
						      .ns = ns,
						      .lane = (uint32_t)(lane - p->lane)});
	}
	if (part->timeline != NULL)
		timeline_scope(part, lane, c, begin, end,
			REC_FLAGS(r->hdr) & (SCOPE_BEGAN_BEFORE | SCOPE_UNWOUND | SCOPE_SPAN));
}

void tree_scope(
	struct part *part, const struct lane *lane, const struct rec_scope *r, uint64_t own_ns)
{
	if (part->cpu_plain)
		scope_in(part, lane, r, own_ns, true);
	else if (part->cpu && !domains_leave_out(part, REC_ID(r->hdr)))
		scope_in(part, lane, r, own_ns, false);
}

void tree_sum(struct part *part, const struct sum_part *s)
{
	struct process *p = part->process;
	struct tree *t = &part->tree;
	const bool calls = p->path[s->path].kind == PATH_KIND_CALL;
	struct cell key = {.device = DEVICE_NONE, .class = calls ? CLASS_API : CLASS_CPU}, *c;
	const uint64_t refused = p->refused;
	uint32_t at;

	if (!(calls ? (part->switches & SWITCH_API) != 0 : part->cpu) ||
		!window_has(&part->window, s->opened) || domains_leave_out(part, s->path))
		return;
	key.node = node_in_part(part, s->path);
	key.segment = segment_at(part, s->opened);
	at = tree_cell(part, &key);
	if (at == TABLE_NONE)
		return;
	if (refused != p->refused || s->surplus)
		loss_part(part, LOST_NODES, s->n);
	c = tree_at(t, at);
	cell_touch(t, c, at);
	c->sum_ns = sum(c->sum_ns, s->ns);
	c->count += s->n;
	if (s->n != 0)
		durations_sum(part, c, s);
	if (p->node[c->node].step == STEP_IS)
		step_series_skip(part, s->n);
	if (part->timeline != NULL && s->n != 0)
		timeline_burst(part, &s->burst, c->segment, s->n);
}

void tree_open_scope(
	struct part *part, const struct lane *lane, uint32_t path, uint64_t begin, uint64_t end)
{
	struct process *p = part->process;
	struct cell key = {.device = DEVICE_NONE, .class = CLASS_CPU}, *c;
	uint64_t ns;
	uint32_t at;

	if (begin <
		p->row.created_clock) /* 0: not known, and a session may be older than its job */
		begin = p->row.created_clock;
	if (!part->cpu || path == PATH_ROOT || begin > end || domains_leave_out(part, path))
		return;
	ns = window_overlap(&part->window, &p->clock, begin, end);
	if (ns == 0)
		return;
	key.node = node_in_part(part, path);
	key.segment = segment_at(part, end);
	at = tree_cell(part, &key);
	if (at == TABLE_NONE)
		return;
	c = tree_at(&part->tree, at);
	cell_touch(&part->tree, c, at);
	c->sum_ns = sum(c->sum_ns, ns);
	c->untimed++;
	if (part->timeline != NULL)
		timeline_scope(part, lane, c, begin, end, TRACE_OPEN);
}

/* A scope that is open and was never left: a cell without count or time, so that it is seen before
 * its end, too. */
void tree_seen_open(struct part *part, uint32_t path, uint64_t clock)
{
	struct cell key = {.device = DEVICE_NONE, .class = CLASS_CPU};
	const uint32_t before = part->tree.n_cells;
	uint32_t at;

	if (!part->cpu || path == PATH_ROOT || !window_is_open(&part->window) ||
		domains_leave_out(part, path))
		return;
	key.node = node_in_part(part, path);
	key.segment = segment_at(part, clock);
	at = tree_cell(part, &key);
	if (at != TABLE_NONE && part->tree.n_cells != before)
		cell_touch(&part->tree, tree_at(&part->tree, at), at);
}

/* Ids are checked when a record comes, but it may have waited over a restart: the tables have been
 * read again since, and a job may have shortened them. */
static uint32_t known_path(const struct process *p, uint32_t path)
{
	return path < p->n_paths ? path : PATH_OTHER;
}

/* --- calls of the vendor's library --- */

/* A call that took ns of the session's time. NULL: no room for it. */
static struct cell *call_count(
	struct part *part, const struct rec_call *r, uint8_t class, uint64_t ns)
{
	struct process *p = part->process;
	struct cell key = {.device = DEVICE_NONE, .class = class & 0x7fu}, *c;
	const bool named = gpu_classes[class].counts >= COUNTS_API && r->name != NAME_NONE;
	const uint64_t refused = p->refused;
	const uint32_t path = known_path(p, REC_ID(r->hdr));
	uint32_t node, at;

	node = part->python && r->python != PATH_ROOT
		       ? node_of_stack(p, known_path(p, r->python), path)
		       : node_in_part(part, path);
	key.node = node_child(p, node, NODE_CALL, named ? r->name : (uint32_t)WORD_CLASS + class);
	key.segment = segment_at(part, r->end);
	at = tree_cell(part, &key);
	if (at == TABLE_NONE)
		return NULL;
	if (refused != p->refused)
		loss_part(part, LOST_NODES, 1);
	c = tree_at(&part->tree, at);
	cell_touch(&part->tree, c, at);
	c->count++;
	c->sum_ns = sum(c->sum_ns, ns);
	durations_add(part, c, ns);
	return c;
}

void tree_call(struct part *part, const struct lane *lane, const struct rec_call *r, uint8_t class)
{
	const struct cell *c;

	if (!window_has(&part->window, r->end))
		return;
	c = call_count(part, r, class,
		window_overlap(&part->window, &part->process->clock, r->begin, r->end));
	if (c != NULL && part->timeline != NULL)
		timeline_call(part, lane, c, r);
}

void tree_api(struct part *part, const struct lane *lane, const struct rec_call *r)
{
	const struct cell *c;
	uint64_t ns;

	if (!window_has(&part->window, r->end))
		return;
	ns = window_overlap(&part->window, &part->process->clock, r->begin, r->end);
	c = call_count(part, r, CLASS_API, ns);
	if (c != NULL && (REC_FLAGS(r->hdr) & CALL_FAILED) != 0)
		c = call_count(part, r, CLASS_API_ERROR, ns);
	if (c != NULL && part->timeline != NULL)
		timeline_call(part, lane, c, r);
}

void tree_launch_call(
	struct part *part, const struct lane *lane, const struct rec_launch *l, uint64_t end)
{
	const struct rec_call r = {.hdr = l->hdr,
		.begin = l->clock,
		.end = end,
		.correlation = l->correlation,
		.stream = UINT32_MAX,
		.python = l->python,
		.epoch = l->epoch};

	if (part->gpu)
		tree_call(part, lane, &r, CLASS_LAUNCH);
}

/* Of the launch in which it was, where that is known; else of the program as a whole. */
void tree_overhead(struct part *part, const struct launch *l, const struct gpu *g)
{
	struct process *p = part->process;
	const bool known = l->list != LIST_WAITING;
	const struct lane lane = {.tid = g->stream, .name = NAME_NONE};
	const struct rec_call r = {.hdr = REC_HDR(0, REC_CALL, 0, 0, known ? l->path : PATH_ROOT),
		.begin = clockmap_clock(&p->clock, real_to_mono(p, g->start)),
		.end = clockmap_clock(&p->clock, real_to_mono(p, g->end)),
		.correlation = g->correlation,
		.stream = UINT32_MAX,
		.python = known ? l->python : PATH_ROOT};

	if (r.end >= r.begin)
		tree_call(part, &lane, &r, g->class);
}

/* Counts at the launch, as its work does. Work that began before the call came back was not
 * delayed. */
void tree_launch_delay(struct part *part, const struct launch *l, const struct gpu *g)
{
	struct process *p = part->process;
	const uint64_t start = real_to_mono(p, g->start), end = clockmap_ns(&p->clock, l->end);
	const struct rec_call r = {
		.hdr = REC_HDR(0, REC_CALL, 0, 0, l->path), .end = l->clock, .python = l->python};

	if (l->round == 0 && (g->flags & (GPU_FLAG_RUNNING | GPU_FLAG_UNTIMED)) == 0 &&
		call_count(part, &r, CLASS_LAUNCH_DELAY, start > end ? start - end : 0) != NULL &&
		start < end)
		note_count(part, NOTE_EARLY, 1);
}

void tree_copy_call(struct part *part, const struct launch *l)
{
	const struct lane lane = {.tid = l->tid, .name = NAME_NONE};
	const struct rec_call r = {.hdr = REC_HDR(0, REC_CALL, 0, 0, l->path),
		.begin = l->clock,
		.end = l->clock + (uint64_t)l->name * LAUNCH_UNIT,
		.correlation = l->correlation,
		.stream = UINT32_MAX,
		.python = l->python,
		.epoch = l->epoch};

	if (r.end >= r.begin)
		tree_call(part, &lane, &r, CLASS_COPY_WAIT);
}

/* --- samples of what threads are in --- */

/* NULL: no room for it. */
static struct cell *sample_count(
	struct part *part, uint32_t node, const struct rec_sample *r, uint8_t class, uint64_t ns)
{
	const struct cell key = {.node = node,
		.segment = segment_at(part, r->end),
		.device = DEVICE_NONE,
		.class = class & 0x7fu};
	const uint32_t at = tree_cell(part, &key);
	struct cell *c;

	if (at == TABLE_NONE)
		return NULL;
	c = tree_at(&part->tree, at);
	cell_touch(&part->tree, c, at);
	c->count = sum(c->count, r->samples);
	c->sum_ns = sum(c->sum_ns, ns);
	return c;
}

/* Of a run that lies across the session's beginning, the looks that fall to its part of it. */
static uint32_t samples_within(struct process *p, const struct rec_sample *r, uint64_t ns)
{
	const uint64_t all = clockmap_ns(&p->clock, r->end) - clockmap_ns(&p->clock, r->begin);

	if (ns >= all || all > INT64_MAX)
		return r->samples;
	return (uint32_t)((double)r->samples * (double)ns / (double)all + 0.5);
}

void tree_sample(struct part *part, const struct rec_sample *of)
{
	struct process *p = part->process;
	const uint64_t refused = p->refused;
	const bool off = (REC_FLAGS(of->hdr) & SAMPLE_OFF_CPU) != 0;
	const uint64_t ns = window_overlap(&part->window, &p->clock, of->begin, of->end);
	struct rec_sample r = *of;
	struct cell *c;
	uint32_t node;

	r.samples = samples_within(p, of, ns);
	if (!window_has(&part->window, of->end) && (ns == 0 || r.samples == 0))
		return;
	node = part->python && r.python != PATH_ROOT
		       ? node_of_stack(p, r.python, REC_ID(r.hdr))
		       : node_below(p, node_in_part(part, REC_ID(r.hdr)), r.python);
	if (off && (REC_FLAGS(of->hdr) & SAMPLE_READY) != 0)
		(void)sample_count(part, node, &r, CLASS_SAMPLE_READY, ns);
	if (off)
		(void)sample_count(part, node, &r, CLASS_SAMPLE_OFF, ns);
	c = sample_count(part, node, &r, CLASS_SAMPLE, ns);
	if (refused != p->refused)
		loss_part(part, LOST_NODES, r.samples);
	if ((REC_FLAGS(r.hdr) & SAMPLE_NO_FRAMES) != 0)
		note_count(part, NOTE_NO_FRAMES, r.samples);
	if ((REC_FLAGS(r.hdr) & SAMPLE_NO_NATIVE) != 0)
		note_count(part, NOTE_NO_NATIVE, r.samples);
	if (c != NULL && part->timeline != NULL)
		timeline_sample(part, c, &r);
}

/* --- what the GPU did --- */

static uint32_t kernel_name(const struct process *p, const struct launch *l, const struct gpu *g)
{
	uint32_t name = g->name != NAME_NONE ? g->name : launch_name(l);

	return name < p->n_names ? name : NAME_OTHER;
}

/* path of the launch [/ <captured_at> / captured path] */
static inline uint32_t gpu_place(
	struct part *part, const struct launch *l, const struct gpu *g, bool *ret_op)
{
	struct process *p = part->process;
	uint32_t path = known_path(p, l->path), node, captured;

	*ret_op = (l->flags & LAUNCH_OP) != 0;

	if (l->list == LIST_WAITING)
		node = node_child(p, NODE_ROOT_AT, NODE_SCOPE, WORD_NO_LAUNCH);
	else if (!part->odd_places && p->path[path].node != 0)
		node = p->path[path].node - 1;
	else if (part->python && l->python != PATH_ROOT)
		node = node_of_stack(p, known_path(p, l->python), path);
	else
		node = node_in_part(part, path);
	if (g->captured != PATH_ROOT && (g->flags & GPU_FLAG_GRAPH) != 0) {
		captured = path_plain(p, known_path(p, g->captured));
		node = node_captured(part, node, captured);
		*ret_op = p->path[captured].kind == PATH_KIND_OP;
	}
	return node;
}

uint32_t tree_gpu_place(
	struct part *part, const struct launch *l, const struct gpu *g, bool *ret_op)
{
	return gpu_place(part, l, g, ret_op);
}

/* Below it kernel, copy or set. An op's kernels count on the op itself. */
static uint32_t gpu_node(struct part *part, const struct launch *l, const struct gpu *g)
{
	struct process *p = part->process;
	bool op;
	const uint32_t node = gpu_place(part, l, g, &op);

	if (!gpu_class_is_kernel(g->class))
		return node_child(p, node, gpu_classes[g->class].node, WORD_CLASS + g->class);
	if (op)
		return node;
	return node_kernel(p, node, kernel_name(p, l, g));
}

static uint8_t gpu_class(struct process *p, const struct launch *l, const struct gpu *g)
{
	if (!gpu_class_is_kernel(g->class))
		return g->class;
	return name_class(p, kernel_name(p, l, g));
}

struct busy *tree_busy(struct part *part, uint32_t device)
{
	struct tree *t = &part->tree;
	struct busy **grown;
	uint32_t i;

	for (i = 0; i < t->n_busy; i++)
		if (t->busy[i]->device == device)
			return t->busy[i];
	if (t->n_busy > 0 && !process_has_room(part->process))
		return NULL;
	grown = reallocarray(t->busy, t->n_busy + 1, sizeof(*grown));
	if (grown != NULL) {
		t->busy = grown;
		grown[t->n_busy] = calloc(1, sizeof(**grown));
	}
	if (grown == NULL || grown[t->n_busy] == NULL) {
		no_memory(part);
		return NULL;
	}
	part_grew(part, sizeof(**grown));
	grown[t->n_busy]->device = device;
	return grown[t->n_busy++];
}

/* All of a process' work that begins before this is here: the agent said so, and no launch that waits
 * for its records is older. Less some time for threads whose lanes are read one after the other. */
static uint64_t busy_known(const struct process *p)
{
	const struct flight *c = &p->flight;
	const uint32_t first = c->list[LIST_OPEN].first;
	struct clockmap m = p->clock; /* it keeps its place near the newest */
	uint64_t ns = p->delivered_ns, open;

	if (first != 0) {
		open = clockmap_ns(&m, c->launch[first - 1].clock);
		ns = open < ns ? open : ns;
	}
	return ns > BUSY_SLACK_NS ? ns - BUSY_SLACK_NS : 0;
}

/* Work launched in a span may run on beyond its end. */
static void busy_span(
	struct part *part, struct busy *b, const struct busy_work *w, const struct span *v)
{
	const struct busy_work in = {.begin = w->begin > v->begin ? w->begin : v->begin,
		.end = v->end == 0 || w->end < v->end ? w->end : v->end,
		.launched = w->launched != 0 && w->launched < v->begin ? v->begin : w->launched,
		.part = w->part};
	const uint32_t cap = b->cap;
	const bool full = b->n == cap;

	if (!busy_add(b, &in, full ? busy_known(part->process) : 0,
		    full && process_has_room(part->process)))
		no_memory(part);
	part_grew(part, (b->cap - cap) * sizeof(*b->work));
}

/* Counts what lies in the session's active spans. Only the last of them need be of this boot. */
static void busy_within(
	struct part *part, const struct launch *l, const struct gpu *g, uint8_t class)
{
	const struct session *s = part->session;
	const uint64_t begin = real_to_mono(part->process, g->start),
		       end = begin + (g->end - g->start);
	const struct busy_work w = {begin, end,
		l->list == LIST_WAITING ? 0 : clockmap_ns(&part->process->clock, l->clock),
		part_of_class(class)};
	struct busy *b = tree_busy(part, g->device);
	uint32_t low = 0, high = s->active.n, mid, most = LOOK_SPANS;
	const struct span *v;

	if (b == NULL || high == 0)
		return;
	v = &s->active.v[--high].span;
	if (v->begin < end)
		busy_span(part, b, &w, v);
	if (v->begin <= begin)
		return;
	while (low < high) { /* finds the first span that begins after it */
		mid = low + (high - low) / 2;
		if (s->active.v[mid].span.begin >= end)
			high = mid;
		else
			low = mid + 1;
	}
	while (low-- > 0 && most-- > 0) {
		v = &s->active.v[low].span;
		if (v->end != 0 && v->end <= begin)
			return;
		busy_span(part, b, &w, v);
	}
}

struct launch_config *tree_config_put(struct part *part, uint32_t node, uint32_t id)
{
	struct tree *t = &part->tree;
	struct launch_config *c;
	uint32_t at, n = 0;

	if (!hints_reach(part, node))
		return NULL;
	for (at = t->hint[node].config; at != 0; at = c->next, n++) {
		c = &t->config[at - 1];
		if (c->id == id)
			return c;
	}
	/* What more there are have none, and show as launches of unknown size: never as one of those here. */
	if (n >= CONFIGS_A_NODE || (t->n_configs > 0 && !process_has_room(part->process)))
		return NULL;
	if (!ROOM_FOR(t->config, t->cap_configs, t->n_configs) ||
		!ROOM_FOR(t->dirty_configs.at, t->dirty_configs.cap, t->n_configs)) {
		no_memory(part);
		return NULL;
	}
	part_grew(part, sizeof(*c) + sizeof(uint32_t));
	part->process->fold->fresh += (uint32_t)sizeof(struct row_config);
	c = &t->config[t->n_configs++];
	*c = (struct launch_config){.node = node, .id = id, .next = t->hint[node].config};
	t->hint[node].config = t->n_configs;
	return c;
}

static void config_count(struct part *part, uint32_t node, uint32_t id)
{
	struct tree *t = &part->tree;
	uint32_t at = node < t->n_hints ? t->hint[node].config : 0;
	struct launch_config *c = at != 0 && t->config[at - 1].id == id
					  ? &t->config[at - 1]
					  : tree_config_put(part, node, id);

	if (c == NULL)
		return;
	c->count++;
	dirty_mark(&t->dirty_configs, &c->dirty, (uint32_t)(c - t->config));
}

void tree_gpu(struct part *part, const struct launch *l, const struct gpu *g)
{
	struct process *p = part->process;
	struct tree *t = &part->tree;
	uint64_t refused = p->refused;
	struct cell key = {.device = (uint8_t)g->device, .class = gpu_class(p, l, g) & 0x7fu}, *c;
	bool timed = (g->flags & (GPU_FLAG_RUNNING | GPU_FLAG_UNTIMED)) == 0;
	uint32_t at;

	key.node = gpu_node(part, l, g);
	key.segment = segment_at(part, l->clock);
	at = tree_cell(part, &key);
	if (at == TABLE_NONE)
		return;
	if (refused != p->refused)
		loss_part(part, LOST_NODES, 1);
	c = tree_at(t, at);
	cell_touch(t, c, at);
	c->count++;
	c->bytes = sum(c->bytes, g->bytes);
	if (timed) {
		c->sum_ns = sum(c->sum_ns, g->end - g->start);
		durations_add(part, c, g->end - g->start);
		busy_within(part, l, g, key.class);
		if (part->timeline != NULL)
			timeline_op(part, l, g, c);
	} else {
		c->untimed++;
	}
	if (gpu_class_is_kernel(g->class) && g->config < p->n_configs)
		config_count(part, c->node, g->config);
	part->session->gpu_seen = true;
}
