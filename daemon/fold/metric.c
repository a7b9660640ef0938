/* SPDX-License-Identifier: MIT. metric.c: values that a job gives to its scopes: summed, or the
 * last one counts. */
#include "metric.h"

#include <string.h>

#include "cells.h"
#include "domains.h"
#include "flight.h"
#include "loss.h"
#include "node.h"
#include "op_terms.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "state.h"
#include "step_series.h"
#include "timeline.h"
#include "tree.h"

static bool metric_same(const void *arg, uint32_t at)
{
	const struct metric *const *k = arg; /* k[0] the array, k[1] the key */
	const struct metric *m = &k[0][at];

	return m->node == k[1]->node && m->segment == k[1]->segment && m->name == k[1]->name;
}

const struct metric *tree_metric_find(
	const struct part *part, uint32_t node, uint32_t segment, uint32_t name)
{
	const struct metric key = {.node = node, .segment = segment, .name = name};
	const struct metric *k[2] = {part->tree.metric, &key};
	const uint32_t at = table_find(&part->tree.metric_by_key,
		table_mix((uint64_t)segment << 32 | node, name), metric_same, k);

	return at != TABLE_NONE ? &part->tree.metric[at] : NULL;
}

struct metric *tree_metric_put(struct part *part, const struct metric *key)
{
	struct tree *t = &part->tree;
	const struct metric *k[2] = {t->metric, key};
	uint32_t hash = table_mix((uint64_t)key->segment << 32 | key->node, key->name);
	uint32_t at = table_find(&t->metric_by_key, hash, metric_same, k);

	if (at != TABLE_NONE)
		return &t->metric[at];
	if (t->n_metrics >= METRICS_MAX || !process_has_room(part->process)) {
		loss_part(part, LOST_NODES, 1);
		return NULL;
	}
	if (!ROOM_FOR(t->metric, t->cap_metrics, t->n_metrics) ||
		!ROOM_FOR(t->dirty_metrics.at, t->dirty_metrics.cap, t->n_metrics)) {
		part->process->fold->no_memory = true;
		return NULL;
	}
	switch (table_add(&t->metric_by_key, hash, t->n_metrics)) {
	case 0:
		part_grew(part, sizeof(struct metric));
		part->process->fold->fresh += sizeof(struct row_metric);
		t->metric[t->n_metrics] = *key;
		return &t->metric[t->n_metrics++];
	case -ENOMEM:
		part->process->fold->no_memory = true;
		return NULL;
	default:
		loss_part(part, LOST_NODES, 1);
		return NULL;
	}
}

