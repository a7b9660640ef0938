/* SPDX-License-Identifier: MIT. cfi.h: from a frame of native code to its caller, by the tables that compilers leave for
 * exceptions (.eh_frame), on x86-64. The agent's sampler includes it.
 *
 * Tables, registers and stack are read from a process that runs: all of it may be hostile, torn or gone, and then the
 * stack ends there. No malloc, no static state. */
#ifndef PROTOND_CFI_H
#define PROTOND_CFI_H

#include "memory.h"

/* Registers by their DWARF numbers; of those that a function does not keep nothing is known. */
#define CFI_RBX       3u
#define CFI_RBP       6u
#define CFI_RSP       7u
#define CFI_PC        16u
#define CFI_REGISTERS 17u

struct cfi_registers {
	uint64_t value[CFI_REGISTERS];
	uint32_t known; /* bits */
};

enum cfi_kind {
	CFI_LOST,
	CFI_SAME,
	CFI_IN_FRAME,    /* at `offset` from the frame's end, which is the CFA */
	CFI_BY_REGISTER, /* at `offset` from what a register holds */
};

struct cfi_rule {
	int32_t offset;
	uint8_t kind, base;
};

/* The frame of a function as it is at one pc. */
struct cfi_row {
	uint64_t begin, end; /* of the function */
	int32_t offset;      /* the CFA is so far from what `base` holds */
	uint8_t base;        /* a register; CFI_REGISTERS: not known */
	bool indirect;       /* the CFA stands there */
	bool signal;         /* of a signal: it has not called what is inside of it */
	struct cfi_rule rule[CFI_REGISTERS];
};

/* header: where the object's .eh_frame_hdr is. -ENOENT: it says nothing of pc; -EBADMSG: what it says is not understood. */
int cfi_find(struct memory *m, uint64_t header, uint64_t pc, struct cfi_row *ret);
/* What code without tables has, if it keeps a frame pointer. */
void cfi_by_frame_pointer(struct cfi_row *ret);

/* r: of a frame, then of its caller. False: there is none, or it cannot be told; *ret_end: it is the outermost one. */
bool cfi_step(
	const struct cfi_row *row, struct memory *stack, struct cfi_registers *r, bool *ret_end);

#endif
