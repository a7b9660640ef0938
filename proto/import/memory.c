/* SPDX-License-Identifier: MIT. memory.c: who held what torch's allocator gave, as a file's rows of it say, one by
 * one in the order of time: the books of holders.h, for each process. */
#include <stdlib.h>
#include <string.h>

#include "gpu_terms.h"
#include "holders.h"
#include "json_stream.h"
#include "placing.h"

#define NOT_SAID UINT64_MAX

struct books {
	struct stage *s;
	struct holders held;
	struct table by_owner, by_address;
	bool failed;
};

struct row {                      /* "[memory]" */
	uint64_t ns, address;     /* 0: it does not say */
	uint64_t reserved, total; /* NOT_SAID */
	int64_t bytes;            /* below 0: given back */
	uint32_t device, node;
};

/* --- owners */

struct owner_key {
	const struct holders *h;
	uint32_t account, node;
};

static bool owner_is(const void *arg, uint32_t at)
{
	const struct owner_key *k = arg;

	return k->h->owner[at].account == k->account && k->h->owner[at].node == k->node;
}

/* TABLE_NONE: there is no room for it. An account's (other) always has some. */
static uint32_t owner_of(struct books *b, uint32_t account, uint32_t node)
{
	struct holders *h = &b->held;
	const struct owner_key k = {h, account, node};
	const uint32_t hash = table_mix((uint64_t)account << 32 | node, 0);
	uint32_t at = table_find(&b->by_owner, hash, owner_is, &k);

	if (at != TABLE_NONE || (node != HELD_NOBODY && h->n_owners >= HELD_OWNERS - HELD_ACCOUNTS))
		return at;
	if (!ROOM_FOR(h->owner, h->cap_owners, h->n_owners)) {
		b->failed = true;
		return TABLE_NONE;
	}
	if (table_add(&b->by_owner, hash, h->n_owners) < 0)
		return TABLE_NONE;
	h->owner[h->n_owners] = (struct held_owner){
		.account = account, .node = node, .version = h->account[account]->version};
	if (node != HELD_NOBODY)
		memcpy(h->owner[h->n_owners].hash, b->s->node[node].hash, 16);
	return h->n_owners++;
}

/* NULL: there is no room for it. */
static struct held_account *account_of(
	struct books *b, uint32_t device, uint8_t kind, uint32_t *ret, bool *ret_new)
{
	struct holders *h = &b->held;
	struct held_account *a;

	*ret_new = false;
	for (*ret = 0; *ret < h->n_accounts; ++*ret)
		if (h->account[*ret]->device == device && h->account[*ret]->kind == kind)
			return h->account[*ret];
	if (h->n_accounts == HELD_ACCOUNTS) {
		h->refused++;
		return NULL;
	}
	a = calloc(1, sizeof(*a));
	b->failed |= a == NULL;
	if (a == NULL)
		return NULL;
	*a = (struct held_account){.device = device, .kind = kind};
	h->account[h->n_accounts++] = a;
	a->other = owner_of(b, *ret, HELD_NOBODY);
	b->failed |= a->other == TABLE_NONE;
	*ret_new = true;
	return b->failed ? NULL : a;
}

/* --- blocks */

struct block_key {
	const struct holders *h;
	uint64_t address;
	uint32_t account;
};

static bool block_is(const void *arg, uint32_t at)
{
	const struct block_key *k = arg;
	const struct held_block *x = &k->h->block[at];

	return x->address == k->address && k->h->owner[x->owner].account == k->account;
}

static uint32_t block_hash(const struct holders *h, const struct held_block *x)
{
	return table_mix(x->address, h->owner[x->owner].account);
}

/* The last one takes its place. */
static void forget(struct books *b, uint32_t at)
{
	struct holders *h = &b->held;
	const uint32_t last = --h->n_blocks;

	table_del(&b->by_address, block_hash(h, &h->block[at]), at);
	if (at == last)
		return;
	table_del(&b->by_address, block_hash(h, &h->block[last]), last);
	h->block[at] = h->block[last];
	b->failed |= table_add(&b->by_address, block_hash(h, &h->block[at]), at) < 0;
}

static void give(struct books *b, struct held_account *a, uint32_t account, const struct row *x)
{
	struct holders *h = &b->held;
	struct held_block block = {.address = x->address, .bytes = (uint64_t)x->bytes, .ns = x->ns};

	block.owner = owner_of(b, account, x->node);
	if (block.owner == TABLE_NONE)
		block.owner = a->other;
	if (h->n_blocks < HELD_BLOCKS && ROOM_FOR(h->block, h->cap_blocks, h->n_blocks) &&
		table_add(&b->by_address, block_hash(h, &block), h->n_blocks) == 0) {
		h->block[h->n_blocks++] = block;
	} else {
		block.owner = a->other;
		a->loose++;
	}
	held_move(h, block.owner, block.bytes, 1, true);
	a->allocs++;
	a->alloc_bytes = held_plus(a->alloc_bytes, block.bytes);
}

static void drop(struct books *b, uint32_t at)
{
	held_move(&b->held, b->held.block[at].owner, b->held.block[at].bytes, 1, false);
	forget(b, at);
}

