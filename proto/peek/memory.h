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
	int fd;  /* memory_self() that is read by a file; else -1 */
	int err; /* why a read was last refused, an errno; 0: none was */
};

/* process_vm_readv with the caller's own rights: stops nothing, attaches to nothing. */
struct memory memory_of(int pid);

/* Of this process: what cannot be read is refused, and never faults. Where process_vm_readv may not be called, by
 * /proc/self/mem, of which it keeps a descriptor (memory_fini()). */
struct memory memory_self(void);
void memory_fini(struct memory *m);

struct memory_piece {
	uint64_t at;
	void *to;
	size_t n;
};
#define MEMORY_PIECES 256u
/* All of them or false: then nothing is known of any. n: at most MEMORY_PIECES. */
bool memory_read_all(struct memory *m, const struct memory_piece *piece, uint32_t n);

/* Where an object file that is mapped at `base` has this symbol; 0: it has none that is exported. */
uint64_t memory_symbol(struct memory *m, uint64_t base, const char *name);

/* The function that `at` is in, of several names the one with the fewest underscores in front; false: none is known. As
 * long as there are symbols. */
#define MEMORY_NAME 1024u /* bytes of a name that are read */
bool memory_symbol_at(struct memory *m, uint64_t base, uint64_t at, char *ret, size_t most);
/* Likewise, of all functions of an object file that is not stripped, and lies in memory so far from where it says. */
bool file_symbol_at(int fd, uint64_t bias, uint64_t at, char *ret, size_t most);

#endif
