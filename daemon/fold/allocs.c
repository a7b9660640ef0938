/* SPDX-License-Identifier: MIT. allocs.c: who holds memory, event by event. */
#include "allocs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "batch.h"
#include "flight.h"
#include "holders.h"
#include "loss.h"
#include "metric.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

#define BYTES_MAX (UINT64_MAX / 4) /* sums stay below: holders.h */
#define CALL_NS   1000000000u /* calls stay for so long: the two clocks agree to some us only */

struct allocs {
	struct holders held;
	struct table by_address, by_owner;
	uint64_t known_ns; /* all of before has counted */
	bool dirty;
};

static struct allocs *allocs_of(struct part *part)
{
	if (part->allocs != NULL || !process_has_room(part->process))
		return part->allocs;
	part->allocs = calloc(1, sizeof(*part->allocs));
	if (part->allocs == NULL)
		part->process->fold->no_memory = true;
	else
		part_grew(part, sizeof(*part->allocs));
	return part->allocs;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < BYTES_MAX ? a + b : BYTES_MAX;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* --- owners */

struct owner_key {
	const struct holders *held;
	uint32_t account, node;
};

static bool owner_same(const void *arg, uint32_t at)
{
	const struct owner_key *k = arg;

	return k->held->owner[at].account == k->account && k->held->owner[at].node == k->node;
}

/* TABLE_NONE: there is no room for it. */
static uint32_t owner_find(struct part *part, uint32_t account, uint32_t node)
{
	struct allocs *a = part->allocs;
	struct holders *h = &a->held;
	const struct owner_key k = {h, account, node};
	const uint32_t hash = table_mix((uint64_t)account << 32 | node, 0);
	uint32_t at = table_find(&a->by_owner, hash, owner_same, &k), cap = h->cap_owners;

	if (at != TABLE_NONE || h->n_owners >= HELD_OWNERS ||
		(node != HELD_NOBODY && h->n_owners >= HELD_OWNERS - HELD_ACCOUNTS) ||
		!process_has_room(part->process))
		return at;
	if (!ROOM_FOR(h->owner, h->cap_owners, h->n_owners)) {
		part->process->fold->no_memory = true;
		return TABLE_NONE;
	}
	part_grew(part, (h->cap_owners - cap) * sizeof(*h->owner));
	if (table_add(&a->by_owner, hash, h->n_owners) < 0)
		return TABLE_NONE;
	h->owner[h->n_owners] = (struct held_owner){
		.account = account, .node = node, .version = h->account[account]->version};
	if (node != HELD_NOBODY)
		hash_copy(h->owner[h->n_owners].hash, part->process->node[node].hash);
	return h->n_owners++;
}

/* Of that device and kind. NULL: there is no room for it, counted. */
static struct held_account *account_of(struct part *part, uint32_t device, uint8_t kind)
{
	struct holders *h = &part->allocs->held;
	struct held_account *a = NULL;
	uint32_t i;

