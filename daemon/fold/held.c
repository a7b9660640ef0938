/* SPDX-License-Identifier: MIT. held.c: the books of who holds memory. */
#include "held.h"

#include <errno.h>
#include <stdlib.h>

#include "gpu_terms.h"
#include "metric.h"
#include "node.h"
#include "nodehash.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

struct allocs *allocs_of(struct part *part)
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

struct held_account *held_account_of(struct part *part, uint32_t device, uint8_t kind)
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

uint32_t held_account_at(const struct holders *h, const struct held_account *a)
{
	uint32_t i;

	for (i = 0; h->account[i] != a; i++)
		;
	return i;
}

uint32_t held_owner_of(struct part *part, struct held_account *a, uint32_t node)
{
	const uint32_t owner = owner_find(part, held_account_at(&part->allocs->held, a), node);

	return owner == TABLE_NONE ? a->other : owner;
}

/* --- blocks */

static bool is_torchs(const struct holders *h, uint32_t owner)
{
	return h->account[h->owner[owner].account]->kind >= HELD_TORCH;
}

struct block_key {
	const struct holders *held;
	uint64_t address;
	bool torch;
};

static bool block_same(const void *arg, uint32_t at)
{
	const struct block_key *k = arg;
	const struct held_block *b = &k->held->block[at];

	return b->address == k->address && is_torchs(k->held, b->owner) == k->torch;
}

static uint32_t address_hash(uint64_t address, bool torch)
{
	return table_mix(address, torch ? 2 : 1);
}

static uint32_t hash_of(const struct holders *h, const struct held_block *b)
{
	return address_hash(b->address, is_torchs(h, b->owner));
}

uint32_t held_block_find(const struct allocs *a, uint64_t address, bool torch)
{
	const struct block_key k = {&a->held, address, torch};

	return table_find(&a->by_address, address_hash(address, torch), block_same, &k);
}

bool held_block_add(struct part *part, const struct held_block *b)
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
	if (table_add(&a->by_address, hash_of(h, b), h->n_blocks) < 0)
		return false;
	h->block[h->n_blocks++] = *b;
	return true;
}

/* The last one takes its place. */
void held_block_del(struct allocs *a, uint32_t at)
{
	struct holders *h = &a->held;
	const uint32_t last = h->n_blocks - 1;

	table_del(&a->by_address, hash_of(h, &h->block[at]), at);
	if (at != last) {
		table_del(&a->by_address, hash_of(h, &h->block[last]), last);
		h->block[at] = h->block[last];
		/* cannot need memory; refused: it is found no more, and counts as loose */
		if (table_add(&a->by_address, hash_of(h, &h->block[at]), at) < 0)
			h->account[h->owner[h->block[at].owner].account]->loose++;
	}
	h->n_blocks--;
}

bool held_index(struct part *part)
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
		if (table_add(&a->by_address, hash_of(h, &h->block[i]), i) == -ENOMEM)
			return false;
	return true;
}

/* --- what happens */

