/* SPDX-License-Identifier: MIT. job_cfi.c: tests of call frame information: tables that are made here, and spoilt ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "quick.h"

#define BASE   UINT64_C(0x700000000000)
#define HEADER 0x000u /* .eh_frame_hdr */
#define COMMON 0x100u
#define ENTRY  0x200u
#define CODE   0x1000u
#define STACK  0x8000u
#define BYTES  0x9000u
#define PC(n)  (BASE + CODE + (n))

static uint8_t image[BYTES];
static uint32_t reads;

static bool read_image(struct memory *m, uint64_t at, void *ret, size_t n)
{
	(void)m;
	reads++;
	if (at < BASE || at - BASE > BYTES || n > BYTES - (at - BASE))
		return false;
	memcpy(ret, image + (at - BASE), n);
	return true;
}

static struct memory memory = {.read = read_image};

static void put(uint32_t at, uint64_t v, uint32_t n)
{
	memcpy(image + at, &v, n);
}

/* One function of 0x100 bytes, whose program is this. signal: its CIE says S. */
static void make(const uint8_t *program, uint32_t n, bool signal)
{
	static const uint8_t common[] = {
		1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1};
	uint32_t at = COMMON + 8, letter;

	memset(image, 0, STACK);
	put(HEADER, 0x3b031b01, 4);
	put(HEADER + 8, 1, 4);
	put(HEADER + 12, CODE, 4);
	put(HEADER + 16, ENTRY, 4);
	put(COMMON, 4 + sizeof(common) - !signal, 4);
	for (letter = 0; letter < sizeof(common); letter++)
		if (common[letter] != 'S' || signal)
			image[at++] = common[letter];
	put(ENTRY, 4 + 4 + 4 + 1 + n, 4);
	put(ENTRY + 4, ENTRY + 4 - COMMON, 4);
	put(ENTRY + 8, CODE - (ENTRY + 8), 4);
	put(ENTRY + 12, 0x100, 4);
	memcpy(image + ENTRY + 17, program, n);
}

#define MAKE(...)                                                  \
	do {                                                       \
		const uint8_t program_[] = {__VA_ARGS__};          \
		make(program_, (uint32_t)sizeof(program_), false); \
	} while (0)

static int find(uint32_t at, struct cfi_row *ret)
{
	return cfi_find(&memory, BASE + HEADER, PC(at), ret);
}

/* push rbp; mov rbp, rsp; ... leave; ret, and the way of another return. */
START_TEST(rows_of_a_function)
{
	struct cfi_row row;

	MAKE(0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x0a, 0x02, 0x40, 0xc6, 0x0c, 7, 8, 0x41,
		0x0b);
	ck_assert_int_eq(find(0, &row), 0);
	ck_assert_uint_eq(row.base, CFI_RSP);
	ck_assert_int_eq(row.offset, 8);
	ck_assert_int_eq(row.rule[CFI_PC].offset, -8);
	ck_assert_int_eq(row.rule[CFI_RBP].kind, CFI_SAME);
	ck_assert_uint_eq(row.begin, PC(0));
	ck_assert_uint_eq(row.end, PC(0x100));
	ck_assert_int_eq(find(1, &row), 0);
	ck_assert_int_eq(row.offset, 16);
	ck_assert_int_eq(row.rule[CFI_RBP].kind, CFI_IN_FRAME);
	ck_assert_int_eq(row.rule[CFI_RBP].offset, -16);
	ck_assert_int_eq(find(4, &row), 0);
	ck_assert_uint_eq(row.base, CFI_RBP);
	ck_assert_int_eq(find(0x44, &row), 0);
	ck_assert_uint_eq(row.base, CFI_RSP);
	ck_assert_int_eq(row.offset, 8);
	ck_assert_int_eq(row.rule[CFI_RBP].kind, CFI_SAME);
	ck_assert_int_eq(find(0xff, &row), 0);
	ck_assert_uint_eq(row.base, CFI_RBP);
	ck_assert_int_eq(find(0x100, &row), -ENOENT);
	ck_assert_int_eq(cfi_find(&memory, BASE + HEADER, PC(0) - 1, &row), -ENOENT);
}
END_TEST

