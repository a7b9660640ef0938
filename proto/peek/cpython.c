/* SPDX-License-Identifier: MIT. cpython.c: interpreters, threads, frames, code objects and texts of CPython 3.11 to 3.13.
 *
 * Offsets of 3.11 and 3.12 are those of their headers with Py_BUILD_CORE, the same in every 3.11.N and 3.12.N; 3.13 says
 * its own at the beginning of _PyRuntime. Another minor version has others: it is named, and nothing of it is read.
 */
#include "cpython.h"

#include <string.h>

enum {
	OBJECT_TYPE = 8,
	BYTES_SIZE = 16,
	BYTES_DATA = 32,
	TEXT_LENGTH = 16,
	TEXT_STATE = 32,
	TEXT_HEAD = 40,
	OWNED_BY_C = 3, /* frame_owner, from 3.12 on */
};

static const struct cpython_layout layout_311 = {
	.interpreters = 40,
	.threads = 16,
	.gil_holder = 368,
	.gil_locked = 376,
	.next_thread = 8,
	.interpreter = 16,
	.frame = 56,
	.tid = 160,
	.cframe_current = 8,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instruction = 56,
	.code_first = 72,
	.code_file = 112,
	.code_name = 128, /* the qualified one */
	.code_lines = 136,
	.code_instructions = 184,
	.text_ascii = 48,
	.text_wide = 72,
};

static const struct cpython_layout layout_312 = {
	.interpreters = 40,
	.threads = 72,
	.gil = 384,
	.gil_holder = 8,
	.gil_locked = 16,
	.next_thread = 8,
	.interpreter = 16,
	.frame = 56,
	.tid = 144,
	.frame_previous = 8,
	.frame_instruction = 56,
	.frame_owner = 70,
	.code_first = 68,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_instructions = 192,
	.text_ascii = 40,
	.text_wide = 56,
};

/* What 3.13 says of itself, in words of 64 bits; its order may differ in other versions. */
enum said {
	SAID_COOKIE,
	SAID_VERSION,
	SAID_FREE_THREADED,
	SAID_INTERPRETERS = 5,
	SAID_NEXT_INTERPRETER = 8,
	SAID_THREADS,
	SAID_GIL = 14,
	SAID_GIL_STATE, /* an interpreter's own, to which the next two belong */
	SAID_GIL_LOCKED = 17,
	SAID_GIL_HOLDER,
	SAID_NEXT_THREAD = 21,
	SAID_INTERPRETER,
	SAID_FRAME,
	SAID_TID = 25,
	SAID_FRAME_PREVIOUS = 29,
	SAID_FRAME_CODE,
	SAID_FRAME_INSTRUCTION,
	SAID_FRAME_OWNER = 33,
	SAID_CODE_FILE = 35,
	SAID_CODE_NAME = 37,
	SAID_CODE_LINES,
	SAID_CODE_FIRST,
	SAID_CODE_INSTRUCTIONS = 43,
	SAID_TEXT_ASCII = 70,
	SAID_WORDS,
};

static uint64_t word(struct memory *m, uint64_t at)
{
	uint64_t v;

	return m->read(m, at, &v, sizeof(v)) ? v : 0;
}

