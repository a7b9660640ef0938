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
/* A path of one frame: of what is no Python's. */
uint32_t stacks_named(struct stacks *s, const char *text);

#endif
