/* SPDX-License-Identifier: MIT. view_py_stack.c: Python's stacks out of a made image of a process's memory: as
 * 3.11 to 3.13 lay it out, long, in circles, and noise. */
#include "quick.h"
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "py_stack.h"

#define BASE  UINT64_C(0x500000000000)
#define BYTES (1u << 20)
#define READS (1u << 22) /* that any image may cost */

/* Where things lie in the image. */
enum at {
	DYNAMIC = 0x200,
	HASH = 0x300,
	SYMBOLS = 0x400,
	STRINGS = 0x600,
	RUNTIME = 0x1000,
	INTERPRETER = 0x8000, /* 0x2000 of 3.13 */
	THREAD = 0x3000,
	CFRAME = 0x3800,
	CODE = 0x4000,
	NAME = 0x5000,
	FILE_NAME = 0x5800,
	LINES = 0x6000,
	CODE_TYPE = 0x7000,
	TEXT_TYPE = 0x7100,
	VERSION = 0x7200,
	FRAMES = 0x10000,
	FRAME = 80
};

/* Where each version has what is read: its headers, asked by offsetof(). */
static const struct {
	uint32_t version, interpreters, next, threads, gil, holder, locked, frame, tid, current;
	uint32_t code, previous, instruction, owner;
	uint32_t first, instructions, ascii;
} in[] = {
	{0x030b02f0, 40, 0, 16, 0, 368, 376, 56, 160, 8, 32, 48, 56, 0, 72, 184, 48},
	{0x030c01f0, 40, 0, 72, 384, 8, 16, 56, 144, 0, 0, 8, 56, 70, 68, 192, 40},
	{0x030d00f0, 632, 7264, 7344, 16, 8, 16, 72, 160, UINT32_MAX, 0, 8, 56, 70, 68, 200, 40},
};
#define GIL 0x7300
static uint32_t v; /* of these the one that is made */

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

static void put(uint32_t at, const void *bytes, size_t n)
{
	memcpy(image + at, bytes, n);
}

static void put64(uint32_t at, uint64_t word)
{
	put(at, &word, sizeof(word));
}

static void put32(uint32_t at, uint32_t word)
{
	put(at, &word, sizeof(word));
}

static uint64_t place(uint32_t at)
{
	return BASE + at;
}

static void make_symbols(void)
{
	static const struct {
		const char *name;
		uint32_t at;
	} symbol[] = {{"_PyRuntime", RUNTIME}, {"PyCode_Type", CODE_TYPE},
		{"PyUnicode_Type", TEXT_TYPE}, {"Py_Version", VERSION}};
	const Elf64_Ehdr head = {
		.e_ident = ELFMAG "\2", .e_phoff = 64, .e_phnum = 2, .e_phentsize = 56};
	const Elf64_Phdr load = {.p_type = PT_LOAD},
			 dynamic = {.p_type = PT_DYNAMIC, .p_vaddr = DYNAMIC};
	const Elf64_Dyn d[] = {{DT_GNU_HASH, {HASH}}, {DT_SYMTAB, {SYMBOLS}},
		{DT_STRTAB, {STRINGS}}, {DT_STRSZ, {0x100}}, {DT_NULL, {0}}};
	const uint32_t hash[] = {1, 1, 1, 0, 0, 0, 1}; /* a bucket, its first symbol is 1 */
	uint32_t i, h, at = 1;
	const char *c;

	put(0, &head, sizeof(head));
	put(64, &load, sizeof(load));
	put(64 + 56, &dynamic, sizeof(dynamic));
	put(DYNAMIC, d, sizeof(d));
	put(HASH, hash, sizeof(hash));
	for (i = 0; i < 4; i++) {
		const Elf64_Sym sym = {.st_name = at, .st_shndx = 1, .st_value = symbol[i].at};

		for (h = 5381, c = symbol[i].name; *c != '\0'; c++)
			h = h * 33 + (unsigned char)*c;
		put32(HASH + (uint32_t)sizeof(hash) + i * 4, i == 3 ? h | 1 : h & ~1u);
		put(SYMBOLS + (i + 1) * (uint32_t)sizeof(sym), &sym, sizeof(sym));
		put(STRINGS + at, symbol[i].name, strlen(symbol[i].name) + 1);
		at += (uint32_t)strlen(symbol[i].name) + 1;
	}
	put64(VERSION, in[v].version);
}

