/* SPDX-License-Identifier: MIT. timeline.c: a session's events one by one, in chunks. */
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "chunks.h"
#include "flight.h"
#include "loss.h"
#include "node.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "session.h"
#include "state.h"

/* Sealed chunks wait in memory for the store. If it cannot take them, newer ones are dropped, of
 * users who have an even share already; their numbers are kept, so that the gap shows. */
#define SEALED_BYTES_MAX (64u << 20)
#define TEXT_BYTES_MAX   1024u

_Static_assert(TRACE_BEGAN_BEFORE == SCOPE_BEGAN_BEFORE && TRACE_UNWOUND == SCOPE_UNWOUND &&
		       TRACE_SPAN == SCOPE_SPAN && TRACE_OPEN > SCOPE_SPAN,
	"flags are those of the ring");
_Static_assert(TRACE_CALL > TRACE_OPEN, "a flag of its own");
_Static_assert((int)METRIC_I64 == VALUE_I64 && (int)METRIC_U64 == VALUE_U64 &&
		       (int)METRIC_F64 == VALUE_F64 && (int)METRIC_STR == VALUE_STR,
	"types are those of the ring");

/* --- what a chunk's lists have --- */

struct key_arg {
	const struct timeline_index *index;
	struct timeline_key key;
};

static bool key_same(const void *arg, uint32_t at)
{
	const struct key_arg *k = arg;
	const struct timeline_key *have = &k->index->key[at];

	return have->a == k->key.a && have->b == k->key.b && have->c == k->key.c;
}

static uint32_t key_hash(struct timeline_key k)
{
	return table_mix((uint64_t)k.a << 32 | k.b, k.c);
}

static uint32_t index_find(const struct timeline_index *x, struct timeline_key key)
{
	const struct key_arg k = {x, key};

	return table_find(&x->by_key, key_hash(key), key_same, &k);
}

/* To be called once the chunk's list has it. TABLE_NONE: out of memory. An index that refuses a key
 * chosen against it only makes the list hold it twice. */
static uint32_t index_add(struct part *part, struct timeline_index *x, struct timeline_key key)
{
	if (!ROOM_FOR(x->key, x->cap, x->n) ||
		table_add(&x->by_key, key_hash(key), x->n) == -ENOMEM) {
		part->process->fold->no_memory = true;
		return TABLE_NONE;
	}
	x->key[x->n] = key;
	return x->n++;
}

static void index_clear(struct timeline_index *x)
{
	table_fini(&x->by_key);
	x->n = 0;
}

static void index_fini(struct timeline_index *x)
{
	table_fini(&x->by_key);
	free(x->key);
}

/* These find or add a place in the chunk's lists. TABLE_NONE: out of memory. */
static uint32_t place_text(struct part *part, const char *text, uint32_t id, uint32_t what)
{
	struct timeline *t = part->timeline;
	const struct timeline_key key = {id, what, 0};
	uint32_t at = index_find(&t->text, key);

	if (at != TABLE_NONE)
		return at;
	part->process->fold->no_memory |=
		!trace_pack_text(&t->pack, text, (uint32_t)strnlen(text, TEXT_BYTES_MAX));
	return index_add(part, &t->text, key);
}

enum { TEXT_NAME, TEXT_METRIC }; /* whose id it is */

static uint32_t place_name(struct part *part, uint32_t name)
{
	uint32_t bytes;

	return place_text(part, name_text(part->process, name, &bytes), name, TEXT_NAME);
}

static uint32_t place_node(struct part *part, uint32_t node)
{
	struct timeline *t = part->timeline;
	const struct timeline_key key = {node, 0, 0};
	uint32_t at = index_find(&t->node, key);

	if (at != TABLE_NONE)
		return at;
	part->process->fold->no_memory |=
		!trace_pack_node(&t->pack, part->process->node[node].hash);
	return index_add(part, &t->node, key);
}

static uint32_t place_thread(struct part *part, uint32_t tid, uint32_t name)
{
	struct timeline *t = part->timeline;
	const struct timeline_key key = {tid, name, 0};
	struct trace_thread thread = {tid, TRACE_NONE};
	uint32_t at = index_find(&t->thread, key);

	if (at != TABLE_NONE)
		return at;
	if (name != NAME_NONE && name < part->process->n_names)
		thread.name = place_name(part, name);
	part->process->fold->no_memory |= !trace_pack_thread(&t->pack, &thread);
	return index_add(part, &t->thread, key);
}

static uint32_t place_stream(struct part *part, const struct gpu *g)
{
	struct timeline *t = part->timeline;
	const struct timeline_key key = {g->device, g->context, g->stream};
	const struct trace_stream stream = {g->device, g->context, g->stream};
	uint32_t at = index_find(&t->stream, key);

	if (at != TABLE_NONE)
		return at;
	part->process->fold->no_memory |= !trace_pack_stream(&t->pack, &stream);
	return index_add(part, &t->stream, key);
}

