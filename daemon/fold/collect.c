/* SPDX-License-Identifier: MIT. collect.c: all that changed since the last collect, as rows with
 * absolute values. Rows are made while everything stays dirty; only when all of them are there
 * is it marked clean, so a failed allocation loses nothing. */
#include "fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "arena.h"
#include "busy.h"
#include "cells.h"
#include "chunks.h"
#include "durations.h"
#include "gpu_names.h"
#include "life.h"
#include "loss.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "pending.h"
#include "process.h"
#include "record.h"
#include "schema.h"
#include "session.h"
#include "state.h"
#include "step_series.h"
#include "timeline.h"
#include "verb.h"

#define ENDED_KEPT 64u /* ended processes kept in memory, for `top` */

static char *copy_text(const char *s)
{
	return strdup(s == NULL ? "" : s);
}

static bool put_process_row(struct batch *b, const struct process *p)
{
	struct row_process *r = batch_process(b);
	const uint64_t counters[8] = {p->events, p->launches, p->kernels, p->delivered_ns, p->drops,
		p->bad, p->skipped, p->n_numbers};

	if (r == NULL)
		return false;
	*r = p->row;
	memcpy(r->counters, counters, sizeof(counters));
	r->command = copy_text(p->row.command);
	r->exe = copy_text(p->row.exe);
	r->cwd = copy_text(p->row.cwd);
	return r->command != NULL && r->exe != NULL && r->cwd != NULL;
}

static void device_row(struct row_device *r, const struct ring_device *d)
{
	*r = (struct row_device){.ordinal = d->ordinal,
		.type = d->type,
		.pci_domain = d->pci_domain,
		.pci_bus = d->pci_bus,
		.pci_device = d->pci_device,
		.arch = d->arch,
		.num_sms = d->num_sms,
		.clock_khz = d->clock_khz,
		.memory_clock_khz = d->memory_clock_khz,
		.bus_width = d->bus_width,
		.memory_bytes = d->memory_bytes};
	hash_copy(r->uuid, d->uuid);
	memcpy(r->name, d->name, sizeof(r->name));
}

static bool put_process(struct batch *b, const struct process *p)
{
	struct row_pending *pending;
	struct row_device *device;
	struct row_lane *lane;
	uint32_t i;

	if (!put_process_row(b, p))
		return false;
	for (i = 0; i < p->cap_lanes; i++) {
		if (!p->lane[i].dirty)
			continue;
		lane = batch_lane(b);
		if (lane == NULL)
			return false;
		*lane = (struct row_lane){p->row.id, i, p->lane[i].head};
	}
	for (i = 0; p->devices_dirty && i < p->n_devices; i++) {
		device = batch_device(b);
		if (device == NULL)
			return false;
		device_row(device, &p->device[i]);
		gpu_names_fill(p, device);
		device->process = p->row.id;
		device->device = i;
	}
	pending = batch_pending(b);
	if (pending == NULL)
		return false;
	pending->process = p->row.id;
	return pending_pack(p, &pending->bytes, &pending->n) == 0;
}

/* The node and those above it, parents first, each once per collect. */
static bool put_node(struct batch *b, struct process *p, uint32_t at)
{
	uint32_t up[2 * PATH_DEPTH_MAX + 8], n = 0;
	struct row_node *row;
	struct node *node;

	if (!batch_hold(b, p->arena))
		return false;
	for (; p->node[at].round != p->fold->round; at = p->node[at].parent) {
		up[n++] = at;
		if (at == NODE_ROOT_AT)
			break;
	}
	while (n-- > 0) {
		node = &p->node[up[n]];
		row = batch_node(b);
		if (row == NULL)
			return false;
		hash_copy(row->hash, node->hash);
		if (up[n] != NODE_ROOT_AT)
			hash_copy(row->parent, p->node[node->parent].hash);
		row->kind = node->kind;
		row->name = node->name;
		node->round = p->fold->round;
	}
	return true;
}

