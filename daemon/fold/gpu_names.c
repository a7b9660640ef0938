/* SPDX-License-Identifier: MIT. gpu_names.c: names of a process's GPUs, kept until their devices' rows are
 * written, and again whenever these are. */
#include "gpu_names.h"

#include <string.h>

#include "arena.h"
#include "fold.h"
#include "loss.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "state.h"
#include "tables.h"
#include "words.h"

/* It is made; NULL: there are too many, or no memory. */
static struct gpu_names *names_of(struct process *p, uint32_t ordinal)
{
	uint32_t i;

	for (i = 0; i < p->n_gpu_names; i++)
		if (p->gpu_names[i]->ordinal == ordinal)
			return p->gpu_names[i];
	if (i == RING_DEVICES_MAX)
		return NULL;
	if (p->gpu_names == NULL)
		p->gpu_names = arena_take(p->arena, RING_DEVICES_MAX * sizeof(*p->gpu_names));
	if (p->gpu_names != NULL)
		p->gpu_names[i] = arena_take(p->arena, sizeof(**p->gpu_names));
	if (p->gpu_names == NULL || p->gpu_names[i] == NULL) {
		p->fold->no_memory = true;
		return NULL;
	}
	p->gpu_names[i]->ordinal = ordinal;
	p->n_gpu_names++;
	return p->gpu_names[i];
}

void gpu_names_put(struct process *p, uint32_t ordinal, uint64_t object, const char *name)
{
	struct gpu_names *g = names_of(p, ordinal);
	char plain[GPU_LABEL_BYTES];

	words_plain(plain, sizeof(plain), name, strlen(name));
	if (g != NULL && object == NAMED_GPU)
		memcpy(g->label, plain, sizeof(g->label));
	else if (g == NULL || !gpu_object_label_put(g->streams, object, plain))
		loss_now(p, LOST_NVTX, 1);
	p->devices_dirty = p->dirty = true;
}

void gpu_names_fill(const struct process *p, struct row_device *r)
{
	uint32_t i;

	for (i = 0; i < p->n_gpu_names; i++) {
		if (p->gpu_names[i]->ordinal != r->ordinal)
			continue;
		memcpy(r->label, p->gpu_names[i]->label, sizeof(r->label));
		memcpy(r->streams, p->gpu_names[i]->streams, sizeof(r->streams));
	}
}

void gpu_names_restore(struct process *p, const struct row_device *r)
{
	struct gpu_names *g =
		r->label[0] != '\0' || r->streams[0] != '\0' ? names_of(p, r->ordinal) : NULL;

	if (g == NULL)
		return;
	memcpy(g->label, r->label, sizeof(g->label));
	memcpy(g->streams, r->streams, sizeof(g->streams));
}
