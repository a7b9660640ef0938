/* SPDX-License-Identifier: MIT. store_load.c: out of the database what the fold needs to go on:
 * sessions that are not finalized, processes that have not ended, and all that belongs to them.
 * Worker thread.
 *
 * The file is ours, yet every blob is bounded and every number checked for where it goes.
 */
#include "store_int.h"

#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define ID_MAX (INT64_MAX / 2) /* of processes and sessions, which count from 1 */

/* --- nodes: parents first --- */

enum node_mark { NODE_NEW = 0, NODE_IN_CHAIN = 1, NODE_DONE = 2 };
struct loaded_node {
	int64_t id, parent;
	struct row_node row;
	uint32_t up;    /* index of the parent; UINT32_MAX none */
	uint32_t below; /* chain being walked: whom to emit next */
	uint8_t mark;
};
struct loaded {
	struct loaded_node *node; /* id ascending */
	uint32_t n, cap;
};

static int loaded_add(struct loaded *l, struct row_io *x, sqlite3_stmt *q)
{
	const uint32_t cap = l->cap == 0 ? 256 : l->cap * 2;
	struct loaded_node *n;

	if (l->n == l->cap) {
		n = reallocarray(l->node, cap, sizeof(*n));
		if (n == NULL)
			return -ENOMEM;
		l->node = n;
		l->cap = cap;
	}
	n = &l->node[l->n];
	*n = (struct loaded_node){0};
	if (row_get_node(x, q, &n->row) < 0)
		return x->r;
	n->id = x->id;
	n->parent = x->above;
	l->n++;
	return 0;
}

static uint32_t loaded_find(const struct loaded *l, int64_t id)
{
	uint32_t low = 0, high = l->n, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (l->node[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->n && l->node[low].id == id ? low : UINT32_MAX;
}

static void loaded_hash(void *nodes, int64_t id, uint8_t ret[16])
{
	const struct loaded *l = nodes;
	const uint32_t at = loaded_find(l, id);

	if (at == UINT32_MAX)
		memset(ret, 0, 16);
	else
		memcpy(ret, l->node[at].row.hash, 16);
}

/* Moves node i and those above it that are not yet there into the batch, root first. */
static int loaded_emit(struct loaded *l, uint32_t i, struct batch *b)
{
	uint32_t below = UINT32_MAX, at = i;
	struct loaded_node *n;
	struct row_node *row;

	while (at != UINT32_MAX &&
		l->node[at].mark == NODE_NEW) { /* a cycle ends at its first node */
		n = &l->node[at];
		n->mark = NODE_IN_CHAIN;
		n->below = below;
		n->up = n->parent == 0 ? UINT32_MAX : loaded_find(l, n->parent);
		if (n->up != UINT32_MAX)
			memcpy(n->row.parent, l->node[n->up].row.hash, sizeof(n->row.parent));
		below = at;
		at = n->up;
	}
	for (at = below; at != UINT32_MAX; at = n->below) {
		n = &l->node[at];
		row = batch_node(b);
		if (row == NULL)
			return -ENOMEM;
		*row = n->row;
		n->mark = NODE_DONE;
	}
	return 0;
}

static int load_nodes(struct store_db *d, struct row_io *x, struct err *e)
{
	sqlite3_stmt *q = d->load[TABLE_node];
	struct loaded *l = x->nodes;
	int rc, r = 0;
	uint32_t i;

	while ((rc = sqlite3_step(q)) == SQLITE_ROW && r == 0)
		r = loaded_add(l, x, q);
	(void)sqlite3_reset(q);
	for (i = 0; rc == SQLITE_DONE && r == 0 && i < l->n; i++)
		r = loaded_emit(l, i, x->into);
	if (r < 0)
		return err_set(e, r, "out of memory while loading the store");
	return rc == SQLITE_DONE ? 0 : store_fail(d->db, rc, e);
}

/* --- all --- */

typedef int load_fn(struct row_io *x, sqlite3_stmt *q);

#define X(t, key, options)                                             \
	static int load_##t(struct row_io *x, sqlite3_stmt *q)         \
	{                                                              \
		struct row_##t *row = batch_##t(x->into);              \
                                                                       \
		return row == NULL ? -ENOMEM : row_get_##t(x, q, row); \
	}
TABLES(X)
#undef X

static load_fn *const loads[TABLE_MAX] = {
#define X(t, key, options) load_##t,
	TABLES(X)
#undef X
};

static int load_table(struct store_db *d, enum table_id t, struct row_io *x, struct err *e)
{
	sqlite3_stmt *q = d->load[t];
	int rc = SQLITE_DONE, r = 0;

	while (r == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW)
		r = loads[t](x, q);
	(void)sqlite3_reset(q);
	if (r < 0)
		return err_set(e, r, "out of memory while loading the store");
	return rc == SQLITE_DONE ? 0 : store_fail(d->db, rc, e);
}

/* Nodes first: others refer to them. */
static int load_tables(struct store_db *d, struct batch *b, struct err *e)
{
	struct loaded l = {0};
	struct row_io x = {.into = b, .nodes = &l, .node_hash = loaded_hash};
	int t, r = load_nodes(d, &x, e);

	for (t = 0; r == 0 && t < TABLE_MAX; t++)
		if (t != TABLE_node)
			r = load_table(d, (enum table_id)t, &x, e);
	free(l.node);
	return r;
}

static int load_int(struct store_db *d, enum sql which, int64_t *ret, struct err *e)
{
	sqlite3_stmt *q = d->q[which];
	const int rc = sqlite3_step(q);

	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(q, 0);
	(void)sqlite3_reset(q);
	return rc == SQLITE_ROW ? 0 : store_fail(d->db, rc, e);
}

int store_rows_load(struct store_db *d, struct batch *ret, struct err *e)
{
	struct batch b = {0};
	int64_t journal = 0;
	int r;

	(void)store_db_from(d); /* checked */
	r = load_tables(d, &b, e);
	if (r == 0)
		r = load_int(d, SQL_NEXT_PROCESS, &b.next_process, e);
	if (r == 0)
		r = load_int(d, SQL_NEXT_SESSION, &b.next_session, e);
	if (r == 0 && (b.next_process > ID_MAX || b.next_session > ID_MAX))
		r = err_set(e, -EUCLEAN,
			"%s is damaged: it has a number that was never given out; move it away "
			"with `mv %s %s.damaged`",
			d->path, d->path, d->path);
	if (r < 0) {
		batch_free(&b);
		return r;
	}
	(void)store_meta_int(d, "journal", &journal); /* none: nothing was stored yet */
	b.journal = (uint64_t)journal;
	*ret = b;
	return 0;
}