/* A realigned stack, the stub of a PLT, and one of a signal. */
START_TEST(expressions)
{
	static const uint8_t stub[] = {
		0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	static const uint8_t signal[] = {0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 16, 3, 0x77, 0xa8, 1};
	struct cfi_row row;

	MAKE(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0);
	ck_assert_int_eq(find(0, &row), 0);
	ck_assert_uint_eq(row.base, CFI_RBP);
	ck_assert_int_eq(row.offset, -8);
	ck_assert(row.indirect);
	ck_assert_int_eq(row.rule[CFI_RBP].kind, CFI_BY_REGISTER);
	make(stub, sizeof(stub), false);
	ck_assert_int_eq(find(0x10, &row), 0);
	ck_assert_int_eq(row.offset, 8);
	ck_assert_int_eq(find(0x1b, &row), 0);
	ck_assert_int_eq(row.offset, 16);
	make(signal, sizeof(signal), true);
	ck_assert_int_eq(find(0, &row), 0);
	ck_assert(row.signal && row.indirect);
	ck_assert_int_eq(row.offset, 160);
	ck_assert_int_eq(row.rule[CFI_PC].offset, 168);
	MAKE(0x0f, 2, 0x77, 0x80); /* a number that does not end */
	ck_assert_int_eq(find(0, &row), -EBADMSG);
	MAKE(0x0f, 2, 0x31, 0x22); /* another expression */
	ck_assert_int_eq(find(0, &row), -EBADMSG);
}
END_TEST

START_TEST(a_step)
{
	struct cfi_registers r = {.known = 1u << CFI_RSP | 1u << CFI_PC | 1u << CFI_RBX};
	struct cfi_row row;
	bool end;

	MAKE(0x0e, 32, 0x86, 2, 0x8c, 3);
	ck_assert_int_eq(find(0, &row), 0);
	r.value[CFI_RSP] = BASE + STACK;
	r.value[CFI_PC] = PC(0);
	r.value[CFI_RBX] = 3;
	put(STACK + 24, PC(0x20), 8);
	put(STACK + 16, 6, 8);
	put(STACK + 8, 12, 8);
	ck_assert(cfi_step(&row, &memory, &r, &end));
	ck_assert_uint_eq(r.value[CFI_PC], PC(0x20));
	ck_assert_uint_eq(r.value[CFI_RSP], BASE + STACK + 32);
	ck_assert_uint_eq(r.value[CFI_RBP], 6);
	ck_assert_uint_eq(r.value[12], 12);
	ck_assert_uint_eq(r.value[CFI_RBX], 3);
	ck_assert_uint_eq(r.known & 1u << 13, 0); /* was not known, and is not now */
	put(STACK + 56, 0, 8);
	ck_assert(!cfi_step(&row, &memory, &r, &end) && end);
	r.value[CFI_RSP] = BASE + BYTES - 8; /* no stack */
	ck_assert(!cfi_step(&row, &memory, &r, &end) && !end);
	MAKE(0x07, 16); /* nobody has called it */
	ck_assert_int_eq(find(0, &row), 0);
	ck_assert(!cfi_step(&row, &memory, &r, &end) && end);
	MAKE(0x11, 16, 1, 0x13, 1); /* a stack that grows the other way */
	ck_assert_int_eq(find(0, &row), 0);
	r.value[CFI_RSP] = BASE + STACK;
	ck_assert(!cfi_step(&row, &memory, &r, &end) && !end);
	cfi_by_frame_pointer(&row);
	r.known |= 1u << CFI_RBP;
	r.value[CFI_RBP] = BASE + STACK + 64;
	put(STACK + 64, BASE + STACK + 128, 8);
	put(STACK + 72, PC(0x40), 8);
	ck_assert(cfi_step(&row, &memory, &r, &end));
	ck_assert_uint_eq(r.value[CFI_RSP], BASE + STACK + 80);
	ck_assert_uint_eq(r.value[CFI_RBP], BASE + STACK + 128);
}
END_TEST

/* Each refused, in a few reads. */
static const struct {
	const char *label;
	uint32_t at, n;
	uint64_t v;
	int want;
} spoilt[] = {
	{"another version of the table", HEADER, 1, 2, -ENOENT},
	{"another table", HEADER + 3, 1, 0x1b, -ENOENT},
	{"a table of no rows", HEADER + 8, 4, 0, -ENOENT},
	{"a table without end", HEADER + 8, 4, UINT32_MAX, -EBADMSG},
	{"an entry that is nowhere", HEADER + 16, 4, BYTES, -EBADMSG},
	{"an entry of no bytes", ENTRY, 4, 0, -EBADMSG},
	{"an entry of 64 bits", ENTRY, 4, UINT32_MAX, -EBADMSG},
	{"an entry that is longer than memory", ENTRY, 4, BYTES, -EBADMSG},
	{"a CIE in place of an entry", ENTRY + 4, 4, 0, -EBADMSG},
	{"an entry as a CIE", ENTRY + 4, 4, 4, -EBADMSG},
	{"a function elsewhere", ENTRY + 8, 4, 0, -ENOENT},
	{"a function of no bytes", ENTRY + 12, 4, 0, -ENOENT},
	{"another version of the CIE", COMMON + 8, 1, 4, -EBADMSG},
	{"an unknown letter", COMMON + 10, 1, 'x', -EBADMSG},
	{"another register for the return", COMMON + 14, 1, 9, -EBADMSG},
	{"an address of a kind that is not", COMMON + 16, 1, 0x35, -EBADMSG},
	{"an unknown instruction", ENTRY + 17, 1, 0x3f, -EBADMSG},
	{"back without a state", ENTRY + 17, 1, 0x0b, -EBADMSG},
};

START_TEST(spoilt_tables)
{
	struct cfi_row row;

	MAKE(0x0e, 16);
	put(spoilt[_i].at, spoilt[_i].v, spoilt[_i].n);
	reads = 0;
	ck_assert_msg(find(0, &row) == spoilt[_i].want, "%s", spoilt[_i].label);
	ck_assert_uint_lt(reads, 64);
}
END_TEST

/* Whatever the bytes are it ends, and a row that comes out of them is one. */
START_TEST(random_tables)
{
	static const uint8_t program[] = {0x41, 0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0b, 0x2e, 1};
	struct cfi_registers r;
	struct cfi_row row;
	uint32_t i, j, n;
	bool end;

	srand(7);
	for (i = 0; i < 20000; i++) {
		make(program, sizeof(program), (i & 1) != 0);
		for (n = 1 + (uint32_t)rand() % 4, j = 0; j < n; j++)
			image[(uint32_t)rand() % 3 * 0x100 + (uint32_t)rand() % 40] =
				(uint8_t)rand();
		reads = 0;
		if (find((uint32_t)rand() % 256, &row) != 0)
			continue;
		ck_assert_uint_lt(row.base, CFI_REGISTERS);
		ck_assert(PC(256) > row.begin && row.begin < row.end);
		r.known = (uint32_t)rand();
		for (j = 0; j < CFI_REGISTERS; j++)
			r.value[j] = BASE + STACK + (uint32_t)rand() % 0x1000;
		(void)cfi_step(&row, &memory, &r, &end);
		ck_assert_uint_lt(reads, 64);
	}
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("cfi");
	TCase *c = tcase_create("cfi");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, rows_of_a_function);
	tcase_add_test(c, expressions);
	tcase_add_test(c, a_step);
	tcase_add_loop_test(c, spoilt_tables, 0, sizeof(spoilt) / sizeof(spoilt[0]));
	tcase_add_test(c, random_tables);
	suite_add_tcase(s, c);
	return s;
}