	for (i = 0; i < h->n_accounts; i++)
		if (h->account[i]->device == device && h->account[i]->kind == kind)
			return h->account[i];
	if (i < HELD_ACCOUNTS && process_has_room(part->process))
		a = calloc(1, sizeof(*a));
	if (a != NULL) {
		part_grew(part, sizeof(*a));
		*a = (struct held_account){.device = device, .kind = kind};
		h->account[h->n_accounts++] = a;
		a->other = owner_find(part, i, HELD_NOBODY);
		if (a->other != TABLE_NONE)
			return a;
		h->n_accounts--;
		free(a);
	}
	h->refused++;
	return NULL;
}

/* The owner holds so much more, or less; before that it is kept what it held at the peak. */
static void hold(struct holders *h, uint32_t owner, uint64_t bytes, bool more)
{
	struct held_owner *o = &h->owner[owner];
	struct held_account *a = h->account[o->account];

	if (o->version != a->version) {
		o->peak = o->live;
		o->peak_blocks = o->blocks;
		o->version = a->version;
	}
	o->live = more ? plus(o->live, bytes) : minus(o->live, bytes);
	o->blocks = more ? plus(o->blocks, 1) : minus(o->blocks, 1);
	o->most = o->live > o->most ? o->live : o->most;
	a->live = more ? plus(a->live, bytes) : minus(a->live, bytes);
	a->blocks = more ? plus(a->blocks, 1) : minus(a->blocks, 1);
}

static void changed(struct held_account *a, uint64_t ns)
{
	if (a->live > a->peak) {
		a->peak = a->live;
		a->peak_ns = ns;
		a->version++;
	}
	held_point_add(a, ns);
}

/* --- blocks */

struct block_key {
	const struct holders *held;
	uint64_t address;
};

static bool block_same(const void *arg, uint32_t at)
{
	const struct block_key *k = arg;

	return k->held->block[at].address == k->address;
}

static uint32_t address_hash(uint64_t address)
{
	return table_mix(address, 1);
}

static uint32_t block_find(const struct allocs *a, uint64_t address)
{
	const struct block_key k = {&a->held, address};

	return table_find(&a->by_address, address_hash(address), block_same, &k);
}

/* False: there is no room for it. */
static bool block_add(struct part *part, const struct held_block *b)
{
	struct allocs *a = part->allocs;
	struct holders *h = &a->held;
	const uint32_t cap = h->cap_blocks;

	if (h->n_blocks >= HELD_BLOCKS || !process_has_room(part->process))
		return false;
	if (!ROOM_FOR(h->block, h->cap_blocks, h->n_blocks)) {
		part->process->fold->no_memory = true;
		return false;
	}
	part_grew(part, (h->cap_blocks - cap) * sizeof(*b));
	if (table_add(&a->by_address, address_hash(b->address), h->n_blocks) < 0)
		return false;
	h->block[h->n_blocks++] = *b;
	return true;
}

/* The last one takes its place. */
static void block_del(struct allocs *a, uint32_t at)
{
	struct holders *h = &a->held;
	const uint32_t last = h->n_blocks - 1;

	table_del(&a->by_address, address_hash(h->block[at].address), at);
	if (at != last) {
		table_del(&a->by_address, address_hash(h->block[last].address), last);
		h->block[at] = h->block[last];
		/* cannot need memory; refused: it is found no more, and counts as loose */
		if (table_add(&a->by_address, address_hash(h->block[at].address), at) < 0)
			h->account[h->owner[h->block[at].owner].account]->loose++;
	}
	h->n_blocks--;
}

/* --- what happens */

static void number(struct part *part, uint32_t node, const struct held_event *v, const char *name,
	uint64_t value, bool most)
{
	const uint64_t clock = clockmap_clock(&part->process->clock, v->ns);

	if (node != HELD_NOBODY)
		tree_number(part, &(struct tree_number){.node = node,
					  .segment = window_segment(&part->window, clock),
					  .name = name,
					  .value = value,
					  .most = most});
}

static struct held_account *account_at(struct holders *h, uint32_t owner)
{
	return h->account[h->owner[owner].account];
}

static void give(struct part *part, const struct held_event *v, uint32_t node)
{
	struct allocs *s = part->allocs;
	struct holders *h = &s->held;
	struct held_account *a = account_of(part, v->device, v->kind), *was;
	struct held_block b = {.address = v->address, .bytes = v->bytes, .ns = v->ns};
	uint32_t at = block_find(s, v->address), i;

	if (a == NULL)
		return;
	if (at != TABLE_NONE) { /* it was freed where nobody saw it */
		was = account_at(h, h->block[at].owner);
		hold(h, h->block[at].owner, h->block[at].bytes, false);
		was->unseen++;
		changed(was, v->ns);
		block_del(s, at);
	}
	for (i = 0; h->account[i] != a; i++)
		;
	b.owner = owner_find(part, i, node);
	b.owner = b.owner == TABLE_NONE ? a->other : b.owner;
	if (!block_add(part, &b)) {
		b.owner = a->other;
		a->loose++;
	}
	hold(h, b.owner, v->bytes, true);
	a->allocs++;
	a->alloc_bytes = plus(a->alloc_bytes, v->bytes);
	changed(a, v->ns);
	number(part, node, v, "alloc (bytes)", v->bytes, false);
	number(part, node, v, "allocs", 1, false);
	number(part, h->owner[b.owner].node, v, "held_most (bytes)", h->owner[b.owner].most, true);
}

static void take(struct part *part, const struct held_event *v, uint32_t node)
{
	struct allocs *s = part->allocs;
	struct holders *h = &s->held;
	const uint32_t at = block_find(s, v->address);
	struct held_account *a;
	struct held_owner *o;
	uint64_t bytes = v->bytes;

	a = at != TABLE_NONE ? account_at(h, h->block[at].owner)
			     : account_of(part, v->device, v->kind);
	if (a == NULL)
		return;
	if (at != TABLE_NONE) {
		bytes = h->block[at].bytes;
		hold(h, h->block[at].owner, bytes, false);
		block_del(s, at);
	} else if (a->loose > 0) {
		o = &h->owner[a->other];
		bytes = --a->loose == 0 || bytes > o->live ? o->live : bytes;
		hold(h, a->other, bytes, false);
	} else {
		a->unknown++;
		return;
	}
	a->frees++;
	a->free_bytes = plus(a->free_bytes, bytes);
	changed(a, v->ns);
	number(part, node, v, "free (bytes)", bytes, false);
	number(part, node, v, "frees", 1, false);
}

static void count_change(struct held_account *a, uint64_t now, uint64_t was)
{
	if (now > was) {
		a->allocs++;
		a->alloc_bytes = plus(a->alloc_bytes, now - was);
	} else if (now < was) {
		a->frees++;
		a->free_bytes = plus(a->free_bytes, was - now);
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
	a = account_of(part, v->device, HELD_RESERVED);
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
		hold(h, a->other, p->reserved > was ? p->reserved - was : was - p->reserved,
			p->reserved > was);
	count_change(a, p->reserved, was);
	if (v->op == MEMORY_POOL_GONE)
		*p = h->pool[--h->n_pools];
	h->owner[a->other].blocks = a->blocks = h->n_pools;
	changed(a, v->ns);
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
	if (v->op == MEMORY_ALLOC)
		give(part, v, node_of_event(part, v));
	else if (v->op == MEMORY_FREE)
		take(part, v, node_of_event(part, v));
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

static bool index_all(struct part *part)
{
	struct allocs *a = part->allocs;
	struct holders *h = &a->held;
	uint32_t i;

	for (i = 0; i < h->n_owners; i++) {
		struct held_owner *o = &h->owner[i];

		o->node = i == h->account[o->account]->other ? HELD_NOBODY
							     : node_by_hash(part->process, o->hash);
		if (o->node == NODE_NONE) /* its place is gone */
			o->node = node_other(part->process, NODE_ROOT_AT);
		if (table_add(&a->by_owner, table_mix((uint64_t)o->account << 32 | o->node, 0),
			    i) == -ENOMEM)
			return false;
	}
	for (i = 0; i < h->n_blocks; i++)
		if (table_add(&a->by_address, address_hash(h->block[i].address), i) == -ENOMEM)
			return false;
	return true;
}

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
	if (!index_all(part))
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
