/* SPDX-License-Identifier: MIT. cpython.h: what CPython 3.11 to 3.13 keep of their threads and frames, read from a
 * process's memory as it runs. The one place that knows their layout. For viewer/common/py_stack and the agent's sampler.
 *
 * Needs neither the interpreter's lock nor a stop. All that is read may be torn or gone: whoever follows it counts. No
 * malloc, no static state. */
#ifndef PROTOND_CPYTHON_H
#define PROTOND_CPYTHON_H

#include "memory.h"

#define CPYTHON_VERSIONS "3.11, 3.12 and 3.13"

/* Where things are; of a layout that came out of the process every number is below CPYTHON_AT_MOST. */
#define CPYTHON_AT_MOST     65536u
#define CPYTHON_STATE_BYTES 256u /* of a thread's state: all of it that is read */
#define CPYTHON_FRAME_BYTES 96u
#define CPYTHON_CODE_BYTES  160u
struct cpython_layout {
	uint32_t interpreters; /* of the runtime */
	uint32_t next_interpreter, threads;
	uint32_t gil; /* of the interpreter, a pointer; 0: it is the runtime's */
	uint32_t gil_holder, gil_locked;
	uint32_t next_thread, interpreter, frame, tid;
	uint32_t
		cframe_current; /* `frame` leads to something that has the frame there; UINT32_MAX: it is the frame */
	uint32_t frame_code, frame_previous, frame_instruction;
	uint32_t frame_owner; /* 0: all frames are Python's */
	uint32_t code_first, code_file, code_name, code_lines, code_instructions;
	uint32_t text_ascii, text_wide; /* where characters begin */
};

struct cpython {
	struct memory *m;
	uint64_t runtime, code_type, text_type;
	uint64_t version;   /* as PY_VERSION_HEX; 0: it does not say, as before 3.11 */
	bool known;         /* this version's frames can be read */
	bool free_threaded; /* that is why they cannot */
	struct cpython_layout at;
};

/* Addresses of exported symbols; runtime 0: it is no Python. */
struct cpython_symbols {
	uint64_t runtime, version, code_type, text_type;
};
void cpython_open(struct cpython *ret, struct memory *m, const struct cpython_symbols *s);

uint64_t cpython_interpreter(
	const struct cpython *py, uint64_t after); /* after 0: the first; 0: no more */
uint64_t cpython_first_thread(const struct cpython *py, uint64_t interpreter);
uint64_t cpython_gil_holder(
	const struct cpython *py, uint64_t interpreter); /* a thread's state; 0: nobody */

struct cpython_thread {
	uint64_t next, tid;
	uint64_t frame; /* the innermost; 0: it runs no Python */
	/* Where what runs that frame has something on the native stack; 0: there is the first frame outwards that is an
	 * entry. */
	uint64_t native;
};
/* False: there is none of this interpreter. */
bool cpython_thread(
	const struct cpython *py, uint64_t interpreter, uint64_t at, struct cpython_thread *ret);

struct cpython_frame {
	uint64_t previous, code, instruction;
	bool entry; /* none of Python's: what C put between two */
};
bool cpython_frame(const struct cpython *py, uint64_t at, struct cpython_frame *ret);

struct cpython_code {
	uint64_t name, file, lines; /* objects */
	int32_t first;              /* line */
};
/* Out of CPYTHON_CODE_BYTES that were read at a code object's address. False: it is none. */
bool cpython_code_in(const struct cpython *py, const uint8_t *bytes, struct cpython_code *ret);

/* A text's length and hash stand there, side by side: what tells another text at the same address. */
#define CPYTHON_TEXT_ID       16u
#define CPYTHON_TEXT_ID_BYTES 16u
/* As UTF-8 with a NUL, "…" where it is cut; a byte that Python could not decode is that byte. "": it is no text. */
void cpython_text(const struct cpython *py, uint64_t at, char *ret, size_t most);

/* The line of an instruction of a code object; 0: it has none. */
int32_t cpython_line(const struct cpython *py, uint64_t code, const struct cpython_code *c,
	uint64_t instruction);

#endif