/* What was there before the file is (other)'s, as far as the file says how much that is. */
static void take(struct books *b, struct held_account *a, uint32_t at, uint64_t bytes)
{
	const uint64_t others = b->held.owner[a->other].live;

	if (at != TABLE_NONE) {
		bytes = b->held.block[at].bytes;
		drop(b, at);
	} else if (others == 0) {
		a->unknown++;
		return;
	} else {
		bytes = bytes < others ? bytes : others;
		held_move(&b->held, a->other, bytes, a->loose > 0, false);
		a->loose -= a->loose > 0;
	}
	a->frees++;
	a->free_bytes = held_plus(a->free_bytes, bytes);
}

static void count(struct books *b, const struct row *x)
{
	bool is_new;
	uint32_t account, at;
	struct held_account *a =
		x->reserved == NOT_SAID
			? NULL
			: account_of(b, x->device, HELD_TORCH_RESERVED, &account, &is_new);
	const int64_t before = x->total == NOT_SAID ? 0 : (int64_t)x->total - x->bytes;

	if (a != NULL)
		held_set(&b->held, a, x->reserved, x->ns);
	a = account_of(b, x->device, HELD_TORCH, &account, &is_new);
	if (a == NULL)
		return;
	if (is_new && before > 0)
		held_move(&b->held, a->other, (uint64_t)before, 0, true);
	at = table_find(&b->by_address, table_mix(x->address, account), block_is,
		&(struct block_key){&b->held, x->address, account});
	if (x->address != 0 && x->bytes < 0) {
		take(b, a, at, (uint64_t)-x->bytes);
	} else if (x->address != 0) {
		if (at != TABLE_NONE) { /* it was freed where nobody saw it */
			drop(b, at);
			a->unseen++;
		}
		give(b, a, account, x);
	}
	if (x->total != NOT_SAID && a->live != x->total)
		held_move(&b->held, a->other,
			x->total > a->live ? x->total - a->live : a->live - x->total, 0,
			x->total > a->live);
	held_changed(&b->held, a, x->ns);
}

/* --- rows */

/* No block and no GPU has more. */
static int64_t within(int64_t v)
{
	const int64_t most = 1ll << 50;

	return v < 0 ? 0 : v < most ? v : most;
}

static void read_args(struct json_slice of, struct row *x)
{
	struct json j = json_of(of);
	struct json_slice key, v;
	int64_t n;

	if (!json_open(&j, '{'))
		return;
	while (json_next(&j, '}', &key, &v)) {
		n = json_integer(v, 0);
		if (json_is(key, "Addr"))
			x->address = (uint64_t)n;
		else if (json_is(key, "Bytes"))
			x->bytes = n < 0 ? -within(n == INT64_MIN ? INT64_MAX : -n) : within(n);
		else if (json_is(key, "Total Allocated"))
			x->total = (uint64_t)within(n);
		else if (json_is(key, "Total Reserved"))
			x->reserved = (uint64_t)within(n);
		else if (json_is(key, "Device Id"))
			x->device = json_clamp32(n);
	}
}

static void books_fini(struct books *b)
{
	holders_fini(&b->held);
	table_fini(&b->by_owner);
	table_fini(&b->by_address);
	*b = (struct books){.s = b->s};
}

/* Of one process; then they are empty. */
static int put_books(struct books *b, sqlite3_stmt *put, uint32_t process)
{
	struct stage *s = b->s;
	void *bytes = NULL;
	uint32_t n = 0;
	int r = b->failed || (b->held.n_accounts > 0 && holders_pack(&b->held, &bytes, &n) < 0)
			? stage_no_memory(s)
			: 0;

	if (r == 0 && bytes != NULL) {
		(void)sqlite3_bind_blob64(put, 2, bytes, n, SQLITE_STATIC);
		r = stage_put(s, put, (int64_t[]){(int64_t)process + 1}, 1);
	}
	free(bytes);
	books_fini(b);
	return r;
}

int memory_write(struct place *p, int64_t shift)
{
	struct books b = {.s = p->s};
	sqlite3_stmt *from = NULL, *put = NULL;
	uint32_t process = STAGE_NONE;
	int rc = SQLITE_DONE, r = stage_prepare(p->s,
				      "SELECT process, at, node, args FROM scratch.memory"
				      " ORDER BY process, at, rowid",
				      &from);

	if (r == 0)
		r = stage_prepare(
			p->s, "INSERT INTO main.memory(session,process,bytes) VALUES(1,?,?)", &put);
	while (r == 0 && (rc = sqlite3_step(from)) == SQLITE_ROW) {
		struct row x = {.ns = (uint64_t)(sqlite3_column_int64(from, 1) + shift),
			.node = (uint32_t)sqlite3_column_int64(from, 2),
			.reserved = NOT_SAID,
			.total = NOT_SAID};

		if (process != STAGE_NONE && process != (uint32_t)sqlite3_column_int64(from, 0))
			r = put_books(&b, put, process);
		process = (uint32_t)sqlite3_column_int64(from, 0);
		read_args((struct json_slice){(const char *)sqlite3_column_text(from, 3),
				  (size_t)sqlite3_column_bytes(from, 3)},
			&x);
		count(&b, &x);
		p->s->taken.blocks++;
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = stage_wrong(p->s);
	if (r == 0)
		r = put_books(&b, put, process);
	books_fini(&b);
	(void)sqlite3_finalize(from);
	(void)sqlite3_finalize(put);
	return r;
}
