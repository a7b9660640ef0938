/* SPDX-License-Identifier: MIT. fuzz_cfi.c: any bytes as the tables of an object, its symbols and a stack. What comes out of
 * them ends, reads little, and is a row and a name. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"

#define MUST(e) ((e) ? (void)0 : (void)(fprintf(stderr, "not true: %s\n", #e), abort()))

#define BASE  UINT64_C(0x700000000000)
#define STEPS 128u

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const uint8_t *image;
static size_t bytes;
static uint32_t reads;

static bool read_image(struct memory *m, uint64_t at, void *ret, size_t n)
{
	(void)m;
	reads++;
	if (at < BASE || at - BASE > bytes || n > bytes - (at - BASE))
		return false;
	memcpy(ret, image + (at - BASE), n);
	return true;
}

static void check_row(const struct cfi_row *row, uint64_t pc)
{
	MUST(row->base < CFI_REGISTERS && pc >= row->begin && pc < row->end);
	for (uint32_t i = 0; i < CFI_REGISTERS; i++)
		MUST(row->rule[i].kind <= CFI_BY_REGISTER && row->rule[i].base < CFI_REGISTERS);
}

/* Four bytes of a pc, four of a stack pointer, then memory. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct memory m = {.read = read_image};
	struct cfi_registers r = {.known = UINT32_MAX};
	uint32_t at[2], i;
	struct cfi_row row;
	char name[64];
	bool end = false;

	if (n < sizeof(at))
		return 0;
	memcpy(at, p, sizeof(at));
	image = p + sizeof(at);
	bytes = n - sizeof(at);
	for (i = 0; i < CFI_REGISTERS; i++)
		r.value[i] = BASE + at[1];
	r.value[CFI_PC] = BASE + at[0];
	for (i = 0; i < STEPS && !end; i++) {
		reads = 0;
		if (cfi_find(&m, BASE, r.value[CFI_PC], &row) != 0)
			break;
		check_row(&row, r.value[CFI_PC]);
		if (!cfi_step(&row, &m, &r, &end))
			break;
		MUST(reads < 96);
	}
	if (memory_symbol_at(&m, BASE, BASE + at[0], name, sizeof(name)))
		MUST(*name != '\0' && memchr(name, '\0', sizeof(name)) != NULL);
	return 0;
}