static void put_text(uint32_t at, const void *s, uint64_t length, uint32_t width)
{
	put64(at + 8, place(TEXT_TYPE));
	put64(at + 16, length);
	put32(at + 32, width << 2 | 1u << 5 | 1u << 6);
	put(at + in[v].ascii, s, (size_t)length * width);
}

/* What 3.13 says of itself at the beginning of its runtime. */
static void put_said(void)
{
	static const struct {
		uint32_t word, is;
	} said[] = {{5, 632}, {8, 7264}, {9, 7344}, {14, 16}, {15, 7752}, {17, 7768}, {18, 7760},
		{21, 8}, {22, 16}, {23, 72}, {25, 160}, {29, 8}, {30, 0}, {31, 56}, {33, 70},
		{35, 112}, {37, 128}, {38, 136}, {39, 68}, {43, 200}, {70, 40}};
	uint32_t i;

	put(RUNTIME, "xdebugpy", 8);
	put64(RUNTIME + 8, in[v].version);
	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		put64(RUNTIME + said[i].word * 8, said[i].is);
}

/* One thread, which holds the GIL, in n frames of a function `f` of x.py, all at code unit 4. */
static void make(uint32_t n)
{
	static const uint8_t lines[] = {
		0xd0, 0, 0, 0xd9, 0, 0, 0xe8, 10, 0xf0, 5, 0, 0, 0, 0xf8, 0x80, 0};
	uint32_t i;

	memset(image, 0, sizeof(image));
	make_symbols();
	if (in[v].version >> 16 == 0x030d)
		put_said();
	put64(RUNTIME + in[v].interpreters, place(INTERPRETER));
	put64(INTERPRETER + in[v].gil, place(GIL));
	put64((in[v].gil != 0 ? GIL : RUNTIME) + in[v].holder, place(THREAD));
	put32((in[v].gil != 0 ? GIL : RUNTIME) + in[v].locked, 1);
	put64(INTERPRETER + in[v].next, 0);
	put64(INTERPRETER + in[v].threads, place(THREAD));
	put64(THREAD + 16, place(INTERPRETER));
	put64(THREAD + in[v].frame, place(in[v].current != UINT32_MAX ? CFRAME : FRAMES));
	put64(THREAD + in[v].tid, 77);
	if (in[v].current != UINT32_MAX)
		put64(CFRAME + in[v].current, n > 0 ? place(FRAMES) : 0);
	for (i = 0; i < n; i++) {
		const uint32_t at = FRAMES + i * FRAME;

		put64(at + in[v].code, place(CODE));
		put64(at + in[v].previous, i + 1 < n ? place(at + FRAME) : 0);
		put64(at + in[v].instruction, place(CODE) + in[v].instructions + 8);
	}
	put64(CODE + 8, place(CODE_TYPE));
	put32(CODE + in[v].first, 100);
	put64(CODE + 112, place(FILE_NAME));
	put64(CODE + 128, place(NAME));
	put64(CODE + 136, place(LINES));
	put64(LINES + 16, sizeof(lines));
	put(LINES + 32, lines, sizeof(lines));
	put_text(NAME, "f", 1, 1);
	put_text(FILE_NAME, "x.py", 4, 1);
}

static void first_version(void)
{
	v = 0;
}

static bool look(struct py_process *ret)
{
	struct memory m = {.read = read_image};

	reads = 0;
	return py_process_read(&m, BASE, ret);
}

