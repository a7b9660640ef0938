/* SPDX-License-Identifier: MIT. works.c: GPU work in order of time, packed. */
#include "works.h"

#include <stdlib.h>
#include <string.h>

#include "leb.h"
#include "table.h"
#include "trace.h"

#define WORKS_BLOCK 256u   /* in order from one to the next; each begins anew */
#define HELD_MAX    65536u /* more than records are out of order by */
#define HELD_KEPT   24576u /* of those, when the others go on: a chunk comes stream by stream */
#define WORK_BYTES  (1u + 3u * LEB_MAX)
#define LAUNCHED    0x80u /* with the part: it is known when */
_Static_assert(HELD_KEPT > TRACE_EVENTS_MAX, "more than a chunk has");

/* --- one after the other */

static uint8_t *put_work(uint8_t *to, uint64_t last, const struct busy_work *v)
{
	const uint64_t delay = v->begin - v->launched;

	*to++ = (uint8_t)((unsigned)v->part | (v->launched != 0 ? LAUNCHED : 0));
	to = leb_put(to, v->begin - last);
	to = leb_put(to, v->end - v->begin);
	return v->launched == 0 ? to : leb_put(to, delay << 1 ^ -(delay >> 63));
}

static void cursor_at(struct works_cursor *c, const struct works *w, uint32_t block)
{
	*c = (struct works_cursor){.w = w, .block = block};
	if (block < w->n_blocks) {
		c->left = w->block[block].n;
		c->at = w->block[block].bytes;
	}
}

/* The next of all blocks before `end`; false: there is none. */
static bool cursor_next(struct works_cursor *c, uint32_t end, struct busy_work *ret)
{
	bool bad = false; /* what is read was written here */
	const uint8_t *to;
	uint64_t delay;
	uint8_t what;

	if (c->left == 0 && c->block + 1 < end)
		cursor_at(c, c->w, c->block + 1);
	if (c->left == 0)
		return false;
	c->left--;
	to = c->at + WORK_BYTES;
	what = *c->at++;
	*ret = (struct busy_work){.part = (enum gpu_part)(what & ~LAUNCHED)};
	ret->begin = c->last += leb_get(&c->at, to, &bad);
	ret->end = ret->begin + leb_get(&c->at, to, &bad);
	if ((what & LAUNCHED) == 0)
		return true;
	delay = leb_get(&c->at, to, &bad);
	ret->launched = ret->begin - (delay >> 1 ^ -(delay & 1));
	return true;
}

void works_first(struct works_cursor *c, const struct works *w)
{
	cursor_at(c, w, 0);
}

bool works_next(struct works_cursor *c, struct busy_work *ret)
{
	return cursor_next(c, c->w->n_blocks, ret);
}

/* --- in order */

/* Behind the last block. What is handed over is in order, and so is it with that block, or a run begins. */
static bool put_block(struct works *w, const struct busy_work *v, uint32_t n)
{
	uint8_t bytes[WORKS_BLOCK * WORK_BYTES], *to = bytes;
	struct works_block *b;
	uint64_t last = 0;
	uint32_t i;

	if (!ROOM_FOR(w->block, w->cap_blocks, w->n_blocks))
		return false;
	b = &w->block[w->n_blocks];
	*b = (struct works_block){.begin = v->begin, .reach = w->reach, .n = n};
	for (i = 0; i < n; i++) {
		to = put_work(to, last, &v[i]);
		last = v[i].begin;
		w->reach = v[i].end > w->reach ? v[i].end : w->reach;
	}
	w->last = last;
	b->n_bytes = (uint32_t)(to - bytes);
	b->bytes = malloc(b->n_bytes);
	if (b->bytes == NULL)
		return false;
	memcpy(b->bytes, bytes, b->n_bytes);
	w->n_blocks++;
	return true;
}

/* The first n of what is held, in whole blocks but at the end. */
static bool put_held(struct works *w, uint32_t n)
{
	uint32_t i, of;

	if (n == 0)
		return true;
	busy_order(w->held, w->n_held);
	if (w->n_runs == 0 || w->held[0].begin < w->last) {
		if (!ROOM_FOR(w->run, w->cap_runs, w->n_runs))
			return false;
		w->run[w->n_runs++] = w->n_blocks;
		w->reach = 0;
	}
	for (i = 0; i < n; i += of) {
		of = n - i < WORKS_BLOCK ? n - i : WORKS_BLOCK;
		if (!put_block(w, w->held + i, of))
			return false;
	}
	w->n_held -= n;
	memmove(w->held, w->held + n, w->n_held * sizeof(*w->held));
	return true;
}

bool works_add(struct works *w, const struct busy_work *v)
{
	if (w->n_held == HELD_MAX && !put_held(w, HELD_MAX - HELD_KEPT))
		return false;
	if (!ROOM_FOR(w->held, w->cap_held, w->n_held))
		return false;
	w->held[w->n_held++] = *v;
	w->n++;
	return true;
}

