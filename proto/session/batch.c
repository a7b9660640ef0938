/* SPDX-License-Identifier: MIT. batch.c: rows on their way. Owns what tables.h calls owned. No
 * thread of its own, no I/O. */
#include "batch.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "hist.h"
#include "must.h"

#define SHARED_MAGIC 0x42415443u

struct shared {
	struct batch batch;
	uint32_t magic;
	atomic_uint owners;
};

/* Makes room for one more row. NULL: out of memory, and the old rows still stand. */
static void *rows_grow(void *row, uint32_t n, uint32_t *cap, size_t row_bytes)
{
	uint32_t want;
	void *grown;

	if (n < *cap)
		return row;
	if (*cap > UINT32_MAX / 2)
		return NULL;
	want = *cap == 0 ? 8 : *cap * 2;
	grown = reallocarray(row, want, row_bytes);
	if (grown != NULL)
		*cap = want;
	return grown;
}

#define X(t, key, options)                                                            \
	struct row_##t *batch_##t(struct batch *b)                                    \
	{                                                                             \
		struct row_##t *row;                                                  \
                                                                                      \
		MUST(!b->shared);                                                     \
		row = rows_grow(b->t.row, b->t.n, &b->t.cap, sizeof(struct row_##t)); \
		if (row == NULL)                                                      \
			return NULL;                                                  \
		b->t.row = row;                                                       \
		row += b->t.n++;                                                      \
		memset(row, 0, sizeof(*row));                                         \
		return row;                                                           \
	}
TABLES(X)
#undef X

bool batch_hist(struct batch *b, struct row_cell *c, const struct hist_counts *h)
{
	const size_t most = HIST_PACKED_MAX(h->n);
	uint8_t *grown;
	uint32_t cap;

	MUST(!b->shared);
	if (b->cap_buckets - b->n_buckets < most) {
		if (b->cap_buckets > UINT32_MAX / 2 - most)
			return false;
		cap = (uint32_t)(b->cap_buckets * 2 + most);
		grown = realloc(b->buckets, cap);
		if (grown == NULL)
			return false;
		b->buckets = grown;
		b->cap_buckets = cap;
	}
	c->buckets = b->n_buckets;
	c->buckets_n = (uint32_t)hist_pack(h, b->buckets + b->n_buckets);
	b->n_buckets += c->buckets_n;
	return true;
}

void batch_durations(const struct batch *b, const struct row_cell *c, struct hist_counts *ret)
{
	const uint8_t *bytes = c->buckets_n == 0 ? NULL : b->buckets + c->buckets;

	(void)hist_unpack(bytes, c->buckets_n, ret);
}

uint64_t batch_bytes(const struct batch *b)
{
	uint64_t bytes = b->cap_buckets;
	uint32_t i;

#define X(t, key, options) bytes += b->t.cap * sizeof(struct row_##t);
	TABLES(X)
#undef X
	for (i = 0; i < b->trace.n; i++)
		bytes += b->trace.row[i].n;
	for (i = 0; i < b->reading.n; i++)
		bytes += b->reading.row[i].n;
	for (i = 0; i < b->step.n; i++)
		bytes += b->step.row[i].n;
	for (i = 0; i < b->memory.n; i++)
		bytes += b->memory.row[i].n;
	for (i = 0; i < b->pending.n; i++)
		bytes += b->pending.row[i].n;
	return bytes;
}

bool batch_is_upkeep(const struct batch *b)
{
	const uint32_t upkeep =
		b->process.n + b->device.n + b->node.n + b->lane.n + b->pending.n + b->anchor.n;
	uint32_t rows = b->n_deleted;

#define X(t, key, options) rows += b->t.n;
	TABLES(X)
#undef X
	return rows == upkeep;
}

bool batch_hold(struct batch *b, struct arena *a)
{
	struct arena **held;

	if (b->n_held > 0 && b->held[b->n_held - 1] == a)
		return true;
	MUST(!b->shared);
	held = rows_grow(b->held, b->n_held, &b->cap_held, sizeof(*held));
	if (held == NULL)
		return false;
	b->held = held;
	b->held[b->n_held++] = arena_hold(a);
	return true;
}

const char *batch_text(struct batch *b, const char *s)
{
	struct arena *own = NULL;

	if (b->n_held == 0) {
		own = arena_new();
		if (own == NULL || !batch_hold(b, own)) {
			arena_free(own);
			return NULL;
		}
		arena_free(own); /* the batch's alone now */
	}
	return arena_text(b->held[0], s, strlen(s));
}

void batch_free(struct batch *b)
{
	uint32_t i;

	if (b == NULL)
		return;
	MUST(!b->shared);
	for (i = 0; i < b->process.n; i++) {
		free(b->process.row[i].command);
		free(b->process.row[i].exe);
		free(b->process.row[i].cwd);
	}
	for (i = 0; i < b->n_held; i++)
		arena_free(b->held[i]);
	free(b->held);
	for (i = 0; i < b->trace.n; i++)
		free(b->trace.row[i].bytes);
	for (i = 0; i < b->reading.n; i++)
		free(b->reading.row[i].bytes);
	for (i = 0; i < b->step.n; i++)
		free(b->step.row[i].bytes);
	for (i = 0; i < b->memory.n; i++)
		free(b->memory.row[i].bytes);
	for (i = 0; i < b->pending.n; i++)
		free(b->pending.row[i].bytes);
#define X(t, key, options) free(b->t.row);
	TABLES(X)
#undef X
	free(b->deleted);
	free(b->buckets);
	*b = (struct batch){0};
}

/* --- shared --- */

const struct batch *batch_share(struct batch *take)
{
	struct shared *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	MUST(!take->shared);
	s->batch = *take;
	s->batch.shared = true;
	s->magic = SHARED_MAGIC;
	atomic_init(&s->owners, 1);
	*take = (struct batch){0};
	return &s->batch;
}

/* Owners alone may call it: they know that it is there, and nobody changes its rows meanwhile. */
static struct shared *shared_of(const struct batch *b)
{
	struct shared *s = (struct shared *)((uintptr_t)b - offsetof(struct shared, batch));

	MUST(b->shared && s->magic == SHARED_MAGIC);
	return s;
}

const struct batch *batch_ref(const struct batch *shared)
{
	MUST(atomic_fetch_add_explicit(&shared_of(shared)->owners, 1, memory_order_relaxed) > 0);
	return shared;
}

void batch_unref(const struct batch *shared)
{
	struct shared *s;
	unsigned before;

	if (shared == NULL)
		return;
	s = shared_of(shared);
	/* acq_rel: what every other owner read of it comes before it is freed. */
	before = atomic_fetch_sub_explicit(&s->owners, 1, memory_order_acq_rel);
	MUST(before > 0);
	if (before > 1)
		return;
	s->magic = 0;
	s->batch.shared = false;
	batch_free(&s->batch);
	free(s);
}
