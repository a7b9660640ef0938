/* SPDX-License-Identifier: MIT. restore.c: a fold as the store last saw it. Rows of a session or
 * process that the store did not give are left out. */
#include "fold.h"

#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "arena.h"
#include "durations.h"
#include "gpu_names.h"
#include "life.h"
#include "loss.h"
#include "member.h"
#include "metric.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "pending.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "session.h"
#include "state.h"
#include "step_series.h"
#include "timeline.h"
#include "tree.h"
#include "verb.h"

#define ID_MAX (INT64_MAX / 2) /* ids count from 1: a larger one is not ours */

struct restore {
	struct fold *fold;
	const struct batch *batch;
	struct table by_hash; /* → batch.node */
};

static int failed(const struct restore *r)
{
	return r->fold->no_memory ? -ENOMEM : 0;
}

static struct part *part_of(const struct restore *r, int64_t session, int64_t process)
{
	struct session *s = session_by_id(r->fold, session);
	struct process *p = process_by_id(r->fold, process);

	return s == NULL || p == NULL ? NULL : session_part(s, p);
}

/* --- nodes --- */

static uint32_t low(const uint8_t hash[16])
{
	uint32_t v;

	memcpy(&v, hash, sizeof(v));
	return v;
}

struct row_key {
	const struct row_node *row;
	const uint8_t *hash;
};

static bool row_same(const void *arg, uint32_t at)
{
	const struct row_key *k = arg;

	return hash_same(k->row[at].hash, k->hash);
}

static const struct row_node *row_find(const struct restore *r, const uint8_t hash[16])
{
	struct row_key k = {r->batch->node.row, hash};
	uint32_t at = table_find(&r->by_hash, low(hash), row_same, &k);

	return at == TABLE_NONE ? NULL : &r->batch->node.row[at];
}

/* The node, made with everything above it. NODE_NONE: the store lacks one of them. */
static uint32_t node_restore(const struct restore *r, struct process *p, const uint8_t hash[16])
{
	const struct row_node *up[2 * PATH_DEPTH_MAX + 8], *row;
	uint32_t n = 0, at = node_by_hash(p, hash), bytes;
	const char *text;

	while (at == NODE_NONE) {
		row = row_find(r, hash);
		if (row == NULL || n == sizeof(up) / sizeof(up[0]))
			return NODE_NONE;
		up[n++] = row;
		hash = row->parent;
		at = node_by_hash(p, hash);
	}
	while (n-- > 0 && at != NODE_NONE) {
		bytes = (uint32_t)strlen(up[n]->name);
		text = arena_text(p->arena, up[n]->name, bytes);
		if (text == NULL) {
			r->fold->no_memory = true;
			return NODE_NONE;
		}
		at = node_add(p, at, up[n]->kind, text, bytes);
	}
	return at;
}

/* --- processes and sessions --- */

static bool restore_process(struct restore *r, const struct row_process *from)
{
	struct row_process row = *from;
	struct process *p;

	if (row.id <= 0 || row.id > ID_MAX || row.n_lanes == 0 || row.n_lanes > RING_LANES_MAX ||
		!ring_is_pow2(row.lane_bytes) || row.lane_bytes < RING_LANE_BYTES_MIN ||
		row.lane_bytes > RING_LANE_BYTES_MAX)
		return true;
	row.command = strdup(from->command == NULL ? "" : from->command);
	row.exe = strdup(from->exe == NULL ? "" : from->exe);
	row.cwd = strdup(from->cwd == NULL ? "" : from->cwd);
	p = row.command == NULL || row.exe == NULL || row.cwd == NULL ? NULL
								      : process_new(r->fold, &row);
	if (p == NULL) {
		free(row.command);
		free(row.exe);
		free(row.cwd);
		return false;
	}
	p->events = row.counters[0];
	p->launches = row.counters[1];
	p->kernels = row.counters[2];
	p->delivered_ns = row.counters[3];
	p->drops = row.counters[4];
	p->bad = row.counters[5];
	p->skipped = row.counters[6];
	p->n_numbers = (uint32_t)row.counters[7];
	p->bare = true;
	p->dirty = false;
	return true;
}