static uint32_t place_config(struct part *part, uint32_t id)
{
	struct timeline *t = part->timeline;
	const struct timeline_key key = {id, 0, 0};
	const struct ring_config *c;
	uint32_t at;

	if (id >= part->process->n_configs)
		return TRACE_NONE;
	at = index_find(&t->config, key);
	if (at != TABLE_NONE)
		return at;
	c = &part->process->config[id];
	part->process->fold->no_memory |= !trace_pack_config(
		&t->pack, &(struct trace_config){{c->grid[0], c->grid[1], c->grid[2]},
				  {c->block[0], c->block[1], c->block[2]}, c->registers,
				  c->static_shared, c->dynamic_shared});
	return index_add(part, &t->config, key);
}

/* --- chunks of a session --- */

void chunks_fini(struct chunks *c)
{
	free(c->v);
	free(c->gone);
	*c = (struct chunks){0};
}

static struct part *part_of(const struct session *s, int64_t process)
{
	uint32_t i;

	for (i = 0; i < s->n_parts; i++)
		if (s->part[i]->process->row.id == process)
			return s->part[i];
	return NULL;
}

static void sealed_count(const struct part *part, int64_t more)
{
	struct process *p = part->process;

	MUST(more >= 0 ||
		(p->fold->sealed_bytes >= -(uint64_t)more && p->user->sealed >= -(uint64_t)more));
	p->fold->sealed_bytes += (uint64_t)more;
	p->user->sealed += (uint64_t)more;
}

/* Drops the bytes of a chunk that still waits to be collected. */
static void sealed_drop(const struct part *part, const struct chunk *c)
{
	struct timeline *t = part->timeline;
	uint32_t i;

	for (i = 0; i < t->n_sealed; i++) {
		if (t->sealed[i].number != c->number)
			continue;
		sealed_count(part, -(int64_t)t->sealed[i].n);
		free(t->sealed[i].bytes);
		memmove(t->sealed + i, t->sealed + i + 1,
			(t->n_sealed - i - 1) * sizeof(*t->sealed));
		t->n_sealed--;
		return;
	}
}

static void chunk_gone(struct session *s, const struct chunk *c)
{
	struct chunks *all = &s->chunks;

	if (!ROOM_FOR(all->gone, all->cap_gone, all->n_gone)) {
		s->fold->no_memory = true;
		return;
	}
	all->gone[all->n_gone] = *c;
	all->gone[all->n_gone++].bytes = NULL;
}

static void drop_oldest(struct session *s)
{
	struct chunks *all = &s->chunks;
	const struct chunk *c = &all->v[all->from];
	const struct part *part = part_of(s, c->process);

	if (part != NULL && part->timeline != NULL)
		sealed_drop(part, c);
	all->bytes -= c->n;
	chunk_gone(s, c);
	all->from++;
}

/* Drops the oldest until the rest is within the ceilings. The newest always stays. */
static void chunks_trim(struct session *s)
{
	const struct fold_limits *limit = &s->fold->limit;
	const struct chunks *all = &s->chunks;
	const struct chunk *c;

	while (all->from + 1 < all->n) {
		c = &all->v[all->from];
		if (all->bytes <= limit->trace_bytes &&
			(limit->trace_ns == 0 || s->fold->now_ns <= c->end_ns ||
				s->fold->now_ns - c->end_ns <= limit->trace_ns))
			return;
		drop_oldest(s);
	}
}

/* Likewise, of all that a user has here: of the longest first. They cannot leave the database by
 * themselves, as what has ended does. */
static void user_trim(const struct fold *f, uint32_t uid)
{
	struct session *s, *most;
	uint64_t bytes;
	uint32_t i;

	if (f->limit.trace_bytes_per_uid == 0)
		return;
	do {
		for (i = 0, bytes = 0, most = NULL; i < f->n_sessions; i++) {
			s = f->session[i];
			if (s->row.uid != uid)
				continue;
			bytes += s->chunks.bytes;
			if (s->chunks.from + 1 < s->chunks.n &&
				(most == NULL || s->chunks.bytes > most->chunks.bytes))
				most = s;
		}
		if (bytes > f->limit.trace_bytes_per_uid && most != NULL)
			drop_oldest(most);
	} while (bytes > f->limit.trace_bytes_per_uid && most != NULL);
}

