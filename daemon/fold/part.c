/* SPDX-License-Identifier: MIT. part.c: what a part takes in memory, and whether the store has
 * it. */
#include "part.h"

#include "allocs.h"
#include "chunks.h"
#include "process.h"
#include "session.h"
#include "step_series.h"

void part_grew(struct part *part, uint64_t bytes)
{
	part->tree.bytes += bytes;
	part->process->tree_bytes += bytes;
}

bool part_is_clean(const struct part *part)
{
	uint32_t i;

	if (!part->stored || part->tree.dirty_cells.n > 0 || part->tree.dirty_metrics.n > 0 ||
		part->tree.dirty_configs.n > 0 || part->loss_dirty != 0 || part->counted_dirty != 0)
		return false;
	if (part->timeline != NULL && (part->timeline->dirty || part->timeline->n_sealed > 0))
		return false;
	if (allocs_are_dirty(part) || allocs_wait(part))
		return false;
	if (part->steps != NULL && part->steps->dirty)
		return false;
	for (i = 0; i < part->tree.n_busy; i++)
		if (part->tree.busy[i]->dirty)
			return false;
	return true;
}
