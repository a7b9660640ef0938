/* SPDX-License-Identifier: MIT. store_nodes.c: which row id a node has, by its hash: a bounded
 * cache before the database. Worker thread. */
#include "store_int.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"

#define CACHE_MIN 1024u
#define CACHE_MAX (128u << 10) /* slots of 24 bytes: 3 MiB */

/* The slot of a hash, or the free one where it belongs. Keys are hashes already. */
static struct node_slot *cache_at(const struct node_cache *c, const uint8_t hash[16])
{
	uint64_t h;
	uint32_t i;

	memcpy(&h, hash, sizeof(h));
	i = (uint32_t)h & (c->cap - 1);
	while (c->slot[i].id != 0 && memcmp(c->slot[i].hash, hash, 16) != 0)
		i = (i + 1) & (c->cap - 1);
	return &c->slot[i];
}

/* Doubles, or at the ceiling starts anew: the database has them all. */
static bool cache_room(struct node_cache *c)
{
	const uint32_t cap = c->cap == 0 ? CACHE_MIN : c->cap * 2;
	struct node_cache grown = {.cap = cap};
	uint32_t i;

	if (c->n < c->cap / 4 * 3)
		return true;
	if (c->cap >= CACHE_MAX) {
		memset(c->slot, 0, c->cap * sizeof(*c->slot));
		c->n = 0;
		return true;
	}
	grown.slot = calloc(cap, sizeof(*grown.slot));
	if (grown.slot == NULL)
		return false;
	for (i = 0; i < c->cap; i++)
		if (c->slot[i].id != 0)
			*cache_at(&grown, c->slot[i].hash) = c->slot[i];
	grown.n = c->n;
	free(c->slot);
	*c = grown;
	return true;
}

static void cache_add(struct node_cache *c, const uint8_t hash[16], int64_t id)
{
	struct node_slot *s;

	if (!cache_room(c))
		return; /* slower, not wrong */
	s = cache_at(c, hash);
	c->n += s->id == 0;
	memcpy(s->hash, hash, sizeof(s->hash));
	s->id = id;
}

void store_forget_nodes(struct store_db *d)
{
	free(d->cache.slot);
	d->cache = (struct node_cache){0};
}

/* SQLITE_NOTFOUND: no such node. */
static int node_select(struct store_db *d, const uint8_t hash[16], int64_t *ret_id)
{
	sqlite3_stmt *q = d->q[SQL_NODE_FIND];
	int rc;

	(void)sqlite3_bind_blob(q, 1, hash, 16, SQLITE_STATIC);
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*ret_id = sqlite3_column_int64(q, 0);
	(void)sqlite3_reset(q);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? SQLITE_NOTFOUND : rc;
	return SQLITE_OK;
}

static int node_unknown(struct store_db *d, const uint8_t hash[16])
{
	sqlite3_stmt *q = d->q[SQL_NODE_UNKNOWN];

	(void)sqlite3_bind_blob(q, 1, hash, 16, SQLITE_STATIC);
	(void)sqlite3_bind_int64(q, 2, NODE_SCOPE);
	return store_run(q);
}

int store_node_id(void *db, const uint8_t hash[16], int64_t *ret_id)
{
	struct store_db *d = store_db_from(db);
	const struct node_slot *s = d->cache.cap == 0 ? NULL : cache_at(&d->cache, hash);
	int rc;

	if (s != NULL && s->id != 0) {
		*ret_id = s->id;
		store_sweep_keep_node(d, s->id);
		return SQLITE_OK;
	}
	rc = node_select(d, hash, ret_id);
	if (rc == SQLITE_OK) {
		store_sweep_keep_node(d, *ret_id);
		cache_add(&d->cache, hash, *ret_id);
		return SQLITE_OK;
	}
	if (rc != SQLITE_NOTFOUND)
		return rc;
	rc = node_unknown(d, hash);
	d->has_unknown = true;
	if (rc == SQLITE_OK)
		store_refuse(d, "node",
			"rows refer to a node that was not described: shown as " NODE_UNKNOWN);
	rc = rc == SQLITE_OK ? node_select(d, hash, ret_id) : rc; /* not into the cache */
	if (rc == SQLITE_OK)
		store_sweep_keep_node(d, *ret_id);
	return rc;
}

bool store_node_is_known(struct store_db *d, const uint8_t hash[16])
{
	const int64_t id = d->cache.cap > 0 ? cache_at(&d->cache, hash)->id : 0;

	if (id != 0)
		store_sweep_keep_node(d, id);
	return id != 0;
}

int store_node_learn(struct store_db *d, const uint8_t hash[16])
{
	int64_t id;
	const int rc = node_select(d, hash, &id);

	if (rc == SQLITE_OK) {
		store_sweep_keep_node(d, id);
		cache_add(&d->cache, hash, id);
	}
	return rc;
}