/* The open one comes last: those of another boot may seem to begin after it. */
static int by_time(const void *a, const void *b)
{
	const struct span_row *x = a, *y = b;

	if ((x->span.end == 0) != (y->span.end == 0))
		return x->span.end == 0 ? 1 : -1;
	return x->span.begin < y->span.begin ? -1 : x->span.begin > y->span.begin;
}

static void restore_span(struct session *s, struct spans *spans, uint64_t begin, uint64_t end)
{
	if (!ROOM_FOR(spans->v, spans->cap, spans->n)) {
		s->fold->no_memory = true;
		return;
	}
	spans->v[spans->n++] = (struct span_row){{begin, end}, false};
}

static void restore_segment(struct session *s, const struct row_segment *row)
{
	while (s->segment.n <= row->segment && !s->fold->no_memory)
		restore_span(s, &s->segment, 0, 0);
	if (!s->fold->no_memory)
		s->segment.v[row->segment].span = (struct span){row->begin_ns, row->end_ns};
}

static void restore_spans(struct restore *r)
{
	const struct batch *b = r->batch;
	struct session *s;
	uint32_t i;

	for (i = 0; i < b->active.n; i++) {
		s = session_by_id(r->fold, b->active.row[i].session);
		if (s != NULL)
			restore_span(
				s, &s->active, b->active.row[i].begin_ns, b->active.row[i].end_ns);
	}
	for (i = 0; i < b->segment.n; i++) {
		s = session_by_id(r->fold, b->segment.row[i].session);
		if (s != NULL && b->segment.row[i].segment < SPANS_MAX)
			restore_segment(s, &b->segment.row[i]);
	}
	for (i = 0; i < r->fold->n_sessions; i++) {
		s = r->fold->session[i];
		if (s->active.n > 1)
			qsort(s->active.v, s->active.n, sizeof(*s->active.v), by_time);
		if (s->active.n > 0 && s->active.v[s->active.n - 1].span.end == 0)
			s->opened_ns = s->active.v[s->active.n - 1].span.begin;
		if (s->active.n > 0)
			s->closed_ns = s->active.v[s->active.n - 1].span.end;
	}
}

/* The session goes on and the process lives, but the pending row is missing. */
static void attach_anew(struct part *part)
{
	const struct spans *active = &part->session->active;
	struct process *p = part->process;
	uint32_t i;

	if (!part_attach(part))
		return;
	for (i = 0; i < active->n; i++) {
		part_set_active(part, true, clockmap_clock(&p->clock, active->v[i].span.begin));
		if (active->v[i].span.end != 0)
			part_set_active(
				part, false, clockmap_clock(&p->clock, active->v[i].span.end));
	}
}

static void restore_members(struct restore *r)
{
	const struct batch *b = r->batch;
	struct process *p;
	struct session *s;
	struct part *part;
	uint32_t i;

	for (i = 0; i < b->member.n; i++) {
		s = session_by_id(r->fold, b->member.row[i].session);
		p = process_by_id(r->fold, b->member.row[i].process);
		if (s == NULL)
			continue;
		if (p == NULL) { /* ended long ago */
			s->n_processes++;
			continue;
		}
		part = part_new(s, p);
		if (part == NULL) {
			r->fold->no_memory = true;
			return;
		}
		part->stored = true;
		s->dirty = false;
	}
}

/* --- what they hold --- */

