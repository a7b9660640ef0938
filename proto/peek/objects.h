/* SPDX-License-Identifier: MIT. objects.h: which object file an address of code is of, in this process, which loads and
 * unloads them as it likes. The agent's sampler includes it.
 *
 * The kernel is asked (/proc/self/maps), never the loader, whose lock may be held for long, or by the one that forks. */
#ifndef PROTOND_OBJECTS_H
#define PROTOND_OBJECTS_H

#include "memory.h"

#define OBJECTS_MOST 1024u
#define OBJECT_PATH  256u
#define OBJECT_PROOF 1024u /* its first bytes: headers, and with them the build id */

/* A mapping that is executable. */
struct object {
	uint64_t begin, end;
	uint64_t base; /* where its file begins */
	uint64_t
		bias; /* what the file says is there is so much further on; this and what follows: once `read` */
	uint64_t frames; /* .eh_frame_hdr; 0: none */
	bool read, none; /* none: it is no object's */
	char path[OBJECT_PATH];
	uint8_t proof[OBJECT_PROOF];
};

struct objects {
	struct memory *m;
	uint64_t looked_ns, cost_ns; /* at /proc/self/maps: when, and the CPU time that it took */
	uint32_t n, round, which;    /* round: another one, and some object is not what it was */
	struct object object[2][OBJECTS_MOST]; /* `which` holds, by address */
};

/* NULL: none; *ret_later: or it is not known yet, for looking takes one part in a hundred of a CPU. */
const struct object *objects_find(struct objects *o, uint64_t pc, bool *ret_later);
/* Of those that are known. */
const struct object *objects_known(const struct objects *o, uint64_t pc);
/* False: one of these, by where they begin, is another one by now; then all are forgotten. */
bool objects_prove(struct objects *o, const uint64_t *begin, uint32_t n);
/* The function that an address of an object's code is in; else "[file+0x1234]", from the file's beginning on. */
void object_function(struct memory *m, const struct object *o, uint64_t at, char *ret, size_t most);

#endif