static void chunks_add(struct session *s, const struct chunk *c)
{
	struct chunks *all = &s->chunks;

	if (all->from > 0 && all->from >= all->n / 2) {
		memmove(all->v, all->v + all->from, (all->n - all->from) * sizeof(*all->v));
		all->n -= all->from;
		all->from = 0;
	}
	if (!ROOM_FOR(all->v, all->cap, all->n)) {
		s->fold->no_memory = true;
		return;
	}
	all->v[all->n] = *c;
	all->v[all->n++].bytes = NULL;
	all->bytes += c->n;
	chunks_trim(s);
	user_trim(s->fold, s->row.uid);
}

/* --- the chunk that grows --- */

int timeline_open_chunk(const struct part *part, struct chunk *ret)
{
	const struct timeline *t = part->timeline;

	*ret = (struct chunk){.process = part->process->row.id,
		.number = t->number,
		.first = t->first,
		.end_ns = part->process->fold->now_ns,
		.events = trace_pack_events(&t->pack)};
	return trace_pack_seal(&t->pack, &ret->bytes, &ret->n);
}

static void sealed_add(struct part *part, struct chunk *c)
{
	struct timeline *t = part->timeline;
	struct fold *f = part->process->fold;

	if (f->sealed_bytes + c->n > SEALED_BYTES_MAX &&
		part->process->user->sealed + c->n > user_even(f, SEALED_BYTES_MAX)) {
		free(c->bytes);
		chunk_gone(part->session, c);
		return;
	}
	if (!ROOM_FOR(t->sealed, t->cap_sealed, t->n_sealed)) {
		free(c->bytes);
		f->no_memory = true;
		return;
	}
	t->sealed[t->n_sealed++] = *c;
	sealed_count(part, c->n);
	chunks_add(part->session, c);
}

void timeline_seal(struct part *part)
{
	struct timeline *t = part->timeline;
	struct chunk c;

	if (t == NULL || trace_pack_is_empty(&t->pack))
		return;
	if (timeline_open_chunk(part, &c) < 0) {
		part->process->fold->no_memory = true;
		return;
	}
	sealed_add(part, &c);
	t->number++;
	t->first += c.events;
	t->dirty = false;
	trace_pack_clear(&t->pack);
	index_clear(&t->node);
	index_clear(&t->thread);
	index_clear(&t->stream);
	index_clear(&t->config);
	index_clear(&t->text);
	index_clear(&t->burst);
}

/* To be called before an event's places are looked up. */
static struct timeline *timeline_begin(struct part *part)
{
	if (trace_pack_is_full(&part->timeline->pack))
		timeline_seal(part);
	return part->timeline;
}

static void timeline_end(struct part *part, bool packed)
{
	part->timeline->dirty = true;
	part->process->fold->no_memory |= !packed;
}

/* --- events --- */

void timeline_scope(struct part *part, const struct lane *lane, const struct cell *cell,
	uint64_t begin, uint64_t end, uint8_t flags)
{
	struct timeline *t = timeline_begin(part);
	const struct trace_scope s = {.begin = begin,
		.end = end,
		.thread = place_thread(part, lane->tid, lane->name),
		.node = place_node(part, cell->node),
		.segment = cell->segment,
		.flags = flags};

	if (!part->process->fold->no_memory)
		timeline_end(part, trace_pack_scope(&t->pack, &s));
}

void timeline_call(struct part *part, const struct lane *lane, const struct cell *cell,
	const struct rec_call *r)
{
	struct timeline *t = timeline_begin(part);
	const struct trace_scope s = {.begin = r->begin,
		.end = r->end,
		.thread = place_thread(part, lane->tid, lane->name),
		.node = place_node(part, cell->node),
		.segment = cell->segment,
		.flags = TRACE_CALL,
		.call = {.event = r->event,
			.correlation = r->correlation,
			.stream = r->stream,
			.class = cell->class}};

	if (!part->process->fold->no_memory)
		timeline_end(part, trace_pack_scope(&t->pack, &s));
}

/* Its thread may have lanes of its own, whose name it has then. */
static uint32_t place_sampled(struct part *part, uint32_t tid)
{
	const struct process *p = part->process;
	uint32_t i;

	for (i = 0; i < p->cap_lanes && p->lane[i].tid != tid; i++)
		;
	return place_thread(part, tid, i < p->cap_lanes ? p->lane[i].name : NAME_NONE);
}

/* Looks do not begin and end with the scopes around them: so it may overlap others. */
void timeline_sample(struct part *part, const struct cell *cell, const struct rec_sample *r)
{
	struct timeline *t = timeline_begin(part);
	const uint8_t how = REC_FLAGS(r->hdr);
	const struct trace_scope s = {.begin = r->begin,
		.end = r->end,
		.thread = place_sampled(part, r->tid),
		.node = place_node(part, cell->node),
		.segment = cell->segment,
		.flags = TRACE_CALL | TRACE_SPAN,
		.call = {.correlation = r->samples,
			.stream = UINT32_MAX,
			.class = (how & SAMPLE_OFF_CPU) == 0 ? CLASS_SAMPLE
				 : (how & SAMPLE_READY) != 0 ? CLASS_SAMPLE_READY
							     : CLASS_SAMPLE_OFF}};

	if (!part->process->fold->no_memory)
		timeline_end(part, trace_pack_scope(&t->pack, &s));
}

