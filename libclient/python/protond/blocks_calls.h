/* SPDX-License-Identifier: MIT. blocks_calls.h: between _native and blocks.cpp, which is built on the
 * user's machine and links nothing of ours. C and C++. */
#ifndef PROTOND_BLOCKS_CALLS_H
#define PROTOND_BLOCKS_CALLS_H

#include <stdint.h>

/* As enum block_op and struct engine_block of protond. */
enum blocks_op {
	BLOCKS_ALLOC = 1,
	BLOCKS_FREE = 2,
	BLOCKS_SIZE = 3,
	BLOCKS_SEGMENT = 4,
	BLOCKS_SEGMENT_GONE = 5,
	BLOCKS_OOM = 6,
	BLOCKS_BEFORE = 7,
	BLOCKS_STATE = 8,
};

struct blocks_event {
	uint64_t address, bytes, reserved, active, split, requested;
	uint32_t device, op;
};

struct blocks_calls {
	uint64_t bytes;                              /* of this */
	void (*block)(const struct blocks_event *e); /* protond_block */
};

typedef void protond_blocks_switch(int on); /* any thread */
typedef void protond_blocks_teller(void);   /* how things stand now; any thread */

#endif