static uint64_t word_in(const uint8_t *bytes, uint32_t at)
{
	uint64_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

/* --- which Python --- */

static bool fits(const struct cpython_layout *l)
{
	const uint32_t state[] = {l->next_thread, l->interpreter, l->frame, l->tid},
		       frame[] = {l->frame_code, l->frame_previous, l->frame_instruction,
			       l->frame_owner},
		       code[] = {l->code_first, l->code_file, l->code_name, l->code_lines};
	uint32_t i;

	for (i = 0; i < sizeof(code) / sizeof(code[0]); i++)
		if (state[i] > CPYTHON_STATE_BYTES - 8 || frame[i] > CPYTHON_FRAME_BYTES - 8 ||
			code[i] > CPYTHON_CODE_BYTES - 8)
			return false;
	return true;
}

/* Any other number reads something else, and nothing is believed. */
static uint32_t said_at(const uint64_t *said, enum said i)
{
	return said[i] < CPYTHON_AT_MOST ? (uint32_t)said[i] : 0;
}

static bool read_said(struct cpython *py)
{
	uint64_t said[SAID_WORDS];
	struct cpython_layout *l = &py->at;

	if (!py->m->read(py->m, py->runtime, said, sizeof(said)) ||
		memcmp(&said[SAID_COOKIE], "xdebugpy", 8) != 0)
		return false;
	py->free_threaded = said[SAID_FREE_THREADED] != 0;
	if (said[SAID_VERSION] >> 16 != py->version >> 16 || py->free_threaded)
		return false;
	*l = (struct cpython_layout){
		.interpreters = said_at(said, SAID_INTERPRETERS),
		.next_interpreter = said_at(said, SAID_NEXT_INTERPRETER),
		.threads = said_at(said, SAID_THREADS),
		.gil = said_at(said, SAID_GIL),
		.gil_holder = said_at(said, SAID_GIL_HOLDER) - said_at(said, SAID_GIL_STATE),
		.gil_locked = said_at(said, SAID_GIL_LOCKED) - said_at(said, SAID_GIL_STATE),
		.next_thread = said_at(said, SAID_NEXT_THREAD),
		.interpreter = said_at(said, SAID_INTERPRETER),
		.frame = said_at(said, SAID_FRAME),
		.tid = said_at(said, SAID_TID),
		.cframe_current = UINT32_MAX,
		.frame_code = said_at(said, SAID_FRAME_CODE),
		.frame_previous = said_at(said, SAID_FRAME_PREVIOUS),
		.frame_instruction = said_at(said, SAID_FRAME_INSTRUCTION),
		.frame_owner = said_at(said, SAID_FRAME_OWNER),
		.code_first = said_at(said, SAID_CODE_FIRST),
		.code_file = said_at(said, SAID_CODE_FILE),
		.code_name = said_at(said, SAID_CODE_NAME),
		.code_lines = said_at(said, SAID_CODE_LINES),
		.code_instructions = said_at(said, SAID_CODE_INSTRUCTIONS),
		.text_ascii = said_at(said, SAID_TEXT_ASCII),
		.text_wide = said_at(said, SAID_TEXT_ASCII) + 16,
	};
	return fits(l);
}

void cpython_open(struct cpython *ret, struct memory *m, const struct cpython_symbols *s)
{
	uint32_t version = 0;

	*ret = (struct cpython){.m = m,
		.runtime = s->runtime,
		.code_type = s->code_type,
		.text_type = s->text_type};
	if (s->runtime == 0 || s->version == 0 || !m->read(m, s->version, &version, 4))
		return;
	ret->version = version;
	if (s->code_type == 0 || s->text_type == 0)
		return;
	if (version >> 16 == 0x030b)
		ret->at = layout_311;
	else if (version >> 16 == 0x030c)
		ret->at = layout_312;
	ret->known = version >> 16 == 0x030d ? read_said(ret) : ret->at.tid != 0;
}

/* --- threads and frames --- */

uint64_t cpython_interpreter(const struct cpython *py, uint64_t after)
{
	return word(py->m,
		after == 0 ? py->runtime + py->at.interpreters : after + py->at.next_interpreter);
}

uint64_t cpython_first_thread(const struct cpython *py, uint64_t interpreter)
{
	return word(py->m, interpreter + py->at.threads);
}

uint64_t cpython_gil_holder(const struct cpython *py, uint64_t interpreter)
{
	const uint64_t gil = py->at.gil != 0 ? word(py->m, interpreter + py->at.gil) : py->runtime;
	uint32_t locked = 0;

	if (gil == 0 || !py->m->read(py->m, gil + py->at.gil_locked, &locked, sizeof(locked)) ||
		locked != 1)
		return 0;
	return word(py->m, gil + py->at.gil_holder);
}

bool cpython_thread(
	const struct cpython *py, uint64_t interpreter, uint64_t at, struct cpython_thread *ret)
{
	const struct cpython_layout *l = &py->at;
	uint8_t state[CPYTHON_STATE_BYTES];
	const uint32_t bytes = (l->tid > l->frame ? l->tid : l->frame) + 8;

	if (!py->m->read(py->m, at, state, bytes) || word_in(state, l->interpreter) != interpreter)
		return false;
	ret->next = word_in(state, l->next_thread);
	ret->tid = word_in(state, l->tid);
	ret->frame = word_in(state, l->frame);
	ret->native = l->cframe_current != UINT32_MAX ? ret->frame : 0;
	if (l->cframe_current != UINT32_MAX && ret->frame != 0)
		ret->frame = word(py->m, ret->frame + l->cframe_current);
	return true;
}

bool cpython_frame(const struct cpython *py, uint64_t at, struct cpython_frame *ret)
{
	const struct cpython_layout *l = &py->at;
	uint8_t frame[CPYTHON_FRAME_BYTES];
	const uint32_t bytes =
		(l->frame_owner > l->frame_instruction + 7 ? l->frame_owner
							   : l->frame_instruction + 7) +
		1;

	if (!py->m->read(py->m, at, frame, bytes))
		return false;
	ret->previous = word_in(frame, l->frame_previous);
	ret->code = word_in(frame, l->frame_code);
	ret->instruction = word_in(frame, l->frame_instruction);
	ret->entry = l->frame_owner != 0 && frame[l->frame_owner] == OWNED_BY_C;
	return true;
}

bool cpython_code_in(const struct cpython *py, const uint8_t *bytes, struct cpython_code *ret)
{
	const struct cpython_layout *l = &py->at;

	if (word_in(bytes, OBJECT_TYPE) != py->code_type)
		return false;
	ret->name = word_in(bytes, l->code_name);
	ret->file = word_in(bytes, l->code_file);
	ret->lines = word_in(bytes, l->code_lines);
	memcpy(&ret->first, bytes + l->code_first, sizeof(ret->first));
	return true;
}

/* --- names --- */

static uint32_t unit(const uint8_t *p, uint32_t width)
{
	uint32_t v = 0;

	memcpy(&v, p, width);
	return v;
}

/* A character as UTF-8; a byte that Python could not decode (U+DC80..) is that byte again. */
static uint32_t put_character(uint32_t c, char ret[4])
{
	if (c >= 0xdc80 && c <= 0xdcff) {
		ret[0] = (char)(c - 0xdc00);
		return 1;
	}
	if ((c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 63));
		ret[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 63));
	ret[2] = (char)(0x80 | (c >> 6 & 63));
	ret[3] = (char)(0x80 | (c & 63));
	return 4;
}

