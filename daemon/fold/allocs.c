/* SPDX-License-Identifier: MIT. allocs.c: who holds memory, the driver's events. */
#include "allocs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "blocks.h"
#include "flight.h"
#include "held.h"
#include "holders.h"
#include "loss.h"
#include "metric.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

#define CALL_NS 1000000000u /* calls stay for so long: the two clocks agree to some us only */

/* --- what happens */

static const struct held_names names = {
	"alloc (bytes)", "allocs", "free (bytes)", "frees", "held_most (bytes)"};

static void count_change(struct held_account *a, uint64_t now, uint64_t was)
{
	if (now > was) {
		a->allocs++;
		a->alloc_bytes = held_plus(a->alloc_bytes, now - was);
	} else if (now < was) {
		a->frees++;
		a->free_bytes = held_plus(a->free_bytes, was - now);
	}
}

/* What the pools of a device have, as the last event of each said. */
static void pool(struct part *part, const struct held_event *v)
{
	struct holders *h = &part->allocs->held;
	struct held_account *a;
	struct held_pool *p = h->pool;
	uint64_t was;

	while (p < h->pool + h->n_pools && (p->address != v->pool || p->device != v->device))
		p++;
	if (p == h->pool + HELD_POOLS) {
		h->refused++;
		return;
	}
	a = held_account_of(part, v->device, HELD_RESERVED);
	if (a == NULL)
		return;
	if (p == h->pool + h->n_pools) {
		*p = (struct held_pool){.address = v->pool, .device = v->device};
		h->n_pools++;
	}
	was = p->reserved;
	p->reserved = v->op == MEMORY_POOL_GONE ? 0 : v->reserved;
	p->used = v->op == MEMORY_POOL_GONE ? 0 : v->used;
	if (p->reserved != was)
		held_move(h, a->other, p->reserved > was ? p->reserved - was : was - p->reserved, 0,
			p->reserved > was);
	count_change(a, p->reserved, was);
	if (v->op == MEMORY_POOL_GONE)
		*p = h->pool[--h->n_pools];
	h->owner[a->other].blocks = a->blocks = h->n_pools;
	held_changed(h, a, v->ns);
}

/* --- in order of time */

static int by_time(const void *x, const void *y)
{
	const struct held_event *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static uint64_t id_of(uint16_t epoch, uint32_t correlation)
{
	return (uint64_t)epoch << 32 | correlation;
}

/* Of one id, which comes again after 2^32 calls, the later one last. */
static int by_id(const void *x, const void *y)
{
	const struct held_call *a = x, *b = y;
	const uint64_t i = id_of(a->epoch, a->correlation), k = id_of(b->epoch, b->correlation);

	if (i != k)
		return i < k ? -1 : 1;
	return a->clock < b->clock ? -1 : a->clock > b->clock;
}

static const struct held_call *call_find(const struct holders *h, const struct held_event *v)
{
	const uint64_t id = id_of(v->epoch, v->correlation);
	uint32_t low = 0, high = h->n_calls, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (id_of(h->call[mid].epoch, h->call[mid].correlation) <= id)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || id_of(h->call[low - 1].epoch, h->call[low - 1].correlation) != id)
		return NULL;
	return &h->call[low - 1];
}

/* Paths may have gone since it came, over a restart. */
static uint32_t known(const struct process *p, uint32_t path)
{
	return path < p->n_paths ? path : PATH_OTHER;
}

static uint32_t node_of_event(struct part *part, const struct held_event *v)
{
	struct process *p = part->process;
	const struct held_call *c = call_find(&part->allocs->held, v);

	if (c == NULL) {
		part->allocs->held.unplaced++;
		return node_child(p, NODE_ROOT_AT, NODE_SCOPE, WORD_NO_LAUNCH);
	}
	return part->python && c->python != PATH_ROOT
		       ? node_of_stack(p, known(p, c->python), known(p, c->path))
		       : node_in_part(part, known(p, c->path));
}

static void count(struct part *part, const struct held_event *v)
{
	struct held_deed d = {.ns = v->ns,
		.address = v->address,
		.bytes = v->bytes,
		.device = v->device,
		.kind = v->kind,
		.names = &names};

	if (v->op <= MEMORY_FREE)
		d.node = node_of_event(part, v);
	if (v->op == MEMORY_ALLOC)
		held_give(part, &d);
	else if (v->op == MEMORY_FREE)
		held_take(part, &d);
	if (v->op > MEMORY_FREE || (v->pool != 0 && v->reserved != 0))
		pool(part, v);
	part->allocs->held.events++;
}

/* Those that ended before. */
static void calls_leave(struct holders *h, uint64_t before_ns)
{
	uint32_t i, n = 0;

	for (i = 0; i < h->n_calls; i++)
		if (h->call[i].ns >= before_ns)
			h->call[n++] = h->call[i];
	h->n_calls = n;
}

