/* SPDX-License-Identifier: MIT. kineto_memory.c: what torch's allocator held, as rows [memory], by which
 * TensorBoard's plugin draws its curves. One of PyTorch's profiler is of one block; ours are the points
 * of the stored curve, so Bytes is what lies between two of them, and there is no Addr. */
#include "kineto_memory.h"

#include <inttypes.h>
#include <stdlib.h>

#include "chrome_events.h"
#include "holder_rows.h"
#include "timeline.h"

#define KINETO_CUDA 1 /* c10::DeviceType */

struct level {
	uint64_t begin_ns, bytes;
};

struct memory_walk {
	struct timeline *w;
	struct chrome *c;
	const struct holder_row *row;
	uint32_t device;
	struct level reserved[2 * HELD_POINTS];
	uint32_t n_reserved, at; /* the one that holds now, + 1 */
	uint64_t before;         /* allocated */
};

static int on_reserved(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
	struct memory_walk *a = arg;

	(void)end_ns;
	if (a->n_reserved < sizeof(a->reserved) / sizeof(*a->reserved))
		a->reserved[a->n_reserved++] = (struct level){begin_ns, bytes};
	return 0;
}

/* How it stands from begin_ns to end_ns. */
static int on_allocated(void *arg, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes)
{
	struct memory_walk *a = arg;
	const struct profile_select *s = a->w->l.select;
	const uint64_t base = (uint64_t)a->w->time.base_ns;
	const int64_t by = (int64_t)(bytes - a->before);
	uint64_t ns;

	while (a->at < a->n_reserved && a->reserved[a->at].begin_ns <= end_ns)
		a->at++;
	a->before = bytes;
	if (end_ns < base)
		return 0;
	ns = begin_ns > base ? begin_ns - base : 0;
	if (s->to_ns != 0 && (end_ns - base < s->from_ns || ns > s->to_ns))
		return 0;
	chrome_event(
		a->c, "i", "cpu_instant_event", "[memory]", a->row->pid, (uint64_t)a->row->pid, ns);
	text_fmt(a->c->t,
		",\"s\":\"t\",\"args\":{\"Device Type\":%d,\"Device Id\":%" PRIu32
		",\"Bytes\":%" PRId64 ",\"Total Allocated\":%" PRIu64 ",\"Total Reserved\":%" PRIu64
		"}}",
		KINETO_CUDA, a->device, by, bytes, a->at > 0 ? a->reserved[a->at - 1].bytes : 0);
	return 0;
}

static int of_kind(struct memory_walk *a, enum held_kind kind, holder_value_fn *fn)
{
	const struct holders *h = a->row->h;
	uint32_t i;
	int r = 0;

	for (i = 0; i < h->n_accounts && r == 0; i++)
		if (h->account[i]->kind == kind && h->account[i]->device == a->device)
			r = holder_values(h->account[i], fn, a);
	return r;
}

static int on_holders(void *arg, const struct holder_row *row)
{
	struct memory_walk *a = arg;
	uint32_t i;
	int r = 0;

	a->row = row;
	for (i = 0; i < row->h->n_accounts && r == 0; i++) {
		if (row->h->account[i]->kind != HELD_TORCH)
			continue;
		a->device = row->h->account[i]->device;
		a->n_reserved = a->at = 0;
		a->before = 0;
		r = of_kind(a, HELD_TORCH_RESERVED, on_reserved);
		if (r == 0)
			r = of_kind(a, HELD_TORCH, on_allocated);
		if (r == 0 && a->at < a->n_reserved) { /* it goes on behind the other */
			const uint64_t ns = a->reserved[a->n_reserved - 1].begin_ns;

			r = on_allocated(a, ns, ns, a->before);
		}
		if (r == 0)
			r = timeline_flush(a->w);
	}
	return r;
}

int kineto_memory(struct timeline *w, struct chrome *c)
{
	struct memory_walk *a = calloc(1, sizeof(*a));
	int r;

	if (a == NULL)
		return timeline_no_memory(w);
	a->w = w;
	a->c = c;
	r = holder_each(w->l.db, w->l.session, w->l.select->process, on_holders, a, w->l.e);
	free(a);
	return r;
}