/* --- runs into one */

struct merging {
	struct works from;
	struct run {
		struct works_cursor at;
		struct busy_work v;
		uint32_t end; /* its last block, and one */
		bool more;
	} * run;
};

static void free_block(struct works_block *b)
{
	free(b->bytes);
	b->bytes = NULL;
}

/* What was read is given back at once, so that all of it is there no more than once. */
static void run_next(struct merging *m, struct run *r)
{
	const uint32_t block = r->at.block;

	r->more = cursor_next(&r->at, r->end, &r->v);
	if (!r->more || r->at.block != block)
		free_block(&m->from.block[block]);
}

static struct run *first_run(const struct merging *m)
{
	struct run *first = NULL, *r;

	for (r = m->run; r < m->run + m->from.n_runs; r++)
		if (r->more && (first == NULL || busy_is_before(&r->v, &first->v)))
			first = r;
	return first;
}

static bool merge_runs(struct merging *m, struct works *to)
{
	struct busy_work v[WORKS_BLOCK];
	uint32_t n = 0;
	struct run *r;

	while ((r = first_run(m)) != NULL) {
		v[n++] = r->v;
		run_next(m, r);
		if (n == WORKS_BLOCK && !put_block(to, v, n))
			return false;
		n = n == WORKS_BLOCK ? 0 : n;
	}
	return n == 0 || put_block(to, v, n);
}

static bool merge(struct works *w)
{
	struct merging m = {.from = *w, .run = calloc(w->n_runs, sizeof(*m.run))};
	struct works to = {.n = w->n};
	bool good = m.run != NULL;
	uint32_t i;

	for (i = 0; i < w->n_runs && good; i++) {
		m.run[i].end = i + 1 < w->n_runs ? w->run[i + 1] : w->n_blocks;
		cursor_at(&m.run[i].at, &m.from, w->run[i]);
		run_next(&m, &m.run[i]);
	}
	good = good && merge_runs(&m, &to);
	works_fini(&m.from);
	free(m.run);
	*w = to;
	return good;
}

bool works_settle(struct works *w)
{
	const bool good = put_held(w, w->n_held);

	free(w->held);
	w->held = NULL;
	w->n_held = w->cap_held = 0;
	return good && (w->n_runs < 2 || merge(w));
}

/* --- questions */

/* The last block of which the first work is behind nothing that reaches beyond `ns`. */
static uint32_t block_reached(const struct works *w, uint64_t ns)
{
	uint32_t low = 0, high = w->n_blocks, middle;

	while (low + 1 < high) {
		middle = low + (high - low) / 2;
		if (w->block[middle].reach > ns)
			high = middle;
		else
			low = middle;
	}
	return low;
}

void works_window(const struct works *w, const struct span *v, uint64_t part[PART_MAX])
{
	const uint32_t block = block_reached(w, v->begin);
	struct busy_window in;
	struct busy_work work;
	struct works_cursor c;
	uint64_t reach = block < w->n_blocks ? w->block[block].reach : 0;
	bool open = false, more = true;

	cursor_at(&c, w, block);
	while (more && cursor_next(&c, w->n_blocks, &work)) {
		if (!open && work.end <= v->begin) {
			reach = work.end > reach ? work.end : reach;
			continue;
		}
		if (!open)
			busy_window_open(&in, v, reach);
		open = true;
		more = busy_window_add(&in, &work);
	}
	if (!open)
		busy_window_open(&in, v, reach);
	busy_window_close(&in, part);
}

uint32_t works_before(const struct works *w, uint64_t ns)
{
	uint32_t low = 0, high = w->n_blocks, middle, n;
	struct busy_work work;
	struct works_cursor c;

	while (low + 1 < high) {
		middle = low + (high - low) / 2;
		if (w->block[middle].begin >= ns)
			high = middle;
		else
			low = middle;
	}
	n = low * WORKS_BLOCK; /* only the last has fewer */
	cursor_at(&c, w, low);
	while (cursor_next(&c, w->n_blocks, &work) && work.begin < ns)
		n++;
	return n;
}

uint64_t works_begin(const struct works *w)
{
	return w->n_blocks > 0 ? w->block[0].begin : UINT64_MAX;
}

void works_clear(struct works *w)
{
	uint32_t i;

	for (i = 0; i < w->n_blocks; i++)
		free_block(&w->block[i]);
	w->n_blocks = w->n = w->n_held = w->n_runs = 0;
	w->last = w->reach = 0;
}

void works_fini(struct works *w)
{
	works_clear(w);
	free(w->block);
	free(w->held);
	free(w->run);
	*w = (struct works){.n = 0};
}