static bool put_cells(struct batch *b, const struct part *part)
{
	const struct tree *t = &part->tree;
	struct process *p = part->process;
	struct hist_counts durations;
	const struct cell *c;
	struct row_cell *r;
	bool scope;
	uint32_t i;

	for (i = 0; i < t->dirty_cells.n; i++) {
		c = tree_at(t, t->dirty_cells.at[i]);
		scope = c->class == CLASS_CPU;
		r = batch_cell(b);
		if (r == NULL || (t->dirty_cells.at[i] >= t->n_stored && !put_node(b, p, c->node)))
			return false;
		*r = (struct row_cell){.session = part->session->row.id,
			.process = p->row.id,
			.segment = c->segment,
			.device = c->device == DEVICE_NONE ? UINT32_MAX : c->device,
			.class = c->class,
			.count = c->count,
			.sum_ns = c->sum_ns,
			.min_ns = c->min_ns == UINT64_MAX ? 0 : c->min_ns,
			.max_ns = c->max_ns,
			.bytes = c->bytes,
			.untimed = scope ? 0 : c->untimed,
			.open = scope ? c->untimed : 0};
		hash_copy(r->node, p->node[c->node].hash);
		durations_get(c, &durations);
		if (!batch_hist(b, r, &durations))
			return false;
	}
	return true;
}

static bool put_metrics(struct batch *b, const struct part *part)
{
	const struct tree *t = &part->tree;
	struct process *p = part->process;
	const struct metric *m;
	struct row_metric *r;
	uint32_t i;

	if (t->dirty_metrics.n > 0 && !batch_hold(b, p->arena))
		return false;
	for (i = 0; i < t->dirty_metrics.n; i++) {
		m = &t->metric[t->dirty_metrics.at[i]];
		r = batch_metric(b);
		if (r == NULL || (!m->stored && !put_node(b, p, m->node)))
			return false;
		*r = (struct row_metric){.session = part->session->row.id,
			.process = p->row.id,
			.segment = m->segment,
			.kind = m->kind,
			.type = m->type,
			.bits = m->bits,
			.count = m->count};
		hash_copy(r->node, p->node[m->node].hash);
		r->name = p->metric_name[m->name].text;
		r->text = m->type == METRIC_STR ? m->text : NULL;
	}
	return true;
}

static void config_row(struct row_config *r, const struct ring_config *c)
{
	*r = (struct row_config){.grid_x = c->grid[0],
		.grid_y = c->grid[1],
		.grid_z = c->grid[2],
		.block_x = c->block[0],
		.block_y = c->block[1],
		.block_z = c->block[2],
		.registers = c->registers,
		.static_shared = c->static_shared,
		.dynamic_shared = c->dynamic_shared};
}

static bool put_configs(struct batch *b, const struct part *part)
{
	const struct tree *t = &part->tree;
	struct process *p = part->process;
	const struct launch_config *c;
	struct row_config *r;
	uint32_t i;

	for (i = 0; i < t->dirty_configs.n; i++) {
		c = &t->config[t->dirty_configs.at[i]];
		if (c->id >= p->n_configs)
			continue; /* the job shortened its table since */
		r = batch_config(b);
		if (r == NULL || (!c->stored && !put_node(b, p, c->node)))
			return false;
		config_row(r, &p->config[c->id]);
		r->session = part->session->row.id;
		r->process = p->row.id;
		r->config = c->id;
		r->count = c->count;
		hash_copy(r->node, p->node[c->node].hash);
	}
	return true;
}

static bool put_busy(struct batch *b, const struct part *part)
{
	struct busy *from;
	struct row_busy *r;
	uint64_t ns[PART_MAX], all;
	uint32_t i;

	for (i = 0; i < part->tree.n_busy; i++) {
		from = part->tree.busy[i];
		if (!from->dirty)
			continue;
		r = batch_busy(b);
		if (r == NULL)
			return false;
		all = busy_parts(from, ns);
		*r = (struct row_busy){.session = part->session->row.id,
			.process = part->process->row.id,
			.device = from->device,
			.busy_ns = all,
			.first_ns = from->first_ns,
			.last_ns = from->last_ns,
#define X(name, column, ...) .column = ns[PART_##name],
			GPU_PARTS_STORED(X)
#undef X
		};
	}
	return true;
}

static bool put_losses(struct batch *b, const struct part *part)
{
	int64_t session = part->session->row.id, process = part->process->row.id;
	struct row_loss *loss;
	struct row_note *note;
	uint32_t i;

	for (i = 0; i < LOST_CAUSE_MAX; i++) {
		if ((part->loss_dirty & 1u << i) == 0)
			continue;
		loss = batch_loss(b);
		if (loss == NULL)
			return false;
		*loss = (struct row_loss){session, process, i, part->loss[i]};
	}
	for (i = 0; i < NOTE_MAX; i++) {
		if ((part->counted_dirty & 1u << i) == 0)
			continue;
		note = batch_note(b);
		if (note == NULL)
			return false;
		note->session = session;
		note->process = process;
		note->number = NOTES_COUNTED + i;
		note->ns = (int64_t)part->counted_ns[i];
		snprintf(note->text, sizeof(note->text), "%llu %s",
			(unsigned long long)part->counted[i], note_words(i));
	}
	return true;
}