START_TEST(a_stack)
{
	struct py_process p;

	v = (uint32_t)_i;
	make(3);
	ck_assert(look(&p) && p.known && p.n == 1 && p.more == 0);
	ck_assert(p.version == in[v].version);
	ck_assert(p.threads[0].tid == 77 && p.threads[0].gil);
	ck_assert(!p.threads[0].changed && !p.threads[0].broken);
	ck_assert(p.threads[0].n == 3 && p.threads[0].n_inner == 3 && p.threads[0].n_outer == 0);
	ck_assert_str_eq(p.threads[0].inner[2].name, "f");
	ck_assert_str_eq(p.threads[0].inner[2].file, "x.py");
	ck_assert_int_eq(p.threads[0].inner[2].line, 104);
	py_process_fini(&p);
	if (in[v].owner == 0)
		return;
	image[FRAMES + FRAME + in[v].owner] = 3; /* C's, between two of Python's */
	ck_assert(look(&p) && p.threads[0].n == 2 && !p.threads[0].changed);
	py_process_fini(&p);
}

/* A layout that a process tells is believed within bounds, and not of a build without a GIL. */
START_TEST(said)
{
	struct py_process p;

	v = 2;
	make(3);
	put64(RUNTIME + 23 * 8, 60000); /* a thread's state is not as long */
	ck_assert(look(&p) && !p.known && !p.free_threaded);
	py_process_fini(&p);
	make(3);
	put64(RUNTIME + 8, 0x030e00f0);
	ck_assert(look(&p) && !p.known);
	py_process_fini(&p);
	make(3);
	put64(RUNTIME + 16, 1);
	ck_assert(look(&p) && !p.known && p.free_threaded);
	py_process_fini(&p);
}

/* Each kind of entry of a table of lines; -1: the function has not begun. */
START_TEST(lines)
{
	static const struct {
		int unit, line;
	} of[] = {{-1, 100}, {0, 100}, {1, 101}, {2, 101}, {3, 106}, {4, 104}, {5, 0}, {6, 104},
		{7, 0}};
	struct py_process p;

	make(1);
	put64(FRAMES + 56, (uint64_t)((int64_t)place(CODE) + 184 + of[_i].unit * 2));
	ck_assert(look(&p) && p.n == 1);
	ck_assert_int_eq(p.threads[0].inner[0].line, of[_i].line);
	py_process_fini(&p);
}

START_TEST(ten_thousand_frames)
{
	struct py_process p;

	make(10000);
	ck_assert(look(&p) && p.n == 1 && !p.threads[0].broken);
	ck_assert(p.threads[0].n == 10000 && p.threads[0].n_inner == PY_ENDS &&
		  p.threads[0].n_outer == PY_ENDS);
	ck_assert_str_eq(p.threads[0].outer[PY_ENDS - 1].name, "f");
	py_process_fini(&p);
}

START_TEST(frames_in_a_circle)
{
	struct py_process p;

	make(100);
	put64(FRAMES + 99 * FRAME + 48, place(FRAMES + 60 * FRAME));
	ck_assert(look(&p) && p.n == 1 && p.threads[0].broken);
	ck_assert(p.threads[0].n < 1000 && reads < 10000);
	put64(FRAMES + 48, 1); /* and one that leads nowhere */
	py_process_fini(&p);
	ck_assert(look(&p) && p.threads[0].broken && p.threads[0].n == 1);
	py_process_fini(&p);
}

/* Threads in a circle, each with a long stack: what all may cost together is bounded. */
START_TEST(threads_in_a_circle)
{
	struct py_process p;
	uint64_t frames = 0;
	uint32_t i;

	make(10000);
	put64(THREAD + 8, place(THREAD));
	put64(INTERPRETER, place(INTERPRETER));
	ck_assert(look(&p) && p.n == PY_THREADS_MOST && p.more > 0);
	for (i = 0; i < p.n; i++)
		frames += p.threads[i].n;
	ck_assert(p.threads[PY_THREADS_MOST - 1].broken && frames <= 4 * PY_FRAMES_MOST);
	ck_assert_msg(reads < READS, "%u reads", reads);
	py_process_fini(&p);
}