static void restore_cells(struct restore *r)
{
	const struct row_cell *row = r->batch->cell.row;
	struct cell key = {0}, *c;
	struct hist_counts durations;
	struct part *part = NULL;
	uint32_t i, at;

	for (i = 0; i < r->batch->cell.n; i++, row++) {
		if (part == NULL || part->session->row.id != row->session ||
			part->process->row.id != row->process)
			part = part_of(r, row->session, row->process);
		key.node = part == NULL ? NODE_NONE : node_restore(r, part->process, row->node);
		if (key.node == NODE_NONE || row->class >= CLASS_MAX || row->segment >= SPANS_MAX ||
			(row->device >= RING_DEVICES_MAX && row->device != UINT32_MAX))
			continue;
		key.segment = (uint16_t)row->segment;
		key.device = row->device == UINT32_MAX ? DEVICE_NONE : (uint8_t)row->device;
		key.class = row->class & 0x7fu;
		at = tree_cell_put(part, &key);
		if (at == TABLE_NONE)
			continue;
		c = tree_at(&part->tree, at);
		c->count = row->count;
		c->sum_ns = row->sum_ns;
		c->min_ns = row->count > row->untimed ? row->min_ns : UINT64_MAX;
		c->max_ns = row->max_ns;
		c->bytes = row->bytes;
		c->untimed = row->class == CLASS_CPU ? row->open : row->untimed;
		batch_durations(r->batch, row, &durations);
		durations_put(part, c, &durations);
		part->tree.n_stored = part->tree.n_cells;
	}
}

static void restore_metrics(struct restore *r)
{
	const struct row_metric *row = r->batch->metric.row;
	struct metric key, *m;
	struct process *p;
	struct part *part;
	uint32_t i;

	for (i = 0; i < r->batch->metric.n; i++, row++) {
		part = part_of(r, row->session, row->process);
		if (part == NULL)
			continue;
		p = part->process;
		key = (struct metric){.segment = row->segment, .kind = row->kind, .stored = true};
		key.node = node_restore(r, p, row->node);
		key.name = metric_name_add(p, row->name, (uint32_t)strlen(row->name));
		if (key.node == NODE_NONE || key.name == TABLE_NONE)
			continue;
		m = tree_metric_put(part, &key);
		if (m == NULL)
			continue;
		m->type = row->type;
		m->bits = row->bits;
		m->count = row->count;
		if (row->type == METRIC_STR)
			m->text = arena_text(p->arena, row->text, strlen(row->text));
		if (row->type == METRIC_STR && m->text == NULL)
			r->fold->no_memory = true;
	}
}

static void restore_configs(struct restore *r)
{
	const struct row_config *row = r->batch->config.row;
	struct launch_config *c;
	struct part *part;
	uint32_t i, node;

	for (i = 0; i < r->batch->config.n; i++, row++) {
		part = part_of(r, row->session, row->process);
		node = part == NULL ? NODE_NONE : node_restore(r, part->process, row->node);
		c = node == NODE_NONE ? NULL : tree_config_put(part, node, row->config);
		if (c == NULL)
			continue;
		c->count = row->count;
		c->stored = true;
	}
}

static void restore_note(struct session *s, const struct row_note *row)
{
	struct note *n;

	while (s->n_notes <= row->number) {
		if (!ROOM_FOR(s->note, s->cap_notes, s->n_notes)) {
			s->fold->no_memory = true;
			return;
		}
		s->note[s->n_notes++] = (struct note){0};
	}
	n = &s->note[row->number];
	*n = (struct note){.process = row->process, .ns = (uint64_t)row->ns};
	memcpy(n->text, row->text, sizeof(n->text));
	s->notes_stored = s->n_notes;
}

