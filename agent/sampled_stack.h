/* SPDX-License-Identifier: MIT. sampled_stack.h: the Python stack of another thread of this process, as a path of the
 * ring. sampler.c includes it. One thread at a time. */
#ifndef PROTOND_AGENT_SAMPLED_STACK_H
#define PROTOND_AGENT_SAMPLED_STACK_H

#include "cpython.h"

#define STACK_FRAMES 128u /* of a longer stack the innermost ones, below STACK_CUT */
#define STACK_CUT    "(further frames)"

struct stacks;

/* NULL: no memory. m: of this process, as long as it lives; tests have another. */
struct stacks *stacks_new(struct memory *m);
void stacks_free(struct stacks *s);
/* symbols->runtime 0: there is no Python (yet). True: its frames can be read. */
bool stacks_python(struct stacks *s, const struct cpython_symbols *symbols);
const struct cpython *stacks_cpython(const struct stacks *s);
/* What a thread of that state is in, if it is the one of this number; PATH_ROOT: in no frame. */
uint32_t stacks_path(struct stacks *s, uint64_t interpreter, uint64_t state, uint32_t tid);
/* Of the last one, if it was in a frame: an address on the native stack, in the frame of what runs its innermost one; 0: not
 * known. */
uint64_t stacks_native(const struct stacks *s);
/* What tells that a thread has stood where it is: its innermost frame and the instruction there; 0: it is in none. */
struct stacks_mark {
	uint64_t frame, code, instruction;
};
struct stacks_mark stacks_mark(
	const struct stacks *s, uint64_t interpreter, uint64_t state, uint32_t tid);
/* A path of one frame: of what is no Python's. */
uint32_t stacks_named(struct stacks *s, const char *text);
/* A ring name, and a path of it: where there is no room for it, (other) and the parent. */
uint32_t stacks_name(struct stacks *s, const char *text);
uint32_t stacks_below(struct stacks *s, uint32_t parent, uint32_t name);

#endif
