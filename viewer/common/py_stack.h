/* SPDX-License-Identifier: MIT. py_stack.h: the Python stacks of a process, read from its memory as it runs. For
 * protonctl_stack and its tests.
 *
 * Needs neither the GIL nor a stop, so it answers of a process whose every thread hangs. What a thread changes while it is
 * read is told as such and never guessed. */
#ifndef PROTOND_PY_STACK_H
#define PROTOND_PY_STACK_H

#include "memory.h"

#define PY_THREADS_MOST 256u
#define PY_ENDS         16u    /* frames shown of each end of a stack */
#define PY_FRAMES_MOST  65536u /* frames followed */

struct py_frame {
	char name[256],
		file[512]; /* bytes of any kind, "…" where it is cut; "": it could not be read */
	int32_t line;      /* 0: not known */
};

struct py_stack {
	uint64_t tid; /* as its own pid namespace has it */
	bool gil;     /* holds the interpreter's lock */
	bool changed; /* it ran on while it was read: the frames may not belong together */
	bool broken; /* the chain of frames ends where it should not: a loop, no memory, too many */
	uint32_t
		n; /* frames followed; the innermost PY_ENDS are in inner, the outermost in outer */
	uint32_t n_inner, n_outer;
	struct py_frame inner[PY_ENDS], outer[PY_ENDS]; /* innermost first, both */
};

struct py_process {
	uint64_t version;   /* as PY_VERSION_HEX; 0: it does not say, as before 3.11 */
	bool known;         /* this version's frames can be read */
	bool free_threaded; /* that is why they cannot */
	struct py_stack *threads;
	uint32_t n;
	uint64_t more; /* threads beyond PY_THREADS_MOST, the youngest */
};

/* base: where an object file is mapped. False: it is no Python. -ENOMEM is told by threads NULL of a known version. */
bool py_process_read(struct memory *m, uint64_t base, struct py_process *ret);
void py_process_fini(struct py_process *p);

#endif