void allocs_settle(struct part *part, uint64_t before_ns)
{
	struct holders *h = part->allocs != NULL ? &part->allocs->held : NULL;
	uint32_t i;

	if (h == NULL || h->n_events + h->n_calls == 0)
		return;
	part->allocs->dirty = true;
	for (i = 0; i < h->n_events; i++)
		h->event[i].seq = i;
	if (h->n_events > 0) {
		qsort(h->event, h->n_events, sizeof(*h->event), by_time);
		if (h->n_calls > 0)
			qsort(h->call, h->n_calls, sizeof(*h->call), by_id);
	}
	for (i = 0; i < h->n_events && h->event[i].ns < before_ns; i++)
		count(part, &h->event[i]);
	if (i > 0)
		memmove(h->event, h->event + i, (h->n_events - i) * sizeof(*h->event));
	h->n_events -= i;
	calls_leave(h, before_ns == UINT64_MAX ? UINT64_MAX
		       : before_ns > CALL_NS   ? before_ns - CALL_NS
					       : 0);
	part->allocs->known_ns = before_ns == UINT64_MAX ? 0 : before_ns;
}

/* What waits is at its ceiling, or may not grow: it counts now, in whatever order it came. */
static bool is_full(const struct part *part, uint32_t n, uint32_t cap)
{
	return n >= HELD_WAITING || (n > 0 && n == cap && !process_has_room(part->process));
}

void allocs_call(struct part *part, const struct rec_call *r, uint64_t end_ns)
{
	struct allocs *a = allocs_of(part);
	uint32_t cap;

	if (a == NULL || !window_has(&part->window, r->end))
		return;
	if (is_full(part, a->held.n_calls, a->held.cap_calls))
		calls_leave(&a->held, a->known_ns);
	if (is_full(part, a->held.n_calls, a->held.cap_calls))
		allocs_settle(part, UINT64_MAX);
	cap = a->held.cap_calls;
	if (!ROOM_FOR(a->held.call, a->held.cap_calls, a->held.n_calls)) {
		part->process->fold->no_memory = true;
		return;
	}
	part_grew(part, (a->held.cap_calls - cap) * sizeof(*a->held.call));
	a->held.call[a->held.n_calls++] = (struct held_call){.clock = r->end,
		.ns = end_ns,
		.correlation = r->correlation,
		.path = REC_ID(r->hdr),
		.python = r->python,
		.epoch = r->epoch};
	a->dirty = true;
}

void allocs_event(struct part *part, const struct rec_memory *r, uint64_t ns)
{
	struct allocs *a = allocs_of(part);
	const uint64_t clock = clockmap_clock(&part->process->clock, ns);
	uint32_t cap;

	if (a == NULL || !window_has(&part->window, clock)) {
		if (a == NULL)
			loss_part(part, LOST_NODES, 1);
		return;
	}
	if (is_full(part, a->held.n_events, a->held.cap_events))
		allocs_settle(part, UINT64_MAX);
	cap = a->held.cap_events;
	if (!ROOM_FOR(a->held.event, a->held.cap_events, a->held.n_events)) {
		part->process->fold->no_memory = true;
		return;
	}
	part_grew(part, (a->held.cap_events - cap) * sizeof(*a->held.event));
	a->held.event[a->held.n_events++] = (struct held_event){.ns = ns,
		.address = r->address,
		.bytes = r->bytes,
		.pool = r->pool,
		.reserved = r->reserved,
		.used = r->used,
		.correlation = r->correlation,
		.device = r->device == MEMORY_NO_DEVICE ? HELD_HOST : r->device,
		.epoch = r->epoch,
		.op = REC_FLAGS(r->hdr),
		.kind = (uint8_t)REC_ID(r->hdr)};
	a->dirty = true;
}

bool allocs_wait(const struct part *part)
{
	const struct allocs *a = part->allocs;
	uint32_t i;

	for (i = 0; a != NULL && i < a->held.n_calls; i++)
		if (a->held.call[i].ns >= a->known_ns)
			return true;
	return a != NULL && a->held.n_events > 0;
}

/* --- to and from the store */

void allocs_restore(struct part *part, const void *bytes, uint32_t n)
{
	struct fold *f = part->process->fold;
	struct holders h;
	struct err e;
	const int r = holders_unpack(bytes, n, &h, &e);

	if (r == -ENOMEM)
		f->no_memory = true;
	if (r < 0) {
		note_add(part->session, part->process->row.id,
			"who held memory when the last daemon ended could not be read: it counts "
			"anew");
		return;
	}
	if (allocs_of(part) == NULL) {
		holders_fini(&h);
		return;
	}
	part->allocs->held = h;
	part_grew(part, h.n_accounts * sizeof(**h.account) + h.cap_owners * sizeof(*h.owner) +
				h.cap_blocks * sizeof(*h.block));
	if (!held_index(part))
		f->no_memory = true;
}

bool allocs_are_dirty(const struct part *part)
{
	return part->allocs != NULL && part->allocs->dirty;
}

bool allocs_put(const struct part *part, struct batch *b)
{
	struct row_memory *row;

	if (!allocs_are_dirty(part))
		return true;
	row = batch_memory(b);
	if (row == NULL)
		return false;
	*row = (struct row_memory){
		.session = part->session->row.id, .process = part->process->row.id};
	return holders_pack(&part->allocs->held, &row->bytes, &row->n) == 0;
}

void allocs_clean(struct part *part)
{
	if (part->allocs != NULL)
		part->allocs->dirty = false;
}

void allocs_free(struct part *part)
{
	struct allocs *a = part->allocs;

	if (a == NULL)
		return;
	holders_fini(&a->held);
	table_fini(&a->by_address);
	table_fini(&a->by_owner);
	free(a);
	part->allocs = NULL;
}

const struct holders *allocs_held(const struct part *part)
{
	return part->allocs != NULL ? &part->allocs->held : NULL;
}