void held_number(struct part *part, const struct held_deed *d, uint32_t node, const char *name,
	uint64_t value, bool most)
{
	const uint64_t clock = clockmap_clock(&part->process->clock, d->ns);

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

/* It was freed where nobody saw it. */
static void take_unseen(struct allocs *s, uint32_t at, uint64_t ns)
{
	struct holders *h = &s->held;
	struct held_account *was = account_at(h, h->block[at].owner);

	held_move(h, h->block[at].owner, h->block[at].bytes, 1, false);
	was->unseen++;
	held_changed(h, was, ns);
	held_block_del(s, at);
}

void held_give(struct part *part, const struct held_deed *d)
{
	struct allocs *s = part->allocs;
	struct holders *h = &s->held;
	struct held_account *a = held_account_of(part, d->device, d->kind);
	struct held_block b = {.address = d->address, .bytes = d->bytes, .ns = d->ns};
	const uint32_t at = held_block_find(s, d->address, d->kind >= HELD_TORCH);

	if (a == NULL)
		return;
	if (at != TABLE_NONE)
		take_unseen(s, at, d->ns);
	b.owner = held_owner_of(part, a, d->node);
	if (!held_block_add(part, &b)) {
		b.owner = a->other;
		a->loose++;
	}
	held_move(h, b.owner, d->bytes, 1, true);
	a->allocs++;
	a->alloc_bytes = held_plus(a->alloc_bytes, d->bytes);
	held_changed(h, a, d->ns);
	held_number(part, d, d->node, d->names->alloc, d->bytes, false);
	held_number(part, d, d->node, d->names->allocs, 1, false);
	held_number(part, d, h->owner[b.owner].node, d->names->most, h->owner[b.owner].most, true);
}

void held_take(struct part *part, const struct held_deed *d)
{
	struct allocs *s = part->allocs;
	struct holders *h = &s->held;
	const uint32_t at = held_block_find(s, d->address, d->kind >= HELD_TORCH);
	struct held_account *a;
	struct held_owner *o;
	uint64_t bytes = d->bytes;

	a = at != TABLE_NONE ? account_at(h, h->block[at].owner)
			     : held_account_of(part, d->device, d->kind);
	if (a == NULL)
		return;
	if (at != TABLE_NONE) {
		bytes = h->block[at].bytes;
		held_move(h, h->block[at].owner, bytes, 1, false);
		held_block_del(s, at);
	} else if (a->loose > 0) {
		o = &h->owner[a->other];
		bytes = --a->loose == 0 || bytes > o->live ? o->live : bytes;
		held_move(h, a->other, bytes, 1, false);
	} else {
		a->unknown++;
		return;
	}
	a->frees++;
	a->free_bytes = held_plus(a->free_bytes, bytes);
	held_changed(h, a, d->ns);
	held_number(part, d, d->node, d->names->free, bytes, false);
	held_number(part, d, d->node, d->names->frees, 1, false);
}

void held_grow(struct part *part, const struct held_deed *d)
{
	struct allocs *s = part->allocs;
	struct holders *h = &s->held;
	const uint32_t at = held_block_find(s, d->address, d->kind >= HELD_TORCH);
	struct held_account *a = held_account_of(part, d->device, d->kind);
	struct held_owner *o;
	uint32_t owner;
	uint64_t more;

	if (at == TABLE_NONE || a == NULL || d->bytes <= h->block[at].bytes)
		return;
	owner = h->block[at].owner;
	more = d->bytes - h->block[at].bytes;
	h->block[at].bytes = d->bytes;
	held_move(h, owner, more, 0, true);
	a->alloc_bytes = held_plus(a->alloc_bytes, more);
	held_changed(h, a, d->ns);
	o = &h->owner[owner];
	held_number(part, d, o->node, d->names->alloc, more, false);
	held_number(part, d, o->node, d->names->most, o->most, true);
}

void held_begin(struct part *part, const struct held_deed *d, uint64_t blocks)
{
	struct allocs *s = part->allocs;
	struct holders *h = &s->held;
	struct held_account *a = held_account_of(part, d->device, d->kind);
	uint32_t i;

	if (a == NULL)
		return;
	for (i = h->n_blocks; i-- > 0;)
		if (account_at(h, h->block[i].owner) == a) {
			held_move(h, h->block[i].owner, h->block[i].bytes, 1, false);
			held_block_del(s, i);
		}
	held_move(h, a->other, h->owner[a->other].live, h->owner[a->other].blocks, false);
	held_move(h, a->other, d->bytes, blocks, true);
	a->loose = blocks;
	held_changed(h, a, d->ns);
}

void held_resident(struct part *part, uint64_t bytes, uint64_t ns)
{
	struct held_account *a;

	if (allocs_of(part) == NULL ||
		!window_has(&part->window, clockmap_clock(&part->process->clock, ns)))
		return;
	a = held_account_of(part, HELD_HOST, HELD_RESIDENT);
	if (a == NULL || bytes > HELD_BYTES_MAX)
		return;
	part->allocs->dirty |= bytes != a->live;
	held_set(&part->allocs->held, a, bytes, ns);
	held_point_add(a, ns); /* of what stays as it is, too */
}
