/* SPDX-License-Identifier: MIT. py_image.h: an image of a process's memory as CPython 3.11 to 3.13 lay it out: one
 * thread, whose frames are all of one function. */
#ifndef PY_IMAGE_H
#define PY_IMAGE_H

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define BASE  UINT64_C(0x500000000000)
#define BYTES (1u << 20)

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

static inline bool read_image(struct memory *m, uint64_t at, void *ret, size_t n)
{
	(void)m;
	reads++;
	if (at < BASE || at - BASE > BYTES || n > BYTES - (at - BASE))
		return false;
	memcpy(ret, image + (at - BASE), n);
	return true;
}

static inline void put(uint32_t at, const void *bytes, size_t n)
{
	memcpy(image + at, bytes, n);
}

static inline void put64(uint32_t at, uint64_t word)
{
	put(at, &word, sizeof(word));
}

static inline void put32(uint32_t at, uint32_t word)
{
	put(at, &word, sizeof(word));
}

static inline uint64_t place(uint32_t at)
{
	return BASE + at;
}

static inline void make_symbols(void)
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

static inline void put_text(uint32_t at, const void *s, uint64_t length, uint32_t width)
{
	put64(at + 8, place(TEXT_TYPE));
	put64(at + 16, length);
	put32(at + 32, width << 2 | 1u << 5 | 1u << 6);
	put(at + in[v].ascii, s, (size_t)length * width);
}

/* What 3.13 says of itself at the beginning of its runtime. */
static inline void put_said(void)
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
static inline void make(uint32_t n)
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

#endif