static bool put_chunk(struct batch *b, const struct session *s, const struct chunk *c)
{
	struct row_trace *r = batch_trace(b);

	if (r == NULL)
		return false;
	*r = (struct row_trace){.session = s->row.id,
		.process = c->process,
		.first = c->first,
		.end_ns = c->end_ns,
		.number = c->number,
		.events = c->events};
	if (c->bytes == NULL)
		return true;
	r->bytes = malloc(c->n);
	if (r->bytes == NULL)
		return false;
	memcpy(r->bytes, c->bytes, c->n);
	r->n = c->n;
	return true;
}

static bool put_timeline(struct batch *b, const struct part *part)
{
	const struct timeline *t = part->timeline;
	struct chunk open;
	bool done;
	uint32_t i;

	for (i = 0; i < t->n_sealed; i++)
		if (!put_chunk(b, part->session, &t->sealed[i]))
			return false;
	if (!t->dirty)
		return true;
	if (timeline_open_chunk(part, &open) < 0)
		return false;
	done = put_chunk(b, part->session, &open);
	free(open.bytes);
	return done;
}

static bool put_part(struct batch *b, const struct part *part)
{
	struct row_member *m;

	if (!part->stored) {
		m = batch_member(b);
		if (m == NULL)
			return false;
		*m = (struct row_member){part->session->row.id, part->process->row.id};
	}
	if (part->timeline != NULL && !put_timeline(b, part))
		return false;
	return put_cells(b, part) && put_metrics(b, part) && put_configs(b, part) &&
	       put_busy(b, part) && put_losses(b, part) && step_series_put(part, b) &&
	       allocs_put(part, b);
}

static bool put_spans(struct batch *b, const struct session *s)
{
	const struct spans *active = &s->active, *segment = &s->segment;
	struct row_segment *seg;
	struct row_active *act;
	uint32_t i, left;

	for (i = active->n, left = active->dirty; left > 0 && i-- > 0;) {
		if (!active->v[i].dirty)
			continue;
		left--;
		act = batch_active(b);
		if (act == NULL)
			return false;
		*act = (struct row_active){
			s->row.id, active->v[i].span.begin, active->v[i].span.end};
	}
	for (i = segment->n, left = segment->dirty; left > 0 && i-- > 0;) {
		if (!segment->v[i].dirty)
			continue;
		left--;
		seg = batch_segment(b);
		if (seg == NULL)
			return false;
		*seg = (struct row_segment){
			s->row.id, i, segment->v[i].span.begin, segment->v[i].span.end};
	}
	return true;
}

static bool put_session(struct batch *b, const struct session *s)
{
	struct row_session *row;
	struct row_note *note;
	uint32_t i;

	if (s->dirty) {
		row = batch_session(b);
		if (row == NULL)
			return false;
		*row = s->row;
	}
	if (!put_spans(b, s))
		return false;
	for (i = s->notes_stored; i < s->n_notes; i++) {
		note = batch_note(b);
		if (note == NULL)
			return false;
		note->session = s->row.id;
		note->process = s->note[i].process;
		note->number = i;
		note->ns = (int64_t)s->note[i].ns;
		memcpy(note->text, s->note[i].text, sizeof(note->text));
	}
	for (i = 0; i < s->chunks.n_gone; i++)
		if (!put_chunk(b, s, &s->chunks.gone[i]))
			return false;
	for (i = 0; i < s->n_parts; i++)
		if (!put_part(b, s->part[i]))
			return false;
	return readings_put(&s->readings, b, s->row.id);
}

static bool put_fold(struct batch *b, const struct fold *f)
{
	struct row_pending *pending = batch_pending(b);
	struct row_anchor *anchor;
	uint32_t i;

	if (pending == NULL || pending_pack_fold(f, &pending->bytes, &pending->n) < 0)
		return false;
	for (i = 0; i < f->n_new_anchors; i++) {
		anchor = batch_anchor(b);
		if (anchor == NULL)
			return false;
		*anchor = f->new_anchor[i];
	}
	if (f->n_deleted > 0) {
		b->deleted = malloc(f->n_deleted * sizeof(*b->deleted));
		if (b->deleted == NULL)
			return false;
		memcpy(b->deleted, f->deleted, f->n_deleted * sizeof(*b->deleted));
		b->n_deleted = f->n_deleted;
	}
	b->next_process = f->next_process;
	b->next_session = f->next_session;
	return true;
}

#define WEIGHT_NEWS (64u << 10)