static void restore_small(struct restore *r)
{
	const struct batch *b = r->batch;
	struct session *s;
	struct part *part;
	struct busy *busy;
	uint32_t i;

	for (i = 0; i < b->busy.n; i++) {
		part = part_of(r, b->busy.row[i].session, b->busy.row[i].process);
		busy = part == NULL || b->busy.row[i].device >= RING_DEVICES_MAX
			       ? NULL
			       : tree_busy(part, b->busy.row[i].device);
		if (busy == NULL)
			continue;
		busy_restore(busy,
			(const uint64_t[PART_MAX]){
#define X(name, column, ...) [PART_##name] = b->busy.row[i].column,
				GPU_PARTS_STORED(X)
#undef X
			},
			b->busy.row[i].busy_ns, b->busy.row[i].first_ns, b->busy.row[i].last_ns);
	}
	for (i = 0; i < b->loss.n; i++) {
		part = part_of(r, b->loss.row[i].session, b->loss.row[i].process);
		if (part != NULL && b->loss.row[i].cause < LOST_CAUSE_MAX)
			part->loss[b->loss.row[i].cause] = b->loss.row[i].count;
	}
	for (i = 0; i < b->note.n; i++) {
		s = session_by_id(r->fold, b->note.row[i].session);
		if (s == NULL || b->note.row[i].number >= NOTES_MAX)
			continue; /* counts are written anew from their counters */
		restore_note(s, &b->note.row[i]);
	}
}

static void restore_chunks(struct restore *r)
{
	const struct row_trace *row = r->batch->trace.row;
	struct session *s;
	uint32_t i;

	for (i = 0; i < r->batch->trace.n; i++, row++) {
		s = session_by_id(r->fold, row->session);
		if (s != NULL)
			timeline_put(s, &(struct chunk){.process = row->process,
						.number = row->number,
						.first = row->first,
						.end_ns = row->end_ns,
						.events = row->events,
						.n = row->n});
	}
}

static void restore_readings(struct restore *r)
{
	const struct row_reading *row = r->batch->reading.row;
	struct session *s;
	uint32_t i;

	for (i = 0; i < r->batch->reading.n; i++, row++) {
		s = session_by_id(r->fold, row->session);
		if (s != NULL && !readings_restore(&s->readings, row->gpu, row->number))
			r->fold->no_memory = true;
	}
}

static void restore_steps(struct restore *r)
{
	const struct row_step *row = r->batch->step.row;
	struct part *part;
	uint32_t i;

	for (i = 0; i < r->batch->step.n; i++, row++) {
		part = part_of(r, row->session, row->process);
		if (part != NULL)
			step_series_restore(part, row->number, row->steps);
	}
}

static void restore_memory(struct restore *r)
{
	const struct row_memory *row = r->batch->memory.row;
	struct part *part;
	uint32_t i;

	for (i = 0; i < r->batch->memory.n; i++, row++) {
		part = part_of(r, row->session, row->process);
		if (part != NULL && part->allocs == NULL)
			allocs_restore(part, row->bytes, row->n);
	}
}

/* The pending row cannot be read. */
static void tell_unread(struct fold *f, const struct process *p)
{
	uint32_t i;

	for (i = 0; i < f->n_sessions; i++)
		if (session_part(f->session[i], p) != NULL)
			note_add(f->session[i], p->row.id,
				"what was open or in flight when the last daemon ended could not "
				"be read: a newer version wrote it, or it is damaged");
}

static void restore_rings(struct restore *r)
{
	const struct batch *b = r->batch;
	struct process *p;
	uint32_t i;

	for (i = 0; i < b->lane.n; i++) {
		p = process_by_id(r->fold, b->lane.row[i].process);
		if (p != NULL && b->lane.row[i].lane < p->row.n_lanes &&
			process_lanes(p, b->lane.row[i].lane + 1))
			p->lane[b->lane.row[i].lane].head = b->lane.row[i].head;
	}
	for (i = 0; i < b->device.n; i++) {
		p = process_by_id(r->fold, b->device.row[i].process);
		if (p != NULL)
			gpu_names_restore(p, &b->device.row[i]);
	}
	for (i = 0; i < b->pending.n; i++) {
		p = process_by_id(r->fold, b->pending.row[i].process);
		if (b->pending.row[i].process == 0)
			(void)pending_unpack_fold(
				r->fold, b->pending.row[i].bytes, b->pending.row[i].n);
		else if (p != NULL && p->row.ended_ns == 0 &&
			 pending_unpack(p, b->pending.row[i].bytes, b->pending.row[i].n) ==
				 -EBADMSG)
			tell_unread(r->fold, p);
	}
	for (i = 0; i < r->fold->n_processes; i++)
		r->fold->process[i]->dirty = false; /* nothing of it has changed */
}

