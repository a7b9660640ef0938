/* SPDX-License-Identifier: MIT. memory.h: another process's memory, read as it runs. Anybody may include it.
 *
 * All that is read is hostile, and may be changing. */
#ifndef PROTOND_MEMORY_H
#define PROTOND_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory {
	/* All n bytes or false. */
	bool (*read)(struct memory *m, uint64_t at, void *ret, size_t n);
	int pid;
	int err; /* why a read was last refused, an errno; 0: none was */
};

/* process_vm_readv with the caller's own rights: stops nothing, attaches to nothing. */
struct memory memory_of(int pid);

/* Where an object file that is mapped at `base` has this symbol; 0: it has none that is exported. */
uint64_t memory_symbol(struct memory *m, uint64_t base, const char *name);

#endif