void timeline_op(
	struct part *part, const struct launch *l, const struct gpu *g, const struct cell *cell)
{
	struct timeline *t = timeline_begin(part);
	const bool launched = l->list != LIST_WAITING;
	const struct trace_op o = {.launched = l->clock,
		.start = g->start,
		.end = g->end,
		.bytes = g->bytes,
		.correlation = g->correlation,
		.thread = launched ? place_thread(part, l->tid, NAME_NONE) : 0,
		.node = place_node(part, cell->node),
		.segment = cell->segment,
		.stream = place_stream(part, g),
		.config =
			gpu_class_is_kernel(g->class) ? place_config(part, g->config) : TRACE_NONE,
		.class = cell->class,
		.flags = (uint8_t)((launched ? 0 : TRACE_UNLAUNCHED) |
				   ((g->flags & GPU_FLAG_GRAPH) != 0 ? TRACE_GRAPH : 0) |
				   (launched && l->round != 0 ? TRACE_MORE : 0))};

	if (!part->process->fold->no_memory)
		timeline_end(part, trace_pack_op(&t->pack, &o));
}

void timeline_metric(struct part *part, const struct lane *lane, const struct metric *m,
	const struct rec_metric *r)
{
	struct timeline *t = timeline_begin(part);
	const uint8_t type = REC_FLAGS(r->hdr) & METRIC_TYPE_BITS;
	const struct trace_metric metric = {.clock = r->clock,
		.bits = type == METRIC_STR ? place_name(part, (uint32_t)r->value) : r->value,
		.thread = place_thread(part, lane->tid, lane->name),
		.node = place_node(part, m->node),
		.segment = m->segment,
		.name = place_text(
			part, part->process->metric_name[m->name].text, m->name, TEXT_METRIC),
		.type = type};

	if (!part->process->fold->no_memory)
		timeline_end(part, trace_pack_metric(&t->pack, &metric));
}

static void burst_add(
	struct part *part, const struct burst_part *b, const struct timeline_key *key, uint64_t n)
{
	struct timeline *t = timeline_begin(part);
	const struct trace_burst burst = {.begin = b->from,
		.end = b->to,
		.n = n,
		.thread = place_thread(part, b->lane->tid, b->lane->name),
		.segment = key->c};
	bool packed;

	if (part->process->fold->no_memory)
		return;
	packed = trace_pack_burst(&t->pack, &burst);
	if (packed)
		(void)index_add(part, &t->burst, *key);
	timeline_end(part, packed);
}

void timeline_burst(struct part *part, const struct burst_part *b, uint32_t segment, uint64_t n)
{
	struct timeline *t = part->timeline;
	const struct timeline_key key = {b->lane_index, b->lane->generation, segment};
	const uint32_t at = index_find(&t->burst, key);
	struct trace_burst *have;

	note_count(part, NOTE_SUMMED, n);
	if (at == TABLE_NONE) {
		burst_add(part, b, &key, n);
		return;
	}
	have = &t->pack.burst[at];
	have->begin = b->from < have->begin ? b->from : have->begin;
	have->end = b->to > have->end ? b->to : have->end;
	have->n += n;
	t->dirty = true;
}

/* --- collect and restore --- */

void timeline_clean(struct part *part)
{
	struct timeline *t = part->timeline;
	uint32_t i;

	for (i = 0; i < t->n_sealed; i++) {
		sealed_count(part, -(int64_t)t->sealed[i].n);
		free(t->sealed[i].bytes);
	}
	t->n_sealed = 0;
	t->dirty = false;
}

void timeline_free(struct part *part)
{
	struct timeline *t = part->timeline;

	if (t == NULL)
		return;
	timeline_clean(part);
	trace_pack_fini(&t->pack);
	index_fini(&t->node);
	index_fini(&t->thread);
	index_fini(&t->stream);
	index_fini(&t->config);
	index_fini(&t->text);
	index_fini(&t->burst);
	free(t->sealed);
	free(t);
	part->timeline = NULL;
}

void timeline_put(struct session *s, const struct chunk *c)
{
	struct part *part = part_of(s, c->process);
	struct timeline *t = part == NULL ? NULL : part->timeline;

	MUST_SESSION(s);
	if (t != NULL && c->number >= t->number) {
		t->number = c->number + 1;
		t->first = c->first + c->events;
	}
	if (c->n > 0)
		chunks_add(s, c);
}