/* --- all of it --- */

/* They come in order of real time: where a boot begins the clock anew, those before are
 * forgotten. */
static void restore_anchors(struct restore *r)
{
	const struct row_anchor *row = r->batch->anchor.row;
	struct fold *f = r->fold;
	struct anchor a;
	uint32_t i;

	for (i = 0; i < r->batch->anchor.n; i++, row++) {
		a = (struct anchor){row->clock, row->monotonic_ns, row->realtime_ns, row->error_ns};
		anchors_add(row->ring_clock == RING_CLOCK_TSC ? &f->tsc : &f->mono, &a);
		f->offset_ns = (int64_t)(a.real_ns - a.mono_ns);
	}
	f->cost_known = false; /* until the pending row says so */
}

static void restore_owners(struct restore *r)
{
	const struct batch *b = r->batch;
	struct session *s;
	uint32_t i;

	for (i = 0; i < b->process.n && !r->fold->no_memory; i++)
		r->fold->no_memory |= !restore_process(r, &b->process.row[i]);
	for (i = 0; i < b->session.n && !r->fold->no_memory; i++) {
		if (b->session.row[i].id <= 0 || b->session.row[i].id > ID_MAX)
			continue;
		s = session_new(r->fold, &b->session.row[i]);
		r->fold->no_memory |= s == NULL;
		if (s != NULL)
			s->dirty = false;
	}
}

static void attach_rest(struct restore *r)
{
	const struct session *s;
	uint32_t i, k;

	for (i = 0; i < r->fold->n_sessions; i++) {
		s = r->fold->session[i];
		for (k = 0; k < s->n_parts && session_is_current(s); k++)
			if (!s->part[k]->attached && s->part[k]->process->row.ended_ns == 0)
				attach_anew(s->part[k]);
	}
}

static int index_nodes(struct restore *r)
{
	uint32_t i;
	int e;

	for (i = 0; i < r->batch->node.n; i++) {
		e = table_add(&r->by_hash, low(r->batch->node.row[i].hash), i);
		if (e == -ENOMEM)
			return e;
	}
	return 0;
}

int fold_restore(struct fold *f, const struct batch *b)
{
	static void (*const step[])(struct restore *) = {restore_anchors, restore_owners,
		restore_spans, restore_members, restore_cells, restore_metrics, restore_configs,
		restore_small, restore_chunks, restore_readings, restore_steps, restore_memory,
		restore_rings, attach_rest};
	struct restore r = {.fold = f, .batch = b};
	uint32_t i;
	int e = index_nodes(&r);

	MUST_FOLD(f);
	MUST(f->n_processes == 0 && f->n_sessions == 0);
	f->restoring = true;
	for (i = 0; i < sizeof(step) / sizeof(step[0]) && e == 0; i++) {
		step[i](&r);
		e = failed(&r);
	}
	f->restoring = false;
	f->restored_ns = f->now_ns;
	table_fini(&r.by_hash);
	f->next_process = b->next_process > 0 && b->next_process <= ID_MAX ? b->next_process : 1;
	f->next_session = b->next_session > 0 && b->next_session <= ID_MAX ? b->next_session : 1;
	for (i = 0; i < f->n_processes; i++)
		if (f->process[i]->row.id >= f->next_process)
			f->next_process = f->process[i]->row.id + 1;
	for (i = 0; i < f->n_sessions; i++)
		if (f->session[i]->row.id >= f->next_session)
			f->next_session = f->session[i]->row.id + 1;
	f->dirty = f->news = false;
	return e;
}

void fold_replayed(struct fold *f)
{
	uint32_t i;

	MUST_FOLD(f);
	for (i = 0; i < f->n_processes; i++)
		f->process[i]->bare = false;
}
