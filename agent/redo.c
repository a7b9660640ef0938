/* SPDX-License-Identifier: MIT. redo.c: open sums are made final, and the one that its owner was adding
 * to when it was thrown out, or died, is brought to its end. */
#include "lane.h"
#include "record.h"

/* What its owner was at when it died, or was thrown out, is brought to its end. */
static void sums_redo(const struct lane *s)
{
	struct ring_redo *x = &s->shared->redo;
	const uint64_t pos = atomic_load_explicit(&x->pos, memory_order_relaxed),
		       count = atomic_load_explicit(&x->count, memory_order_relaxed),
		       sum = atomic_load_explicit(&x->sum, memory_order_relaxed),
		       value = atomic_load_explicit(&x->value, memory_order_relaxed),
		       last = atomic_load_explicit(&x->last, memory_order_relaxed);

	if (pos <= s->tail || pos > s->end)
		return;
	rec_redo(s->data + ((pos - 1) & s->mask), count, sum, value, last);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&x->pos, 0, memory_order_relaxed);
}

void lane_sums_close(struct lane *s)
{
	sums_redo(s);
	if (s->end <= s->tail)
		return;
	s->tail = s->end;
	/* release: as in lane_commit() */
	atomic_store_explicit(&s->shared->tail, s->tail, memory_order_release);
}
