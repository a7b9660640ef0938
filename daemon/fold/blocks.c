/* SPDX-License-Identifier: MIT. blocks.c: who holds torch's memory, event by event. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

#include "allocs.h"
#include "gpu_terms.h"
#include "held.h"
#include "loss.h"
#include "node.h"
#include "part.h"
#include "process.h"
#include "session.h"
#include "state.h"

/* Lanes are drained every few ms while there is something in them. */
#define LATE_NS  200000000u /* what is older than the newest by so much is followed by none older */
#define BATCH_NS 50000000u  /* so much is counted together */

static const struct held_names names = {"torch_alloc (bytes)", "torch_allocs", "torch_free (bytes)",
	"torch_frees", "torch_held_most (bytes)"};

static void absolute(
	struct part *part, const struct held_block_event *v, enum held_kind kind, uint64_t bytes)
{
	struct held_account *a = held_account_of(part, v->device, (uint8_t)kind);

	if (a != NULL)
		held_set(&part->allocs->held, a, bytes, v->ns);
}

static void segment(struct part *part, const struct held_block_event *v, const struct held_deed *d)
{
	struct held_account *a = held_account_of(part, v->device, HELD_TORCH_RESERVED);

	if (a == NULL)
		return;
	if (v->op == BLOCK_SEGMENT) {
		a->allocs++;
		a->alloc_bytes = held_plus(a->alloc_bytes, v->bytes);
		held_number(part, d, d->node, "torch_segment (bytes)", v->bytes, false);
		held_number(part, d, d->node, "torch_segments", 1, false);
		return;
	}
	a->frees++;
	a->free_bytes = held_plus(a->free_bytes, v->bytes);
}

static void count(struct part *part, const struct held_block_event *v)
{
	struct process *p = part->process;
	const struct held_deed d = {.ns = v->ns,
		.address = v->address,
		.bytes = v->bytes,
		.node = node_in_part(part, v->path < p->n_paths ? v->path : PATH_OTHER),
		.device = v->device,
		.kind = HELD_TORCH,
		.names = &names};

	if (v->op == BLOCK_ALLOC)
		held_give(part, &d);
	else if (v->op == BLOCK_FREE)
		held_take(part, &d);
	else if (v->op == BLOCK_SIZE)
		held_grow(part, &d);
	else if (v->op == BLOCK_BEFORE)
		held_begin(part, &d, v->address);
	else if (v->op == BLOCK_OOM)
		held_number(part, &d, d.node, "torch_ooms", 1, false);
	else if (v->op != BLOCK_STATE)
		segment(part, v, &d);
	absolute(part, v, HELD_TORCH_RESERVED, v->reserved);
	absolute(part, v, HELD_TORCH_ACTIVE, v->active);
	absolute(part, v, HELD_TORCH_SPLIT, v->split);
	absolute(part, v, HELD_TORCH_REQUESTED, v->requested);
	part->allocs->held.events++;
}

static int by_time(const void *x, const void *y)
{
	const struct held_block_event *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void blocks_settle(struct part *part, uint64_t before_ns)
{
	struct holders *h = part->allocs != NULL ? &part->allocs->held : NULL;
	uint32_t i;

	if (h == NULL || h->n_torch == 0)
		return;
	part->allocs->dirty = true;
	for (i = 0; i < h->n_torch; i++)
		h->torch[i].seq = i;
	qsort(h->torch, h->n_torch, sizeof(*h->torch), by_time);
	for (i = 0; i < h->n_torch && h->torch[i].ns < before_ns; i++)
		count(part, &h->torch[i]);
	if (i > 0)
		memmove(h->torch, h->torch + i, (h->n_torch - i) * sizeof(*h->torch));
	h->n_torch -= i;
}

/* Room for one more; false: there is none. */
static bool make_room(struct part *part)
{
	struct holders *h = &part->allocs->held;
	const uint32_t cap = h->cap_torch;

	if (h->n_torch >= HELD_WAITING ||
		(h->n_torch > 0 && h->n_torch == cap && !process_has_room(part->process)))
		blocks_settle(part, h->torch[h->n_torch / 2].ns);
	if (h->n_torch >= HELD_WAITING)
		blocks_settle(part, UINT64_MAX);
	if (!ROOM_FOR(h->torch, h->cap_torch, h->n_torch)) {
		part->process->fold->no_memory = true;
		return false;
	}
	part_grew(part, (h->cap_torch - cap) * sizeof(*h->torch));
	return true;
}

void blocks_event(struct part *part, const struct rec_block *r, uint64_t ns)
{
	struct allocs *a = allocs_of(part);
	struct holders *h;

	if (a == NULL) {
		loss_part(part, LOST_NODES, 1);
		return;
	}
	if (!window_has(&part->window, r->clock) || !make_room(part))
		return;
	h = &a->held;
	h->torch[h->n_torch++] = (struct held_block_event){.ns = ns,
		.address = r->address,
		.bytes = r->bytes,
		.reserved = r->reserved,
		.active = r->active,
		.split = r->split,
		.requested = r->requested,
		.path = REC_ID(r->hdr),
		.device = r->device,
		.op = REC_FLAGS(r->hdr)};
	a->dirty = true;
}

void blocks_reach(struct part *part, uint64_t ns)
{
	struct allocs *a = part->allocs;

	if (a != NULL && a->held.n_torch > 0 && ns > a->held.torch[0].ns + LATE_NS + BATCH_NS)
		blocks_settle(part, ns - LATE_NS);
}
