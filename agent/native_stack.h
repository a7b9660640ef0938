/* SPDX-License-Identifier: MIT. native_stack.h: the native stack of another thread of this process, by functions. sampler.c
 * includes it. One thread at a time. */
#ifndef PROTOND_AGENT_NATIVE_STACK_H
#define PROTOND_AGENT_NATIVE_STACK_H

#include "sampled_stack.h"

#define NATIVE_FRAMES 96u /* innermost; with Python's they are no deeper than a path may be */

struct native;

/* NULL: no memory. m: of this process. */
struct native *native_new(struct memory *m);
void native_free(struct native *n);
/* Where Python's bytecode runs, _PyEval_EvalFrameDefault; 0: not known. */
void native_python(struct native *n, uint64_t eval);

enum native_what {   /* of a look */
	NATIVE_NONE, /* nothing can be said this time */
	NATIVE_REFUSED, /* of a thread that runs nothing can be said here: perf_event_open() is refused */
	NATIVE_FOUND
};
/* shown: its number in /proc. python: it is in a frame of Python's, and what runs that has `place` in its own. Then it is what that frame has called; else
 * the whole stack. */
enum native_what native_look(
	struct native *n, uint32_t tid, uint32_t shown, bool python, uint64_t place);
/* What that look found, below `path`; `path`: there are names that cost too much by now. */
uint32_t native_below(struct native *n, struct stacks *s, uint32_t path);

void native_forked(void); /* in the child */

#endif
