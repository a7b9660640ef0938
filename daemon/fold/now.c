/* SPDX-License-Identifier: MIT. now.c: what each thread of a process is in, as its lanes said
 * last. */
#include "now.h"

#include <stdlib.h>

#include "engine.h"
#include "ids.h"
#include "journal.h"
#include "loss.h"
#include "part.h"
#include "process.h"
#include "record.h"
#include "ring.h"
#include "state.h"
#include "tree.h"

#define SEEN_AT_ONCE 8192u /* cells and nodes that one entry looks at */

static int now_by_lane(const void *a, const void *b)
{
	const struct j_now *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->depth < y->depth ? -1 : x->depth > y->depth;
}

void process_now_set(struct process *p, struct j_now *take, uint32_t n)
{
	struct lane *l;
	uint32_t i;

	MUST_PROCESS(p);
	MUST(n <= NOW_SCOPES_MAX && (take != NULL || n == 0));
	if (n > 1)
		qsort(take, n, sizeof(*take), now_by_lane);
	free(p->now);
	p->now = take;
	p->n_now = n;
	p->now_seen = n;
	for (i = 0; i < p->cap_lanes; i++)
		p->lane[i].now_n = 0;
	for (i = 0; i < n; i++) {
		MUST(take[i].lane < p->cap_lanes);
		l = &p->lane[take[i].lane];
		l->now_first = l->now_n == 0 ? i : l->now_first;
		l->now_n += l->now_n < NOW_FRAMES;
	}
	p->dirty = true;
}

/* One with all its nodes may cost as much as all that one entry should. */
void process_now_see(struct process *p)
{
	uint32_t left = SEEN_AT_ONCE, nodes, path, k;
	uint64_t clock;

	MUST_PROCESS(p);
	if (p->now_seen == p->n_now)
		return;
	clock = clockmap_clock(&p->clock, p->fold->now_ns);
	for (; p->now_seen < p->n_now && left > 0; p->now_seen++) {
		path = p->now[p->now_seen].path;
		nodes = p->n_nodes;
		if (p->now[p->now_seen].begin == FRAME_INHERITED)
			continue;
		/* Left meanwhile; or the cells would be (other), which says nothing. */
		for (k = 0; k < p->n_parts && path < p->n_paths && process_has_room(p); k++)
			tree_seen_open(p->part[k], path, clock);
		nodes = 1 + p->n_parts + p->n_nodes - nodes;
		left -= nodes < left ? nodes : left;
	}
}

/* Where its frames are: of a lane of sums, those of its thread's other lane. */
static struct lane *frames_of(struct process *p, uint32_t lane)
{
	struct lane *l = &p->lane[lane], *x;
	uint32_t i;

	for (i = 0; i < p->cap_lanes && l->sums; i++) {
		x = &p->lane[i];
		if (x->now_n != 0 && p->now[x->now_first].tid == l->tid)
			return x;
	}
	return l;
}

/* A scope's record is written before its thread says that it has left: in between both are to be
 * seen, for ever if it is killed there. Only of the innermost one. */
static void forget_counted(struct process *p)
{
	const struct lane *l, *of;
	struct j_now *frame;
	uint32_t i;

	for (i = 0; i < p->cap_lanes; i++) {
		l = &p->lane[i];
		of = l->left_path != PATH_ROOT ? frames_of(p, i) : NULL;
		if (of == NULL || of->now_n == 0)
			continue;
		frame = &p->now[of->now_first + of->now_n - 1];
		if (frame->path == l->left_path && frame->begin == l->left_begin)
			frame->path = UINT32_MAX;
	}
}

void process_now(struct process *p, const struct j_now *now, uint32_t n)
{
	struct j_now *copy = NULL;
	uint32_t i, kept = 0;

	n = n > NOW_SCOPES_MAX ? NOW_SCOPES_MAX : n;
	if (n > 0 && (copy = calloc(n, sizeof(*copy))) == NULL) {
		p->fold->no_memory = true;
		return;
	}
	for (i = 0; i < n; i++) {
		copy[kept] = now[i];
		copy[kept].path = table_path(p, now[i].path);
		if (now[i].lane >= p->row.n_lanes || copy[kept].path == TABLE_NONE)
			continue;
		if (!process_lanes(p, now[i].lane + 1)) {
			free(copy);
			return;
		}
		kept++;
	}
	if (kept < n)
		loss_bad(p, n - kept);
	process_now_set(p, copy, kept);
	forget_counted(p);
	p->now_seen = 0;
}

void process_now_moved(struct process *p, uint32_t lane, uint32_t tid)
{
	struct lane *to = &p->lane[lane], *from;
	uint32_t i;

	for (i = 0; i < p->cap_lanes && to->now_n == 0; i++) {
		from = &p->lane[i];
		if (from->now_n == 0 || p->now[from->now_first].tid != tid)
			continue;
		to->now_first = from->now_first;
		to->now_n = from->now_n;
		from->now_n = 0;
	}
}

void process_now_left(struct process *p, uint32_t lane, uint32_t path, uint64_t begin)
{
	const struct lane *l = frames_of(p, lane);
	struct j_now *frame;
	uint32_t i;

	for (i = l->now_n; i-- > 0;) { /* the innermost is likely */
		frame = &p->now[l->now_first + i];
		if (frame->path == path && (frame->begin == begin || frame->begin == 0)) {
			frame->path = UINT32_MAX;
			return;
		}
	}
}

void process_now_forget(struct process *p)
{
	free(p->now);
	p->now = NULL;
	p->n_now = p->now_seen = 0;
}