void cpython_text(const struct cpython *py, uint64_t at, char *ret, size_t most)
{
	static const char cut[] = "\u2026";
	uint8_t head[TEXT_HEAD], data[512];
	uint32_t state, width, bytes, got;
	uint64_t length, i;
	char c[4];
	size_t n = 0;

	*ret = '\0';
	if (!py->m->read(py->m, at, head, sizeof(head)) ||
		word_in(head, OBJECT_TYPE) != py->text_type)
		return;
	state = unit(head + TEXT_STATE, 4);
	width = state >> 2 & 7;
	length = word_in(head, TEXT_LENGTH);
	if ((width != 1 && width != 2 && width != 4) || (state >> 5 & 1) == 0)
		return;
	bytes = (uint32_t)(length < sizeof(data) / width ? length : sizeof(data) / width) * width;
	most -= sizeof(cut);
	at += (state >> 6 & 1) != 0 ? py->at.text_ascii : py->at.text_wide;
	if (!py->m->read(py->m, at, data, bytes))
		return;
	for (i = 0; i < bytes; i += width) {
		got = put_character(unit(data + i, width), c);
		if (n + got >= most)
			break;
		if (c[0] == '\0') /* the name goes on behind it */
			c[0] = '?';
		memcpy(ret + n, c, got);
		n += got;
	}
	ret[n] = '\0';
	if (i / width < length)
		memcpy(ret + n, cut, sizeof(cut));
}

/* --- lines --- */

struct lines {
	struct memory *m;
	uint64_t at, left; /* not read yet */
	uint8_t buf[256];
	uint32_t i, n;
};

static bool next_byte(struct lines *l, uint8_t *ret)
{
	if (l->i == l->n) {
		l->n = (uint32_t)(l->left < sizeof(l->buf) ? l->left : sizeof(l->buf));
		l->i = 0;
		if (l->n == 0 || !l->m->read(l->m, l->at, l->buf, l->n)) {
			l->n = 0;
			return false;
		}
		l->at += l->n;
		l->left -= l->n;
	}
	*ret = l->buf[l->i++];
	return true;
}

static bool next_number(struct lines *l, uint32_t *ret)
{
	uint32_t shift;
	uint8_t b = 64;

	*ret = 0;
	for (shift = 0; shift < 30 && (b & 64) != 0; shift += 6) {
		if (!next_byte(l, &b))
			return false;
		*ret |= (uint32_t)(b & 63) << shift;
	}
	return (b & 64) == 0;
}

#define LINES_MOST  (1u << 20) /* bytes of a table that are followed */
#define ENTRY_SHORT 10u        /* below: the same line; to 12: 0 to 2 lines on */
#define ENTRY_LINE  13u
#define ENTRY_LONG  14u
#define ENTRY_NONE  15u

/* The location table of PEP 626 as 3.11 writes it (Objects/locations.md): the line of a code unit; 0: it has none. */
static int32_t line_of(struct lines *l, int64_t at, int32_t first)
{
	int64_t line = first, unit_at = 0;
	uint32_t v, code, skip;
	uint8_t head, b;

	while (next_byte(l, &head)) {
		code = head >> 3 & 15;
		skip = code < ENTRY_SHORT ? 1 : code < ENTRY_LINE ? 2 : 0;
		if (code >= ENTRY_SHORT && code < ENTRY_LINE)
			line += code - ENTRY_SHORT;
		if (code == ENTRY_LINE || code == ENTRY_LONG) {
			if (!next_number(l, &v))
				return 0;
			line += (v & 1) != 0 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
		}
		for (; skip > 0; skip--)
			if (!next_byte(l, &b))
				return 0;
		if (code == ENTRY_LONG)
			for (skip = 0; skip < 3; skip++)
				if (!next_number(l, &v))
					return 0;
		unit_at += (head & 7) + 1;
		if (at < unit_at)
			return code == ENTRY_NONE || line < 1 || line > INT32_MAX ? 0
										  : (int32_t)line;
	}
	return 0;
}

int32_t cpython_line(
	const struct cpython *py, uint64_t code, const struct cpython_code *c, uint64_t instruction)
{
	struct lines l = {.m = py->m, .left = word(py->m, c->lines + BYTES_SIZE)};
	const uint64_t start = code + py->at.code_instructions;

	l.at = c->lines + BYTES_DATA;
	if (instruction < start) /* it has not begun */
		return c->first > 0 ? c->first : 0;
	return l.left <= LINES_MOST ? line_of(&l, (int64_t)((instruction - start) / 2), c->first)
				    : 0;
}
