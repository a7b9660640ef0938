/* SPDX-License-Identifier: MIT. held.h: the books of who holds memory, in a part: accounts, owners, blocks. For allocs.c,
 * which has the driver's events, and blocks.c, which has torch's. */
#ifndef PROTOND_HELD_H
#define PROTOND_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "holders.h"
#include "table.h"

struct part;

struct allocs {
	struct holders held;
	struct table by_address, by_owner;
	uint64_t known_ns; /* all of the driver's from before has counted */
	bool dirty;
};

struct allocs *allocs_of(struct part *part); /* NULL: there is no room for them */

/* Of that device and kind. NULL: there is no room for it, counted. */
struct held_account *held_account_of(struct part *part, uint32_t device, uint8_t kind);
uint32_t held_account_at(const struct holders *h, const struct held_account *a);
/* Of a node, or HELD_NOBODY; the account's (other) where there is no room for it. */
uint32_t held_owner_of(struct part *part, struct held_account *a, uint32_t node);

/* What the process has in RAM, at ns; bytes are a file's to say. */
void held_resident(struct part *part, uint64_t bytes, uint64_t ns);

/* Torch's blocks are within the driver's, at the same addresses. TABLE_NONE: not known. */
uint32_t held_block_find(const struct allocs *a, uint64_t address, bool torch);
bool held_block_add(struct part *part, const struct held_block *b); /* false: no room */
void held_block_del(struct allocs *a, uint32_t at);
bool held_index(struct part *part); /* of what was read; false: no memory */

/* What happens; names: of the numbers in the tree. */
struct held_names {
	const char *alloc, *allocs, *free, *frees, *most;
};

struct held_deed {
	uint64_t ns, address, bytes;
	uint32_t node, device;
	uint8_t kind;
	const struct held_names *names;
};

void held_give(struct part *part, const struct held_deed *d);
void held_take(struct part *part, const struct held_deed *d);
/* A block is larger than it seemed. */
void held_grow(struct part *part, const struct held_deed *d);
/* So many blocks, d->bytes together, are all there is, whoever has them. */
void held_begin(struct part *part, const struct held_deed *d, uint64_t blocks);
void held_number(struct part *part, const struct held_deed *d, uint32_t node, const char *name,
	uint64_t value, bool most);

#endif