/* store_prune.c counts the same of a session that an older protond stored. */
uint64_t session_bytes(const struct session *s)
{
	uint64_t n = BYTES_OF_SESSION + s->chunks.bytes;
	uint32_t i;

	for (i = 0; i < s->n_parts; i++)
		n += s->part[i]->tree.n_cells * (uint64_t)BYTES_OF_CELL +
		     s->part[i]->tree.n_metrics * (uint64_t)BYTES_OF_METRIC;
	return n;
}

/* A row for each little more would be a write for nothing. */
static void weigh_session(struct session *s)
{
	const uint64_t was = s->row.stored_bytes, now = session_bytes(s);

	s->dirty = s->dirty || now > was + WEIGHT_NEWS || now + WEIGHT_NEWS < was;
	if (s->dirty)
		s->row.stored_bytes = now;
}

static bool put_all(struct batch *b, const struct fold *f)
{
	uint32_t i;

	for (i = 0; i < f->n_processes; i++)
		if (f->process[i]->dirty && !put_process(b, f->process[i]))
			return false;
	for (i = 0; i < f->n_sessions; i++)
		if (!put_session(b, f->session[i]))
			return false;
	return put_fold(b, f);
}

/* --- all rows are there: clean --- */

static void clean_part(struct part *part)
{
	struct tree *t = &part->tree;
	uint32_t i;

	for (i = 0; i < t->dirty_cells.n; i++)
		tree_at(t, t->dirty_cells.at[i])->dirty = false;
	t->n_stored = t->n_cells; /* a new one is always dirty */
	for (i = 0; i < t->dirty_metrics.n; i++) {
		t->metric[t->dirty_metrics.at[i]].dirty = false;
		t->metric[t->dirty_metrics.at[i]].stored = true;
	}
	for (i = 0; i < t->dirty_configs.n; i++) {
		t->config[t->dirty_configs.at[i]].dirty = false;
		t->config[t->dirty_configs.at[i]].stored = true;
	}
	t->dirty_cells.n = t->dirty_metrics.n = t->dirty_configs.n = 0;
	for (i = 0; i < t->n_busy; i++)
		t->busy[i]->dirty = false;
	if (part->timeline != NULL)
		timeline_clean(part);
	step_series_clean(part);
	allocs_clean(part);
	part->loss_dirty = part->counted_dirty = 0;
	part->stored = true;
}

static void clean_spans(struct spans *s)
{
	uint32_t i;

	for (i = s->n; s->dirty > 0 && i-- > 0;) {
		s->dirty -= s->v[i].dirty;
		s->v[i].dirty = false;
	}
}

static void clean_all(struct fold *f)
{
	struct session *s;
	struct process *p;
	uint32_t i, k;

	for (i = 0; i < f->n_processes; i++) {
		p = f->process[i];
		if (p->dirty)
			p->collected = f->round;
		p->dirty = p->devices_dirty = false;
		for (k = 0; k < p->cap_lanes; k++)
			p->lane[k].dirty = false;
	}
	for (i = 0; i < f->n_sessions; i++) {
		s = f->session[i];
		for (k = 0; k < s->n_parts; k++)
			clean_part(s->part[k]);
		clean_spans(&s->active);
		clean_spans(&s->segment);
		s->notes_stored = s->n_notes;
		s->chunks.n_gone = 0;
		if (s->dirty)
			s->collected = f->round;
		readings_clean(&s->readings);
		s->dirty = false;
	}
	f->n_new_anchors = f->n_deleted = f->fresh = 0;
	f->dirty = f->news = false;
}

/* Those that are final, and stored since before any question that has no answer yet: each is here or
 * in what the store answers. */
static void forget_sessions(struct fold *f)
{
	uint32_t i, n = 0;

	for (i = 0; i < f->n_sessions; i++) {
		if (!session_is_current(f->session[i]) && f->session[i]->collected <= f->seen)
			session_free(f->session[i]);
		else
			f->session[n++] = f->session[i];
	}
	f->n_sessions = n;
}

int fold_collect(struct fold *f, struct batch *ret)
{
	struct batch b = {0};
	uint32_t i;

	MUST_FOLD(f);
	MUST(!f->restoring);
	for (i = 0; i < f->n_sessions; i++)
		weigh_session(f->session[i]);
	f->round++; /* after a failure too: the nodes of that batch were not stored */
	if (f->no_memory || !put_all(&b, f)) {
		batch_free(&b);
		return -ENOMEM;
	}
	clean_all(f);
	forget_sessions(f);
	process_evict(f, ENDED_KEPT);
	*ret = b;
	return 0;
}