START_TEST(names_of_any_bytes)
{
	static const uint16_t wide[] = {0xe9, 0xdc80, 0, 0xd812, 'x'};
	char longest[600];
	struct py_process p;

	make(1);
	put_text(NAME, wide, 5, 2);
	ck_assert(look(&p));
	ck_assert_str_eq(p.threads[0].inner[0].name, "\u00e9\x80?\ufffdx");
	py_process_fini(&p);
	memset(longest, 'a', sizeof(longest));
	put_text(NAME, longest, sizeof(longest), 1);
	ck_assert(look(&p));
	ck_assert_uint_lt(strlen(p.threads[0].inner[0].name), sizeof(p.threads[0].inner[0].name));
	ck_assert_str_eq(strchr(p.threads[0].inner[0].name, '\xe2'), "\u2026");
	py_process_fini(&p);
	put64(NAME + 16, UINT64_MAX);
	ck_assert(look(&p) && strchr(p.threads[0].inner[0].name, '\xe2') != NULL);
	py_process_fini(&p);
	put64(NAME + 8, place(CODE_TYPE)); /* no text */
	ck_assert(look(&p) && p.threads[0].inner[0].name[0] == '\0');
	py_process_fini(&p);
}

START_TEST(other_versions)
{
	struct py_process p;

	make(1);
	put64(VERSION, 0x030e00f0);
	ck_assert(look(&p) && !p.known && p.n == 0 && p.version == 0x030e00f0);
	py_process_fini(&p);
	image[STRINGS + 1 + sizeof("_PyRuntime") + sizeof("PyCode_Type") +
		sizeof("PyUnicode_Type")] = 'X';
	ck_assert(look(&p) && !p.known && p.version == 0);
	py_process_fini(&p);
	image[STRINGS + 1] = 'X';
	ck_assert(!look(&p));
	image[0] = 'X';
	ck_assert(!look(&p));
}

/* A word that is another: any answer will do that ends. */
START_TEST(noise)
{
	struct py_process p;
	uint32_t i, at;
	uint64_t w;

	srand(7);
	for (i = 0; i < 3000; i++) {
		v = i % 3;
		make(40);
		at = (uint32_t)rand() % ((FRAMES + 40 * FRAME) / 8) * 8;
		if (rand() % 4 != 0)
			at = (const uint32_t[]){DYNAMIC, HASH, SYMBOLS, RUNTIME + 40, INTERPRETER,
				     THREAD, CODE + 64, NAME, LINES, FRAMES}[rand() % 10] +
			     (uint32_t)rand() % 16 * 8;
		w = rand() % 2 != 0 ? place((uint32_t)rand() % BYTES)
				    : (uint64_t)rand() << (rand() % 40) ^ (uint64_t) - (rand() % 2);
		put64(at, w);
		if (look(&p))
			py_process_fini(&p);
		ck_assert_msg(reads < READS, "%u reads of image %u", reads, i);
	}
}

Suite *suite(void)
{
	Suite *s = suite_create("view_py_stack");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, first_version, NULL);
	tcase_add_loop_test(t, a_stack, 0, 3);
	tcase_add_test(t, said);
	tcase_add_loop_test(t, lines, 0, 9);
	tcase_add_test(t, ten_thousand_frames);
	tcase_add_test(t, frames_in_a_circle);
	tcase_add_test(t, threads_in_a_circle);
	tcase_add_test(t, names_of_any_bytes);
	tcase_add_test(t, other_versions);
	tcase_add_test(t, noise);
	suite_add_tcase(s, t);
	return s;
}