static double as_f64(uint8_t type, uint64_t bits)
{
	double f;

	if (type == METRIC_I64)
		return (double)(int64_t)bits;
	if (type == METRIC_U64)
		return (double)bits;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Adds in integers; false if the sum is not one. */
static bool add_whole(struct metric *m, uint8_t type, uint64_t bits)
{
	int64_t s;
	uint64_t u;

	if (m->type == METRIC_F64 || type == METRIC_F64)
		return false;
	if (m->type == METRIC_I64 && type == METRIC_I64) {
		if (__builtin_add_overflow((int64_t)m->bits, (int64_t)bits, &s))
			return false;
		m->bits = (uint64_t)s;
		return true;
	}
	if ((m->type == METRIC_I64 && (int64_t)m->bits < 0) ||
		(type == METRIC_I64 && (int64_t)bits < 0))
		return false;
	if (__builtin_add_overflow(m->bits, bits, &u))
		return false;
	m->bits = u;
	m->type = METRIC_U64;
	return true;
}

static void metric_add(struct part *part, struct metric *m, uint8_t type, uint64_t bits)
{
	double f;

	if (add_whole(m, type, bits))
		return;
	if (m->type != type)
		note_count(part, NOTE_WIDENED, 1);
	f = as_f64(m->type, m->bits) + as_f64(type, bits);
	m->type = METRIC_F64;
	memcpy(&m->bits, &f, sizeof(f));
}

/* m->count 0: this is the first value. */
static void metric_merge(
	struct part *part, struct metric *m, uint8_t type, const struct rec_metric *r)
{
	if (type == METRIC_STR && m->kind != KIND_PROPERTY) {
		note_count(part, NOTE_TEXT, 1);
		return;
	}
	if (m->count == 0 || m->kind == KIND_PROPERTY) {
		m->type = type;
		m->bits = type == METRIC_STR ? 0 : r->value;
		m->text = type == METRIC_STR ? part->process->name[r->value].text : NULL;
	} else {
		metric_add(part, m, type, r->value);
	}
	m->count++;
	dirty_mark(&part->tree.dirty_metrics, &m->dirty, (uint32_t)(m - part->tree.metric));
}

/* What a sum came to since it was last looked at. It fell, or is no whole number: as floats. */
static void total_add(struct part *part, struct metric *m, const struct total_part *x)
{
	int64_t i = 0;
	double f;
	uint64_t bits = x->sum - x->before;

	if (x->sum == x->before)
		return;
	if (x->type == METRIC_U64 && x->sum > x->before) {
		metric_add(part, m, METRIC_U64, bits);
	} else if (x->type == METRIC_I64 &&
		   !__builtin_sub_overflow((int64_t)x->sum, (int64_t)x->before, &i)) {
		metric_add(part, m, METRIC_I64, (uint64_t)i);
	} else {
		f = as_f64(x->type, x->sum) - as_f64(x->type, x->before);
		memcpy(&bits, &f, sizeof(bits));
		metric_add(part, m, METRIC_F64, bits);
	}
}

/* A number that was told in a step; what the CPU counts would crowd those out that people set. */
static void tell_step(
	struct part *part, const struct metric *m, uint32_t path, struct step_number *x)
{
	struct process *p = part->process;
	const uint32_t node = part->python ? node_of_path(p, path) : m->node;

	if (p->node[node].step == STEP_NO)
		return;
	x->name = m->name;
	x->kind = m->kind;
	step_series_tell(part, x);
}

/* A number of a scope that the session leaves out. What a program says while it is in an operator stands in
 * the scope around that; what is said of the operator itself goes with it. */
static bool number_leaves(struct part *part, uint32_t path, const struct metric *key, uint8_t flags)
{
	const struct process *p = part->process;

	if (!domains_leave_out(part, path))
		return false;
	if (!domains_are_operators(p, p->path[path].domain) || key->kind == KIND_PROPERTY ||
		(flags & METRIC_COUNTED) != 0)
		return true;
#define X(work)                                                  \
	if (strcmp(p->metric_name[key->name].text, (work)) == 0) \
		return true;
	OP_WORK(X)
#undef X
	return false;
}

void tree_total(struct part *part, const struct total_part *x)
{
	struct process *p = part->process;
	struct metric key = {0}, *m;

	if (!window_has(&part->window, x->opened))
		return;
	key.name = metric_name_of(p, x->name, &key.kind);
	if (key.name == TABLE_NONE)
		return;
	if (x->type == METRIC_STR)
		key.kind = KIND_PROPERTY;
	if (number_leaves(part, x->path, &key, x->flags))
		return;
	key.node = node_in_part(part, x->path);
	key.segment = window_segment(&part->window, x->opened);
	m = tree_metric_put(part, &key);
	if (m == NULL)
		return;
	if (x->type == METRIC_STR && m->kind != KIND_PROPERTY) {
		note_count(part, NOTE_TEXT, x->n);
		return;
	}
	if (m->kind == KIND_PROPERTY) {
		m->type = x->type;
		m->bits = x->type == METRIC_STR ? 0 : x->latest;
		m->text = x->type == METRIC_STR ? p->name[x->latest].text : NULL;
	} else if (m->count == 0) {
		m->type = x->type;
		m->bits = 0;
		total_add(part, m, x);
	} else {
		total_add(part, m, x);
	}
	m->count += x->n;
	dirty_mark(&part->tree.dirty_metrics, &m->dirty, (uint32_t)(m - part->tree.metric));
	if ((x->flags & METRIC_SCALED) != 0)
		note_count(part, NOTE_SCALED, x->n);
	if (x->type != METRIC_STR && (x->flags & METRIC_COUNTED) == 0)
		tell_step(part, m, x->path,
			&(struct step_number){
				.v = m->kind == KIND_PROPERTY
					     ? as_f64(x->type, x->latest)
					     : as_f64(x->type, x->sum) - as_f64(x->type, x->before),
				.clock = x->burst.to,
				.lane = x->burst.lane_index});
	if (x->surplus)
		loss_part(part, LOST_NODES, x->n);
	if (part->timeline != NULL && x->n != 0)
		timeline_burst(part, &x->burst, m->segment, x->n);
}

void tree_metric(struct part *part, const struct lane *lane, const struct rec_metric *r)
{
	struct process *p = part->process;
	const uint8_t flags = REC_FLAGS(r->hdr), type = flags & METRIC_TYPE_BITS;
	struct metric key = {0}, *m;

	if (!window_has(&part->window, r->clock))
		return;
	key.name = metric_name_of(p, r->name, &key.kind);
	if (key.name == TABLE_NONE)
		return;
	if (type == METRIC_STR)
		key.kind = KIND_PROPERTY;
	if (number_leaves(part, REC_ID(r->hdr), &key, flags))
		return;
	key.node = part->python && r->python != PATH_ROOT
			   ? node_of_stack(p, r->python, REC_ID(r->hdr))
			   : node_in_part(part, REC_ID(r->hdr));
	key.segment = window_segment(&part->window, r->clock);
	m = tree_metric_put(part, &key);
	if (m == NULL)
		return;
	metric_merge(part, m, type, r);
	if ((flags & METRIC_SCALED) != 0)
		note_count(part, NOTE_SCALED, 1);
	if (type != METRIC_STR && (flags & METRIC_COUNTED) == 0)
		tell_step(part, m, REC_ID(r->hdr),
			&(struct step_number){.v = as_f64(type, r->value),
				.clock = r->clock,
				.lane = (uint32_t)(lane - p->lane)});
	if (part->timeline != NULL)
		timeline_metric(part, lane, m, r);
}

/* It may have waited over a restart, since when a job may have shortened its tables. */
void tree_captured(struct part *part, const struct launch *l, const struct gpu *g)
{
	struct process *p = part->process;
	const struct rec_metric r = {.value = g->bytes};
	struct metric key = {0}, *m;
	bool op;

	if (g->name >= p->n_names || (g->id == METRIC_STR && g->bytes >= p->n_names))
		return;
	key.name = metric_name_of(p, g->name, &key.kind);
	if (key.name == TABLE_NONE)
		return;
	if (g->id == METRIC_STR)
		key.kind = KIND_PROPERTY;
	key.node = tree_gpu_place(part, l, g, &op);
	key.segment = window_segment(&part->window, l->clock);
	m = tree_metric_put(part, &key);
	if (m != NULL)
		metric_merge(part, m, g->id, &r);
}

void tree_number(struct part *part, const struct tree_number *x)
{
	struct metric key = {.node = x->node,
		.segment = x->segment,
		.kind = x->most ? KIND_PROPERTY : KIND_INCLUSIVE,
		.type = METRIC_U64};
	struct metric *m;

	key.name = metric_name_add(part->process, x->name, (uint32_t)strlen(x->name));
	m = key.name == TABLE_NONE ? NULL : tree_metric_put(part, &key);
	if (m == NULL)
		return;
	if (!x->most && m->count > 0)
		metric_add(part, m, METRIC_U64, x->value);
	else if (!x->most || m->count == 0 || m->type != METRIC_U64 || x->value > m->bits)
		m->bits = x->value;
	m->count++;
	dirty_mark(&part->tree.dirty_metrics, &m->dirty, (uint32_t)(m - part->tree.metric));
}
